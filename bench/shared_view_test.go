package main

import (
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// TestEmptyManifestList: the refreshes that the shared view is measured with must find a
// snapshot that they can read.
func TestEmptyManifestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	location, err := emptyManifestList("file://" + dir)
	if err != nil {
		t.Fatal(err)
	}
	name, ok := strings.CutPrefix(location, "file://"+dir+"/metadata/")
	if !ok {
		t.Fatalf("location %s is not in the table's folder", location)
	}
	f, err := os.Open(dir + "/metadata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	manifests, err := iceberg.ReadManifestList(f)
	if err != nil || len(manifests) != 0 {
		t.Errorf("%d manifests (%v), want none", len(manifests), err)
	}
}
