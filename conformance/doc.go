// Package conformance holds the tests that see catalogd as its clients do: a started
// binary, HTTP, and real Iceberg clients. It imports nothing of catalogd, so that a change
// of the wire format cannot hide in code that both sides share.
//
// The tests build and start one `catalogd dev` for all of them; CATALOGD_BINARY names a
// binary that is built already. The scripts below pyiceberg/ are run by the Python that
// CATALOGD_TEST_PYTHON names, as `make test` sets it.
package conformance
