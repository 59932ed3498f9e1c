package sqltext

// Code says why a query is not bucket-closed. The codes are part of EXPLAIN's output.
type Code string

// The codes, the more telling ones first: of several causes, the first is reported.
const (
	CodeOpaque           Code = "OPAQUE"                  // a part of the text cannot be read
	CodeNoSource         Code = "NO_SOURCE"               // reads no table
	CodeFileSource       Code = "FILE_SOURCE"             // reads a file
	CodeTableFunction    Code = "TABLE_FUNCTION"          // reads something else than tables
	CodeTimeTravel       Code = "TIME_TRAVEL"             // picks a version of a source
	CodeSample           Code = "SAMPLE"                  // reads a sample
	CodeHiddenColumn     Code = "HIDDEN_COLUMN"           // reads a column that SELECT * lacks
	CodeQualified        Code = "QUALIFIED_COLUMN"        // a column is qualified by more than its table
	CodeNondeterministic Code = "NONDETERMINISTIC"        // depends on the clock, the session or chance
	CodeUnknownFunction  Code = "UNKNOWN_FUNCTION"        // calls a function that may be nondeterministic
	CodeUnknownColumns   Code = "UNKNOWN_COLUMNS"         // the columns of a source are not known
	CodeSubquery         Code = "SUBQUERY"                // an expression reads further tables
	CodeSeveralSources   Code = "SEVERAL_SOURCES"         // reads more than one table
	CodeRecursive        Code = "RECURSIVE"               // WITH RECURSIVE
	CodeLimit            Code = "LIMIT"                   // LIMIT, OFFSET or FETCH
	CodeDistinctOn       Code = "DISTINCT_ON"             // keeps one row of several
	CodeSelfJoin         Code = "SELF_JOIN"               // the driving table is read a second time
	CodeOuterJoin        Code = "OUTER_JOIN"              // the bucket may be NULL for want of a match
	CodeJoin             Code = "JOIN"                    // a join by position or by nearest match
	CodeSetOperation     Code = "SET_OPERATION"           // the branches have different buckets
	CodeGroupingSets     Code = "GROUPING_SETS"           // a total spans buckets
	CodeNoGroupBy        Code = "NO_GROUP_BY"             // one aggregate over everything
	CodeWindow           Code = "WINDOW_NOT_PARTITIONED"  // a window spans buckets
	CodeDistinct         Code = "DISTINCT_WITHOUT_BUCKET" // rows of several buckets collapse
	CodeFloatBucket      Code = "FLOAT_BUCKET"            // floats have values outside file bounds
	CodeZoneDependent    Code = "ZONE_DEPENDENT"          // the bucket depends on a time zone
	CodeShadowed         Code = "ALIAS_SHADOWS_COLUMN"    // GROUP BY means the column, not the alias
	CodeNoBucket         Code = "NO_BUCKET"               // no output column is a bucket of a source column
)

// codeRank orders the codes by how telling they are.
var codeRank = func() map[Code]int {
	m := map[Code]int{}
	for i, c := range []Code{
		CodeOpaque, CodeNoSource, CodeFileSource, CodeTableFunction, CodeTimeTravel, CodeSample,
		CodeHiddenColumn, CodeQualified, CodeNondeterministic, CodeUnknownFunction, CodeUnknownColumns, CodeSubquery,
		CodeSeveralSources, CodeRecursive, CodeLimit, CodeDistinctOn, CodeSelfJoin, CodeOuterJoin, CodeJoin,
		CodeSetOperation, CodeGroupingSets, CodeNoGroupBy, CodeWindow, CodeDistinct, CodeFloatBucket,
		CodeZoneDependent, CodeShadowed, CodeNoBucket,
	} {
		m[c] = i
	}
	return m
}()

// Reason is why a query is not bucket-closed.
type Reason struct {
	Code   Code
	Offset int
	Msg    string // one sentence for a person, with the position
}

// String returns the code and the sentence.
func (r *Reason) String() string { return string(r.Code) + ": " + r.Msg }
