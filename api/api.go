package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/catalogd/catalogd/api/managerest"
	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/mv"
)

// Config is what the HTTP surface needs.
type Config struct {
	Catalog Catalog // required
	Planner Planner // required
	// Views serves catalogd's own operations; nil leaves them out.
	Views mv.API
	// Warehouses and Life serve the operations that manage warehouses and the life of
	// tables; nil leaves them out.
	Warehouses Warehouses
	Life       Life
	// Functions makes functions; required where Life is.
	Functions FunctionWriter
	Log       *slog.Logger // nil: nothing is logged
	// Ready reports what keeps this process from serving; nil or no problem means ready.
	Ready func(context.Context) []Problem
	// Metrics is where request metrics are registered and what /metrics shows. Nil: a
	// registry of its own.
	Metrics *prometheus.Registry
	// MaxBodyBytes bounds a request body, before and after decompression. 0: 64 MiB.
	MaxBodyBytes int64
	// BodyTimeout is how long a client may take to send a body. 0: one minute.
	BodyTimeout time.Duration
	// PollInterval is how often a waiting refresh request looks at its run. 0: 200 ms.
	PollInterval time.Duration
}

const (
	defaultMaxBodyBytes = 64 << 20
	defaultBodyTimeout  = time.Minute
	defaultPollInterval = 200 * time.Millisecond
)

// Problem says what is not ready.
type Problem struct {
	Component string `json:"component"`
	Message   string `json:"message"`
}

// server implements the strict servers of both contracts.
type server struct {
	catalog   Catalog
	planner   Planner
	endpoints []string // advertised by getConfig
}

// New builds the HTTP surface. The returned Echo is an [http.Handler]; more routes, for
// example a user interface, may be added to it.
func New(c Config) (*echo.Echo, error) {
	if c.Catalog == nil {
		return nil, errors.New("api: Config.Catalog is required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = defaultMaxBodyBytes
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = defaultBodyTimeout
	}
	if c.PollInterval == 0 {
		c.PollInterval = defaultPollInterval
	}
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}

	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	binder := bodyBinder{limit: c.MaxBodyBytes, timeout: c.BodyTimeout}
	e.Binder = binder
	e.HTTPErrorHandler = errorHandler(c.Log)
	e.Pre(normalize)
	e.Use(observe(c.Log, m), recoverPanics, compress, refuseCrossOrigin(), checkQuery, receipts, tokenForm(binder))

	s := &server{catalog: c.Catalog, planner: c.Planner}
	rest.RegisterHandlers(e, rest.NewStrictHandler(s, nil))
	s.endpoints = endpoints(e.Routes())
	if c.Views != nil {
		v := &viewServer{views: c.Views, poll: c.PollInterval}
		mvrest.RegisterHandlers(e, mvrest.NewStrictHandler(v, nil))
	}
	if c.Warehouses != nil && c.Life != nil {
		managerest.RegisterHandlers(e, managerest.NewStrictHandler(&manageServer{warehouses: c.Warehouses, life: c.Life, functions: c.Functions}, nil))
	}
	registerHealth(e, c.Ready, c.Metrics)
	return e, nil
}

// Limits of the HTTP server. Headers of real clients are below 8 KiB, tokens included.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// NewHTTPServer serves h with the limits that a server open to others needs, over
// HTTP/1.1 and cleartext HTTP/2. Bodies and answers have deadlines of their own, set per
// request, because a waiting refresh may take minutes.
func NewHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
	}
	if log != nil {
		s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // broken connections, TLS probes
	}
	return s
}
