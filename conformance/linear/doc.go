// Package linear checks that a catalog with several replicas behaves as if one careful
// clerk did everything, one operation after the other, whatever is killed meanwhile.
//
// Concurrent clients create, load, commit to, rename, drop and list a few tables over
// HTTP and note when each operation began, when it ended and what they were told. An
// answer that never came, or a 5xx, leaves the outcome unknown: the operation may have
// happened or not. porcupine then looks for an order of all operations that explains every
// answer, in which no operation happens before it began or after it ended.
//
// The history is checked in rounds. A round ends with all clients at rest, all servers up
// and no transaction of a dead process left, so an unknown operation has happened by then
// or never will; what the tables hold then is where the next round begins. That bounds
// memory and keeps the search short.
//
// The package speaks HTTP only. Who runs the servers, and kills them, calls it; see
// TestLinear in cmd/catalogd.
package linear
