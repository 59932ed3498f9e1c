package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"golang.org/x/sync/errgroup"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// progressEvery is how often a run reports.
const progressEvery = 200 * time.Millisecond

// relationName is what the caller may call an input: a plain word, so that the guard and
// SQL agree on what it is.
var relationName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// run executes a task in an instance that has done nothing yet and does nothing after.
func run(ctx context.Context, in *instance, t mv.Task, report func(mv.Progress)) (mv.Result, error) {
	out, err := newOutput(t)
	if err != nil {
		return mv.Result{}, err
	}
	if err := os.MkdirAll(out.folder, 0o755); err != nil {
		return mv.Result{}, catalog.Errorf(catalog.KindUnavailable, "output folder %s cannot be created", t.Output).Because(err)
	}
	if err := lockFor(ctx, in, t, out); err != nil {
		return mv.Result{}, err
	}
	names := make([]string, len(t.Inputs))
	for i, input := range t.Inputs {
		if !relationName.MatchString(input.Name) {
			return mv.Result{}, unprocessable("input name %q is not a plain word", input.Name)
		}
		names[i] = input.Name
	}
	query, err := guard(ctx, in.conn, t.SQL, names)
	if err != nil {
		return mv.Result{}, final(err)
	}
	s, err := openInputs(ctx, in, t)
	if err != nil {
		return mv.Result{}, err
	}
	if err := registerTransforms(in.conn, out.partition); err != nil {
		return mv.Result{}, runError("transforms", err)
	}
	bound, err := in.bind(ctx, query)
	if err != nil {
		return mv.Result{}, final(queryError(t.SQL, err))
	}
	projected, err := out.project(query, bound)
	if err != nil {
		return mv.Result{}, err
	}
	res := mv.Result{}
	if res.BytesRead, err = s.bytesRead(ctx, projected); err != nil {
		return mv.Result{}, err
	}
	return out.write(ctx, in, writing{task: t, projected: projected, report: report, result: res})
}

// final turns a query that is refused at run time into one that running again cannot
// cure.
func final(err error) error {
	if e, ok := errors.AsType[*catalog.Error](err); ok && e.Kind == catalog.KindInvalid {
		return unprocessable("%s", e.Msg).Because(e.Err)
	}
	return err
}

// lockFor opens the planned files and the output folder to in, and nothing else.
func lockFor(ctx context.Context, in *instance, t mv.Task, out *output) error {
	b := bounds{timeZone: t.TimeZone, folders: []string{out.folder}, memory: t.Limits.MemoryBytes, threads: t.Limits.Threads, spill: t.Limits.SpillDir}
	b.files = append(b.files, out.folder) // DuckDB looks at the folder itself before it writes into it
	seen := make(map[string]bool)
	allow := func(location string) error {
		local, err := localFile(location)
		if err != nil {
			return unprocessable("%s", err)
		}
		if !seen[local] {
			seen[local] = true
			b.files = append(b.files, local)
		}
		return nil
	}
	for _, input := range t.Inputs {
		for _, f := range input.Files {
			err := allow(f.Path)
			for _, d := range f.PositionDeletes {
				err = errors.Join(err, allow(d.Path))
			}
			for _, d := range f.EqualityDeletes {
				err = errors.Join(err, allow(d.Path))
			}
			if err != nil {
				return err
			}
		}
	}
	if err := in.lock(ctx, b); err != nil {
		return final(lockError(t.TimeZone, err))
	}
	return nil
}

func openInputs(ctx context.Context, in *instance, t mv.Task) (*scanner, error) {
	s := &scanner{in: in}
	for _, input := range t.Inputs {
		r, err := s.openRelation(ctx, input)
		if err != nil {
			return nil, err
		}
		if err := s.view(ctx, r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// scannedRE finds the columns that a scan of the physical plan reads: they carry the
// aliases that [branch] gave them.
var scannedRE = regexp.MustCompile(`\bg(\d+)_c(\d+)\b`)

// planNode is a node of EXPLAIN (FORMAT json).
type planNode struct {
	Name     string                     `json:"name"`
	Children []planNode                 `json:"children"`
	Info     map[string]json.RawMessage `json:"extra_info"`
}

// bytesRead sums the column chunks that the optimised plan reads, and the delete files.
// A file scanned twice counts twice.
func (s *scanner) bytesRead(ctx context.Context, projected string) (int64, error) {
	rows, err := s.in.conn.QueryContext(ctx, "EXPLAIN (FORMAT json) "+projected)
	if err != nil {
		return 0, runError("plan", err)
	}
	defer rows.Close()
	total := s.extra
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return 0, runError("plan", err)
		}
		var nodes []planNode
		if err := json.Unmarshal([]byte(value), &nodes); err != nil {
			return 0, runError("plan", err)
		}
		for _, n := range nodes {
			total += s.scanned(n)
		}
	}
	return total, rows.Err()
}

func (s *scanner) scanned(n planNode) int64 {
	var total int64
	if strings.Contains(n.Name, "PARQUET") {
		seen := make(map[string]bool)
		for _, info := range n.Info {
			for _, m := range scannedRE.FindAllStringSubmatch(string(info), -1) {
				if seen[m[0]] {
					continue
				}
				seen[m[0]] = true
				total += s.chunkBytes(m[1], m[2])
			}
		}
	}
	for _, c := range n.Children {
		total += s.scanned(c)
	}
	return total
}

func (s *scanner) chunkBytes(branchID, columnID string) int64 {
	b, err1 := strconv.Atoi(branchID)
	c, err2 := strconv.Atoi(columnID)
	if err1 != nil || err2 != nil || b >= len(s.branches) {
		return 0
	}
	var total int64
	for _, f := range s.branches[b].files {
		if c < len(f.foot.columns) {
			total += f.foot.columns[c].bytes
		}
	}
	return total
}

// writing is one COPY.
type writing struct {
	task      mv.Task
	projected string
	report    func(mv.Progress)
	result    mv.Result
}

func (o *output) write(ctx context.Context, in *instance, w writing) (mv.Result, error) {
	stop := watch(ctx, in.raw, w.report)
	written, err := o.copy(ctx, in, w.projected)
	stop()
	if err != nil {
		return mv.Result{}, err
	}
	res := w.result
	names, paths := make([]string, 0, len(written)), make([]string, 0, len(written))
	for _, f := range written {
		plain, err := in.plain(f.Path)
		if err != nil {
			return mv.Result{}, catalog.Errorf(catalog.KindUnavailable, "output files cannot be linked to").Because(err)
		}
		names, paths = append(names, f.Path), append(paths, plain)
	}
	tuples, err := o.partitionValues(ctx, in, paths)
	if err != nil {
		return mv.Result{}, err
	}
	if err := syncAll(o.folder, names); err != nil {
		return mv.Result{}, catalog.Errorf(catalog.KindUnavailable, "output files cannot be made durable").Because(err)
	}
	for i, f := range written {
		rel, err := filepath.Rel(o.folder, f.Path)
		if err != nil || strings.HasPrefix(rel, "..") {
			return mv.Result{}, catalog.Errorf(catalog.KindInternal, "DuckDB wrote %s outside the output folder", f.Path)
		}
		f.Path, f.Partition = joinLocation(w.task.Output, rel), tuples[i]
		res.Files = append(res.Files, f)
		res.Rows += f.Records
	}
	if w.report != nil {
		w.report(mv.Progress{Percent: 100, Rows: res.Rows})
	}
	return res, nil
}

// copy runs the COPY and returns the written files, by local path.
func (o *output) copy(ctx context.Context, in *instance, projected string) (files []mv.OutputFile, err error) {
	rows, err := in.conn.QueryContext(ctx, o.copyTo(projected))
	if err != nil {
		return nil, runError("run", err)
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return nil, runError("run", err)
	}
	for rows.Next() {
		dest := make([]any, len(cols))
		row := make(map[string]*any, len(cols))
		for i := range dest {
			dest[i] = new(any)
			row[cols[i]] = dest[i].(*any)
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, runError("run", err)
		}
		path, ok := (*row["filename"]).(string)
		if !ok {
			return nil, catalog.Errorf(catalog.KindInternal, "DuckDB reports no file name for a written file")
		}
		records, err1 := strconv.ParseInt(fmt.Sprint(*row["count"]), 10, 64)
		size, err2 := strconv.ParseInt(fmt.Sprint(*row["file_size_bytes"]), 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, catalog.Errorf(catalog.KindInternal, "DuckDB reports no size for %s", path).Because(err)
		}
		files = append(files, mv.OutputFile{Path: path, Records: records, Bytes: size})
	}
	if err := rows.Err(); err != nil {
		return nil, runError("run", err)
	}
	return files, nil
}

// watch reports progress until the returned function is called.
func watch(ctx context.Context, raw mapping.Connection, report func(mv.Progress)) func() {
	if report == nil {
		return func() {}
	}
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				report(progressOf(raw))
			}
		}
	}()
	return func() {
		close(done)
		<-finished
	}
}

func progressOf(raw mapping.Connection) mv.Progress {
	if raw.Ptr == nil {
		return mv.Progress{}
	}
	p := mapping.QueryProgress(raw)
	percent, rows, _ := mapping.QueryProgressTypeMembers(&p)
	return mv.Progress{Percent: max(percent, 0), Rows: int64(rows)}
}

// syncAll makes files and their folders durable: a snapshot that names them is committed
// next, and it must not outlive them in a power failure.
func syncAll(folder string, paths []string) error {
	var group errgroup.Group
	group.SetLimit(8)
	dirs := map[string]bool{folder: true}
	for _, p := range paths {
		for d := filepath.Dir(p); d != folder && strings.HasPrefix(d, folder); d = filepath.Dir(d) {
			dirs[d] = true
		}
		group.Go(func() error { return syncPath(p) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for d := range dirs {
		if err := syncPath(d); err != nil {
			return err
		}
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
