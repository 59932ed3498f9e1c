//go:build integration

// Package rest_test becomes iceberg-go's integration tests of its REST catalog when
// TestIcebergGo_Integration puts their sources beside this file. Here is what those take
// from other files of their package, written anew.
package rest_test

import (
	"encoding/json"
	"testing"

	"github.com/apache/iceberg-go"
)

// tableSchemaSimple has the columns for which the tests have rows.
var tableSchemaSimple = iceberg.NewSchemaWithIdentifiers(1, []int{2},
	iceberg.NestedField{ID: 1, Name: "foo", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 2, Name: "bar", Type: iceberg.PrimitiveTypes.Int32, Required: true},
	iceberg.NestedField{ID: 3, Name: "baz", Type: iceberg.PrimitiveTypes.Bool},
)

// rawValueMapFixture maps column ids to values, each in a list of its own.
type rawValueMapFixture struct {
	Keys   []int    `json:"keys"`
	Values []string `json:"values"`
}

// rawPlan is the answer to a plan request as it is on the wire.
type rawPlan struct {
	Status        string   `json:"status"`
	PlanID        string   `json:"plan-id"`
	PlanTasks     []string `json:"plan-tasks"`
	FileScanTasks []struct {
		DataFile struct {
			Content     string             `json:"content"`
			FilePath    string             `json:"file-path"`
			Partition   []json.RawMessage  `json:"partition"`
			LowerBounds rawValueMapFixture `json:"lower-bounds"`
			UpperBounds rawValueMapFixture `json:"upper-bounds"`
		} `json:"data-file"`
		DeleteFileReferences []int           `json:"delete-file-references"`
		ResidualFilter       json.RawMessage `json:"residual-filter"`
	} `json:"file-scan-tasks"`
	DeleteFiles        []json.RawMessage `json:"delete-files"`
	StorageCredentials []struct {
		Prefix string            `json:"prefix"`
		Config map[string]string `json:"config"`
	} `json:"storage-credentials"`
}

func parseRawPlanningFixture(t *testing.T, body string) rawPlan {
	t.Helper()
	var plan rawPlan
	if err := json.Unmarshal([]byte(body), &plan); err != nil {
		t.Fatal(err)
	}
	return plan
}
