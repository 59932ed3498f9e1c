package scan_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/scan"
	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

// fixture is a table with one file for each of so many appends, planned in pages of one.
func fixture(t *testing.T, appends int, limits scan.Limits) (*tabletest.Table, *memory, *scan.Service) {
	t.Helper()
	tbl := tabletest.New(t, tabletest.Options{})
	for i := range appends {
		tbl.Append(tabletest.At(int64(i), int64(i)))
	}
	mem := newMemory()
	mem.set(tbl.Document())
	return tbl, mem, scan.NewService(scan.Config{Tables: mem, Store: mem, Files: iceio.LocalFS{}, Limits: limits})
}

var onePerPage = scan.Limits{PageFiles: 1, InlineFiles: 1}

func TestPlan_noSnapshot(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 0, scan.Limits{})
	pages := all(t, s, mem, scan.Request{Filter: json.RawMessage(`{"type":"eq","term":"id","value":1}`)})
	if len(pages) != 1 || len(pages[0].FileScanTasks) != 0 || pages[0].PlanID == "" {
		t.Errorf("pages = %+v, want one without tasks", pages)
	}
}

// TestPlan_refused checks what is wrong in a request, and that the answer names it.
func TestPlan_refused(t *testing.T) {
	t.Parallel()
	tbl, _, s := fixture(t, 2, scan.Limits{})
	head, other := tbl.Head(), int64(7)
	filter := func(text string) scan.Request { return scan.Request{Filter: json.RawMessage(text)} }
	for _, c := range []struct {
		r    scan.Request
		says string
	}{
		{scan.Request{SnapshotID: &other}, "snapshot with ID 7"},
		{scan.Request{SnapshotID: &head, StartSnapshotID: &head, EndSnapshotID: &head}, "together"},
		{scan.Request{StartSnapshotID: &head}, "needs both"},
		{scan.Request{EndSnapshotID: &head}, "needs both"},
		{scan.Request{StartSnapshotID: &other, EndSnapshotID: &head}, "not an ancestor"},
		{scan.Request{MinRows: -1}, "min-rows-requested"},
		{scan.Request{Select: []string{"id", "nope"}}, `"nope"`},
		{scan.Request{Select: []string{"ID"}}, `"ID"`},
		{scan.Request{StatsFields: []string{"nope"}}, `"nope"`},
		{filter(`{"type":"like","term":"id","value":1}`), `"like"`},
		{filter(`{"type":"eq","term":"nope","value":1}`), `"nope"`},
		{filter(`{"type":"eq","term":"id"}`), "needs a value"},
		{filter(`{"type":"eq","value":1}`), "names no column"},
		{filter(`{"type":"eq","term":"id","value":"x"}`), `"x"`},
		{filter(`{"type":"eq","term":"id","value":1.5}`), "1.5"},
		{filter(`{"type":"eq","term":"id","value":null}`), "needs a value"},
		{filter(`{"type":"eq","term":"ts","value":"tomorrow"}`), "tomorrow"},
		{filter(`{"type":"eq","term":"ts","value":"2020-01-01T00:00:00.0000001"}`), "2020"},
		{filter(`{"type":"in","term":"id","values":3}`), "no array"},
		{filter(`{"type":"in","term":"id"}`), "needs values"},
		{filter(`{"type":"is-nan","term":"id"}`), "floating-point"},
		{filter(`{"type":"is-null","term":"id","value":3}`), "no value"},
		{filter(`{"type":"starts-with","term":"id","value":"x"}`), "string"},
		{filter(`{"type":"and","left":true}`), "missing"},
		{filter(`{"type":"not"}`), "missing"},
		{filter(`"x"`), "neither true"},
		{filter(`{"type":"eq","term":{"type":"transform","transform":"hash[3]","term":"id"},"value":1}`), "hash[3]"},
		{filter(`{"type":"eq","term":{"type":"transform","transform":"day","term":"id"},"value":1}`), "day"},
		{filter(`{"type":"eq","left":{"type":"reference","id":99},"right":1}`), "id 99"},
		{filter(`{"type":"eq","left":{"type":"reference","name":"k"},"right":{"type":"literal","value":"00","data-type":"binary"}}`), "binary"},
	} {
		_, err := s.Plan(t.Context(), "w", ident, c.r)
		if catalog.KindOf(err) != catalog.KindInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Plan(%s %+v) = %v, want KindInvalid and %q", c.r.Filter, c.r, err, c.says)
		}
	}
}

// TestPlan_spellings checks that every spelling of a filter selects the same file.
func TestPlan_spellings(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 4, scan.Limits{})
	for _, f := range []string{
		`{"type":"eq","term":"id","value":2}`,
		`{"type":"EQ","term":"id","value":2}`,
		`{"type":"eq","term":{"type":"reference","term":"id"},"value":2}`,
		`{"type":"eq","term":"id","value":{"type":"literal","value":2}}`,
		`{"type":"eq","left":{"type":"reference","name":"id"},"right":2}`,
		`{"type":"eq","left":{"type":"reference","id":1},"right":{"type":"literal","value":2,"data-type":"long"}}`,
		`{"type":"eq","left":2,"right":{"type":"reference","name":"id"}}`,
		`{"type":"in","child":{"type":"reference","name":"id"},"values":{"type":"literals","values":[2,9],"data-type":"int"}}`,
		`{"type":"and","left":{"type":"gt","left":2,"right":{"type":"reference","name":"v"}},"right":false}`,
		`{"type":"not","child":{"type":"or","left":{"type":"lt","term":"id","value":2},"right":{"type":"gt","term":"id","value":2.0}}}`,
		`{"type":"and","left":{"type":"true"},"right":{"type":"lt-eq","left":2,"right":{"type":"reference","name":"id"}}}`,
		`{"type":"eq","term":{"type":"transform","transform":"hour","term":"ts"},"value":2}`,
		`{"type":"eq","term":"ts","value":"1970-01-01T02:00:00"}`,
		`{"type":"eq","term":"ts","value":7200000000}`,
		`{"type":"eq","term":"k","value":"k2"}`,
	} {
		pages := all(t, s, mem, scan.Request{Filter: json.RawMessage(f)})
		want := 1
		if strings.Contains(f, "false") {
			want = 0
		}
		if strings.Contains(f, `"lt-eq"`) {
			want = 2 // 2 <= id
		}
		if got := len(pages[0].FileScanTasks); got != want {
			t.Errorf("%s plans %d files, want %d", f, got, want)
		}
	}
}

// TestPlan_opaque checks that predicates which only the client can decide are passed on.
func TestPlan_opaque(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 2, scan.Limits{})
	for _, f := range []string{
		`{"type":"lt","left":{"type":"reference","name":"id"},"right":{"type":"reference","name":"v"}}`,
		`{"type":"eq","left":{"type":"apply","function":"lower","arguments":[{"type":"reference","name":"k"}]},"right":"x"}`,
	} {
		pages := all(t, s, mem, scan.Request{Filter: json.RawMessage(f)})
		if len(pages[0].FileScanTasks) != 2 || string(pages[0].FileScanTasks[0].ResidualFilter) != f {
			t.Errorf("%s: tasks = %+v, want both files with the filter as their residual", f, pages[0].FileScanTasks)
		}
	}
}

func TestTasks_tokens(t *testing.T) {
	t.Parallel()
	tbl, mem, s := fixture(t, 3, onePerPage)
	body, err := s.Plan(t.Context(), "w", ident, scan.Request{})
	if err != nil {
		t.Fatal(err)
	}
	plan := decode(t, body)
	if len(plan.PlanTasks) != 2 || len(plan.FileScanTasks) != 1 {
		t.Fatalf("plan = %+v, want a file and two plan tasks", plan)
	}
	raw, err := base64.RawURLEncoding.DecodeString(plan.PlanTasks[0])
	if err != nil {
		t.Fatal(err)
	}
	refused := func(token, what string) {
		t.Helper()
		if _, err := s.Tasks(t.Context(), "w", ident, token); catalog.KindOf(err) != catalog.KindNoSuchPlanTask {
			t.Errorf("Tasks with %s = %v, want KindNoSuchPlanTask", what, err)
		}
	}
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 1
		refused(base64.RawURLEncoding.EncodeToString(bad), "a changed byte")
	}
	refused("", "nothing")
	refused("garbage", "garbage")
	refused(plan.PlanTasks[0]+"A", "more behind it")

	// Later pages show the table as it was.
	tbl.Append(tabletest.At(9, 9))
	mem.set(tbl.Document())
	page, err := s.Tasks(t.Context(), "w", ident, plan.PlanTasks[1])
	if err != nil || len(decode(t, page).FileScanTasks) != 1 {
		t.Errorf("Tasks after a commit = %s, %v", page, err)
	}
	mem.uuid = "t-2" // the name belongs to another table now
	refused(plan.PlanTasks[0], "another table's token")
	if _, err := s.Result(t.Context(), "w", ident, plan.PlanID); catalog.KindOf(err) != catalog.KindNoSuchPlan {
		t.Errorf("Result of another table's plan = %v, want KindNoSuchPlan", err)
	}
}

// TestTasks_elsewhere checks that any process can answer, also after a restart.
func TestTasks_elsewhere(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 3, onePerPage)
	body, err := s.Plan(t.Context(), "w", ident, scan.Request{Filter: json.RawMessage(`{"type":"lt","term":"id","value":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	plan := decode(t, body)
	other := scan.NewService(scan.Config{Tables: mem, Store: mem, Files: iceio.LocalFS{}, Limits: onePerPage})
	for _, token := range plan.PlanTasks {
		mine, err := s.Tasks(t.Context(), "w", ident, token)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := other.Tasks(t.Context(), "w", ident, token)
		if err != nil || string(mine) != string(theirs) {
			t.Errorf("the other process answers %s, %v; want %s", theirs, err, mine)
		}
	}
	again, err := other.Result(t.Context(), "w", ident, plan.PlanID)
	if err != nil || len(paths([]wire{decode(t, again.Body)})) != len(plan.FileScanTasks) {
		t.Errorf("Result = %s, %v, want the first page again", again.Body, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 3, onePerPage)
	body, err := s.Plan(t.Context(), "w", ident, scan.Request{})
	if err != nil {
		t.Fatal(err)
	}
	plan := decode(t, body)
	for range 2 { // clients repeat themselves
		if err := s.Cancel(t.Context(), "w", ident, plan.PlanID); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Result(t.Context(), "w", ident, plan.PlanID)
	if err != nil || decode(t, res.Body).Status != "cancelled" {
		t.Errorf("Result = %s, %v, want cancelled", res.Body, err)
	}
	if _, err := s.Tasks(t.Context(), "w", ident, plan.PlanTasks[0]); catalog.KindOf(err) != catalog.KindNoSuchPlanTask {
		t.Errorf("Tasks of a cancelled plan = %v, want KindNoSuchPlanTask", err)
	}
	for _, id := range []string{"nope", "", "6f0c6f0e-8c07-4b4e-9d5a-1f6f7a1c1b1b"} {
		if err := s.Cancel(t.Context(), "w", ident, id); catalog.KindOf(err) != catalog.KindNoSuchPlan {
			t.Errorf("Cancel(%q) = %v, want KindNoSuchPlan", id, err)
		}
	}
	if n := len(mem.submitted()); n != 0 {
		t.Errorf("%d plans wait for a job", n)
	}
}

// TestExecute_cancelled checks that a job whose plan is cancelled leaves nothing behind.
func TestExecute_cancelled(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 3, scan.Limits{AsyncFiles: 1})
	body, err := s.Plan(t.Context(), "w", ident, scan.Request{})
	if err != nil {
		t.Fatal(err)
	}
	plan := decode(t, body)
	if plan.Status != "submitted" || len(plan.FileScanTasks)+len(plan.PlanTasks) != 0 {
		t.Fatalf("plan = %s, want submitted without tasks", body)
	}
	if res, err := s.Result(t.Context(), "w", ident, plan.PlanID); err != nil || decode(t, res.Body).Status != "submitted" {
		t.Errorf("Result = %s, %v, want submitted", res.Body, err)
	}
	if err := s.Cancel(t.Context(), "w", ident, plan.PlanID); err != nil {
		t.Fatal(err)
	}
	if err := s.Execute(t.Context(), plan.PlanID, false); err != nil {
		t.Errorf("Execute of a cancelled plan = %v", err)
	}
	if n := len(mem.pages[plan.PlanID]); n != 0 {
		t.Errorf("%d pages are stored for a cancelled plan", n)
	}
}

// TestTasks_expired checks that a plan ends when its snapshot does.
func TestTasks_expired(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]scan.Limits{"pages": onePerPage, "job": {AsyncFiles: 1, PageFiles: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tbl, mem, s := fixture(t, 3, limits)
			body, err := s.Plan(t.Context(), "w", ident, scan.Request{})
			if err != nil {
				t.Fatal(err)
			}
			plan := decode(t, body)
			for _, id := range mem.submitted() {
				if err := s.Execute(t.Context(), id, true); err != nil {
					t.Fatal(err)
				}
			}
			old := tbl.Head()
			tbl.Append(tabletest.At(9, 9))
			tbl.Update(table.NewRemoveSnapshotsUpdate([]int64{old}, false))
			mem.set(tbl.Document())
			other := scan.NewService(scan.Config{Tables: mem, Store: mem, Files: iceio.LocalFS{}, Limits: limits})
			for i, svc := range []*scan.Service{s, other} {
				res, err := svc.Result(t.Context(), "w", ident, plan.PlanID)
				if err != nil || res.Failure == nil || !strings.Contains(res.Failure.Msg, "expired") {
					t.Errorf("%d: Result = %s, %v, %v; want a failure that says so", i, res.Body, res.Failure, err)
				}
				for _, token := range plan.PlanTasks {
					if _, err := svc.Tasks(t.Context(), "w", ident, token); catalog.KindOf(err) != catalog.KindNoSuchPlanTask || !strings.Contains(err.Error(), "expired") {
						t.Errorf("%d: Tasks = %v, want KindNoSuchPlanTask that says so", i, err)
					}
				}
			}
		})
	}
}

// TestExecute_missingFile checks that a job says which file it cannot read.
func TestExecute_missingFile(t *testing.T) {
	t.Parallel()
	tbl, mem, s := fixture(t, 2, scan.Limits{AsyncFiles: 1})
	body, err := s.Plan(t.Context(), "w", ident, scan.Request{})
	if err != nil {
		t.Fatal(err)
	}
	list := tbl.CurrentSnapshot().ManifestList
	if err := (iceio.LocalFS{}).Remove(list); err != nil {
		t.Fatal(err)
	}
	for _, id := range mem.submitted() {
		if err := s.Execute(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Result(t.Context(), "w", ident, decode(t, body).PlanID)
	if err != nil || res.Failure == nil || !strings.Contains(res.Failure.Msg, list) {
		t.Errorf("Result = %v, %v; want a failure that names %s", res.Failure, err, list)
	}
	if _, err := s.Plan(t.Context(), "w", ident, scan.Request{}); catalog.KindOf(err) != catalog.KindNotFound {
		t.Errorf("Plan = %v, want KindNotFound", err)
	}
}

func TestPlan_minRows(t *testing.T) {
	t.Parallel()
	tbl, mem, s := fixture(t, 5, scan.Limits{})
	count := func(r scan.Request) int { return len(paths(all(t, s, mem, r))) }
	if got := count(scan.Request{MinRows: 2}); got != 2 {
		t.Errorf("min-rows-requested 2 plans %d files of one row, want 2", got)
	}
	// What passes the filter is not known before the rows are read.
	if got := count(scan.Request{MinRows: 1, Filter: json.RawMessage(`{"type":"not-eq","term":"id","value":0}`)}); got < 4 {
		t.Errorf("with a filter it plans %d files, want all that may match", got)
	}
	tbl.DeleteEqual([]int{tabletest.FieldID}, tabletest.At(4, 4))
	mem.set(tbl.Document())
	if got := count(scan.Request{MinRows: 5}); got != 5 {
		t.Errorf("with deletes it plans %d files, want all 5", got)
	}
}

func TestPlan_stats(t *testing.T) {
	t.Parallel()
	_, mem, s := fixture(t, 1, scan.Limits{})
	f := all(t, s, mem, scan.Request{})[0].FileScanTasks[0].DataFile
	if f.LowerBounds != nil || f.ValueCounts != nil || f.ColumnSizes != nil {
		t.Errorf("without stats-fields a file has statistics: %+v", f)
	}
	f = all(t, s, mem, scan.Request{StatsFields: []string{"id", "k"}})[0].FileScanTasks[0].DataFile
	if f.LowerBounds == nil || !slices.Equal(f.LowerBounds.Keys, []int{1, 3}) || !slices.Equal(f.LowerBounds.Values, []string{"0000000000000000", "6B30"}) {
		t.Errorf("lower bounds = %+v, want those of columns 1 and 3 in hexadecimal", f.LowerBounds)
	}
	if f.ValueCounts == nil || !slices.Equal(f.ValueCounts.Values, []int64{1, 1}) || f.ColumnSizes == nil || len(f.ColumnSizes.Keys) != 2 {
		t.Errorf("counts = %+v, sizes = %+v", f.ValueCounts, f.ColumnSizes)
	}
}

// TestPlan_schemas checks which schema names are looked up in.
func TestPlan_schemas(t *testing.T) {
	t.Parallel()
	tbl, mem, s := fixture(t, 1, scan.Limits{})
	old := tbl.Head()
	tbl.Tx(renameV)
	tbl.Append(tabletest.At(1, 1))
	mem.set(tbl.Document())
	for _, c := range []struct {
		r  scan.Request
		ok bool
	}{
		{scan.Request{SnapshotID: &old, Select: []string{"v"}}, false},
		{scan.Request{SnapshotID: &old, Select: []string{"w"}}, true},
		{scan.Request{SnapshotID: &old, Select: []string{"v"}, UseSnapshotSchema: true}, true},
		{scan.Request{SnapshotID: &old, Filter: json.RawMessage(`{"type":"eq","term":"v","value":0}`), UseSnapshotSchema: true}, true},
		{scan.Request{Select: []string{"W", "ID"}, CaseInsensitive: true}, true},
		{scan.Request{Select: []string{"_file", "_pos"}}, true},
	} {
		body, err := s.Plan(t.Context(), "w", ident, c.r)
		if (err == nil) != c.ok {
			t.Errorf("Plan(%+v) = %s, %v", c.r, body, err)
		}
	}
}

// TestPlan_residual checks what is left of a filter when a partition decides part of it.
func TestPlan_residual(t *testing.T) {
	t.Parallel()
	tbl := tabletest.New(t, tabletest.Options{Day: true})
	tbl.Append(tabletest.At(1, 1))
	tbl.Append(tabletest.At(2, 30))
	mem := newMemory()
	mem.set(tbl.Document())
	s := scan.NewService(scan.Config{Tables: mem, Store: mem, Files: iceio.LocalFS{}})
	for filter, want := range map[string]string{
		`{"type":"gt-eq","term":"ts","value":"1970-01-02T00:00:00"}`:                                                         `true`,
		`{"type":"not-null","term":"ts"}`:                                                                                    `true`,
		`{"type":"gt","term":"ts","value":"1970-01-02T00:00:00"}`:                                                            `{"type":"gt","term":"ts","value":"1970-01-02T00:00:00.000000"}`,
		`{"type":"and","left":{"type":"gt-eq","term":"ts","value":86400000000},"right":{"type":"eq","term":"v","value":20}}`: `{"type":"eq","term":"v","value":20}`,
		`{"type":"eq","term":{"type":"transform","transform":"day","term":"ts"},"value":"1970-01-02"}`:                       `true`,
		`{"type":"and","left":{"type":"eq","term":"id","value":2},"right":{"type":"eq","term":"v","value":20}}`:              `{"type":"and","left":{"type":"eq","term":"id","value":2},"right":{"type":"eq","term":"v","value":20}}`,
	} {
		tasks := all(t, s, mem, scan.Request{Filter: json.RawMessage(filter)})[0].FileScanTasks
		last := tasks[0] // the newest manifest comes first
		if got := string(last.ResidualFilter); got != want {
			t.Errorf("%s leaves %s, want %s", filter, got, want)
		}
	}
}

// TestPlan_equalityDeleteOfUnpartitionedSpec checks that such a delete reaches the files of
// all specs, but none that is as new as itself.
func TestPlan_equalityDeleteOfUnpartitionedSpec(t *testing.T) {
	t.Parallel()
	tbl, mem, s := fixture(t, 2, scan.Limits{})
	tbl.Tx(addBucket)
	tbl.Append(tabletest.At(5, 5))
	before := len(tbl.Tasks())
	tbl.Tx(removeBucket)
	tbl.DeleteEqual([]int{tabletest.FieldKey}, tabletest.At(2, 2)) // k2: of ids 2 and 5
	tbl.Append(tabletest.At(8, 8))                                 // k2, too, but newer
	mem.set(tbl.Document())
	deleted := 0
	for _, task := range all(t, s, mem, scan.Request{})[0].FileScanTasks {
		deleted += len(task.DeleteFileReferences)
	}
	if before != 3 || deleted != 1 {
		t.Errorf("%d files have the delete, want only the one with key k2", deleted)
	}
}
