// Package plan decides how a materialized view is refreshed: which strategy, which
// buckets, and why not a better one. It is pure: what changed and what the query is come
// in, a decision goes out.
package plan
