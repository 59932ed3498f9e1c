// Package difftest compares package metadata with iceberg-go: random commits to random
// tables and views are applied by both, and the results must mean the same. Where the two
// differ for a reason, the reason is an entry in known_test.go, with a commit that shows
// it; anything else is a failure.
package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"

	"github.com/catalogd/catalogd/catalog/metadata"
)

const (
	tableUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
	otherUUID = "fa6506c3-7681-40c8-86dc-e36561f83385"
	baseMS    = int64(1_700_000_000_000)
	previous  = "file:///prev"
)

// at is that many seconds after the beginning of the tests' world.
func at(second int64) time.Time { return time.UnixMilli(baseMS + 1000*second) }

func raws(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, s := range texts {
		out[i] = json.RawMessage(s)
	}
	return out
}

func list(updates []string) []byte { return []byte("[" + strings.Join(updates, ",") + "]") }

// newTable is an empty table with a column of each kind that the updates refer to.
func newTable(version int) (*metadata.Table, error) {
	t, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: tableUUID, Location: "file:///w/ns/t",
		Schema: json.RawMessage(`{"type":"struct","schema-id":0,"identifier-field-ids":[1],"fields":[
			{"id":1,"name":"id","required":true,"type":"long"},
			{"id":2,"name":"day","required":false,"type":"date"},
			{"id":3,"name":"tags","required":false,"type":{"type":"list","element-id":4,"element-required":false,"element":"string"}}]}`),
		PartitionSpec: json.RawMessage(`{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"name":"day","transform":"identity"}]}`),
		Properties:    map[string]string{"format-version": strconv.Itoa(version), "owner": "ann"},
		Now:           at(0),
	})
	if err != nil {
		return nil, err
	}
	return metadata.ParseTable(t.Bytes())
}

// theirTable applies updates with iceberg-go.
func theirTable(doc []byte, updates []string) (out []byte, err error) {
	defer recovered(&err)
	m, err := table.ParseMetadataBytes(doc)
	if err != nil {
		return nil, fmt.Errorf("they cannot read our document: %w", err)
	}
	var all table.Updates
	if err := json.Unmarshal(list(updates), &all); err != nil {
		return nil, err
	}
	next, err := table.UpdateTableMetadata(m, all, previous)
	if err != nil {
		return nil, err
	}
	return json.Marshal(next)
}

// theirNewTable makes a table of updates alone, as the end of a staged creation does.
func theirNewTable(version int, updates []string) (out []byte, err error) {
	defer recovered(&err)
	b, err := table.NewMetadataBuilder(version)
	if err != nil {
		return nil, err
	}
	var all table.Updates
	if err := json.Unmarshal(list(updates), &all); err != nil {
		return nil, err
	}
	for _, u := range all {
		if err := u.Apply(b); err != nil {
			return nil, err
		}
	}
	m, err := b.Build()
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// theirCheck tests requirements with iceberg-go.
func theirCheck(doc []byte, requirements []string) (err error) {
	defer recovered(&err)
	m, err := table.ParseMetadataBytes(doc)
	if err != nil {
		return err
	}
	var all table.Requirements
	if err := json.Unmarshal(list(requirements), &all); err != nil {
		return err
	}
	for _, r := range all {
		if err := r.Validate(m); err != nil {
			return err
		}
	}
	return nil
}

// theirView applies updates with iceberg-go.
func theirView(doc []byte, updates []string) (out []byte, err error) {
	defer recovered(&err)
	m, err := view.ParseMetadataBytes(doc)
	if err != nil {
		return nil, fmt.Errorf("they cannot read our document: %w", err)
	}
	var all view.Updates
	if err := json.Unmarshal(list(updates), &all); err != nil {
		return nil, err
	}
	b, err := view.MetadataBuilderFromBase(m)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if err := u.Apply(b); err != nil {
			return nil, err
		}
	}
	next, err := b.Build()
	if err != nil {
		return nil, err
	}
	return json.Marshal(next)
}

// recovered turns a panic of theirs into an error.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}

// ourTable applies updates with package metadata.
func ourTable(base *metadata.Table, second int64, updates []string) (*metadata.Table, error) {
	t := base.Clone()
	if err := t.Apply(raws(updates...), metadata.ApplyContext{Now: at(second), PreviousLocation: previous}); err != nil {
		return nil, err
	}
	return t, nil
}

func ourView(base *metadata.View, second int64, updates []string) (*metadata.View, error) {
	v := base.Clone()
	if err := v.Apply(raws(updates...), metadata.ApplyContext{Now: at(second)}); err != nil {
		return nil, err
	}
	return v, nil
}

// tree decodes JSON with its numbers as they are written.
func tree(t testing.TB, doc []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, doc)
	}
	return v
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
