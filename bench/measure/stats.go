// Package measure runs operations in closed loops, by turns against several servers, and
// compares the servers by medians over the turns.
package measure

import (
	"math"
	"slices"
	"time"
)

// Percentile is the nearest-rank percentile of sorted times, 0 without times.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the middle of values, or the mean of the two in the middle. It is NaN without
// values, so that a missing measurement never looks like a good one.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Milliseconds is d in the unit of the report.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
