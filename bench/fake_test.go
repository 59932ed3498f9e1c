package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/catalogd/catalogd/bench/floor"
)

// faultVariable makes the fake catalog wrong.
const faultVariable = "BENCH_TEST_FAULT"

// TestMain lets the test binary stand in for the two programs that a run starts: itself
// as a floor, and catalogd.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch command := append(os.Args, "")[1]; command {
	case floorCommand:
		err = floor.Run(ctx, os.Args[2:], os.Stdout)
	case "migrate":
	case "serve":
		err = serveFake(ctx, os.Getenv(faultVariable))
	default:
		stop() // the tests want the usual meaning of signals
		os.Exit(m.Run())
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveFake(ctx context.Context, fault string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "listening on http://%s\n", listener.Addr())
	f := &fakeCatalog{fault: fault, tables: map[string]*fakeTable{}}
	server := &http.Server{Handler: f.routes()}
	go func() {
		<-ctx.Done()
		_ = server.Close() // the process ends
	}()
	_ = server.Serve(listener)
	return nil
}

// fakeCatalog keeps tables in memory: as much of the protocol as the load generator uses.
type fakeCatalog struct {
	fault string

	mu     sync.Mutex
	tables map[string]*fakeTable
	loads  int
}

type fakeTable struct {
	name      string
	version   int
	sequence  int64
	current   int64
	snapshots []json.RawMessage
}

func (f *fakeCatalog) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"defaults": {}, "overrides": {"prefix": "main"}}`)
	})
	mux.HandleFunc("POST /v1/main/namespaces", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	mux.HandleFunc("POST /v1/main/namespaces/bench/tables", f.create)
	mux.HandleFunc("GET /v1/main/namespaces/bench/tables/{table}", f.load)
	mux.HandleFunc("POST /v1/main/namespaces/bench/tables/{table}", f.commit)
	return mux
}

func (f *fakeCatalog) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTable{name: in.Name, current: -1}
	f.tables[in.Name] = t
	f.answer(w, r, t, false)
}

func (f *fakeCatalog) load(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	t := f.tables[r.PathValue("table")]
	if r.Header.Get("If-None-Match") == t.etag() && f.fault != "never 304" {
		w.Header().Set("ETag", t.etag())
		w.WriteHeader(http.StatusNotModified)
		return
	}
	f.answer(w, r, t, r.URL.Query().Get("snapshots") == "refs")
}

func (f *fakeCatalog) commit(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Updates []struct {
			Snapshot json.RawMessage `json:"snapshot"`
			ID       int64           `json:"snapshot-id"`
		} `json:"updates"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tables[r.PathValue("table")]
	after := *t
	after.version++
	after.sequence++
	after.snapshots = append(slices.Clip(after.snapshots), in.Updates[0].Snapshot)
	after.current = in.Updates[1].ID
	f.answer(w, r, &after, false)
	if f.fault != "lost commit" || after.version != 20 {
		*t = after
	}
}

func (t *fakeTable) etag() string { return fmt.Sprintf(`"%s-%d"`, t.name, t.version) }

// wrongAfter is when a fault of loads begins, so that the first answers are right.
const wrongAfter = 40

func (f *fakeCatalog) answer(w http.ResponseWriter, r *http.Request, t *fakeTable, refs bool) {
	snapshots := t.snapshots
	if refs && len(snapshots) > 0 {
		snapshots = snapshots[len(snapshots)-1:]
	}
	metadata := map[string]any{
		"table-uuid": "u-" + t.name, "location": "file:///none/" + t.name, "last-sequence-number": t.sequence,
		"current-snapshot-id": t.current, "snapshots": snapshots, "refs": map[string]any{}, "properties": map[string]string{"owner": "alice"},
	}
	if t.current > 0 {
		metadata["refs"] = map[string]any{"main": map[string]any{"snapshot-id": t.current, "type": "branch"}}
	}
	if f.fault == "wrong byte" && f.loads > wrongAfter {
		metadata["properties"] = map[string]string{"owner": "alicf"}
	}
	body, err := json.Marshal(map[string]any{"metadata-location": fmt.Sprintf("file:///none/%s/%d", t.name, t.version), "metadata": metadata})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if f.fault != "no ETag" || f.loads <= wrongAfter {
		w.Header().Set("ETag", t.etag())
	}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		_, _ = z.Write(body)
		return
	}
	_, _ = w.Write(body)
}
