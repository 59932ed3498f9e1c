// Package openapi_test compares our contract with the facts of the Apache Iceberg REST
// specification.
package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// operation is what the comparison looks at. The specification's are in
// testdata/specification.json, read off rest-catalog-open-api.yaml of Iceberg's main branch
// in August 2026 (after 1.11.0).
type operation struct {
	Parameters []string `json:"parameters"` // "in name", and "required" if so
	Body       *body    `json:"body"`
	Statuses   []string `json:"statuses"`
	Answer     []string `json:"answer"` // required members of the 200
}

type body struct {
	Content  string   `json:"content"`
	Required []string `json:"required"`
}

// Reasons for deliberate differences.
const (
	noLogin      = "nobody logs in to this server, so a login is neither missing nor out of date"
	noModes      = "every operation that is announced works for every object, so none is answered with 406"
	noGateway    = "that is a gateway's answer, and there is none inside the server"
	notUnknown   = "clients read a 5xx on a commit as an unknown outcome; what changed nothing is 409"
	storageTable = "a materialized view whose storage table contradicts it"
	inUse        = "it may be protected, or in use by a materialized view"
	viewETag     = "views are revalidated like tables"
	reports      = "reports are taken as clients write them; what is missing is no reason to lose one"
	promise      = "our answers always have it"
	bodyLimits   = "a body over the size limit, or in a form that cannot be read, has its own status"
)

// deliberate are the differences that we want: "operation: fact" with the reason. A fact
// begins with + if only our contract has it, with - if only the specification does. An
// operation of * means all.
var deliberate = map[string]string{
	"*: -status 401": noLogin,
	"*: -status 419": noLogin,
	"*: -status 406": noModes,
	"*: +status 413": bodyLimits,
	"*: +status 415": bodyLimits,

	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign: -operation": "it signs requests to object stores, and a file warehouse has none",

	"POST /v1/oauth/tokens: -status 200":          "the specification deprecates the operation; this server issues no tokens and says where to go",
	"POST /v1/oauth/tokens: -answer access_token": "it issues no tokens",
	"POST /v1/oauth/tokens: -answer token_type":   "it issues no tokens",

	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}: -status 502":                  noGateway,
	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}: -status 503":                  notUnknown,
	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}: -status 504":                  noGateway,
	"POST /v1/{prefix}/namespaces/{namespace}/views/{view}: -status 502":                    noGateway,
	"POST /v1/{prefix}/namespaces/{namespace}/views/{view}: -status 503":                    notUnknown,
	"POST /v1/{prefix}/namespaces/{namespace}/views/{view}: -status 504":                    noGateway,
	"POST /v1/{prefix}/transactions/commit: -status 502":                                    noGateway,
	"POST /v1/{prefix}/transactions/commit: -status 503":                                    notUnknown,
	"POST /v1/{prefix}/transactions/commit: -status 504":                                    noGateway,
	"POST /v1/{prefix}/namespaces/{namespace}/views/{view}: +status 422":                    storageTable,
	"POST /v1/{prefix}/namespaces/{namespace}/views: +status 422":                           storageTable,
	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister: +status 409":       inUse,
	"DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}: +status 409":                inUse,
	"DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}: +status 409":                  inUse,
	"GET /v1/{prefix}/namespaces/{namespace}/views/{view}: +parameter header If-None-Match": viewETag,
	"GET /v1/{prefix}/namespaces/{namespace}/views/{view}: +status 304":                     viewETag,
	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics: -member metrics":      reports,
	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics: -member snapshot-id":  reports,
	"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics: -member table-name":   reports,
	"POST /v1/{prefix}/namespaces: +status 404":                                             "the warehouse may not exist",
	"POST /v1/{prefix}/namespaces/{namespace}/views: +parameter header Idempotency-Key":     "every change can be repeated safely",
	"HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}: +status 403":                    "as for tables",
	"GET /v1/{prefix}/namespaces/{namespace}/tables: +parameter query list-storage-tables":  "storage tables of materialized views are hidden unless asked for",
	"*: +answer properties":  promise,
	"*: +answer namespaces":  promise,
	"*: +answer identifiers": promise,
	"*: +answer missing":     promise,
}

func TestContractFollowsTheSpecification(t *testing.T) {
	t.Parallel()
	wanted := specification(t)
	got := contract(t)
	found := map[string]bool{}
	for name := range union(wanted, got) {
		for _, fact := range differences(wanted[name], got[name]) {
			exact, general := name+": "+fact, "*: "+fact
			switch {
			case deliberate[exact] != "":
				found[exact] = true
			case deliberate[general] != "":
				found[general] = true
			default:
				t.Errorf("%s: the contract differs from the specification: %s", name, fact)
			}
		}
	}
	for known := range deliberate {
		if !found[known] {
			t.Errorf("no longer a difference: %s", known)
		}
	}
}

func specification(t *testing.T) map[string]operation {
	t.Helper()
	raw, err := os.ReadFile("testdata/specification.json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]operation
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// contract reads the same facts off our document.
func contract(t *testing.T) map[string]operation {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := map[string]operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			out[method+" "+path] = read(item, op)
		}
	}
	return out
}

func read(item *openapi3.PathItem, op *openapi3.Operation) operation {
	var o operation
	for _, p := range slices.Concat(item.Parameters, op.Parameters) {
		fact := p.Value.In + " " + p.Value.Name
		if p.Value.Required {
			fact += " required"
		}
		o.Parameters = append(o.Parameters, fact)
	}
	if op.RequestBody != nil {
		for content, media := range op.RequestBody.Value.Content {
			o.Body = &body{content, required(media.Schema.Value)}
		}
	}
	for status, response := range op.Responses.Map() {
		o.Statuses = append(o.Statuses, status)
		if status == "200" {
			o.Answer = required(response.Value.Content.Get("application/json").Schema.Value)
		}
	}
	return o
}

func required(s *openapi3.Schema) []string {
	out := slices.Clone(s.Required)
	for _, part := range s.AllOf {
		out = append(out, required(part.Value)...)
	}
	return out
}

func union(a, b map[string]operation) map[string]operation {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// differences lists the facts that one side has and the other lacks.
func differences(want, got operation) []string {
	switch {
	case len(got.Statuses) == 0:
		return []string{"-operation"}
	case len(want.Statuses) == 0:
		return []string{"+operation"}
	}
	var out []string
	compare := func(what string, want, got []string) {
		for _, fact := range want {
			if !slices.Contains(got, fact) {
				out = append(out, fmt.Sprintf("-%s %s", what, fact))
			}
		}
		for _, fact := range got {
			if !slices.Contains(want, fact) {
				out = append(out, fmt.Sprintf("+%s %s", what, fact))
			}
		}
	}
	compare("parameter", want.Parameters, got.Parameters)
	compare("status", want.Statuses, got.Statuses)
	compare("answer", want.Answer, got.Answer)
	if (want.Body == nil) != (got.Body == nil) {
		return append(out, "body on one side only")
	}
	if want.Body != nil {
		compare("content", []string{want.Body.Content}, []string{got.Body.Content})
		compare("member", want.Body.Required, got.Body.Required)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
