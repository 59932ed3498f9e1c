package api

import (
	"time"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// jobNone is what an empty [mv.JobState] is called on the wire.
const jobNone = "none"

// materializedView is the wire form of the full answer about one view.
func materializedView(f mv.Freshness) mvrest.MaterializedView {
	direct, recursive := verdict(f.Direct), verdict(f.Recursive)
	out := mvrest.MaterializedView{
		View: identifier(f.View), ViewUUID: f.ViewUUID, ViewVersionID: f.VersionID,
		Status: recursive.Status, UpToDate: recursive.UpToDate, Reason: recursive.Reason,
		Detail: recursive.Detail, StaleSince: recursive.StaleSince, Behind: recursive.Behind,
		Direct: direct, Recursive: recursive,
		Definition: mvrest.ViewDefinition{
			Dialect: string(f.Dialect), SQL: f.SQL, StorageTable: identifier(f.Storage), Refresh: string(f.Mode),
		},
		Sources:           []mvrest.ViewSource{},
		StorageSnapshotID: snapshot(f.StorageSnap),
		Suspended:         f.Suspended, Failures: f.Failures, NotBefore: moment(f.NotBefore),
		LastError: optional(f.LastError), Job: jobNone,
	}
	if !f.MaxStaleness.Unbounded {
		ms := f.MaxStaleness.Max.Milliseconds()
		out.Definition.MaxStalenessMs = &ms
	}
	if f.Job != mv.JobNone {
		out.Job = string(f.Job)
	}
	for _, s := range f.Sources {
		out.Sources = append(out.Sources, mvrest.ViewSource{
			Kind: string(s.Kind), Source: identifier(s.Ident), UUID: s.UUID,
			StorageTable: optionalIdentifier(s.Storage), Via: optionalIdentifier(s.Via),
		})
	}
	if f.LastRefresh != nil {
		run := refreshRun(*f.LastRefresh)
		out.LastRefresh = &run
	}
	return out
}

func verdict(v mv.Verdict) mvrest.FreshnessVerdict {
	out := mvrest.FreshnessVerdict{
		Status: string(v.Status), UpToDate: v.UpToDate, Reason: string(v.Reason), Detail: optional(v.Detail),
		StaleSince: moment(v.StaleSince), Behind: []mvrest.SourceLag{},
	}
	for _, b := range v.Behind {
		out.Behind = append(out.Behind, mvrest.SourceLag{
			Source: identifier(b.Source), UUID: b.UUID, RecordedSnapshotID: snapshot(b.Recorded),
			CurrentSnapshotID: snapshot(b.Current), SnapshotIds: b.Snapshots, Reason: string(b.Reason),
			OnlyCompaction: b.OnlyReplace,
		})
	}
	return out
}

func refreshTicket(t mv.Ticket) mvrest.RefreshTicket {
	return mvrest.RefreshTicket{ViewUUID: t.ViewUUID, Generation: t.Generation}
}

// refreshRun is the wire form of one run. A run that has not ended has no duration yet.
func refreshRun(r mv.Refresh) mvrest.RefreshRun {
	out := mvrest.RefreshRun{
		ID: r.ID, Status: string(r.Status), Action: r.Action, Mode: r.Mode, Strategy: r.Strategy,
		Reason: r.Reason, Error: optional(r.Error), Engine: r.Engine, SnapshotID: snapshot(r.SnapshotID),
		Buckets: r.Buckets, BucketsTotal: r.BucketsTotal, Rows: r.Rows, BytesRead: r.BytesRead,
		BytesWritten: r.BytesWritten, CPUSeconds: r.CPUSeconds, Phases: map[string]int64{},
		StartedAt: r.Started.UTC(), EndedAt: moment(r.Ended), Percent: r.Percent, Generation: r.Generation,
	}
	for phase, took := range r.Phases {
		out.Phases[phase] = took.Milliseconds()
	}
	if !r.Ended.IsZero() {
		out.DurationMs = r.Ended.Sub(r.Started).Milliseconds()
	}
	return out
}

func identifier(id catalog.TableIdent) mvrest.Identifier {
	return mvrest.Identifier{Namespace: list(id.Namespace), Name: id.Name}
}

func optionalIdentifier(id catalog.TableIdent) *mvrest.Identifier {
	if id.Name == "" {
		return nil
	}
	out := identifier(id)
	return &out
}

// snapshot is nil for a table without snapshots.
func snapshot(id int64) *int64 {
	if id == mv.NoSnapshot {
		return nil
	}
	return &id
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
