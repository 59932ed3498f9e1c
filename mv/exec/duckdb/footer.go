package duckdb

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// shape is what a node of a Parquet schema means, after the LIST and MAP wrappers are
// taken off.
type shape uint8

const (
	shapeLeaf shape = iota
	shapeStruct
	shapeList
	shapeMap
)

// noID marks a column without a field id.
const noID = -1

// column is a node of a Parquet file's schema. A list has one child, a map has two.
type column struct {
	id       int
	name     string
	shape    shape
	duck     string // leaf: the DuckDB type that read_parquet gives it
	nanosUTC bool   // leaf: nanoseconds that DuckDB would cut to microseconds
	leaf     int    // leaf: index of the column chunk
	bytes    int64  // compressed size over all row groups, children included
	children []*column
}

// footer is what the engine needs to know of a Parquet file before DuckDB opens it.
type footer struct {
	columns []*column
	rows    int64
	layout  string // equal for files that read_parquet can read in one list
}

// readFooter reads the schema and the sizes of a Parquet file.
func readFooter(path string) (f *footer, err error) {
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	// arrow-go panics on some malformed schemas; that must stay a refusal of this file.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed Parquet schema: %v", p)
		}
	}()
	return newFooter(r.MetaData())
}

func newFooter(meta *metadata.FileMetaData) (*footer, error) {
	w := &schemaWalk{sizes: make([]int64, meta.Schema.NumColumns())}
	for _, rg := range meta.RowGroups {
		for i, c := range rg.Columns {
			if i < len(w.sizes) && c.MetaData != nil {
				w.sizes[i] += c.MetaData.TotalCompressedSize
			}
		}
	}
	root := meta.Schema.Root()
	f := &footer{rows: meta.NumRows}
	for i := range root.NumFields() {
		c, err := w.node(root.Field(i))
		if err != nil {
			return nil, err
		}
		f.columns = append(f.columns, c)
	}
	var b strings.Builder
	writeLayout(&b, f.columns)
	f.layout = b.String()
	return f, nil
}

// schemaWalk numbers leaves in the order of their column chunks.
type schemaWalk struct {
	sizes []int64
	next  int
}

func (w *schemaWalk) node(n schema.Node) (*column, error) {
	if n.RepetitionType() == parquet.Repetitions.Repeated {
		// A repeated field outside a LIST wrapper is a list without NULLs.
		elem, err := w.single(n)
		if err != nil {
			return nil, err
		}
		return &column{id: int(n.FieldID()), name: n.Name(), shape: shapeList, bytes: elem.bytes, children: []*column{elem}}, nil
	}
	return w.single(n)
}

func (w *schemaWalk) single(n schema.Node) (*column, error) {
	c := &column{id: int(n.FieldID()), name: n.Name()}
	if p, ok := n.(*schema.PrimitiveNode); ok {
		c.leaf = w.next
		w.next++
		c.bytes = w.sizes[c.leaf]
		c.duck, c.nanosUTC = leafType(p)
		return c, nil
	}
	g := n.(*schema.GroupNode)
	var err error
	switch g.ConvertedType() {
	case schema.ConvertedTypes.List:
		c.shape = shapeList
		c.children, err = w.listElement(g)
	case schema.ConvertedTypes.Map, schema.ConvertedTypes.MapKeyValue:
		c.shape = shapeMap
		c.children, err = w.mapEntries(g)
	default:
		c.shape = shapeStruct
		c.children, err = w.fields(g)
	}
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", n.Name(), err)
	}
	for _, child := range c.children {
		c.bytes += child.bytes
	}
	return c, nil
}

func (w *schemaWalk) fields(g *schema.GroupNode) ([]*column, error) {
	out := make([]*column, 0, g.NumFields())
	for i := range g.NumFields() {
		c, err := w.node(g.Field(i))
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// listElement takes the element out of the three-level LIST form, or of the older
// two-level form, by the compatibility rules of the Parquet format.
func (w *schemaWalk) listElement(g *schema.GroupNode) ([]*column, error) {
	if g.NumFields() != 1 || g.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return nil, errors.New("LIST without a repeated field")
	}
	rep := g.Field(0)
	inner, ok := rep.(*schema.GroupNode)
	if !ok || inner.NumFields() != 1 || rep.Name() == "array" || rep.Name() == g.Name()+"_tuple" {
		elem, err := w.single(rep)
		return []*column{elem}, err
	}
	elem, err := w.node(inner.Field(0))
	return []*column{elem}, err
}

func (w *schemaWalk) mapEntries(g *schema.GroupNode) ([]*column, error) {
	if g.NumFields() != 1 {
		return nil, errors.New("MAP without a repeated group")
	}
	inner, ok := g.Field(0).(*schema.GroupNode)
	if !ok || inner.NumFields() != 2 {
		return nil, errors.New("MAP whose entries are not key and value")
	}
	return w.fields(inner)
}

// leafType predicts the DuckDB type of a leaf. Every branch's result types are compared
// with the wanted ones afterwards, so that a wrong prediction is an error and never a
// silent conversion.
func leafType(p *schema.PrimitiveNode) (duck string, nanosUTC bool) {
	switch t := p.LogicalType().(type) {
	case schema.StringLogicalType, schema.EnumLogicalType:
		return "VARCHAR", false
	case schema.JSONLogicalType:
		return "JSON", false
	case schema.UUIDLogicalType:
		return "UUID", false
	case schema.Float16LogicalType:
		return "FLOAT", false
	case schema.DateLogicalType:
		return "DATE", false
	case schema.IntervalLogicalType:
		return "INTERVAL", false
	case schema.DecimalLogicalType:
		return decimalType(&t), false
	case *schema.DecimalLogicalType:
		return decimalType(t), false
	case schema.IntLogicalType:
		return intType(&t), false
	case *schema.IntLogicalType:
		return intType(t), false
	case schema.TimeLogicalType:
		return timeType(&t), false
	case *schema.TimeLogicalType:
		return timeType(t), false
	case schema.TimestampLogicalType:
		return timestampType(&t)
	case *schema.TimestampLogicalType:
		return timestampType(t)
	}
	switch p.PhysicalType() {
	case parquet.Types.Boolean:
		return "BOOLEAN", false
	case parquet.Types.Int32:
		return "INTEGER", false
	case parquet.Types.Int64:
		return "BIGINT", false
	case parquet.Types.Int96:
		return "TIMESTAMP", false
	case parquet.Types.Float:
		return "FLOAT", false
	case parquet.Types.Double:
		return "DOUBLE", false
	}
	return "BLOB", false
}

func decimalType(t *schema.DecimalLogicalType) string {
	if t.Precision() > 38 {
		return "DOUBLE from a decimal of more than 38 digits"
	}
	return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision(), t.Scale())
}

func intType(t *schema.IntLogicalType) string {
	name := map[int8]string{8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[t.BitWidth()]
	if !t.IsSigned() {
		return "U" + name
	}
	return name
}

func timeType(t *schema.TimeLogicalType) string {
	switch {
	case t.IsAdjustedToUTC() && t.TimeUnit() != schema.TimeUnitNanos:
		return "TIME WITH TIME ZONE"
	case t.TimeUnit() == schema.TimeUnitNanos:
		return "TIME_NS"
	}
	return "TIME"
}

func timestampType(t *schema.TimestampLogicalType) (duck string, nanosUTC bool) {
	nanos := t.TimeUnit() == schema.TimeUnitNanos
	switch {
	case t.IsFromConvertedType():
		return "TIMESTAMP", false
	case t.IsAdjustedToUTC():
		return "TIMESTAMP WITH TIME ZONE", nanos
	case nanos:
		return "TIMESTAMP_NS", false
	}
	return "TIMESTAMP", false
}

func writeLayout(b *strings.Builder, cols []*column) {
	for _, c := range cols {
		b.WriteString(strconv.Quote(c.name))
		fmt.Fprintf(b, "#%d:%d", c.id, c.shape)
		b.WriteString(c.duck)
		b.WriteByte('(')
		writeLayout(b, c.children)
		b.WriteByte(')')
	}
}

// hasIDs reports whether any column carries a field id: then columns without one are
// not part of the table.
func hasIDs(cols []*column) bool {
	for _, c := range cols {
		if c.id != noID || hasIDs(c.children) {
			return true
		}
	}
	return false
}

func byID(cols []*column, id int) int {
	for i, c := range cols {
		if c.id == id {
			return i
		}
	}
	return -1
}
