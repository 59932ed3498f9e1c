package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
)

// The forms in which a document is served. They are part of the ETag.
const (
	shapeAll  = "all"
	shapeRefs = "refs"
)

// loaded is the answer to everything that returns table or view metadata: the stored
// document, spliced into the members around it.
type loaded struct {
	spliced
	etag string // empty for metadata that is only staged
	gzip bool
}

// answerLoaded builds the answer for the shape of l's document.
func answerLoaded(ctx context.Context, l catalog.Loaded, shape string) (loaded, error) {
	if l.Document == nil {
		return loaded{}, errors.New("api: the catalog returned no document")
	}
	out := loaded{gzip: exchangeOf(ctx).acceptsGzip}
	out.document = l.Document.All
	if shape == shapeRefs {
		out.document = l.Document.ForRefs()
	}
	location := l.Pointer.MetadataLocation
	out.prefix = []byte(`{"metadata":`)
	if location != "" {
		quoted, err := json.Marshal(location)
		if err != nil {
			return loaded{}, err
		}
		out.prefix = append(append([]byte(`{"metadata-location":`), quoted...), `,"metadata":`...)
	}
	out.suffix = []byte(`,"config":{}}`)
	if location != "" {
		out.etag = etag(location, shape, out.suffix)
	}
	return out, nil
}

// etag names an answer: the file, which never changes, the form in which it is served,
// and what is served along with it. It is the same for gzip and plain, because both are
// one representation to the clients, and a proxy that recompresses must not break it.
func etag(location, shape string, extra []byte) string {
	h := sha256.New()
	for _, part := range []string{location, shape, string(extra)} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// matches compares an If-None-Match list with an ETag, weakly: a proxy may have marked
// ours as weak. ETags of ours hold no comma.
func matches(ifNoneMatch *string, tag string) bool {
	if ifNoneMatch == nil || tag == "" {
		return false
	}
	for candidate := range strings.SplitSeq(*ifNoneMatch, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}

// write sends the answer.
func (l loaded) write(w http.ResponseWriter) error {
	h := w.Header()
	h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if l.etag != "" {
		h.Set("ETag", l.etag)
	}
	if l.gzip {
		h.Set(echo.HeaderContentEncoding, "gzip")
		h.Set(echo.HeaderContentLength, strconv.FormatInt(l.gzipSize(), 10))
		w.WriteHeader(http.StatusOK)
		return l.writeGzip(w)
	}
	h.Set(echo.HeaderContentLength, strconv.FormatInt(l.size(), 10))
	w.WriteHeader(http.StatusOK)
	return l.writePlain(w)
}

// notModified is a 304 with the headers that the 200 would have had.
type notModified struct{ etag string }

func (n notModified) write(w http.ResponseWriter) error {
	w.Header().Set("ETag", n.etag)
	w.Header().Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	w.WriteHeader(http.StatusNotModified)
	return nil
}

// The generated server asks each answer for a method of its operation's name.

// VisitCreateTableResponse implements [rest.CreateTableResponseObject].
func (l loaded) VisitCreateTableResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitRegisterTableResponse implements [rest.RegisterTableResponseObject].
func (l loaded) VisitRegisterTableResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitLoadTableResponse implements [rest.LoadTableResponseObject].
func (l loaded) VisitLoadTableResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitUpdateTableResponse implements [rest.UpdateTableResponseObject].
func (l loaded) VisitUpdateTableResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitUnregisterTableResponse implements [rest.UnregisterTableResponseObject].
func (l loaded) VisitUnregisterTableResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitRegisterViewResponse implements [rest.RegisterViewResponseObject].
func (l loaded) VisitRegisterViewResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitCreateViewResponse implements [rest.CreateViewResponseObject].
func (l loaded) VisitCreateViewResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitLoadViewResponse implements [rest.LoadViewResponseObject].
func (l loaded) VisitLoadViewResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitReplaceViewResponse implements [rest.ReplaceViewResponseObject].
func (l loaded) VisitReplaceViewResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitLoadTableResponse implements [rest.LoadTableResponseObject].
func (n notModified) VisitLoadTableResponse(w http.ResponseWriter) error { return n.write(w) }

// VisitLoadViewResponse implements [rest.LoadViewResponseObject].
func (n notModified) VisitLoadViewResponse(w http.ResponseWriter) error { return n.write(w) }

var (
	_ rest.LoadTableResponseObject = loaded{}
	_ rest.LoadViewResponseObject  = notModified{}
)
