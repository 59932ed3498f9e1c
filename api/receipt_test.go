package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/catalog"
)

const (
	keyOne = "0197d1c2-4a10-7c3d-8e21-5a6b7c8d9e0f"
	keyTwo = "0197d1c2-4a10-7c3d-8e21-5a6b7c8d9e10"
)

// TestReceipts follows an Idempotency-Key to the catalog.
func TestReceipts(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	send := func(method, path, body, key string) *catalog.Receipt {
		t.Helper()
		w := s.do(request{method: method, path: path, body: body, header: http.Header{"Idempotency-Key": {key}}})
		if w.Code >= 500 {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return s.fake.receipt
	}
	const body = `{"namespace":["a"],"properties":{"k":"v"}}`
	first := send(http.MethodPost, "/v1/wh/namespaces", body, keyOne)
	if first == nil || first.Key.String() != keyOne {
		t.Fatalf("receipt %+v", first)
	}
	same := send(http.MethodPost, "/v1/wh/namespaces", body, strings.ToUpper(keyOne))
	if same.Key != first.Key || same.Digest != first.Digest {
		t.Errorf("the same request has receipts %+v and %+v", first, same)
	}
	for what, other := range map[string]*catalog.Receipt{
		"body":   send(http.MethodPost, "/v1/wh/namespaces", `{"namespace":["b"]}`, keyOne),
		"path":   send(http.MethodPost, "/v1/wh/namespaces/a/properties", body, keyOne),
		"method": send(http.MethodDelete, "/v1/wh/namespaces/a", "", keyOne),
		"query":  send(http.MethodDelete, "/v1/wh/namespaces/a/tables/t?purgeRequested=true", "", keyOne),
	} {
		if other == nil || other.Digest == first.Digest {
			t.Errorf("a request with another %s has the receipt %+v", what, other)
		}
	}
	if a, b := send(http.MethodDelete, "/v1/wh/namespaces/a", "", keyOne), send(http.MethodDelete, "/v1/wh/namespaces/a", "", keyTwo); a.Digest != b.Digest || a.Key == b.Key {
		t.Errorf("receipts %+v and %+v", a, b)
	}
	if r := send(http.MethodGet, "/v1/wh/namespaces/a", "", keyOne); r != nil {
		t.Errorf("a reading request has the receipt %+v", r)
	}
}

func TestReceipts_refuseWhatIsNoKey(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	for _, key := range []string{
		"x", "017F22E2-79B0-4CC3-98C4-DC0C0C07398F", // version 4
		"{" + keyOne + "}", "urn:uuid:" + keyOne, strings.ReplaceAll(keyOne, "-", ""), keyOne + "0",
	} {
		before := len(s.fake.calls)
		w := s.do(request{
			method: http.MethodPost, path: "/v1/wh/namespaces", body: `{"namespace":["a"]}`, header: http.Header{"Idempotency-Key": {key}},
		})
		if e := errorOf(t, w); w.Code != http.StatusBadRequest || !strings.Contains(e.Error.Message, "Idempotency-Key") {
			t.Errorf("%q: %d %v", key, w.Code, e)
		}
		if len(s.fake.calls) != before {
			t.Errorf("%q reached the catalog", key)
		}
	}
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	const path = "/v1/wh/transactions/commit"
	ok := `{"table-changes":[{"identifier":{"namespace":["a","b"],"name":"t"},"requirements":[{}],"updates":[{},{}]},` +
		`{"identifier":{"namespace":["a"],"name":"u"},"requirements":[],"updates":[]}]}`
	if w := s.do(request{method: http.MethodPost, path: path, body: ok}); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if want := "transaction a.b.t 1/2 a.u 0/0"; s.fake.lastCall() != want {
		t.Errorf("the catalog got %q, want %q", s.fake.lastCall(), want)
	}
	for body, member := range map[string]string{
		`{}`:                                    "table-changes",
		`{"table-changes":[{}]}`:                "table-changes[0].identifier",
		`{"table-changes":[{"identifier":{}}]}`: "table-changes[0].identifier.namespace",
		`{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},"updates":[]}]}`:                    "table-changes[0].requirements",
		`{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},"requirements":[]}]}`:               "updates",
		`{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[7]}]}`: "updates[0]",
	} {
		w := s.do(request{method: http.MethodPost, path: path, body: body})
		if e := errorOf(t, w); w.Code != http.StatusBadRequest || !strings.Contains(e.Error.Message, member) {
			t.Errorf("%s: %d %v, want it to name %s", body, w.Code, e, member)
		}
	}
	// What is known to have changed nothing is a conflict, as on every commit.
	s.fake.fail = catalog.Errorf(catalog.KindUnavailable, "no database")
	if w := s.do(request{method: http.MethodPost, path: path, body: ok}); w.Code != http.StatusConflict || errorOf(t, w).Error.Type != "CommitFailedException" {
		t.Errorf("unavailable: %d %s", w.Code, w.Body)
	}
	s.fake.fail = catalog.Errorf(catalog.KindCommitStateUnknown, "who knows")
	if w := s.do(request{method: http.MethodPost, path: path, body: ok}); w.Code != http.StatusInternalServerError || errorOf(t, w).Error.Type != "CommitStateUnknownException" {
		t.Errorf("unknown: %d %s", w.Code, w.Body)
	}
}

// With a key a failure says nothing about earlier copies of the request, so it is no
// promise that nothing was changed.
func TestReceipts_failuresPromiseNothing(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.fail = catalog.Errorf(catalog.KindUnavailable, "no database")
	for _, path := range []string{tablePath, "/v1/wh/transactions/commit"} {
		body := `{"requirements":[],"updates":[],"table-changes":[]}`
		w := s.do(request{method: http.MethodPost, path: path, body: body, header: http.Header{"Idempotency-Key": {keyOne}}})
		if e := errorOf(t, w); w.Code != http.StatusInternalServerError || e.Error.Type != "CommitStateUnknownException" {
			t.Errorf("%s with a key: %d %v", path, w.Code, e)
		}
		w = s.do(request{method: http.MethodPost, path: path, body: body})
		if e := errorOf(t, w); w.Code != http.StatusConflict || e.Error.Type != "CommitFailedException" {
			t.Errorf("%s without: %d %v", path, w.Code, e)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	for body, code := range map[string]string{
		"grant_type=client_credentials&client_id=a&client_secret=b": "unsupported_grant_type",
		"": "invalid_request",
	} {
		w := s.do(request{
			method: http.MethodPost, path: "/v1/oauth/tokens", body: body,
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		})
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"error":"`+code+`"`) || !strings.Contains(w.Body.String(), "oauth2-server-uri") {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	}
	if strings.Contains(s.log.String(), "client_secret") {
		t.Error("the log holds a request's secret")
	}
}

func TestUnregisterAndFunctions(t *testing.T) {
	t.Parallel()
	s := newSurface(t)
	s.fake.put(catalog.TypeTable, "ns", "t", `{"x":1}`, "")
	w := s.do(request{method: http.MethodPost, path: tablePath + "/unregister"})
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"metadata":{"x":1}`) || !strings.Contains(w.Body.String(), `"metadata-location":"file:`) {
		t.Errorf("unregister: %d %s", w.Code, w.Body)
	}
	if w := s.do(request{method: http.MethodPost, path: tablePath + "/unregister"}); w.Code != http.StatusNotFound {
		t.Errorf("unregister again: %d %s", w.Code, w.Body)
	}
	if w := s.get(tablePath + "/credentials"); w.Code != http.StatusNotFound {
		t.Errorf("credentials of a missing table: %d %s", w.Code, w.Body)
	}
	if w := s.get("/v1/wh/namespaces/ns/functions"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `{"name":"f","namespace":["ns"]}`) {
		t.Errorf("functions: %d %s", w.Code, w.Body)
	}
	if w := s.get("/v1/wh/namespaces/ns/functions/f"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"metadata":{"function-uuid":"x"}`) {
		t.Errorf("function: %d %s", w.Code, w.Body)
	}
	w = s.get("/v1/wh/namespaces/ns/functions/g")
	if e := errorOf(t, w); w.Code != http.StatusNotFound || e.Error.Type != "NoSuchFunctionException" {
		t.Errorf("missing function: %d %v", w.Code, e)
	}
}
