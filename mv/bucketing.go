package mv

import (
	"fmt"

	"github.com/catalogd/catalogd/mv/sqltext"
)

// bucketing is how the rows of a view fall into buckets of one source column.
type bucketing struct {
	relation   *relation
	ref        int    // of the driving table reference, in the query that is restricted
	column     string // source column
	sourceType string
	fieldID    int
	output     int // position of the bucket in the view
	outName    string
	outType    string
	bucket     sqltext.Bucket
}

// restricted is a predicate on one table reference.
type restricted struct {
	ref       int
	predicate string
}

// runnable is the query as the engine runs it: the names of the catalog are replaced by
// those of the relations, plain views by their text, and one reference is restricted.
func (a *analysis) runnable(r *restricted) (string, error) {
	if r == nil || !a.Inlined {
		reps := append([]sqltext.Replacement{}, a.Replace...)
		if r != nil {
			for i := range reps {
				if reps[i].Ref == r.ref {
					reps[i].Predicate = r.predicate
				}
			}
		}
		return rewritten(a.Query, reps)
	}
	q, err := a.inlined()
	if err != nil {
		return "", err
	}
	return rewritten(q, []sqltext.Replacement{{Ref: r.ref, Predicate: r.predicate}})
}

func rewritten(q *sqltext.Query, reps []sqltext.Replacement) (string, error) {
	out, err := sqltext.RewriteTables(q, reps)
	if err != nil {
		return "", ErrInput("%s", err.Error())
	}
	return out, nil
}

// inlined is the query with its plain views written out, over relation names.
func (a *analysis) inlined() (*sqltext.Query, error) {
	out, err := rewritten(a.Query, a.Replace)
	if err != nil {
		return nil, err
	}
	q, err := sqltext.Parse(sqltext.DuckDB, out)
	if err != nil {
		return nil, ErrInput("the query with its views written out: %s", err.Error())
	}
	return q, nil
}

// bucketOf proves that a query can be refreshed bucket by bucket, or gives the coded
// reason why not.
func bucketOf(a *analysis, d Definition) (*bucketing, string) {
	q := a.Query
	if a.Inlined {
		var err error
		if q, err = a.inlined(); err != nil {
			return nil, string(sqltext.CodeOpaque)
		}
	}
	proofs, reason := sqltext.Closed(q, sqltext.Options{
		Columns:   func(t sqltext.TableRef) []sqltext.Column { return a.relationOf(t).columns() },
		TimeZone:  d.TimeZone,
		OneSource: true,
	})
	if reason != nil {
		return nil, string(reason.Code)
	}
	code := string(sqltext.CodeNoBucket)
	for _, p := range proofs {
		if len(p.Drivers) != 1 || !p.Covers() {
			code = string(sqltext.CodeSeveralSources)
			continue
		}
		rel := a.relationOf(p.Drivers[0].Ref)
		id, ok := rel.fieldID(p.Drivers[0].Column)
		if rel == nil || !ok || p.Output >= len(d.Columns) {
			continue
		}
		out := d.Columns[p.Output]
		b := &bucketing{
			relation: rel, ref: p.Drivers[0].Ref.Index, column: p.Drivers[0].Column, sourceType: p.Drivers[0].Type, fieldID: id,
			output: p.Output, outName: out.Name, outType: out.Type, bucket: p.Bucket,
		}
		if !b.fits() {
			code = "BUCKET_TYPE"
			continue
		}
		return b, ""
	}
	return nil, code
}

// relationOf finds the relation behind a table reference, nil if it is none.
func (a *analysis) relationOf(t sqltext.TableRef) *relation {
	name := ""
	if a.Inlined {
		name = t.Parts[len(t.Parts)-1]
	} else {
		for _, rep := range a.Replace {
			if rep.Ref == t.Index && len(rep.Name) == 1 {
				name = rep.Name[0]
			}
		}
	}
	for _, r := range a.Relations {
		if r.Name == name {
			return r
		}
	}
	return nil
}

func (r *relation) columns() []sqltext.Column {
	if r == nil {
		return nil
	}
	fields, err := schemaFields(r.Table.CurrentSchema())
	if err != nil {
		return nil
	}
	return columnsOf(fields)
}

func (r *relation) fieldID(column string) (int, bool) {
	if r == nil {
		return 0, false
	}
	fields, err := schemaFields(r.Table.CurrentSchema())
	if err != nil {
		return 0, false
	}
	for _, f := range fields {
		if f.Name == column {
			return f.ID, true
		}
	}
	return 0, false
}

// partition is the storage partitioning that follows the bucket.
func (b *bucketing) partition() string {
	column := sqltext.Quote(sqltext.DuckDB, b.outName)
	switch b.partitionUnit() {
	case sqltext.Day:
		return "day(" + column + ")"
	case sqltext.Month:
		return "month(" + column + ")"
	case sqltext.Year:
		return "year(" + column + ")"
	}
	return fmt.Sprintf("bucket(16, %s)", column)
}

// partitionUnit is the unit of the storage table's partitions: day for buckets below an
// hour, month up to a day, year above; empty if the bucket is no time.
func (b *bucketing) partitionUnit() sqltext.Unit {
	if ticksPerDay(b.outType) == 0 {
		return ""
	}
	const hour, day = int64(3_600_000_000), int64(86_400_000_000)
	switch {
	case b.bucket.Kind == sqltext.Width && b.bucket.Months:
		return sqltext.Year
	case b.bucket.Kind == sqltext.Width && b.bucket.Width < hour && b.outType != "date":
		return sqltext.Day
	case b.bucket.Kind == sqltext.Width && b.bucket.Width > day:
		return sqltext.Year
	case b.bucket.Kind != sqltext.Trunc:
		return sqltext.Month
	}
	switch b.bucket.Unit {
	case sqltext.Microsecond, sqltext.Millisecond, sqltext.Second, sqltext.Minute:
		if b.outType == "date" {
			return sqltext.Month
		}
		return sqltext.Day
	case sqltext.Hour, sqltext.Day:
		return sqltext.Month
	}
	return sqltext.Year
}
