package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"

	driverduckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// internalSchema holds the engine's own tables and views. A query cannot name it: it may
// use unqualified names of its relations only.
const internalSchema = "engine"

// instance is one DuckDB database in memory with its only connection.
type instance struct {
	db   *sql.DB
	conn *sql.Conn
	raw  mapping.Connection // for progress; its Ptr is nil if the driver hides it

	mu    sync.Mutex
	links string // a folder of links with plain names; of this instance alone once it is locked
	made  int
}

// patternChars are what DuckDB takes for a pattern in a file name. There is no escape: a
// name with a star would also match its neighbours.
const patternChars = "*?[]{}"

// plain returns a name of path that DuckDB reads literally: path itself, or a link to it.
func (in *instance) plain(path string) (string, error) {
	if !strings.ContainsAny(path, patternChars) {
		return path, nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.made++
	link := filepath.Join(in.links, strconv.Itoa(in.made)+".parquet")
	return link, os.Symlink(path, link)
}

// openInstance opens DuckDB with everything off that could load code or look around.
// home is where DuckDB believes the user's files to be.
func openInstance(ctx context.Context, home string) (*instance, error) {
	connector, err := driverduckdb.NewConnector("", nil)
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	in := &instance{db: sql.OpenDB(connector), links: filepath.Join(home, "links")}
	if in.conn, err = in.db.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to DuckDB: %w", err), in.db.Close())
	}
	in.raw = rawConnection(in.conn)
	settings := []string{
		"SET errors_as_json = true",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET allow_persistent_secrets = false",
		"SET home_directory = " + quoteString(home),
		"SET extension_directory = " + quoteString(home),
		"SET secret_directory = " + quoteString(home),
		"CREATE SCHEMA " + internalSchema,
	}
	if err := in.exec(ctx, settings...); err != nil {
		return nil, errors.Join(err, in.close())
	}
	return in, nil
}

// rawConnection finds the C handle inside the driver's connection: the driver has no call
// for DuckDB's query progress. Nothing but progress depends on it.
func rawConnection(conn *sql.Conn) (c mapping.Connection) {
	_ = conn.Raw(func(dc any) error { // on failure c stays empty and there is no progress
		v := reflect.ValueOf(dc)
		if v.Kind() != reflect.Pointer {
			return nil
		}
		f := v.Elem().FieldByName("conn")
		if !f.IsValid() || f.Type() != reflect.TypeFor[mapping.Connection]() {
			return nil
		}
		c.Ptr = f.FieldByName("Ptr").UnsafePointer()
		return nil
	})
	return c
}

func (in *instance) close() error {
	return errors.Join(in.conn.Close(), in.db.Close())
}

func (in *instance) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := in.conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// bounds are what a locked instance may use.
type bounds struct {
	timeZone string
	files    []string
	folders  []string
	memory   int64
	threads  int
	spill    string
}

// lock applies b and then makes the instance refuse every other file and every further
// change of a setting, whatever SQL is run in it.
func (in *instance) lock(ctx context.Context, b bounds) error {
	zone := b.timeZone
	if zone == "" {
		zone = "UTC"
	}
	settings := []string{"SET TimeZone = " + quoteString(zone)}
	if b.memory > 0 {
		settings = append(settings, fmt.Sprintf("SET memory_limit = '%dB'", b.memory))
	}
	if b.threads > 0 {
		settings = append(settings, fmt.Sprintf("SET threads = %d", b.threads))
	}
	if b.spill != "" {
		settings = append(settings, "SET temp_directory = "+quoteString(b.spill))
	}
	if err := os.MkdirAll(in.links, 0o700); err != nil {
		return err
	}
	// The process may have served an earlier run, whose links must not be met again.
	var err error
	if in.links, err = os.MkdirTemp(in.links, "run-"); err != nil {
		return err
	}
	settings = append(settings,
		"SET enable_progress_bar = true", "SET enable_progress_bar_print = false",
		"SET allowed_paths = "+quoteList(b.files),
		"SET allowed_directories = "+quoteList(append(b.folders, in.links)),
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	)
	return in.exec(ctx, settings...)
}

func quoteList(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = quoteString(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// resultColumn is a column of a bound query.
type resultColumn struct {
	name string
	info driverduckdb.TypeInfo // nil if the driver does not know the type
	typ  driverduckdb.Type
}

// bind prepares text and returns its columns. It is the second check that text is one
// SELECT: the driver prepares a single statement and tells its type.
func (in *instance) bind(ctx context.Context, text string) ([]resultColumn, error) {
	var out []resultColumn
	err := in.conn.Raw(func(dc any) error {
		prepared, err := dc.(driver.ConnPrepareContext).PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		stmt := prepared.(*driverduckdb.Stmt)
		defer stmt.Close()
		if t, err := stmt.StatementType(); err != nil || t != driverduckdb.STATEMENT_TYPE_SELECT {
			return errors.Join(fmt.Errorf("the statement is not a SELECT (type %d)", t), err)
		}
		n, err := stmt.ColumnCount()
		if err != nil {
			return err
		}
		for i := range n {
			var c resultColumn
			if c.name, err = stmt.ColumnName(i); err != nil {
				return err
			}
			if c.typ, err = stmt.ColumnType(i); err != nil {
				return err
			}
			if info, err := stmt.ColumnTypeInfo(i); err == nil {
				c.info = info
			}
			out = append(out, c)
		}
		return nil
	})
	return out, err
}
