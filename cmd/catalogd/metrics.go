package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/catalogd/catalogd/mv"
)

// refreshMetrics counts the refreshes of this process.
type refreshMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	read     prometheus.Counter
	written  prometheus.Counter
	cpu      prometheus.Counter
}

func newRefreshMetrics(r prometheus.Registerer) *refreshMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &refreshMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_refreshes_total", Help: "Refreshes of materialized views that ended, by strategy, status and reason.",
		}, []string{"strategy", "status", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "catalogd_refresh_duration_seconds", Help: "Duration of successful refreshes.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 12),
		}, []string{"strategy"}),
		read:    counter("catalogd_refresh_read_bytes_total", "Bytes of column chunks that refreshes read."),
		written: counter("catalogd_refresh_written_bytes_total", "Bytes of data files that refreshes wrote."),
		cpu:     counter("catalogd_refresh_engine_cpu_seconds_total", "CPU time of the engine's processes in refreshes."),
	}
	r.MustRegister(m.total, m.duration, m.read, m.written, m.cpu)
	return m
}

// observe takes in an ended run.
func (m *refreshMetrics) observe(r mv.Refresh) {
	m.total.WithLabelValues(r.Strategy, string(r.Status), r.Reason).Inc()
	m.read.Add(float64(r.BytesRead))
	m.written.Add(float64(r.BytesWritten))
	m.cpu.Add(r.CPUSeconds)
	if r.Status == mv.RefreshSucceeded {
		m.duration.WithLabelValues(r.Strategy).Observe(r.Ended.Sub(r.Started).Seconds())
	}
}
