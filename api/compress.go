package api

import (
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
)

// compressFrom is the size from which an answer is worth compressing: smaller ones fit
// into one packet anyway.
const compressFrom = 1400

var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant that gzip knows
	}
	return w
}}

// compress packs large JSON answers, lists above all, for clients that take gzip. Spliced
// documents are compressed already and pass.
func compress(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !exchangeOf(c.Request().Context()).acceptsGzip || c.Request().Method == http.MethodHead {
			return next(c)
		}
		w := &compressWriter{ResponseWriter: c.Response().Writer}
		c.Response().Writer = w
		defer func() { c.Response().Writer = w.ResponseWriter }()
		err := next(c)
		return w.close(err)
	}
}

// compressWriter decides at the first write, when headers and the size are known: an
// answer of ours is one write.
type compressWriter struct {
	http.ResponseWriter
	status int
	z      *gzip.Writer
	begun  bool
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *compressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader waits for the first write.
func (w *compressWriter) WriteHeader(status int) { w.status = status }

func (w *compressWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begin(len(p))
	}
	if w.z != nil {
		return w.z.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

func (w *compressWriter) begin(size int) {
	w.begun = true
	h := w.Header()
	isJSON := strings.HasPrefix(h.Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
	if isJSON && size >= compressFrom && h.Get(echo.HeaderContentEncoding) == "" {
		h.Set(echo.HeaderContentEncoding, "gzip")
		h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		h.Del(echo.HeaderContentLength)
		w.z = compressors.Get().(*gzip.Writer)
		w.z.Reset(w.ResponseWriter)
	}
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// close ends the answer. One that failed halfway stays without an end.
func (w *compressWriter) close(err error) error {
	if !w.begun && w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status) // no body at all
	}
	if w.z == nil {
		return err
	}
	defer compressors.Put(w.z)
	if err != nil {
		return err
	}
	return w.z.Close()
}
