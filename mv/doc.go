// Package mv is the domain of materialized views: their definition, what their storage
// reflects ([RefreshState]), how fresh they are ([Verdict]) and how they are refreshed
// ([Refresher]).
//
// A materialized view is an Iceberg view whose current version names a storage table.
// What that table reflects is written into the summary of its snapshots, together with
// the rows; Postgres holds the definition, the policy and the history.
package mv
