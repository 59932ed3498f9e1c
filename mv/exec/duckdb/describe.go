package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	driverduckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// describe binds q in an instance of its own: it is locked from the start, so that the
// process can still serve a run afterwards.
func describe(ctx context.Context, home string, q mv.DescribeRequest) ([]mv.EngineColumn, error) {
	in, err := openInstance(ctx, home)
	if err != nil {
		return nil, catalog.Errorf(catalog.KindUnavailable, "DuckDB cannot be opened").Because(err)
	}
	defer func() { _ = in.close() }() // nothing was written that could be lost
	names, err := in.stubs(ctx, q.Relations)
	if err != nil {
		return nil, err
	}
	if err := in.lock(ctx, bounds{timeZone: q.TimeZone}); err != nil {
		return nil, lockError(q.TimeZone, err)
	}
	text, err := guard(ctx, in.conn, q.SQL, names)
	if err != nil {
		return nil, err
	}
	cols, err := in.bind(ctx, text)
	if err != nil {
		return nil, queryError(q.SQL, err)
	}
	return engineColumns(cols)
}

// stubs creates an empty table for each relation.
func (in *instance) stubs(ctx context.Context, relations []mv.Relation) ([]string, error) {
	names := make([]string, len(relations))
	for i, r := range relations {
		fields, err := relationFields(r)
		if err != nil {
			return nil, mv.ErrInput("table %s: %s", r.Name, err)
		}
		cols := make([]string, len(fields))
		for j, f := range fields {
			cols[j] = quoteIdent(f.name) + " " + f.typ.duck()
		}
		stmt := "CREATE TABLE " + quoteIdent(r.Name) + " (" + strings.Join(cols, ", ") + ")"
		if err := in.exec(ctx, stmt); err != nil {
			d, _ := parseDuckError(err)
			return nil, mv.ErrInput("table %s: %s", r.Name, tidy(d.Message)).Because(err)
		}
		names[i] = r.Name
	}
	return names, nil
}

func relationFields(r mv.Relation) ([]field, error) {
	fields, err := parseSchema(r.Schema)
	if err == nil && len(fields) == 0 {
		err = errors.New("the schema has no columns")
	}
	return fields, err
}

func lockError(zone string, err error) error {
	d, _ := parseDuckError(err)
	if strings.Contains(d.Message, "TimeZone") || strings.Contains(d.Message, "time zone") {
		return mv.ErrInput("time zone %q is not known: use an IANA name such as Europe/Berlin", zone).Because(err)
	}
	return catalog.Errorf(kindOf(d.Type), "DuckDB refuses a setting: %s", tidy(d.Message)).Because(err)
}

// engineColumns maps the bound columns to Iceberg types.
func engineColumns(cols []resultColumn) ([]mv.EngineColumn, error) {
	out := make([]mv.EngineColumn, 0, len(cols))
	seen := make(map[string]bool, len(cols))
	for i, c := range cols {
		if c.name == "" {
			return nil, mv.ErrInput("column %d has no name: give it one with AS", i+1)
		}
		fold := strings.ToLower(c.name)
		if seen[fold] {
			return nil, mv.ErrInput("column %d: the name %q occurs twice: give one of the two another name with AS", i+1, c.name)
		}
		seen[fold] = true
		ids := 0
		typ, coerced, err := icebergOf(c.info, c.typ, &ids)
		if err != nil {
			return nil, mv.ErrInput("column %q: %s", c.name, err)
		}
		out = append(out, mv.EngineColumn{Name: c.name, Type: typ, Coerced: coerced, Nullable: true})
	}
	return out, nil
}

var resultTypes = map[driverduckdb.Type]string{
	driverduckdb.TYPE_BOOLEAN: "boolean", driverduckdb.TYPE_TINYINT: "int", driverduckdb.TYPE_SMALLINT: "int",
	driverduckdb.TYPE_INTEGER: "int", driverduckdb.TYPE_BIGINT: "long", driverduckdb.TYPE_UTINYINT: "int",
	driverduckdb.TYPE_USMALLINT: "int", driverduckdb.TYPE_UINTEGER: "long", driverduckdb.TYPE_UBIGINT: "decimal(20, 0)",
	driverduckdb.TYPE_FLOAT: "float", driverduckdb.TYPE_DOUBLE: "double", driverduckdb.TYPE_DATE: "date",
	driverduckdb.TYPE_TIME: "time", driverduckdb.TYPE_TIMESTAMP: "timestamp", driverduckdb.TYPE_TIMESTAMP_S: "timestamp",
	driverduckdb.TYPE_TIMESTAMP_MS: "timestamp", driverduckdb.TYPE_TIMESTAMP_NS: "timestamp_ns",
	driverduckdb.TYPE_TIMESTAMP_TZ: "timestamptz", driverduckdb.TYPE_VARCHAR: "string", driverduckdb.TYPE_ENUM: "string",
	driverduckdb.TYPE_BLOB: "binary", driverduckdb.TYPE_UUID: "uuid", driverduckdb.TYPE_HUGEINT: "long",
}

// refusedTypes name a type that has no Iceberg counterpart and the cast that helps.
var refusedTypes = map[driverduckdb.Type][2]string{
	driverduckdb.TYPE_INTERVAL: {"INTERVAL", "VARCHAR"},
	driverduckdb.TYPE_TIME_TZ:  {"TIME WITH TIME ZONE", "TIME"},
	driverduckdb.TYPE_BIT:      {"BIT", "VARCHAR"},
	driverduckdb.TYPE_UHUGEINT: {"UHUGEINT", "DECIMAL(38,0)"},
	driverduckdb.TYPE_BIGNUM:   {"BIGNUM", "VARCHAR"},
	driverduckdb.TYPE_UNION:    {"UNION", "VARCHAR"},
	driverduckdb.TYPE_VARIANT:  {"VARIANT", "VARCHAR"},
	driverduckdb.TYPE_GEOMETRY: {"GEOMETRY", "BLOB"},
	driverduckdb.TYPE_SQLNULL:  {"NULL", "VARCHAR"},
}

// icebergOf maps a DuckDB type. Nested field ids are placeholders, numbered from 1.
func icebergOf(info driverduckdb.TypeInfo, t driverduckdb.Type, ids *int) (text string, coerced bool, err error) {
	if name, ok := resultTypes[t]; ok {
		return name, t == driverduckdb.TYPE_HUGEINT, nil
	}
	if r, ok := refusedTypes[t]; ok {
		return "", false, fmt.Errorf("type %s has no Iceberg counterpart: write CAST(… AS %s)", r[0], r[1])
	}
	if info != nil {
		switch d := info.Details().(type) {
		case *driverduckdb.DecimalDetails:
			return fmt.Sprintf("decimal(%d, %d)", d.Width, d.Scale), false, nil
		case *driverduckdb.ListDetails:
			return icebergList(d.Child, ids)
		case *driverduckdb.ArrayDetails:
			return icebergList(d.Child, ids)
		case *driverduckdb.MapDetails:
			return icebergMap(d, ids)
		case *driverduckdb.StructDetails:
			return icebergStruct(d, ids)
		}
	}
	return "", false, errors.New("its DuckDB type has no Iceberg counterpart: write CAST(… AS VARCHAR)")
}

func nextID(ids *int) int {
	*ids++
	return *ids
}

// typeJSON quotes a primitive's name and leaves a nested type's JSON alone.
func typeJSON(text string) string {
	if strings.HasPrefix(text, "{") {
		return text
	}
	return strconv.Quote(text)
}

func icebergList(child driverduckdb.TypeInfo, ids *int) (string, bool, error) {
	id := nextID(ids)
	text, coerced, err := icebergOf(child, child.InternalType(), ids)
	return fmt.Sprintf(`{"type":"list","element-id":%d,"element":%s,"element-required":false}`, id, typeJSON(text)), coerced, err
}

func icebergMap(d *driverduckdb.MapDetails, ids *int) (string, bool, error) {
	keyID, valueID := nextID(ids), nextID(ids)
	key, c1, err := icebergOf(d.Key, d.Key.InternalType(), ids)
	if err != nil {
		return "", false, err
	}
	value, c2, err := icebergOf(d.Value, d.Value.InternalType(), ids)
	return fmt.Sprintf(`{"type":"map","key-id":%d,"key":%s,"value-id":%d,"value":%s,"value-required":false}`,
		keyID, typeJSON(key), valueID, typeJSON(value)), c1 || c2, err
}

func icebergStruct(d *driverduckdb.StructDetails, ids *int) (string, bool, error) {
	var parts []string
	narrowed := false
	for _, e := range d.Entries {
		id := nextID(ids)
		text, coerced, err := icebergOf(e.Info(), e.Info().InternalType(), ids)
		if err != nil {
			return "", false, fmt.Errorf("field %q: %w", e.Name(), err)
		}
		narrowed = narrowed || coerced
		parts = append(parts, fmt.Sprintf(`{"id":%d,"name":%s,"required":false,"type":%s}`, id, jsonString(e.Name()), typeJSON(text)))
	}
	return `{"type":"struct","fields":[` + strings.Join(parts, ",") + `]}`, narrowed, nil
}
