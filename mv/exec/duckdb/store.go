package duckdb

import (
	"fmt"
	"strings"

	driverduckdb "github.com/duckdb/duckdb-go/v2"
)

// store renders x, a result column, as the column's stored type. A value that the type
// cannot hold exactly fails the run and names the column.
func store(from resultColumn, to outColumn, x string) (string, error) {
	ids := 0
	text, coerced, err := icebergOf(from.info, from.typ, &ids)
	if err != nil {
		return "", unprocessable("column %q: %s", to.Name, err)
	}
	have, err := parseTypeText(text)
	if err != nil {
		return "", unprocessable("column %q: %s", to.Name, err)
	}
	want := to.typ.duck()
	if !coerced && sameStored(have, to.typ) {
		return finite(to, "CAST("+x+" AS "+want+")"), nil
	}
	if !storable(have, to.typ) {
		return "", unprocessable("column %q: the query gives %s, the storage table holds %s: write a CAST in the query", to.Name, text, to.Type)
	}
	// A cast is exact if and only if casting back gives the value again.
	message := quoteString(fmt.Sprintf("column %q: value ", to.Name)) + " || CAST(" + x + " AS VARCHAR) || " +
		quoteString(" does not fit "+to.Type+" exactly")
	return fmt.Sprintf("CASE WHEN TRY_CAST(TRY_CAST(%[1]s AS %[2]s) AS %[3]s) IS NOT DISTINCT FROM %[1]s THEN TRY_CAST(%[1]s AS %[2]s) ELSE CAST(error(%[4]s) AS %[2]s) END",
		x, want, sqlType(from.info, from.typ), message), nil
}

// finite refuses DuckDB's infinite dates and timestamps: Iceberg has none, and other
// readers would see a date in a far year.
func finite(to outColumn, x string) string {
	if !naive(to.typ.kind) && to.typ.kind != kTimestamptz {
		return x
	}
	message := quoteString(fmt.Sprintf("column %q: value ", to.Name)) + " || CAST(" + x + " AS VARCHAR) || " + quoteString(" is not a "+to.Type)
	return "CASE WHEN isinf(" + x + ") THEN CAST(error(" + message + ") AS " + to.typ.duck() + ") ELSE " + x + " END"
}

// sameStored reports whether every value of type a is one of type b.
func sameStored(a, b icebergType) bool {
	if a.kind != b.kind || len(a.fields) != len(b.fields) || a.precision > b.precision || a.scale != b.scale {
		return false
	}
	return sameFields(a, b, sameStored)
}

// storable reports whether values of a may be values of b, each checked on its own.
// Types that only a time zone or a text form connects are not: their cast has a meaning
// that the query must state.
func storable(a, b icebergType) bool {
	switch {
	case len(a.fields) > 0 || len(b.fields) > 0:
		return a.kind == b.kind && len(a.fields) == len(b.fields) && sameFields(a, b, storable)
	case a.kind == b.kind:
		return true
	case numeric(a.kind) && numeric(b.kind):
		return true
	}
	return naive(a.kind) && naive(b.kind)
}

func sameFields(a, b icebergType, same func(a, b icebergType) bool) bool {
	for i := range a.fields {
		if a.fields[i].name != b.fields[i].name || !same(a.fields[i].typ, b.fields[i].typ) {
			return false
		}
	}
	return true
}

func numeric(k kind) bool {
	return k == kInt || k == kLong || k == kDecimal || k == kFloat || k == kDouble
}

func naive(k kind) bool { return k == kDate || k == kTimestamp || k == kTimestampNS }

var sqlNames = map[driverduckdb.Type]string{
	driverduckdb.TYPE_BOOLEAN: "BOOLEAN", driverduckdb.TYPE_TINYINT: "TINYINT", driverduckdb.TYPE_SMALLINT: "SMALLINT",
	driverduckdb.TYPE_INTEGER: "INTEGER", driverduckdb.TYPE_BIGINT: "BIGINT", driverduckdb.TYPE_UTINYINT: "UTINYINT",
	driverduckdb.TYPE_USMALLINT: "USMALLINT", driverduckdb.TYPE_UINTEGER: "UINTEGER", driverduckdb.TYPE_UBIGINT: "UBIGINT",
	driverduckdb.TYPE_HUGEINT: "HUGEINT", driverduckdb.TYPE_FLOAT: "FLOAT", driverduckdb.TYPE_DOUBLE: "DOUBLE",
	driverduckdb.TYPE_DATE: "DATE", driverduckdb.TYPE_TIME: "TIME", driverduckdb.TYPE_TIMESTAMP: "TIMESTAMP",
	driverduckdb.TYPE_TIMESTAMP_S: "TIMESTAMP_S", driverduckdb.TYPE_TIMESTAMP_MS: "TIMESTAMP_MS",
	driverduckdb.TYPE_TIMESTAMP_NS: "TIMESTAMP_NS", driverduckdb.TYPE_TIMESTAMP_TZ: "TIMESTAMP WITH TIME ZONE",
	driverduckdb.TYPE_BLOB: "BLOB", driverduckdb.TYPE_UUID: "UUID",
}

// sqlType renders a bound type as SQL.
func sqlType(info driverduckdb.TypeInfo, t driverduckdb.Type) string {
	if name, ok := sqlNames[t]; ok {
		return name
	}
	if info == nil {
		return "VARCHAR"
	}
	child := func(c driverduckdb.TypeInfo) string { return sqlType(c, c.InternalType()) }
	switch d := info.Details().(type) {
	case *driverduckdb.DecimalDetails:
		return fmt.Sprintf("DECIMAL(%d,%d)", d.Width, d.Scale)
	case *driverduckdb.ListDetails:
		return child(d.Child) + "[]"
	case *driverduckdb.ArrayDetails:
		return fmt.Sprintf("%s[%d]", child(d.Child), d.Size)
	case *driverduckdb.MapDetails:
		return "MAP(" + child(d.Key) + ", " + child(d.Value) + ")"
	case *driverduckdb.StructDetails:
		parts := make([]string, len(d.Entries))
		for i, e := range d.Entries {
			parts[i] = quoteIdent(e.Name()) + " " + child(e.Info())
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")"
	}
	return "VARCHAR" // text and enums
}
