// Package floor has the smallest servers that do what a catalog cannot avoid: the bar
// that the real one is measured against. They share its routes, so that one load
// generator drives both.
package floor

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/catalogd/catalogd/migrations"
)

// schemaSQL has what a load needs: where a name points, and the document there. The bytes
// are compressed already, so Postgres must not try again.
const schemaSQL = `
CREATE TABLE IF NOT EXISTS floor_pointer (
    name     text PRIMARY KEY,
    location text NOT NULL
);
CREATE TABLE IF NOT EXISTS floor_document (
    location text PRIMARY KEY,
    document bytea NOT NULL,
    refs     bytea
);
ALTER TABLE floor_document ALTER COLUMN document SET STORAGE EXTERNAL, ALTER COLUMN refs SET STORAGE EXTERNAL`

// Setup makes the schema: the tables of loads, and beside them the catalog's own, so that
// a commit has the same indexes to keep.
func Setup(ctx context.Context, pool *pgxpool.Pool) error {
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, schemaSQL)
	return err
}

// Row is a table that the floor serves.
type Row struct {
	Namespace, Table string
	Location         string
	Document, Refs   []byte // whole answers, gzip
}

const seedSQL = `
WITH pointer AS (
    INSERT INTO floor_pointer (name, location) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET location = excluded.location
)
INSERT INTO floor_document (location, document, refs) VALUES ($2, $3, $4)`

// Seed stores a row.
func Seed(ctx context.Context, pool *pgxpool.Pool, r Row) error {
	_, err := pool.Exec(ctx, seedSQL, name(r.Namespace, r.Table), r.Location, r.Document, r.Refs)
	return err
}

func name(namespace, table string) string { return namespace + "." + table }

// HeldHeader makes a load read the pointer only and send bytes that the process holds,
// which is what a catalog with a cache can do at best.
const HeldHeader = "X-Floor-Held"

// Server has both floors. It implements [http.Handler].
type Server struct {
	pool *pgxpool.Pool
	dir  string
	// plain and packed are what commits write, cut to the size that is asked for.
	plain, packed []byte

	mu   sync.RWMutex
	held map[string][]byte // by location and form
}

// Config says what a server works with.
type Config struct {
	Pool *pgxpool.Pool
	// Dir gets the files of commits, a folder for each table.
	Dir string
	// Plain and Packed are samples of a metadata file and of its compressed form. They
	// are as long as the longest that is asked for.
	Plain, Packed []byte
}

// New returns a server with its routes.
func New(cfg Config) http.Handler {
	s := &Server{pool: cfg.Pool, dir: cfg.Dir, plain: cfg.Plain, packed: cfg.Packed, held: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/{prefix}/namespaces/{namespace}/tables/{table}", s.load)
	mux.HandleFunc("POST /v1/{prefix}/namespaces/{namespace}/tables/{table}", s.commit)
	return mux
}

const (
	pointerSQL = `SELECT location FROM floor_pointer WHERE name = $1`
	loadAllSQL = `SELECT p.location, d.document FROM floor_pointer p JOIN floor_document d ON d.location = p.location WHERE p.name = $1`
	loadRefSQL = `SELECT p.location, d.refs FROM floor_pointer p JOIN floor_document d ON d.location = p.location WHERE p.name = $1`
)

func (s *Server) load(w http.ResponseWriter, r *http.Request) {
	refs := r.URL.Query().Get("snapshots") == "refs"
	id := name(r.PathValue("namespace"), r.PathValue("table"))
	match := r.Header.Get("If-None-Match")
	var (
		location string
		body     []byte
		err      error
	)
	if match != "" || r.Header.Get(HeldHeader) != "" {
		err = s.pool.QueryRow(r.Context(), pointerSQL, id).Scan(&location)
	} else {
		location, body, err = s.document(r.Context(), id, refs)
	}
	if err != nil {
		fail(w, err)
		return
	}
	etag := strconv.Quote(location)
	w.Header().Set("ETag", etag)
	if match == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if body == nil {
		if body, err = s.hold(r.Context(), id, location, refs); err != nil {
			fail(w, err)
			return
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Encoding", "gzip")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client is gone if this fails
}

func (s *Server) document(ctx context.Context, id string, refs bool) (location string, body []byte, err error) {
	sql := loadAllSQL
	if refs {
		sql = loadRefSQL
	}
	err = s.pool.QueryRow(ctx, sql, id).Scan(&location, &body)
	return location, body, err
}

func (s *Server) hold(ctx context.Context, id, location string, refs bool) ([]byte, error) {
	key := location + strconv.FormatBool(refs)
	s.mu.RLock()
	body := s.held[key]
	s.mu.RUnlock()
	if body != nil {
		return body, nil
	}
	_, body, err := s.document(ctx, id, refs)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key] = body
	return body, nil
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, pgx.ErrNoRows) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}
