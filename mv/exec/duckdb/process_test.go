package duckdb_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/exec/duckdb"
)

const endless = "SELECT count(*) AS n FROM range(1000000000) a, range(1000000000) b WHERE a.range * b.range % 7 = 3"

func longTask(t *testing.T, sql string) mv.Task {
	t.Helper()
	return mv.Task{RefreshID: "r", SQL: sql, Columns: []mv.Column{{Name: "n", Type: "long", ID: 1}}, Output: filepath.Join(t.TempDir(), "out")}
}

// children lists the processes that the test binary started as workers below spill.
func children(t *testing.T, spill string) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !strings.Contains(string(env), "HOME="+spill+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(60 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestEngine_ChildKilled kills the process of a run: that run fails, the next works.
func TestEngine_ChildKilled(t *testing.T) {
	t.Parallel()
	spill := t.TempDir()
	e := newEngine(t, func(c *duckdb.Config) { c.SpillDir = spill })
	running := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		_, err := e.Run(t.Context(), longTask(t, endless), func(mv.Progress) {
			select {
			case running <- struct{}{}:
			default:
			}
		})
		done <- err
	}()
	<-running
	for _, pid := range children(t, spill) {
		p, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	err := <-done
	if k := catalog.KindOf(err); err == nil || k == catalog.KindUnprocessable || k == catalog.KindInvalid {
		t.Errorf("Run = kind %d %v, want a failure that running again may cure", k, err)
	}
	if _, err := e.Run(t.Context(), longTask(t, "SELECT 1::BIGINT AS n"), nil); err != nil {
		t.Errorf("the run after it: %v", err)
	}
}

// TestEngine_Close ends every process and leaves no folder behind.
func TestEngine_Close(t *testing.T) {
	t.Parallel()
	spill := t.TempDir()
	e := newEngine(t, func(c *duckdb.Config) { c.SpillDir = spill })
	if _, err := e.Run(t.Context(), longTask(t, "SELECT 1::BIGINT AS n"), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a spare process", func() bool { return len(children(t, spill)) == 1 })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if left := children(t, spill); len(left) != 0 {
		t.Errorf("processes left: %v", left)
	}
	if left, err := os.ReadDir(spill); err != nil || len(left) != 0 {
		t.Errorf("folders left: %v %v", left, err)
	}
	_, err := e.Run(t.Context(), longTask(t, "SELECT 1::BIGINT AS n"), nil)
	if catalog.KindOf(err) != catalog.KindUnavailable {
		t.Errorf("Run after Close = %v, want KindUnavailable", err)
	}
}

// TestEngine_OneRunPerChild compares the processes of two runs, and of two runs of an
// engine that reuses them.
func TestEngine_OneRunPerChild(t *testing.T) {
	t.Parallel()
	for _, runs := range []int{0, 2} {
		spill := t.TempDir()
		e := newEngine(t, func(c *duckdb.Config) { c.SpillDir, c.RunsPerChild = spill, runs })
		var pids []int
		for range 2 {
			eventually(t, "a spare process", func() bool { return len(children(t, spill)) == 1 })
			pids = append(pids, children(t, spill)[0])
			if _, err := e.Describe(t.Context(), mv.DescribeRequest{SQL: "SELECT 1 AS a"}); err != nil {
				t.Fatal(err)
			}
			if got := children(t, spill); len(got) != 1 || got[0] != pids[len(pids)-1] {
				t.Errorf("Describe uses up a process: %v, was %v", got, pids)
			}
			if _, err := e.Run(t.Context(), longTask(t, "SELECT 1::BIGINT AS n"), nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the process to end or be ready", func() bool {
				got := children(t, spill)
				return len(got) == 1 && (runs > 1 || got[0] != pids[len(pids)-1])
			})
		}
		if same := pids[0] == pids[1]; same != (runs > 1) {
			t.Errorf("RunsPerChild %d: processes %v", runs, pids)
		}
	}
}

// TestEngine_NoSecrets looks at the environment of a child.
func TestEngine_NoSecrets(t *testing.T) {
	t.Setenv("CATALOGD_DATABASE_URL", "postgres://secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	spill := t.TempDir()
	newEngine(t, func(c *duckdb.Config) { c.SpillDir = spill })
	var pid int
	eventually(t, "a process", func() bool {
		pids := children(t, spill)
		if len(pids) > 0 {
			pid = pids[0]
		}
		return len(pids) > 0
	})
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	for v := range strings.SplitSeq(strings.TrimRight(string(env), "\x00"), "\x00") {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "TZ", "HOME", "TMPDIR":
		default:
			t.Errorf("a child sees %s", v)
		}
	}
}

// parentArg makes the test binary a server that starts an endless run and says so.
const parentArg = "engine-parent"

// parentMain is that server.
func parentMain(spill string) int {
	exe, err := os.Executable()
	if err != nil {
		return 1
	}
	e, err := duckdb.New(duckdb.Config{Command: []string{exe, workerArg}, SpillDir: spill})
	if err != nil {
		return 1
	}
	task := mv.Task{RefreshID: "r", SQL: endless, Columns: []mv.Column{{Name: "n", Type: "long", ID: 1}}, Output: filepath.Join(spill, "out")}
	said := false
	_, err = e.Run(context.Background(), task, func(mv.Progress) {
		if !said {
			said = true
			_ = json.NewEncoder(os.Stdout).Encode("running")
		}
	})
	if err != nil {
		return 1
	}
	return 0
}

// TestEngine_ParentKilled: no child outlives a server that was killed without warning.
func TestEngine_ParentKilled(t *testing.T) {
	t.Parallel()
	spill := t.TempDir()
	exe := command(t)[0]
	parent := exec.CommandContext(t.Context(), exe, parentArg, spill)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the server says %q, %v", line, err)
	}
	if len(children(t, spill)) == 0 {
		t.Fatal("the run has no process")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	eventually(t, "the processes to end", func() bool { return len(children(t, spill)) == 0 })
}

// TestWorkerMain_EndsWithStdin runs a worker in the middle of a run and closes its stdin:
// that is how it ends where the kernel does not do it.
func TestWorkerMain_EndsWithStdin(t *testing.T) {
	t.Parallel()
	worker := exec.CommandContext(t.Context(), command(t)[0], workerArg)
	worker.Env = []string{"HOME=" + t.TempDir()}
	in, err := worker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "ready") {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	if err := json.NewEncoder(in).Encode(map[string]any{"run": longTask(t, endless), "progress": true}); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "progress") {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker ends with %v", err)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	err := duckdb.Config{Limits: mv.Limits{MemoryBytes: -1, Threads: -1}, RunsPerChild: -1, SpillDir: "/tmp/a*b"}.Validate()
	for _, text := range []string{"Command", "MemoryBytes", "Threads", "RunsPerChild", "SpillDir"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Validate = %v, want %s in it", err, text)
		}
	}
}

// BenchmarkRun measures a run on one small file through a warm child.
func BenchmarkRun(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	e, err := duckdb.New(duckdb.Config{Command: []string{exe, workerArg}, SpillDir: b.TempDir(), RunsPerChild: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	task := mv.Task{RefreshID: "r", SQL: "SELECT range AS n FROM range(1000)", Columns: []mv.Column{{Name: "n", Type: "long", ID: 1}}, Output: b.TempDir()}
	first, err := e.Run(b.Context(), task, nil)
	if err != nil {
		b.Fatal(err)
	}
	task.SQL = "SELECT n FROM src"
	task.Inputs = []mv.Input{{
		Relation: mv.Relation{Name: "src", Schema: json.RawMessage(`{"type":"struct","fields":[{"id":1,"name":"n","required":false,"type":"long"}]}`)},
		Files:    []mv.InputFile{{Path: first.Files[0].Path, Format: "PARQUET"}},
	}}
	var cpu float64
	for b.Loop() {
		res, err := e.Run(b.Context(), task, nil)
		if err != nil {
			b.Fatal(err)
		}
		cpu += res.CPU
	}
	b.ReportMetric(cpu*1000/float64(b.N), "child-cpu-ms/op")
}
