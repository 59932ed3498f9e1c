package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/catalog"
)

// maxDepth bounds nesting. Real schemas stay below 50; the code behind us recurses.
const maxDepth = 500

// bodyBinder is echo's Binder. It takes bodies only: paths and queries are decoded by the
// generated server, and must not leak into a body's members.
type bodyBinder struct {
	limit   int64
	timeout time.Duration
}

// Bind decodes a JSON body into target and words what is wrong with it. The error of an
// empty body wraps io.EOF, by which the generated server knows that an optional body is
// absent.
func (b bodyBinder) Bind(target any, c echo.Context) error {
	body, err := b.read(c)
	if err != nil {
		return err
	}
	digest(c.Request(), body)
	if len(bytes.TrimSpace(body)) == 0 {
		return invalid("The request body is empty: a JSON object is expected").Because(io.EOF)
	}
	if err := checkText(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, target); err != nil {
		return bodyError(err, body)
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); trimmed[0] != '{' {
		return invalid("The request body must be a JSON object")
	}
	return nil
}

// read takes the whole body off the wire and decompresses it.
func (b bodyBinder) read(c echo.Context) (body []byte, err error) {
	r := c.Request()
	conn := http.NewResponseController(c.Response().Writer)
	// A recorder in a test has no deadlines. The deadline ends with the body: past it the
	// server watches the connection for the client going away, and may do so for long.
	// After a failure it stays, because the server then waits for the rest of the body
	// before it answers.
	_ = conn.SetReadDeadline(time.Now().Add(b.timeout))
	defer func() {
		if err == nil {
			_ = conn.SetReadDeadline(time.Time{})
		}
	}()
	if err := checkContentType(r.Header.Get(echo.HeaderContentType)); err != nil {
		return nil, err
	}
	if r.ContentLength > b.limit {
		return nil, b.tooLarge()
	}
	raw := http.MaxBytesReader(c.Response().Writer, r.Body, b.limit)
	plain := io.Reader(raw)
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get(echo.HeaderContentEncoding))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(raw)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, b.readError(err)
		}
		plain = io.LimitReader(z, b.limit+1)
	default:
		return nil, &httpError{
			wireForm{http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException"},
			fmt.Sprintf("Unsupported Content-Encoding %q: send the body as it is or with gzip", encoding),
		}
	}
	if body, err = io.ReadAll(plain); err != nil {
		return nil, b.readError(err)
	}
	if int64(len(body)) > b.limit {
		return nil, b.tooLarge()
	}
	return body, nil
}

func (b bodyBinder) tooLarge() error {
	return catalog.Errorf(catalog.KindTooLarge, "The request body is over the limit of %d bytes", b.limit)
}

func (b bodyBinder) readError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return b.tooLarge()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &httpError{
			wireForm{http.StatusRequestTimeout, "RequestTimeoutException"},
			fmt.Sprintf("The request body did not arrive within %s", b.timeout),
		}
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return invalid("The request body is not valid gzip, though Content-Encoding says so").Because(err)
	}
	return invalid("The request body could not be read to its end").Because(err)
}

// checkContentType refuses what is plainly something else. Nothing at all is taken for
// JSON, as most servers do.
func checkContentType(value string) error {
	if value == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(value)
	if err == nil && (media == echo.MIMEApplicationJSON || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return &httpError{
		wireForm{http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException"},
		fmt.Sprintf("Unsupported Content-Type %q: send application/json", value),
	}
}

// checkText refuses what the decoder would let through and others choke on: bytes that
// are not UTF-8, which it would replace, and nesting without end.
func checkText(body []byte) error {
	if !utf8.Valid(body) {
		return invalid("The request body is not valid UTF-8 at offset %d", invalidOffset(body))
	}
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return invalid("The request body is nested deeper than %d levels at offset %d", maxDepth, i)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func invalidOffset(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// bodyError says what is wrong and where.
func bodyError(err error, body []byte) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		if e.Offset >= int64(len(body)) {
			return invalid("Malformed JSON: the request body ends too early, at offset %d", e.Offset)
		}
		return invalid("Malformed JSON at offset %d: %s", e.Offset, e.Error())
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return invalid("The request body must be a JSON object, not %s", article(e.Value))
		}
		return invalid("Invalid member %s at offset %d: %s is expected, not %s", e.Field, e.Offset, jsonType(e.Type.Kind().String()), article(e.Value))
	}
	return invalid("The request body cannot be decoded").Because(err)
}

// jsonType names a Go kind as a person who writes JSON knows it.
func jsonType(kind string) string {
	switch kind {
	case "struct", "map":
		return "an object"
	case "slice", "array":
		return "an array"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	case "ptr":
		return "another type"
	default:
		return "a number"
	}
}

func article(value string) string {
	if strings.HasPrefix(value, "a") || strings.HasPrefix(value, "o") {
		return "an " + value
	}
	return "a " + value
}

// properties checks a map of properties: JSON null is not a string, and a NUL character
// fits into no database.
func properties(in *map[string]*string, member string) (map[string]string, error) {
	if in == nil {
		return nil, nil
	}
	out := make(map[string]string, len(*in))
	for k, v := range *in {
		if v == nil {
			return nil, invalid("Invalid member %s: the value of %q must be a string, not null", member, k)
		}
		if strings.ContainsRune(k, 0) || strings.ContainsRune(*v, 0) {
			return nil, invalid("Invalid member %s: %q holds a NUL character", member, k)
		}
		out[k] = *v
	}
	return out, nil
}

// object checks that a raw member is there and is a JSON object.
func object(raw json.RawMessage, member string) error {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return invalid("Missing member %s", member)
	case raw[0] != '{':
		return invalid("Invalid member %s: an object is expected", member)
	}
	return nil
}

// objects checks the elements of an array of raw members.
func objects(raws []json.RawMessage, member string) error {
	for i, raw := range raws {
		if err := object(raw, fmt.Sprintf("%s[%d]", member, i)); err != nil {
			return err
		}
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
