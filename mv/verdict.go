package mv

import (
	"fmt"
	"slices"
	"time"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
)

// maxBehind bounds how many unreflected snapshots a verdict lists by id.
const maxBehind = 1000

// Documents gives the metadata documents behind the rows of a [State], by metadata
// location. A missing one makes the verdict undetermined.
type Documents map[string][]byte

// Judge says how fresh the view is: direct against what it reads itself, recursive also
// through the materialized views it reads. It is the only place that decides this.
func Judge(s State, docs Documents, viewUUID string) (direct, recursive Verdict) {
	j := judge{state: s, docs: docs, done: map[string][2]Verdict{}}
	return j.view(viewUUID)
}

type judge struct {
	state State
	docs  Documents
	done  map[string][2]Verdict // direct, recursive
}

func (j *judge) view(viewUUID string) (direct, recursive Verdict) {
	if v, ok := j.done[viewUUID]; ok {
		return v[0], v[1]
	}
	// A cycle cannot be registered; should one exist all the same, it must not hang us.
	j.done[viewUUID] = [2]Verdict{
		{Status: StatusUndetermined, Reason: ReasonUnreadable},
		{Status: StatusUndetermined, Reason: ReasonUnreadable, Detail: "the view reads itself"},
	}
	v := j.state.Views[viewUUID]
	direct = j.aged(v, j.direct(v))
	recursive = direct
	if direct.Status != StatusInvalid && direct.Status != StatusNeverRefreshed && direct.Status != StatusUndetermined {
		recursive = j.aged(v, j.through(v, direct))
	}
	j.done[viewUUID] = [2]Verdict{direct, recursive}
	return direct, recursive
}

// direct compares what the storage table reflects with the heads of the sources. The
// age rule is applied afterwards.
func (j *judge) direct(v ViewState) Verdict {
	d := v.Definition
	rec, bad := j.recorded(v)
	if bad != nil {
		return *bad
	}
	view := j.state.Objects[KeyOf(d.Warehouse, d.Ident)]
	if rec.ViewVersionID != view.ViewVersionID {
		return invalid(ReasonDefinition, "the storage table reflects view version %d, the current one is %d: it is rebuilt by the next refresh", rec.ViewVersionID, view.ViewVersionID)
	}
	out := Verdict{UpToDate: true, Reason: ReasonUpToDate, Detail: "the storage table reflects the current snapshots of all sources"}
	for _, src := range d.Sources {
		found := j.source(v, rec, src)
		switch found.Status {
		case StatusInvalid, StatusUndetermined:
			return found
		}
		if !found.UpToDate && out.UpToDate {
			out.UpToDate, out.Reason, out.Detail = false, found.Reason, found.Detail
		}
		if found.UpToDate && found.Reason == ReasonOnlyCompaction && out.UpToDate {
			out.Reason, out.Detail = found.Reason, found.Detail
		}
		out.Behind = append(out.Behind, found.Behind...)
	}
	if last := v.LastRefresh; !out.UpToDate && last != nil && last.Reason == string(ReasonSourceUnreadable) {
		// Whether the newer snapshots changed a row of the view cannot be known.
		return Verdict{Status: StatusUndetermined, Reason: ReasonSourceUnreadable, Detail: last.Error, Behind: out.Behind}
	}
	return out
}

// recorded reads the state that the current storage snapshot carries. Compactions of the
// storage table in between change no row, so the state of the snapshot below them holds.
func (j *judge) recorded(v ViewState) (RefreshState, *Verdict) {
	d := v.Definition
	fail := func(st Status, r Reason, format string, args ...any) (RefreshState, *Verdict) {
		return RefreshState{}, &Verdict{Status: st, Reason: r, Detail: fmt.Sprintf(format, args...)}
	}
	if d.StorageUUID == "" {
		return fail(StatusUndetermined, ReasonForeignStorage, "the storage table is in another catalog")
	}
	row, ok := j.state.Objects[KeyOf(d.Warehouse, d.Storage)]
	if !ok || row.UUID != d.StorageUUID {
		return fail(StatusInvalid, ReasonSourceMissing, "the storage table %s is gone", d.Storage)
	}
	if row.SnapshotID == NoSnapshot {
		return fail(StatusNeverRefreshed, ReasonNeverRefreshed, "the view was never refreshed")
	}
	t, err := metadata.ParseTable(j.docs[row.MetadataLocation])
	if err != nil {
		return fail(StatusUndetermined, ReasonUnreadable, "the metadata of storage table %s cannot be read", d.Storage)
	}
	rec, err := RecordedState(t)
	switch {
	case err != nil:
		return fail(StatusUndetermined, ReasonUnreadable, "the refresh state of storage table %s cannot be read: %v", d.Storage, err)
	case rec == nil:
		return fail(StatusUndetermined, ReasonNoState, "the current snapshot of storage table %s does not say what it reflects", d.Storage)
	}
	return *rec, nil
}

// RecordedState returns what the current snapshot of a storage table reflects, nil if it
// does not say. It looks below compactions.
func RecordedState(t *metadata.Table) (*RefreshState, error) {
	summary := RecordedSummary(t)
	if summary == nil {
		return nil, nil
	}
	st, err := DecodeRefreshState(summary)
	if err != nil {
		return nil, err
	}
	return &st, nil
}

// RecordedSummary is the summary of the snapshot that carries the refresh state: the
// current one, or the one below the compactions on top of it. It is nil if there is none.
func RecordedSummary(t *metadata.Table) map[string]string {
	for id := t.CurrentSnapshotID(); ; {
		snap, ok := t.Snapshot(id)
		if !ok {
			return nil
		}
		if HasRefreshState(snap.Summary) {
			return snap.Summary
		}
		if snap.Summary["operation"] != "replace" || snap.ParentID == nil {
			return nil
		}
		id = *snap.ParentID
	}
}

// HasRefreshState reports whether a snapshot summary says what the snapshot reflects, in
// either form.
func HasRefreshState(summary map[string]string) bool {
	for _, k := range []string{KeyRefreshState, KeySourceTables, KeySourceViews} {
		if _, ok := summary[k]; ok {
			return true
		}
	}
	return false
}

// source judges one source.
func (j *judge) source(v ViewState, rec RefreshState, src Source) Verdict {
	name := src.Ident
	row, ok := j.state.Objects[KeyOf(v.Definition.Warehouse, name)]
	if !ok {
		return invalid(ReasonSourceMissing, "source %s does not exist any more", name)
	}
	if src.Kind == SourceView {
		return j.plainView(rec, row)
	}
	if src.Kind == SourceMV {
		if bad := j.plainView(rec, row); !bad.UpToDate {
			return bad
		}
		if row, ok = j.state.Objects[KeyOf(v.Definition.Warehouse, src.Storage)]; !ok {
			return invalid(ReasonSourceMissing, "the storage table of source %s does not exist any more", name)
		}
		name = src.Storage
	}
	return j.table(rec, row, name)
}

func (j *judge) plainView(rec RefreshState, row catalog.Pointer) Verdict {
	for _, s := range rec.Sources {
		if s.Type == "view" && s.UUID == row.UUID {
			if s.VersionID == row.ViewVersionID {
				return Verdict{UpToDate: true, Reason: ReasonUpToDate}
			}
			return Verdict{Reason: ReasonSourceView, Detail: fmt.Sprintf("view %s is at version %d, version %d is reflected", row.Ident, row.ViewVersionID, s.VersionID)}
		}
	}
	return Verdict{Reason: ReasonSourceView, Detail: fmt.Sprintf("view %s is another one than was read", row.Ident)}
}

func (j *judge) table(rec RefreshState, row catalog.Pointer, name catalog.TableIdent) Verdict {
	at := slices.IndexFunc(rec.Sources, func(s SourceState) bool { return s.Type == "table" && s.UUID == row.UUID })
	if at < 0 {
		return Verdict{
			Reason: ReasonSourceRecreated, Detail: fmt.Sprintf("table %s is another one than was read", name),
			Behind: []Behind{{Source: name, UUID: row.UUID, Recorded: NoSnapshot, Current: row.SnapshotID, Reason: ReasonSourceRecreated}},
		}
	}
	seen := rec.Sources[at]
	if seen.SnapshotID == row.SnapshotID {
		if schema, ok := rec.Schemas[row.UUID]; ok && schema != row.SchemaID {
			return Verdict{Reason: ReasonSourceSchema, Detail: fmt.Sprintf("the schema of %s changed since the last refresh", name)}
		}
		return Verdict{UpToDate: true, Reason: ReasonUpToDate}
	}
	b := Behind{Source: name, UUID: row.UUID, Recorded: seen.SnapshotID, Current: row.SnapshotID, Reason: ReasonSourceChanged}
	t, err := metadata.ParseTable(j.docs[row.MetadataLocation])
	if err != nil {
		return Verdict{Status: StatusUndetermined, Reason: ReasonUnreadable, Detail: fmt.Sprintf("the metadata of %s cannot be read", name)}
	}
	var connected bool
	b.Snapshots, b.OnlyReplace, connected = between(t, seen.SnapshotID, row.SnapshotID)
	if !connected {
		b.Reason = ReasonSourceRolled
		return Verdict{
			Reason: ReasonSourceRolled, Behind: []Behind{b},
			Detail: fmt.Sprintf("snapshot %d of %s is reflected, which is no ancestor of the current one", seen.SnapshotID, name),
		}
	}
	if b.OnlyReplace && j.state.unchanged(row.UUID, b.Snapshots) {
		return Verdict{UpToDate: true, Reason: ReasonOnlyCompaction, Detail: fmt.Sprintf("%s was only compacted since the last refresh", name)}
	}
	return Verdict{
		Reason: ReasonSourceChanged, Behind: []Behind{b},
		Detail: fmt.Sprintf("%s has %d newer snapshots", name, len(b.Snapshots)),
	}
}

// aged turns "not up to date" into a status by the age rule.
func (j *judge) aged(v ViewState, found Verdict) Verdict {
	if found.Status == StatusInvalid || found.Status == StatusNeverRefreshed || found.Status == StatusUndetermined {
		found.StaleSince = v.StaleSince
		return found
	}
	if found.UpToDate {
		found.Status = StatusFresh
		found.StaleSince = time.Time{}
		return found
	}
	if found.StaleSince.IsZero() {
		found.StaleSince = v.StaleSince
	}
	if found.StaleSince.IsZero() {
		found.StaleSince = j.state.At // seen just now, marked by nobody yet
	}
	limit := v.Definition.MaxStaleness
	if limit.Unbounded || j.state.At.Sub(found.StaleSince) < limit.Max {
		found.Status = StatusFresh
		found.Reason = ReasonWithinStaleness
		return found
	}
	found.Status = StatusStale
	return found
}

// through adds what the materialized views below contribute.
func (j *judge) through(v ViewState, direct Verdict) Verdict {
	out := direct
	for _, src := range v.Definition.Sources {
		if src.Kind != SourceMV {
			continue
		}
		row := j.state.Objects[KeyOf(v.Definition.Warehouse, src.Ident)]
		_, below := j.view(row.UUID)
		if below.UpToDate {
			continue
		}
		if below.Status == StatusInvalid || below.Status == StatusNeverRefreshed || below.Status == StatusUndetermined {
			return Verdict{Status: StatusUndetermined, Reason: ReasonSourceMVStale, Detail: fmt.Sprintf("source %s is %s: %s", src.Ident, below.Status, below.Detail), Behind: direct.Behind}
		}
		if out.UpToDate || below.StaleSince.Before(out.StaleSince) {
			out.StaleSince = below.StaleSince
		}
		if out.UpToDate {
			out.UpToDate, out.Reason = false, ReasonSourceMVStale
			out.Detail = fmt.Sprintf("source %s is not up to date: %s", src.Ident, below.Detail)
		}
		out.Behind = append(slices.Clone(out.Behind), below.Behind...)
	}
	return out
}

func invalid(r Reason, format string, args ...any) Verdict {
	return Verdict{Status: StatusInvalid, Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// between lists the snapshots after from up to to, oldest first. connected is false if
// from is no ancestor of to.
func between(t *metadata.Table, from, to int64) (ids []int64, onlyReplace, connected bool) {
	onlyReplace = true
	for id := to; id != from; {
		snap, ok := t.Snapshot(id)
		if !ok {
			return nil, false, false
		}
		if snap.Summary["operation"] != "replace" {
			onlyReplace = false
		}
		if len(ids) < maxBehind {
			ids = append(ids, id)
		}
		if snap.ParentID == nil {
			if from != NoSnapshot {
				return nil, false, false
			}
			slices.Reverse(ids)
			return ids, false, true
		}
		id = *snap.ParentID
	}
	slices.Reverse(ids)
	return ids, onlyReplace, true
}
