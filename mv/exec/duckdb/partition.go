package duckdb

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// partitionField is a partition field of the storage table with its source column.
type partitionField struct {
	id        int
	name      string // of the hidden column that splits the files
	column    int
	transform string
	width     int // of bucket and truncate
	typ       icebergType
}

var widthRE = regexp.MustCompile(`^(bucket|truncate)\[(\d+)\]$`)

func partitionFields(exprs []mv.PartitionExpr, columns []outColumn) ([]partitionField, error) {
	taken := make(map[string]bool)
	for _, c := range columns {
		taken[strings.ToLower(c.Name)] = true
	}
	var out []partitionField
	for _, e := range exprs {
		p := partitionField{id: e.FieldID, column: -1, transform: e.Transform}
		for i, c := range columns {
			if c.Name == e.Column {
				p.column, p.typ = i, c.typ
			}
		}
		if p.column < 0 {
			return nil, unprocessable("partition field %d: the output has no column %q", e.FieldID, e.Column)
		}
		if m := widthRE.FindStringSubmatch(e.Transform); m != nil {
			p.transform = m[1]
			p.width, _ = strconv.Atoi(m[2])
		}
		if e.Transform == "void" {
			continue // NULL for every row: it never splits files
		}
		if !p.valid() {
			return nil, unprocessable("partition field %d: transform %s does not apply to column %q of type %s", e.FieldID, e.Transform, e.Column, p.typ.text)
		}
		p.name = "p" + strconv.Itoa(e.FieldID)
		for taken[p.name] {
			p.name = "_" + p.name
		}
		taken[p.name] = true
		out = append(out, p)
	}
	return out, nil
}

func (p partitionField) valid() bool {
	k := p.typ.kind
	date := k == kDate
	instant := k == kTimestamp || k == kTimestamptz || k == kTimestampNS
	switch p.transform {
	case "identity":
		return len(p.typ.fields) == 0
	case "year", "month", "day":
		return date || instant
	case "hour":
		return instant
	case "truncate":
		return p.width > 0 && (k == kInt || k == kLong || k == kDecimal || k == kString || k == kBinary)
	case "bucket":
		return p.width > 0 && (date || instant || k == kInt || k == kLong || k == kDecimal || k == kString || k == kBinary || k == kUUID || k == kTime)
	}
	return false
}

// value renders the partition value of x as text: for strings and binaries the value
// itself or hexadecimal, for all else what Iceberg's single-value JSON says between the
// quotes. Instants are cut in UTC, whatever the session's zone is.
func (p partitionField) value(x string) string {
	k := p.typ.kind
	day := x
	switch k {
	case kTimestamp, kTimestamptz, kTimestampNS:
		day = "make_timestamp(epoch_us(" + x + "))"
		if k == kTimestampNS { // floor, where epoch_us would cut towards zero
			day = "make_timestamp((epoch_ns(" + x + ")::HUGEINT - ((epoch_ns(" + x + ")::HUGEINT % 1000) + 1000) % 1000)::BIGINT // 1000)"
		}
	}
	switch p.transform {
	case "year":
		return "CAST(year(" + day + ") - 1970 AS VARCHAR)"
	case "month":
		return "CAST((year(" + day + ") - 1970) * 12 + month(" + day + ") - 1 AS VARCHAR)"
	case "day":
		return "CAST(CAST(" + day + " AS DATE) - DATE '1970-01-01' AS VARCHAR)"
	case "hour":
		return "CAST((CAST(" + day + " AS DATE) - DATE '1970-01-01')::BIGINT * 24 + hour(" + day + ") AS VARCHAR)"
	case "truncate":
		return p.truncated(x)
	case "bucket":
		return "CAST((" + p.hash(x) + " & 2147483647) % " + strconv.Itoa(p.width) + " AS VARCHAR)"
	}
	return p.identity(x)
}

func (p partitionField) identity(x string) string {
	switch p.typ.kind {
	case kBinary:
		return "lower(hex(" + x + "))"
	case kTime:
		return "CAST(epoch_us(" + x + ") AS VARCHAR)"
	case kTimestamp, kTimestamptz:
		return "CAST(epoch_us(" + x + ") AS VARCHAR)"
	case kTimestampNS:
		return "CAST(epoch_ns(" + x + ") AS VARCHAR)"
	case kDate:
		return "CAST(" + x + " - DATE '1970-01-01' AS VARCHAR)"
	}
	return "CAST(" + x + " AS VARCHAR)"
}

func (p partitionField) truncated(x string) string {
	w := strconv.Itoa(p.width)
	switch p.typ.kind {
	case kString:
		return "left(" + x + ", " + w + ")"
	case kBinary:
		return "lower(hex(array_slice(" + x + ", 1, " + w + ")))"
	case kDecimal:
		// The width counts units of the last digit. Up to 38 digits leave no room for
		// arithmetic in DECIMAL, so it is done on the unscaled integer.
		return "catalogd_decimal_truncate(CAST(" + x + " AS VARCHAR), " + w + ")"
	}
	// Iceberg's arithmetic wraps around below the smallest number, and so must this.
	bits := 64
	if p.typ.kind == kInt {
		bits = 32
	}
	wide := "CAST(" + x + " AS HUGEINT)"
	floor := fmt.Sprintf("(%[1]s - ((%[1]s %% %[2]s) + %[2]s) %% %[2]s)", wide, w)
	return fmt.Sprintf("CAST(CASE WHEN %[1]s < -(1::HUGEINT << %[2]d) THEN %[1]s + (1::HUGEINT << %[3]d) ELSE %[1]s END AS VARCHAR)", floor, bits-1, bits)
}

// hash renders the 32-bit murmur3 hash that Iceberg's bucket transform prescribes.
func (p partitionField) hash(x string) string {
	switch p.typ.kind {
	case kInt, kLong:
		return "catalogd_hash_long(CAST(" + x + " AS BIGINT))"
	case kDate:
		return "catalogd_hash_long(CAST(" + x + " - DATE '1970-01-01' AS BIGINT))"
	case kTime, kTimestamp, kTimestamptz:
		return "catalogd_hash_long(epoch_us(" + x + "))"
	case kTimestampNS:
		return "catalogd_hash_long(CAST((epoch_ns(" + x + ")::HUGEINT - ((epoch_ns(" + x + ")::HUGEINT % 1000) + 1000) % 1000)::BIGINT // 1000 AS BIGINT))"
	case kDecimal:
		return "catalogd_hash_decimal(CAST(" + x + " AS VARCHAR))"
	case kUUID:
		return "catalogd_hash_bytes(unhex(replace(CAST(" + x + " AS VARCHAR), '-', '')))"
	case kString:
		return "catalogd_hash_bytes(encode(" + x + "))"
	}
	return "catalogd_hash_bytes(" + x + ")"
}

// path renders the value that names a folder: text of any length or content is replaced
// by a digest, NULL stays NULL and gets files of its own.
func (p partitionField) path(x string) string {
	v := p.value(x)
	if p.transform != "bucket" && (p.typ.kind == kString || p.typ.kind == kBinary) {
		return "left(sha256(" + v + "), 32)"
	}
	return v
}

// json renders a value read back from a file.
func (p partitionField) json(text *string) json.RawMessage {
	if text == nil {
		return json.RawMessage("null")
	}
	quoted := false
	switch p.typ.kind {
	case kString, kBinary, kUUID, kDecimal:
		quoted = p.transform == "identity" || p.transform == "truncate"
	case kFloat, kDouble:
		quoted = !numberRE.MatchString(*text)
	}
	if quoted {
		return json.RawMessage(jsonString(*text))
	}
	return json.RawMessage(*text)
}

// partitionValues reads the first row of each written file and computes its partition
// tuple by the expressions that split the rows.
func (o *output) partitionValues(ctx context.Context, in *instance, paths []string) ([]map[string]json.RawMessage, error) {
	out := make([]map[string]json.RawMessage, len(paths))
	if len(o.partition) == 0 || len(paths) == 0 {
		return out, nil
	}
	exprs := []string{"f.file_index"}
	for _, p := range o.partition {
		exprs = append(exprs, p.value("f.c"+strconv.Itoa(p.column)))
	}
	stmt := "SELECT " + strings.Join(exprs, ", ") + " FROM " + readParquet(paths, "f", "c", len(o.columns)) + " WHERE f.file_row_number = 0"
	rows, err := in.conn.QueryContext(ctx, stmt)
	if err != nil {
		return nil, runError("partition values", err)
	}
	defer rows.Close()
	for rows.Next() {
		var index uint64
		texts := make([]*string, len(o.partition))
		dest := []any{&index}
		for i := range texts {
			dest = append(dest, &texts[i])
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, runError("partition values", err)
		}
		tuple := make(map[string]json.RawMessage, len(texts))
		for i, p := range o.partition {
			tuple[strconv.Itoa(p.id)] = p.json(texts[i])
		}
		out[index] = tuple
	}
	for i, tuple := range out {
		if tuple == nil {
			return nil, catalog.Errorf(catalog.KindInternal, "written file %s has no first row", paths[i])
		}
	}
	return out, rows.Err()
}
