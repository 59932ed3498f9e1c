package postgres

// The statements that run for every commit, load or job, for the test of their plans.
const (
	StateByUUIDSQL   = rootByUUID + stateSQL
	StateByNameSQL   = rootByName + stateSQL
	NeedMarksSQL     = needMarksSQL
	UpstreamSQL      = upstreamSQL
	ParkedReadersSQL = parkedReadersSQL
)
