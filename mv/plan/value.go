package plan

// Range is an inclusive range of a column's values; a nil end is open. A value is
//
//	int64     int, long; date in days; time in µs; timestamps in the column's own unit
//	*big.Int  decimal, the unscaled value
//	string    string
//	[]byte    binary, fixed
//	bool      boolean
//	[16]byte  uuid
type Range struct {
	Lo, Hi any
}

// Interval is a range [Lo, Hi) of such values, [Lo, Hi] if Closed; a nil end is open.
type Interval struct {
	Lo, Hi any
	Closed bool // Hi belongs to it: identity buckets of a type without successors
}

// Set is a set of rows by the value of one column: those in one of the intervals, and
// those where it is null if Null is set.
type Set struct {
	Intervals []Interval
	Null      bool
}

// Empty reports whether no row is in s.
func (s Set) Empty() bool { return len(s.Intervals) == 0 && !s.Null }
