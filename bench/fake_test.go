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
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/catalogd/catalogd/bench/floor"
)

// faultVariable makes the fake catalog wrong.
const faultVariable = "BENCH_TEST_FAULT"

// referenceArgument makes the test binary stand in for the reference server.
const referenceArgument = "reference-server"

// TestMain lets the test binary stand in for the programs that a run starts: itself as
// a floor, catalogd, and the reference server.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch command := append(os.Args, "")[1]; command {
	case floorCommand:
		err = floor.Run(ctx, os.Args[2:], os.Stdout)
	case "migrate":
	case "serve":
		err = serveFake(ctx, "127.0.0.1:0", strings.TrimPrefix(os.Getenv("CATALOGD_WAREHOUSE"), "file://"), os.Getenv(faultVariable))
	case referenceArgument:
		err = serveFake(ctx, "127.0.0.1:"+os.Getenv("CATALOG_REST_PORT"), strings.TrimPrefix(os.Getenv("CATALOG_WAREHOUSE"), "file://"), "")
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

func serveFake(ctx context.Context, address, dir, fault string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "listening on http://%s\n", listener.Addr())
	f := &fakeCatalog{dir: dir, fault: fault}
	server := &http.Server{Handler: f.routes()}
	go func() {
		<-ctx.Done()
		_ = server.Close() // the process ends
	}()
	_ = server.Serve(listener)
	return nil
}

// fakeCatalog keeps each table as a metadata file and a file that names it, so that several
// processes can serve the same: as much of the protocol as the load generator uses.
type fakeCatalog struct {
	dir   string
	fault string

	mu      sync.Mutex
	answers int
	commits int
}

// fakeTable is a table's metadata.
type fakeTable struct {
	UUID       string             `json:"table-uuid"`
	Location   string             `json:"location"`
	Sequence   int64              `json:"last-sequence-number"`
	Current    int64              `json:"current-snapshot-id"`
	Snapshots  []json.RawMessage  `json:"snapshots"`
	Refs       map[string]fakeRef `json:"refs"`
	Properties map[string]string  `json:"properties"`
}

type fakeRef struct {
	ID   int64  `json:"snapshot-id"`
	Type string `json:"type"`
}

func (f *fakeCatalog) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"defaults": {}, "overrides": {"prefix": "main"}}`)
	})
	mux.HandleFunc("POST /v1/main/namespaces", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	mux.HandleFunc("POST /v1/main/namespaces/bench/tables", f.locked(f.create))
	mux.HandleFunc("POST /v1/main/namespaces/bench/register", f.locked(f.register))
	mux.HandleFunc("GET /v1/main/namespaces/bench/tables/{table}", f.locked(f.load))
	mux.HandleFunc("POST /v1/main/namespaces/bench/tables/{table}", f.locked(f.commit))
	return mux
}

func (f *fakeCatalog) locked(do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := do(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

func (f *fakeCatalog) create(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return err
	}
	t := &fakeTable{UUID: "u-" + in.Name, Location: "file:///none/" + in.Name, Current: -1, Properties: map[string]string{"owner": "alice"}}
	return f.store(w, r, in.Name, t, true)
}

func (f *fakeCatalog) register(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name     string `json:"name"`
		Location string `json:"metadata-location"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.dir, in.Name), []byte(in.Location), 0o600); err != nil {
		return err
	}
	t, err := readTable(in.Location)
	if err != nil {
		return err
	}
	return f.answer(w, r, in.Location, t)
}

// current is the table that a request names.
func (f *fakeCatalog) current(r *http.Request) (location string, t *fakeTable, err error) {
	pointer, err := os.ReadFile(filepath.Join(f.dir, r.PathValue("table")))
	if err != nil {
		return "", nil, err
	}
	t, err = readTable(string(pointer))
	return string(pointer), t, err
}

func readTable(location string) (*fakeTable, error) {
	text, err := os.ReadFile(strings.TrimPrefix(location, "file://"))
	if err != nil {
		return nil, err
	}
	t := &fakeTable{}
	return t, json.Unmarshal(text, t)
}

func (f *fakeCatalog) load(w http.ResponseWriter, r *http.Request) error {
	location, t, err := f.current(r)
	if err != nil {
		return err
	}
	if r.Header.Get("If-None-Match") == etagOf(r, location) && f.fault != "never 304" {
		w.Header().Set("ETag", etagOf(r, location))
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return f.answer(w, r, location, t)
}

func (f *fakeCatalog) commit(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Requirements []struct {
			ID *int64 `json:"snapshot-id"`
		} `json:"requirements"`
		Updates []struct {
			Snapshot json.RawMessage `json:"snapshot"`
			ID       int64           `json:"snapshot-id"`
		} `json:"updates"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return err
	}
	_, t, err := f.current(r)
	if err != nil {
		return err
	}
	if want := in.Requirements[1].ID; f.fault != "two winners" && (want == nil) != (t.Current == -1) || want != nil && *want != t.Current && f.fault != "two winners" {
		http.Error(w, "somebody else was faster", http.StatusConflict)
		return nil
	}
	for _, u := range in.Updates {
		if u.Snapshot == nil {
			t.Current = u.ID
			t.Refs = map[string]fakeRef{"main": {ID: u.ID, Type: "branch"}}
			continue
		}
		t.Snapshots = append(t.Snapshots, u.Snapshot)
		t.Sequence++
	}
	f.commits++
	return f.store(w, r, r.PathValue("table"), t, f.fault != "lost commit" || f.commits%20 != 0)
}

// store writes the next metadata file, and lets the table point at it if it is kept.
func (f *fakeCatalog) store(w http.ResponseWriter, r *http.Request, name string, t *fakeTable, kept bool) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	file := filepath.Join(f.dir, fmt.Sprintf("%s-%d-%d.json", name, t.Sequence, f.commits))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	location := "file://" + file
	if kept {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(location), 0o600); err != nil {
			return err
		}
	}
	return f.answer(w, r, location, t)
}

func etagOf(r *http.Request, location string) string {
	return fmt.Sprintf("%q", filepath.Base(location)+r.URL.Query().Get("snapshots"))
}

// faulty tells the answers that a fault of loads spoils: not the first ones, and never two
// in a row, so that a wrong one cannot be what others are compared with.
func (f *fakeCatalog) faulty() bool {
	const first, every = 20, 3
	return f.answers > first && f.answers%every == 0
}

func (f *fakeCatalog) answer(w http.ResponseWriter, r *http.Request, location string, t *fakeTable) error {
	f.answers++
	if r.URL.Query().Get("snapshots") == "refs" && len(t.Snapshots) > 0 {
		t.Snapshots = t.Snapshots[len(t.Snapshots)-1:]
	}
	if f.fault == "wrong byte" && f.faulty() {
		t.Properties["owner"] = "alicf"
	}
	body, err := json.Marshal(map[string]any{"metadata-location": location, "metadata": t})
	if err != nil {
		return err
	}
	if f.fault != "no ETag" || !f.faulty() {
		w.Header().Set("ETag", etagOf(r, location))
	}
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(body)
	return z.Close()
}
