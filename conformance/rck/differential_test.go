package rck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seedVariable names the environment variable that makes the commits others than usual.
const seedVariable = "CATALOGD_TEST_SEED"

// The commits are the same in every run; a failure prints the number of its table or view.
const (
	diffTables       = 24
	commitsPerTable  = 8
	diffViews        = 8
	commitsPerView   = 8
	differentialSeed = 20261130
)

// TestDifferential sends the same commits to catalogd and to the reference server. What
// one accepts the other has to accept, with the same document; what one refuses the other
// has to refuse, as a conflict or as a mistake; but for what is listed in [known].
func TestDifferential(t *testing.T) { //nolint:paralleltest // beside the kit, it would only be slower
	needJava(t)
	d := &differential{seed: differentialSeed, seen: map[string]int{}}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if d.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	theirs := startReference(t)
	ours := startCatalogd(t, os.TempDir())
	d.ours, d.theirs = newPeer(t, ours, "main"), newPeer(t, theirs, "")
	for _, p := range []*peer{d.ours, d.theirs} {
		p.must(t, http.MethodPost, "/namespaces", `{"namespace":["diff"]}`)
	}
	for i, k := range known {
		t.Run(k.why, func(t *testing.T) { d.example(t, fmt.Sprintf("known%d", i), &k) })
	}
	clear(d.seen)
	d.accepted, d.refused, d.differed = 0, 0, 0
	for i := range diffTables {
		t.Run(fmt.Sprintf("table %d", i), func(t *testing.T) { d.table(t, i) })
	}
	for i := range diffViews {
		t.Run(fmt.Sprintf("view %d", i), func(t *testing.T) { d.view(t, i) })
	}
	for _, k := range known {
		t.Logf("%3d × %s", d.seen[k.why], k.why)
	}
	t.Logf("%d commits: both accepted %d, both refused %d, known differences %d", d.accepted+d.refused+d.differed, d.accepted, d.refused, d.differed)
	if d.accepted < 60 || d.refused < 40 {
		t.Error("the generator is too weak")
	}
}

type differential struct {
	seed                        uint64
	ours, theirs                *peer
	accepted, refused, differed int
	seen                        map[string]int // known differences that occurred
}

// peer is one of the two servers.
type peer struct {
	base string
}

func newPeer(t *testing.T, s *server, warehouse string) *peer {
	t.Helper()
	p := &peer{base: s.uri + "/v1"}
	var config struct {
		Overrides, Defaults map[string]string
	}
	if err := json.Unmarshal(p.must(t, http.MethodGet, "/config?warehouse="+url.QueryEscape(warehouse), ""), &config); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.Defaults, config.Overrides)
	if prefix := config.Defaults["prefix"]; prefix != "" {
		p.base += "/" + prefix
	}
	return p
}

func (p *peer) do(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

func (p *peer) must(t *testing.T, method, path, body string) []byte {
	t.Helper()
	status, answer := p.do(t, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s%s = %d: %s", method, p.base, path, status, answer)
	}
	return answer
}

// reply is an answer with a document, or an error.
type reply struct {
	status   int
	location string // of the metadata file
	document json.RawMessage
	message  string
}

func (r *reply) ok() bool { return r.status == http.StatusOK }

func (r *reply) String() string { return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, r.message)) }

func (p *peer) send(t *testing.T, path, body string) reply {
	t.Helper()
	status, answer := p.do(t, http.MethodPost, path, body)
	var fields struct {
		MetadataLocation string          `json:"metadata-location"`
		Metadata         json.RawMessage `json:"metadata"`
		Error            struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if status >= http.StatusInternalServerError && bytes.HasPrefix(answer, []byte("<html>")) {
		_, title, _ := strings.Cut(string(answer), "<title>")
		title, _, _ = strings.Cut(title, "</title>")
		return reply{status: status, message: title}
	}
	if err := json.Unmarshal(answer, &fields); err != nil {
		t.Fatalf("POST %s%s = %d: %v: %s", p.base, path, status, err, answer)
	}
	return reply{status: status, location: fields.MetadataLocation, document: fields.Metadata, message: fields.Error.Message}
}

// fill puts a server's own values into a request.
func fill(body string, document json.RawMessage) string {
	var own struct {
		Location  string `json:"location"`
		TableUUID string `json:"table-uuid"`
		ViewUUID  string `json:"view-uuid"`
	}
	_ = json.Unmarshal(document, &own) // checked by what follows
	return strings.NewReplacer(here, own.Location, "$uuid", own.TableUUID+own.ViewUUID).Replace(body)
}

// example shows that a difference is still there: a list of what once was would hide others.
func (d *differential) example(t *testing.T, name string, k *difference) {
	t.Helper()
	create := object("name", name, "schema", raw(diffSchema))
	ours, theirs := d.ours.send(t, "/namespaces/diff/tables", create), d.theirs.send(t, "/namespaces/diff/tables", create)
	for _, body := range k.example {
		d.commit(t, &tableGen{}, "/namespaces/diff/tables/"+name, body, &ours, &theirs)
	}
	if d.seen[k.why] == 0 {
		t.Error("the difference is gone: take it from the list")
	}
}

// diffSchema is that of the tables in the beginning.
const diffSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"day","required":false,"type":"date"},` +
	`{"id":3,"name":"tags","required":false,"type":{"type":"list","element-id":4,"element":"string","element-required":false}}]}`

func (d *differential) table(t *testing.T, i int) {
	t.Helper()
	r := rand.New(rand.NewPCG(d.seed, uint64(i)))
	g := &tableGen{Rand: r, stamps: []int64{time.Now().UnixMilli()}}
	name := fmt.Sprintf("t%d", i)
	create := object("name", name, "properties", map[string]string{"format-version": strconv.Itoa(1 + i%3), "a": "b"},
		"schema", raw(diffSchema),
		"partition-spec", raw(pick(r, `null`, `{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"name":"day","transform":"identity"}]}`)),
		"write-order", raw(pick(r, `null`, `{"order-id":1,"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}`)))
	ours, theirs := d.ours.send(t, "/namespaces/diff/tables", create), d.theirs.send(t, "/namespaces/diff/tables", create)
	if !d.compare(t, g, &ours, &theirs, create) {
		t.Fatal("nothing to go on with")
	}
	for range commitsPerTable {
		var state tableState
		if err := json.Unmarshal(ours.document, &state); err != nil {
			t.Fatal(err)
		}
		if !d.commit(t, g, "/namespaces/diff/tables/"+name, g.commit(state), &ours, &theirs) {
			break
		}
	}
	d.exchange(t, g, "/namespaces/diff/register", name, &ours, &theirs)
}

func (d *differential) view(t *testing.T, i int) {
	t.Helper()
	r := rand.New(rand.NewPCG(d.seed, uint64(1000+i)))
	g := &viewGen{tableGen{Rand: r, stamps: []int64{time.Now().UnixMilli()}}}
	name := fmt.Sprintf("v%d", i)
	create := object("name", name, "properties", map[string]string{"a": "b"},
		"schema", raw(`{"type":"struct","schema-id":0,"fields":[{"id":0,"name":"c","required":false,"type":"int"}]}`),
		"view-version", viewVersion(1, 0, g.stamps[0], map[string]string{"spark": "SELECT 0"}))
	ours, theirs := d.ours.send(t, "/namespaces/diff/views", create), d.theirs.send(t, "/namespaces/diff/views", create)
	if !d.compare(t, &g.tableGen, &ours, &theirs, create) {
		t.Fatal("nothing to go on with")
	}
	for range commitsPerView {
		var state viewState
		if err := json.Unmarshal(ours.document, &state); err != nil {
			t.Fatal(err)
		}
		if !d.commit(t, &g.tableGen, "/namespaces/diff/views/"+name, g.commit(&state), &ours, &theirs) {
			break
		}
	}
	d.exchange(t, &g.tableGen, "/namespaces/diff/register-view", name, &ours, &theirs)
}

// commit sends a commit to both and keeps the documents. It returns false if the two have
// gone different ways.
func (d *differential) commit(t *testing.T, g *tableGen, path, body string, ours, theirs *reply) bool {
	t.Helper()
	a := d.ours.send(t, path, fill(body, ours.document))
	b := d.theirs.send(t, path, fill(body, theirs.document))
	// The reference server writes the next file also for updates that change nothing.
	g.idle = g.idle || a.ok() && a.location == ours.location
	same := d.compare(t, g, &a, &b, fmt.Sprintf("%s\non %s", body, ours.document))
	if a.ok() {
		*ours = a
	}
	if b.ok() {
		*theirs = b
	}
	return same
}

func (d *differential) compare(t *testing.T, g *tableGen, ours, theirs *reply, what string) bool {
	t.Helper()
	switch {
	case ours.ok() && theirs.ok():
		want, got := normal(t, theirs.document, g), normal(t, ours.document, g)
		if diff := cmp.Diff(want, got); diff != "" {
			if k := findInDocuments(got, want); k != nil {
				d.seen[k.why]++
				d.differed++
				return false
			}
			t.Errorf("after %s\nthe reference's document (-) and ours (+) differ:\n%s", what, diff)
			return false
		}
		d.accepted++
		return true
	case !ours.ok() && !theirs.ok() && ours.status == theirs.status:
		d.refused++
		return true
	}
	k := find(ours, theirs)
	if k == nil {
		t.Errorf("%s\nours:   %s\ntheirs: %s", what, ours, theirs)
		return false
	}
	d.seen[k.why]++
	d.differed++
	return ours.ok() == theirs.ok()
}

// exchange registers each one's metadata file with the other: both have to read in it what
// its writer says.
func (d *differential) exchange(t *testing.T, g *tableGen, path, name string, ours, theirs *reply) {
	t.Helper()
	for _, x := range []struct {
		reader *peer
		wrote  *reply
		as     string
	}{{d.theirs, ours, name + "_ours"}, {d.ours, theirs, name + "_theirs"}} {
		body := object("name", x.as, "metadata-location", x.wrote.location)
		read := x.reader.send(t, path, body)
		if !read.ok() {
			t.Errorf("POST %s%s %s = %d %s\n%s", x.reader.base, path, body, read.status, read.message, x.wrote.document)
			continue
		}
		if diff := cmp.Diff(normal(t, x.wrote.document, g), normal(t, read.document, g)); diff != "" {
			t.Errorf("%s: what was written (-) is not what was read (+):\n%s", x.wrote.location, diff)
		}
	}
}

// normal decodes a document and takes out what may differ.
func normal(t *testing.T, document json.RawMessage, g *tableGen) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	location, _ := m["location"].(string)
	for strings.HasSuffix(location, "/moved") { // of a set-location
		location = strings.TrimSuffix(location, "/moved")
	}
	replaceLocation(m, location)
	delete(m, "table-uuid")
	delete(m, "view-uuid")
	delete(m, "last-updated-ms")
	log, _ := m["metadata-log"].([]any)
	if m["metadata-log"] = len(log); g.idle {
		delete(m, "metadata-log")
	}
	for _, name := range []string{"snapshot-log", "version-log"} {
		list, _ := m[name].([]any)
		for _, entry := range list {
			e := entry.(map[string]any)
			if n, err := e["timestamp-ms"].(json.Number).Int64(); err != nil || !slices.Contains(g.stamps, n) || isFirst(e) {
				e["timestamp-ms"] = "now"
			}
		}
	}
	for _, name := range []string{"properties", "encryption-keys"} { // missing or empty is the same
		if s := fmt.Sprint(m[name]); s == "map[]" || s == "[]" {
			delete(m, name)
		}
	}
	snapshots, _ := m["snapshots"].([]any)
	for _, s := range snapshots {
		if snapshot := s.(map[string]any); snapshot["sequence-number"] == json.Number("0") {
			delete(snapshot, "sequence-number") // what readers take a missing one for
		}
	}
	for name, key := range map[string]string{"statistics": "snapshot-id", "partition-statistics": "snapshot-id", "versions": "version-id"} {
		list, _ := m[name].([]any) // in no order
		slices.SortFunc(list, func(a, b any) int {
			return strings.Compare(fmt.Sprint(a.(map[string]any)[key]), fmt.Sprint(b.(map[string]any)[key]))
		})
	}
	versions, _ := m["versions"].([]any)
	for _, v := range versions {
		if version := v.(map[string]any); isFirst(version) {
			delete(version, "summary")
			delete(version, "timestamp-ms")
		}
	}
	return m
}

// isFirst tells a view's first version. The reference server composes it anew, with a time
// and a summary of its own.
func isFirst(v map[string]any) bool { return v["version-id"] == json.Number("1") }

// replaceLocation makes locations below a table's own relative.
func replaceLocation(v any, location string) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if s, ok := e.(string); ok {
				x[k] = strings.Replace(s, location, here, 1)
			}
			replaceLocation(e, location)
		}
	case []any:
		for _, e := range x {
			replaceLocation(e, location)
		}
	}
}
