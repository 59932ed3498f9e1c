package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

const (
	maxRequestID = 128
	maxLogged    = 200
	// writeTimeout bounds how long one answer may take, computing included. A waiting
	// refresh asks for more.
	writeTimeout = 5 * time.Minute
)

// exchange is what handlers behind the generated server need of the HTTP request.
type exchange struct {
	id          string
	acceptsGzip bool
	conn        *http.ResponseController
}

type exchangeKey struct{}

// exchangeOf finds the request behind ctx; outside of a request it is empty.
func exchangeOf(ctx context.Context) exchange {
	x, _ := ctx.Value(exchangeKey{}).(exchange)
	return x
}

// normalize runs before routing and irons out how clients write URLs and headers.
func normalize(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		// With the escaped path always set, routing happens on it and each segment is
		// decoded exactly once: %2F stays inside its segment, and %2541 is %41, not A.
		r.URL.RawPath = r.URL.EscapedPath()
		if isJava(r) {
			// Java's client encodes path segments as form values: + is its space, and a
			// plus sign comes as %2B. Everybody else means + by +.
			r.URL.RawPath = strings.ReplaceAll(r.URL.RawPath, "+", "%20")
		}
		for _, name := range []string{"If-None-Match", "X-Iceberg-Access-Delegation"} {
			if lines := r.Header.Values(name); len(lines) > 1 { // one list, spread over lines
				r.Header.Set(name, strings.Join(lines, ", "))
			}
		}
		return next(c)
	}
}

// isJava recognises Iceberg's Java library, in Spark, Trino, Flink and others.
func isJava(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("X-Client-Version"), "Apache Iceberg")
}

// checkQuery refuses a query that cannot be read. Parameters that nobody knows are no
// reason to refuse, but a broken escape may hide one that matters.
func checkQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := url.ParseQuery(c.Request().URL.RawQuery); err != nil {
			return invalid("Malformed query string: %s", err.Error())
		}
		return next(c)
	}
}

// refuseCrossOrigin keeps pages of other sites from using a person's browser to reach a
// catalog that trusts its network. Programs send none of the headers it looks at.
func refuseCrossOrigin() echo.MiddlewareFunc {
	protection := http.NewCrossOriginProtection()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := protection.Check(c.Request()); err != nil {
				return &httpError{wireForm{http.StatusForbidden, "ForbiddenException"}, "Requests from pages of another origin are refused"}
			}
			return next(c)
		}
	}
}

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// recoverPanics turns a panic into an error, so that it is answered and logged like one.
func recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{value: v, stack: debug.Stack()}
			}
		}()
		return next(c)
	}
}

// observe gives a request its id, answers its failure, and counts and logs it.
func observe(log *slog.Logger, m *metrics) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			r, w := c.Request(), c.Response()
			x := exchange{
				id:          requestIDOf(r),
				acceptsGzip: acceptsGzip(r.Header.Values(echo.HeaderAcceptEncoding)),
				conn:        http.NewResponseController(w.Writer),
			}
			_ = x.conn.SetWriteDeadline(start.Add(writeTimeout)) // a recorder in a test has none
			w.Header().Set(echo.HeaderXRequestID, x.id)
			c.SetRequest(r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))

			err := next(c)
			broken := err != nil && w.Committed
			if err != nil && !broken {
				c.Error(err)
			}
			if broken {
				level := slog.LevelError
				if r.Context().Err() != nil {
					level = slog.LevelDebug // the client hung up
				}
				log.LogAttrs(r.Context(), level, "answer broken off",
					slog.String("request_id", x.id), slog.String("route", c.Path()), slog.Any("error", err))
			}
			took := time.Since(start)
			m.observe(r.Method, c.Path(), w.Status, took)
			log.InfoContext(r.Context(), "request",
				slog.String("request_id", x.id), slog.String("method", r.Method), slog.String("route", c.Path()),
				slog.String("path", cut(r.URL.EscapedPath())), slog.Int("status", w.Status), slog.Duration("duration", took),
				slog.Int64("bytes", w.Size), slog.String("user_agent", cut(r.UserAgent())))
			if broken {
				panic(http.ErrAbortHandler) // half an answer must not look like a whole one
			}
			return nil
		}
	}
}

// requestIDOf takes the client's request id if it is fit for a log line.
func requestIDOf(r *http.Request) string {
	id := r.Header.Get(echo.HeaderXRequestID)
	if id == "" || len(id) > maxRequestID {
		return uuid.NewString()
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return uuid.NewString()
		}
	}
	return id
}

func cut(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "…"
	}
	return s
}

// acceptsGzip reads Accept-Encoding: gzip counts if it is named without a weight of zero,
// or if everything is accepted.
func acceptsGzip(values []string) bool {
	wildcard := false
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, params, _ := strings.Cut(item, ";")
		accepted := true
		if q, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(params), " ", ""), "q="); ok {
			weight, err := strconv.ParseFloat(q, 64)
			accepted = err == nil && weight > 0
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			wildcard = accepted
		}
	}
	return wildcard
}
