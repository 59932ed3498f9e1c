package rck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	kitTables  = "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests"
	wideTables = "org.apache.iceberg.rest.WideKitTests"
	kitViews   = "org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests"
)

// kitFolder is where the kit's tests ask for tables, whatever the JVM's temporary folder is.
const kitFolder = "/tmp"

// counts is how a run of the kit ended.
type counts struct{ passed, failed, skipped int }

// outcome is a line that RunKit writes.
type outcome struct {
	Test    string `json:"test"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
}

// A changed count is a failure also when no test fails: tests that are no longer run prove
// nothing.
func TestKit(t *testing.T) { //nolint:paralleltest // the kit's fixed locations are shared by all runs on a machine
	for _, tt := range []struct {
		name, client string
		classes      []string
		want         counts
	}{
		{"kit", kitVersion, []string{kitTables, kitViews}, counts{145, 0, 12}},
		{"kit with a newer client", "1.12.0", []string{kitTables, kitViews}, counts{145, 0, 12}},
		{"wide", kitVersion, []string{wideTables, kitViews}, counts{152, 0, 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := classPath(t, tt.client)
			cleanKitFolder(t)
			temp := t.TempDir()
			s := startCatalogd(t, kitFolder, temp)
			outcomes := runKit(t, s, path, temp, tt.classes)
			var got counts
			for _, o := range outcomes {
				switch o.Outcome {
				case "passed":
					got.passed++
				case "skipped":
					got.skipped++
					t.Logf("skipped %s: %s", o.Test, oneLine(o.Reason))
				default:
					got.failed++
					t.Errorf("failed %s\n%s", o.Test, o.Reason)
				}
			}
			t.Logf("kit %s, client %s: %d passed, %d failed, %d skipped", kitVersion, tt.client, got.passed, got.failed, got.skipped)
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// runKit runs test classes of the kit against a server that is new.
func runKit(t *testing.T, s *server, classPath, temp string, classes []string) []outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "outcomes")
	var args []string
	for key, value := range map[string]string{
		"uri": s.uri, "warehouse": "main", "requires-namespace-create": "true",
		"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "60000",
	} {
		args = append(args, "-D"+key+"="+value)     // the client's name of it
		args = append(args, "-Drck."+key+"="+value) // the kit's
	}
	args = slices.Concat(args, quickJVM, []string{
		"-Djava.io.tmpdir=" + temp, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", classPath, "org.apache.iceberg.rest.RunKit", file,
	}, classes)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Env = javaEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the kit did not come to its end: %v\n%s", errors.Join(err, ctx.Err()), out)
	}
	outcomes := readOutcomes(t, file)
	if len(outcomes) == 0 {
		t.Fatalf("the kit ran no test\n%s", out)
	}
	return outcomes
}

func readOutcomes(t *testing.T, file string) []outcome {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	var list []outcome
	for dec := json.NewDecoder(bytes.NewReader(b)); ; {
		var o outcome
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b outcome) int { return strings.Compare(a.Test, b.Test) })
	return list
}

// cleanKitFolder removes, when the test ends, what the kit leaves at the locations that it
// asks for, unless someone had put something there before.
func cleanKitFolder(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"ns", "newdb"} {
		folder := filepath.Join(kitFolder, namespace)
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s exists and will stay", folder)
			continue
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(folder); err != nil {
				t.Error(err)
			}
		})
	}
}
