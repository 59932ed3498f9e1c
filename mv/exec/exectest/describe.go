package exectest

var (
	describeTests = []testCase{}
	guardTests    = []testCase{}
	limitTests    = []testCase{}
)
