package exectest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/mv"
)

// scanRows reads a scan as a bag: one JSON line per row, sorted.
func scanRows(t *testing.T, scan *table.Scan) []string {
	t.Helper()
	tbl, err := scan.ToArrowTable(t.Context())
	if err != nil {
		t.Fatalf("iceberg-go cannot read: %v", err)
	}
	defer tbl.Release()
	rdr := array.NewTableReader(tbl, 0)
	defer rdr.Release()
	out := []string{}
	for rdr.Next() {
		rec := rdr.RecordBatch()
		for i := range int(rec.NumRows()) {
			var b strings.Builder
			for c := range int(rec.NumCols()) {
				v, err := json.Marshal(rec.Column(c).GetOneForMarshal(i))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s=%s ", rec.ColumnName(c), v)
			}
			out = append(out, b.String())
		}
	}
	if err := rdr.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// storage adds the files of a result to a fresh table without partitions.
func storage(t *testing.T, task mv.Task, res mv.Result) *source {
	t.Helper()
	schema := outputSchema(t, task.Columns)
	version := 2
	for _, c := range task.Columns {
		if strings.Contains(c.Type, "_ns") {
			version = 3
		}
	}
	s := newSource(t, tableSpec{version: version, schema: schema})
	if len(res.Files) == 0 {
		return s
	}
	var paths []string
	for _, f := range res.Files {
		paths = append(paths, strings.TrimPrefix(strings.TrimPrefix(f.Path, "file:"), "//"))
	}
	s.change(func(tx *table.Transaction) error {
		return tx.AddFiles(t.Context(), paths, nil, false)
	})
	return s
}

func outputSchema(t *testing.T, columns []mv.Column) *iceberg.Schema {
	t.Helper()
	var parts []string
	for _, c := range columns {
		typ := c.Type
		if !strings.HasPrefix(typ, "{") {
			typ = strconv.Quote(typ)
		}
		name, err := json.Marshal(c.Name)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprintf(`{"id":%d,"name":%s,"required":false,"type":%s}`, c.ID, name, typ))
	}
	var s iceberg.Schema
	text := `{"type":"struct","schema-id":0,"fields":[` + strings.Join(parts, ",") + `]}`
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("schema %s: %v", text, err)
	}
	return &s
}

// runRows runs a task and returns what iceberg-go reads from its files.
func runRows(t *testing.T, e mv.Engine, tk mv.Task) []string {
	t.Helper()
	res, err := e.Run(t.Context(), tk, nil)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	got := storage(t, tk, res).rows()
	if int64(len(got)) != res.Rows {
		t.Errorf("Rows = %d, the files hold %d", res.Rows, len(got))
	}
	return got
}

// sameAsOracle checks that the engine reads the table as iceberg-go does.
func (s *source) sameAsOracle(e mv.Engine) {
	s.t.Helper()
	s.sameRows(e, s.input("src"))
}

func (s *source) sameRows(e mv.Engine, in mv.Input) {
	s.t.Helper()
	want := s.rows()
	got := runRows(s.t, e, task(s.t, "SELECT * FROM src", s.columns(), in))
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("rows differ (-iceberg-go +engine):\n%s", diff)
	}
	if len(want) == 0 {
		s.t.Error("the oracle has no rows: the test would prove nothing")
	}
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
	if len(want) == 0 {
		t.Error("no rows are wanted: the test would prove nothing")
	}
}
