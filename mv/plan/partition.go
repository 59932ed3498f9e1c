package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PartitionField is one field of a storage table's partitioning.
type PartitionField struct {
	Column    string
	Transform string // identity, year, month, day, hour, void, bucket[N], truncate[N]
}

// Partition is a storage table's partitioning.
type Partition []PartitionField

var (
	callForm = regexp.MustCompile(`^(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^()]+?)\s*(?:,\s*(\d+)\s*)?\)$`)
	nameForm = regexp.MustCompile(`^[^()]+$`)
)

// ParsePartition reads fields as people write them: "day(ts)", "bucket(16, id)",
// "truncate(name, 4)", "carrier"; "none" alone means unpartitioned.
func ParsePartition(fields, columns []string) (Partition, error) {
	var out Partition
	for _, f := range fields {
		f = strings.TrimSpace(f)
		if strings.EqualFold(f, "none") && len(fields) == 1 {
			return nil, nil
		}
		p, err := parseField(f)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(columns, p.Column) {
			return nil, fmt.Errorf("%q names column %q, the view has %s", f, p.Column, strings.Join(columns, ", "))
		}
		out = append(out, p)
	}
	return out, nil
}

func parseField(f string) (PartitionField, error) {
	if nameForm.MatchString(f) {
		return PartitionField{Column: unquoted(f), Transform: "identity"}, nil
	}
	m := callForm.FindStringSubmatch(f)
	if m == nil {
		return PartitionField{}, fmt.Errorf("%q is no partition field: write a column, or day(column), bucket(16, column)", f)
	}
	name, column, number := strings.ToLower(m[1]), unquoted(m[3]), m[2]+m[4]
	switch name {
	case "year", "years", "month", "months", "day", "days", "hour", "hours":
		if number != "" {
			break
		}
		return PartitionField{Column: column, Transform: strings.TrimSuffix(name, "s")}, nil
	case "identity", "void":
		if number != "" {
			break
		}
		return PartitionField{Column: column, Transform: name}, nil
	case "bucket", "truncate":
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 1 {
			break
		}
		return PartitionField{Column: column, Transform: fmt.Sprintf("%s[%d]", name, n)}, nil
	}
	return PartitionField{}, fmt.Errorf("%q is no partition field: the transforms are identity, year, month, day, hour, bucket(N, column), truncate(N, column)", f)
}

func unquoted(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.ReplaceAll(s[1:len(s)-1], `""`, `"`)
	}
	return s
}

// JSON is the partition spec of the Iceberg specification; ids gives the columns' field
// ids. An unpartitioned table has none.
func (p Partition) JSON(ids map[string]int) (json.RawMessage, error) {
	if len(p) == 0 {
		return nil, nil
	}
	type specField struct {
		SourceID  int    `json:"source-id"`
		FieldID   int    `json:"field-id"`
		Name      string `json:"name"`
		Transform string `json:"transform"`
	}
	fields := make([]specField, len(p))
	for i, f := range p {
		fields[i] = specField{SourceID: ids[f.Column], FieldID: 1000 + i, Name: f.name(), Transform: f.Transform}
	}
	return json.Marshal(map[string]any{"spec-id": 0, "fields": fields})
}

// name follows what Spark calls such a field, so that it never clashes with a column.
func (f PartitionField) name() string {
	kind, _, _ := strings.Cut(f.Transform, "[")
	if kind == "identity" {
		return f.Column
	}
	return f.Column + "_" + kind
}

// SortField is one field of a storage table's sort order.
type SortField struct {
	Column    string
	Desc      bool
	NullsLast bool
}

// Sort is a storage table's sort order.
type Sort []SortField

// ParseSort reads fields such as "carrier", "day desc", "day desc nulls last".
func ParseSort(fields, columns []string) (Sort, error) {
	var out Sort
	for _, f := range fields {
		words := strings.Fields(f)
		if len(words) == 0 {
			return nil, errors.New("a sort field is empty")
		}
		s := SortField{Column: unquoted(words[0])}
		rest := strings.ToLower(strings.Join(words[1:], " "))
		order, nulls, _ := strings.Cut(rest, "nulls")
		switch strings.TrimSpace(order) {
		case "", "asc":
		case "desc":
			s.Desc = true
		default:
			return nil, fmt.Errorf("%q is no sort field: write column [asc|desc] [nulls first|last]", f)
		}
		switch strings.TrimSpace(nulls) {
		case "":
			s.NullsLast = s.Desc // Iceberg's default: nulls first ascending, last descending
		case "first":
		case "last":
			s.NullsLast = true
		default:
			return nil, fmt.Errorf("%q is no sort field: write column [asc|desc] [nulls first|last]", f)
		}
		if !slices.Contains(columns, s.Column) {
			return nil, fmt.Errorf("%q names column %q, the view has %s", f, s.Column, strings.Join(columns, ", "))
		}
		out = append(out, s)
	}
	return out, nil
}

// JSON is the sort order of the Iceberg specification.
func (s Sort) JSON(ids map[string]int) (json.RawMessage, error) {
	type sortField struct {
		SourceID  int    `json:"source-id"`
		Transform string `json:"transform"`
		Direction string `json:"direction"`
		NullOrder string `json:"null-order"`
	}
	fields := make([]sortField, len(s))
	for i, f := range s {
		fields[i] = sortField{SourceID: ids[f.Column], Transform: "identity", Direction: "asc", NullOrder: "nulls-first"}
		if f.Desc {
			fields[i].Direction = "desc"
		}
		if f.NullsLast {
			fields[i].NullOrder = "nulls-last"
		}
	}
	return json.Marshal(map[string]any{"order-id": 1, "fields": fields})
}
