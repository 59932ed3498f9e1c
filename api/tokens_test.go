package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// A form that cannot be read is the client's fault, and is not kept while it is read.
func TestTokens_refuseWhatIsNoForm(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	for _, c := range []struct {
		contentType, body string
		status            int
		want              string
	}{
		{"multipart/form-data", "grant_type=client_credentials", http.StatusBadRequest, `"error":"invalid_request"`},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"grant_type\"\r\n\r\ny\r\n--x--\r\n", http.StatusBadRequest, `"error":"invalid_request"`},
		{"application/json", `{"grant_type":"client_credentials"}`, http.StatusBadRequest, `"error":"invalid_request"`},
		{"", "grant_type=client_credentials", http.StatusBadRequest, `"error":"invalid_request"`},
		{"a/b/c", "grant_type=client_credentials", http.StatusBadRequest, `"error":"invalid_request"`},
		{"application/x-www-form-urlencoded", "grant_type=%zz", http.StatusBadRequest, `"error":"invalid_request"`},
		{"application/x-www-form-urlencoded", "grant_type=a&grant_type=b", http.StatusBadRequest, `"error":"`},
		{"Application/X-WWW-form-urlencoded; charset=utf-8", "grant_type=password", http.StatusBadRequest, `"error":"unsupported_grant_type"`},
		{"application/x-www-form-urlencoded", "grant_type=" + strings.Repeat("a", 1<<20), http.StatusRequestEntityTooLarge, "RequestTooLargeException"},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + strings.Repeat("a", 1<<20), http.StatusBadRequest, `"error":"invalid_request"`},
	} {
		w := s.do(request{method: http.MethodPost, path: "/v1/oauth/tokens", body: c.body, header: http.Header{"Content-Type": {c.contentType}}})
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%q %.60q = %d %s, want %d %s", c.contentType, c.body, w.Code, w.Body, c.status, c.want)
		}
	}
}
