package difftest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// normal decodes a table's document and takes out the differences that mean nothing, and
// what iceberg-go is known to lose. TestLost shows the latter.
func normal(t testing.TB, doc []byte, unchanged bool) map[string]any {
	t.Helper()
	m := tree(t, doc)
	delete(m, "last-updated-ms") // each one's clock
	m["location"] = strings.TrimRight(m["location"].(string), "/")
	if unchanged {
		delete(m, "metadata-log") // iceberg-go logs commits that change nothing
	}
	for name, empty := range map[string]any{
		"snapshots": []any{}, "snapshot-log": []any{}, "metadata-log": []any{}, "statistics": []any{}, "partition-statistics": []any{},
		"refs": map[string]any{}, "encryption-keys": []any{}, "properties": map[string]any{},
	} {
		if m[name] == nil {
			m[name] = empty // iceberg-go leaves empty members out
		}
	}
	if compact(m["format-version"]) == "1" && m["partition-spec"] == nil {
		m["partition-spec"] = []any{}
	}
	if m["current-snapshot-id"] == nil || compact(m["current-snapshot-id"]) == "-1" {
		m["current-snapshot-id"] = "none"
		// A snapshot that came and went as main within one commit is no history in Java.
		delete(m, "snapshot-log")
	}
	for _, s := range m["snapshots"].([]any) {
		snap := s.(map[string]any)
		delete(snap, "key-id") // iceberg-go does not know it
		if compact(snap["sequence-number"]) == "0" {
			delete(snap, "sequence-number") // iceberg-go writes it in version 1
		}
	}
	log, _ := m["snapshot-log"].([]any)
	for _, e := range log {
		delete(e.(map[string]any), "timestamp-ms") // a rollback is stamped by each one's clock
	}
	return same(m).(map[string]any)
}

// same gives values their one spelling: types without blanks and default parameters,
// default values as the floats that iceberg-go makes of them. Unknown members go, since
// iceberg-go drops them.
func same(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			if strings.HasPrefix(k, "x-") {
				delete(x, k)
				continue
			}
			x[k] = same(x[k])
		}
		for _, k := range []string{"initial-default", "write-default"} {
			if n, ok := x[k].(json.Number); ok {
				f, err := strconv.ParseFloat(n.String(), 64)
				if err == nil {
					x[k] = f
				}
			}
		}
		if ids, ok := x["identifier-field-ids"].([]any); ok && len(ids) == 0 {
			delete(x, "identifier-field-ids")
		}
	case []any:
		for i := range x {
			x[i] = same(x[i])
		}
	case string:
		x = strings.ReplaceAll(x, ", ", ",") // decimal(20, 2)
		return strings.Replace(x, ",spherical)", ")", 1)
	}
	return v
}
