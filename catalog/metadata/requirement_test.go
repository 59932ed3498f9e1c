package metadata_test

import (
	"testing"

	"github.com/catalogd/catalogd/catalog/metadata"
)

func TestTable_Check(t *testing.T) {
	t.Parallel()
	tbl := withHistory(t, "2")
	for name, c := range map[string]struct {
		req      string
		conflict bool
		want     string // empty: holds
	}{
		"uuid":             {`{"type":"assert-table-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}`, false, ""},
		"uuid differs":     {`{"type":"assert-table-uuid","uuid":"x"}`, true, "Requirement failed: UUID does not match: expected " + tableUUID + " != x"},
		"uuid missing":     {`{"type":"assert-table-uuid"}`, false, "Cannot parse missing string: uuid"},
		"create":           {`{"type":"assert-create"}`, true, "Requirement failed: table already exists"},
		"ref":              {`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":3}`, false, ""},
		"ref changed":      {`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":2}`, true, "Requirement failed: branch main has changed: expected id 2 != 3"},
		"tag changed":      {`{"type":"assert-ref-snapshot-id","ref":"t","snapshot-id":2}`, true, "Requirement failed: tag t has changed: expected id 2 != 1"},
		"ref created":      {`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}`, true, "Requirement failed: branch main was created concurrently"},
		"ref absent":       {`{"type":"assert-ref-snapshot-id","ref":"main"}`, true, "branch main was created concurrently"},
		"ref new":          {`{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":null}`, false, ""},
		"ref new, absent":  {`{"type":"assert-ref-snapshot-id","ref":"new"}`, false, ""},
		"ref gone":         {`{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":1}`, true, "Requirement failed: branch or tag new is missing, expected 1"},
		"field id":         {`{"type":"assert-last-assigned-field-id","last-assigned-field-id":8}`, false, ""},
		"field id changed": {`{"type":"assert-last-assigned-field-id","last-assigned-field-id":7}`, true, "Requirement failed: last assigned field id changed: expected id 7 != 8"},
		"schema":           {`{"type":"assert-current-schema-id","current-schema-id":0}`, false, ""},
		"schema changed":   {`{"type":"assert-current-schema-id","current-schema-id":1}`, true, "Requirement failed: current schema changed: expected id 1 != 0"},
		"partition":        {`{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1000}`, false, ""},
		"partition change": {`{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":999}`, true, "Requirement failed: last assigned partition id changed: expected id 999 != 1000"},
		"spec":             {`{"type":"assert-default-spec-id","default-spec-id":0}`, false, ""},
		"spec changed":     {`{"type":"assert-default-spec-id","default-spec-id":1}`, true, "Requirement failed: default partition spec changed: expected id 1 != 0"},
		"order":            {`{"type":"assert-default-sort-order-id","default-sort-order-id":0}`, false, ""},
		"order changed":    {`{"type":"assert-default-sort-order-id","default-sort-order-id":1}`, true, "Requirement failed: default sort order changed: expected id 1 != 0"},
		"order text":       {`{"type":"assert-default-sort-order-id","default-sort-order-id":"0"}`, false, "Cannot parse to an integer value: default-sort-order-id"},
		"unknown":          {`{"type":"assert-weather"}`, false, "Unknown table requirement type: assert-weather"},
		"view's":           {`{"type":"assert-view-uuid","uuid":"x"}`, false, "Unknown table requirement type: assert-view-uuid"},
		"no type":          {`{}`, false, "Cannot parse update requirement. Missing field: type"},
		"not an object":    {`3`, false, "Cannot parse update requirement: Cannot parse a non-object: 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tbl.Check(raws(`{"type":"assert-table-uuid","uuid":"`+tableUUID+`"}`, c.req))
			if c.want == "" {
				if err != nil {
					t.Errorf("Check = %v, want nil", err)
				}
				return
			}
			wantError(t, err, c.conflict, c.want)
		})
	}
}

func TestCheckCreate(t *testing.T) {
	t.Parallel()
	var none *metadata.Table
	if err := none.Check(raws(`{"type":"assert-create"}`)); err != nil {
		t.Errorf("assert-create without a table: %v", err)
	}
	wantError(t, none.Check(raws(`{"type":"assert-create"}`, `{"type":"assert-default-spec-id","default-spec-id":0}`)), false, "Invalid create requirements: assert-default-spec-id")
	wantError(t, metadata.CheckCreate(raws(`{"type":"assert-weather"}`)), false, "Unknown table requirement type: assert-weather")
	for req, want := range map[string]bool{`{"type":"ASSERT-CREATE"}`: true, `{"type":"assert-table-uuid"}`: false} {
		if got, err := metadata.IsCreate(raws(req)); err != nil || got != want {
			t.Errorf("IsCreate(%s) = %v, %v", req, got, err)
		}
	}
}

func TestView_Check(t *testing.T) {
	t.Parallel()
	v := newView(t, "")
	if err := v.Check(raws(`{"type":"assert-view-uuid","uuid":"` + viewUUID + `"}`)); err != nil {
		t.Error(err)
	}
	wantError(t, v.Check(raws(`{"type":"assert-view-uuid","uuid":"x"}`)), true, "Requirement failed: view UUID does not match: expected "+viewUUID+" != x")
	wantError(t, v.Check(raws(`{"type":"assert-table-uuid","uuid":"x"}`)), false, "Unknown view requirement type: assert-table-uuid")
}
