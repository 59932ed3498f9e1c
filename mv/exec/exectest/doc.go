// Package exectest is the contract of [mv.Engine] as a test suite. Its sources are
// Iceberg tables that iceberg-go writes, with deletes of every kind and evolved schemas;
// what iceberg-go reads from them is the oracle, and it also reads what the engine wrote.
//
// An engine's own tests call [Run] with a constructor.
package exectest
