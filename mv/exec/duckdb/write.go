package duckdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/mv"
)

// output is where and how a run writes.
type output struct {
	folder    string // local
	columns   []outColumn
	partition []partitionField
	prefix    string // of file names
}

// outColumn is a result column and the type it is stored as.
type outColumn struct {
	mv.Column
	typ icebergType
}

// rowsPerGroup keeps a row group near 128 MB for rows of about a kilobyte, and small
// enough that a bucket's rows can be skipped by statistics.
const rowsPerGroup = 122880

// maxFileBytes is the size at which a file without partition is ended.
const maxFileBytes = 512 << 20

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func newOutput(t mv.Task) (*output, error) {
	folder, err := localPath(t.Output)
	if err != nil {
		return nil, unprocessable("output: %s", err)
	}
	o := &output{folder: folder, prefix: unsafeName.ReplaceAllString(t.RefreshID, "_")}
	if o.prefix == "" {
		o.prefix = "data"
	}
	for _, c := range t.Columns {
		typ, err := parseTypeText(c.Type)
		if err != nil {
			return nil, unprocessable("column %q: %s", c.Name, err)
		}
		if err := writable(typ); err != nil {
			return nil, unprocessable("column %q: %s", c.Name, err)
		}
		o.columns = append(o.columns, outColumn{Column: c, typ: typ})
	}
	o.partition, err = partitionFields(t.Partition, o.columns)
	return o, err
}

// writable refuses types that DuckDB's Parquet writer has no exact form of.
func writable(t icebergType) error {
	switch t.kind {
	case kFixed:
		return fmt.Errorf("type %s cannot be written: declare the column as binary", t.text)
	case kTimestamptzNS:
		return errors.New("type timestamptz_ns cannot be written: declare the column as timestamptz")
	case kUnknown, kOpaque:
		return fmt.Errorf("type %s cannot be written", t.text)
	}
	for _, f := range t.fields {
		if err := writable(f.typ); err != nil {
			return err
		}
	}
	return nil
}

// project renders the query's columns, cast to the stored types, under their stored
// names, followed by the partition values.
func (o *output) project(query string, bound []resultColumn) (string, error) {
	if len(bound) != len(o.columns) {
		return "", unprocessable("the query gives %d columns, the storage table has %d", len(bound), len(o.columns))
	}
	names, exprs, outs := make([]string, len(bound)), make([]string, len(bound)), make([]string, len(bound))
	for i, c := range o.columns {
		names[i] = "q" + strconv.Itoa(i)
		outs[i] = "o" + strconv.Itoa(i)
		expr, err := store(bound[i], c, names[i])
		if err != nil {
			return "", err
		}
		exprs[i] = expr + " AS " + outs[i]
	}
	inner := fmt.Sprintf("SELECT %s FROM (\n%s\n) AS q(%s)", strings.Join(exprs, ", "), query, strings.Join(names, ", "))
	final := make([]string, 0, len(bound)+len(o.partition))
	for i, c := range o.columns {
		final = append(final, outs[i]+" AS "+quoteIdent(c.Name))
	}
	for _, p := range o.partition {
		final = append(final, p.path(outs[p.column])+" AS "+quoteIdent(p.name))
	}
	return "SELECT " + strings.Join(final, ", ") + " FROM (" + inner + ")", nil
}

// copyTo renders the COPY statement for a projected query.
func (o *output) copyTo(projected string) string {
	ids := make([]string, len(o.columns))
	for i, c := range o.columns {
		ids[i] = quoteIdent(c.Name) + ": " + fieldIDs(c.ID, c.typ)
	}
	options := []string{
		"FORMAT parquet", "COMPRESSION zstd", "ROW_GROUP_SIZE " + strconv.Itoa(rowsPerGroup),
		"FIELD_IDS {" + strings.Join(ids, ", ") + "}",
		"FILENAME_PATTERN " + quoteString(o.prefix+"-{uuid}"),
		"RETURN_STATS true", "OVERWRITE_OR_IGNORE true",
	}
	if len(o.partition) == 0 {
		options = append(options, fmt.Sprintf("FILE_SIZE_BYTES %d", maxFileBytes), "WRITE_EMPTY_FILE false")
	} else {
		names := make([]string, len(o.partition))
		for i, p := range o.partition {
			names[i] = quoteIdent(p.name)
		}
		options = append(options, "PARTITION_BY ("+strings.Join(names, ", ")+")", "WRITE_PARTITION_COLUMNS false")
	}
	return fmt.Sprintf("COPY (%s) TO %s (%s)", projected, quoteString(o.folder), strings.Join(options, ", "))
}

// fieldIDs renders the ids of a column and of everything nested in it.
func fieldIDs(id int, t icebergType) string {
	if len(t.fields) == 0 {
		return strconv.Itoa(id)
	}
	parts := []string{"__duckdb_field_id: " + strconv.Itoa(id)}
	for _, f := range t.fields {
		parts = append(parts, quoteIdent(f.name)+": "+fieldIDs(f.id, f.typ))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func jsonString(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}
