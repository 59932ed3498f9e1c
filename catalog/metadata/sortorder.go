package metadata

import (
	"encoding/json"
	"slices"
	"strings"
)

type sortField struct {
	sources   []int
	transform string
	direction string
	nullOrder string
	extra     []member
}

type sortOrder struct {
	id     int
	fields []sortField
	extra  []member
}

// parseSortOrder reads a sort order; order id 0 is for the unsorted one alone.
func parseSortOrder(raw json.RawMessage) (*sortOrder, error) {
	o, err := parseObject(raw)
	if err != nil {
		return nil, at(err, "sort order")
	}
	s := &sortOrder{extra: o.without("order-id", "fields")}
	list, err := o.array("fields")
	if err != nil {
		return nil, err
	}
	for _, raw := range list {
		f, err := parseSortField(raw)
		if err != nil {
			return nil, at(err, "sort field")
		}
		s.fields = append(s.fields, f)
	}
	if s.id, err = o.optInt("order-id", min(len(list), 1)); err != nil {
		return nil, err
	}
	if len(list) == 0 && s.id != 0 {
		return nil, invalid("Unsorted order ID must be 0")
	}
	if len(list) > 0 && s.id == 0 {
		return nil, invalid("Sort order ID 0 is reserved for unsorted order")
	}
	return s, nil
}

func parseSortField(raw json.RawMessage) (sortField, error) {
	o, err := parseObject(raw)
	if err != nil {
		return sortField{}, err
	}
	f := sortField{extra: o.without("source-id", "source-ids", "transform", "direction", "null-order")}
	if f.sources, err = parseSources(&o); err != nil {
		return f, err
	}
	if f.transform, err = o.str("transform"); err != nil {
		return f, err
	}
	f.transform = normalTransform(f.transform)
	if f.direction, err = o.str("direction"); err != nil {
		return f, err
	}
	if f.direction = strings.ToLower(f.direction); f.direction != "asc" && f.direction != "desc" {
		return f, invalid("Invalid sort direction: %s", quoted([]byte(f.direction)))
	}
	if f.nullOrder, err = o.str("null-order"); err != nil {
		return f, err
	}
	if f.nullOrder = strings.ToLower(f.nullOrder); f.nullOrder != "nulls-first" && f.nullOrder != "nulls-last" {
		return f, invalid("Unexpected null order: %s", quoted([]byte(f.nullOrder)))
	}
	return f, nil
}

// covers reports whether s may stand in for other.
func (s *sortOrder) covers(other *sortOrder) bool {
	return coveredBy(other.extra, &object{members: s.extra}) &&
		slices.EqualFunc(s.fields, other.fields, func(a, b sortField) bool {
			return slices.Equal(a.sources, b.sources) && a.transform == b.transform && a.direction == b.direction &&
				a.nullOrder == b.nullOrder && coveredBy(b.extra, &object{members: a.extra})
		})
}

func (s *sortOrder) checkSources(sch *schema) error {
	for _, f := range s.fields {
		for _, id := range f.sources {
			column := sch.byID[id]
			if column == nil {
				return invalid("Cannot find source column for sort field: %s(%d) %s %s", f.transform, id, f.direction, f.nullOrder)
			}
			if column.typ.kind != kindPrimitive {
				return invalid("Cannot sort by non-primitive source field: %s", column.path)
			}
			if err := checkTransform(f.transform, column.typ.prim); err != nil {
				return err
			}
		}
	}
	return nil
}
