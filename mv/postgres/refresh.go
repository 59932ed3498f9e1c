package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// beginSQL records a run only while its job is really this process's to run: a run whose
// job was given to another one must stop before it has done any work.
const beginSQL = `
INSERT INTO refresh (refresh_id, view_uuid, job_id, process_id, status, mode, strategy, reason, engine, generation, snapshot_id)
SELECT $1, $2, $3, (SELECT nullif(j.attempted_by[array_upper(j.attempted_by, 1)], '')::uuid FROM river_job j WHERE j.id = $3),
       'running', $4, $5, $6, $7, $8, -1
 WHERE $3::bigint IS NULL OR EXISTS (SELECT FROM river_job j WHERE j.id = $3 AND j.state = 'running')`

// Begin implements [mv.Registry]. jobID 0 means a run without a job. KindConflict: the
// job was given to another process. KindNoSuchView: the view was dropped.
func (r *Registry) Begin(ctx context.Context, run mv.Refresh, jobID int64) error {
	var job any
	if jobID != 0 {
		job = jobID
	}
	tag, err := r.pool.Exec(ctx, beginSQL, run.ID, run.ViewUUID, job, run.Mode, run.Strategy, run.Reason, run.Engine, run.Generation)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == foreignKeyViolation {
		return noSuchView(run.ViewUUID)
	}
	if err != nil {
		return translate(err)
	}
	if tag.RowsAffected() == 0 {
		return catalog.Errorf(catalog.KindConflict, "Refresh job %d was given to another process", jobID)
	}
	return nil
}

// Report implements [mv.Registry].
func (r *Registry) Report(ctx context.Context, refreshID string, percent float64) error {
	_, err := r.pool.Exec(ctx, `UPDATE refresh SET percent = $2, progress_at = clock_timestamp()
		WHERE refresh_id = $1 AND status = 'running'`, refreshID, percent)
	return translate(err)
}

// Silence tells how long the run of a job has not reported any progress, by the
// database's clock. known is false before the run has begun.
func (r *Registry) Silence(ctx context.Context, viewUUID string, jobID int64) (silence time.Duration, known bool, err error) {
	var seconds float64
	err = r.pool.QueryRow(ctx, `SELECT extract(epoch FROM clock_timestamp() - progress_at) FROM refresh
		WHERE view_uuid = $1 AND job_id = $2 AND status = 'running' ORDER BY started_at DESC LIMIT 1`, viewUUID, jobID).Scan(&seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return time.Duration(seconds * float64(time.Second)), err == nil, translate(err)
}

// LogUnchanged implements [mv.Registry].
func (r *Registry) LogUnchanged(ctx context.Context, tableUUID string, snapshots []int64) error {
	_, err := r.pool.Exec(ctx, `INSERT INTO change_log (table_uuid, snapshot_id, kind)
		SELECT $1, id, 'none' FROM unnest($2::bigint[]) AS id ON CONFLICT DO NOTHING`, tableUUID, snapshots)
	return translate(err)
}

// Refreshes implements [mv.Registry].
func (r *Registry) Refreshes(ctx context.Context, viewUUID string, limit int) ([]mv.Refresh, error) {
	if limit <= 0 || limit > historyLimit {
		limit = historyLimit
	}
	rows, err := r.pool.Query(ctx, `SELECT `+refreshDocument+` FROM refresh r
		WHERE r.view_uuid = $1 ORDER BY r.started_at DESC, r.refresh_id LIMIT $2`, viewUUID, limit)
	if err != nil {
		return nil, translate(err)
	}
	docs, err := pgx.CollectRows(rows, pgx.RowTo[refreshRow])
	if err != nil {
		return nil, translate(err)
	}
	out := make([]mv.Refresh, len(docs))
	for i, d := range docs {
		out[i] = d.refresh()
	}
	return out, nil
}

// refreshDocument is row r of table refresh as one JSON object.
const refreshDocument = `jsonb_build_object('id', r.refresh_id, 'view', r.view_uuid, 'status', r.status, 'action', r.action,
       'mode', r.mode, 'strategy', r.strategy, 'reason', r.reason, 'error', r.error, 'engine', r.engine,
       'snapshot', r.snapshot_id, 'buckets', r.buckets, 'buckets-total', r.buckets_total, 'rows', r.rows_written,
       'bytes-read', r.bytes_read, 'bytes-written', r.bytes_written, 'cpu', r.cpu_seconds, 'phases', r.phases,
       'started', r.started_at, 'ended', r.ended_at, 'percent', r.percent, 'generation', r.generation)`

type refreshRow struct {
	ID           string                   `json:"id"`
	View         string                   `json:"view"`
	Status       mv.RefreshStatus         `json:"status"`
	Action       string                   `json:"action"`
	Mode         string                   `json:"mode"`
	Strategy     string                   `json:"strategy"`
	Reason       string                   `json:"reason"`
	Error        string                   `json:"error"`
	Engine       string                   `json:"engine"`
	Snapshot     int64                    `json:"snapshot"`
	Buckets      int64                    `json:"buckets"`
	BucketsTotal int64                    `json:"buckets-total"`
	Rows         int64                    `json:"rows"`
	BytesRead    int64                    `json:"bytes-read"`
	BytesWritten int64                    `json:"bytes-written"`
	CPU          float64                  `json:"cpu"`
	Phases       map[string]time.Duration `json:"phases"`
	Started      time.Time                `json:"started"`
	Ended        *time.Time               `json:"ended"`
	Percent      float64                  `json:"percent"`
	Generation   int64                    `json:"generation"`
}

func (d *refreshRow) refresh() mv.Refresh {
	r := mv.Refresh{
		ID: d.ID, ViewUUID: d.View, Status: d.Status, Action: d.Action, Mode: d.Mode, Strategy: d.Strategy,
		Reason: d.Reason, Error: d.Error, Engine: d.Engine, SnapshotID: d.Snapshot, Buckets: d.Buckets,
		BucketsTotal: d.BucketsTotal, Rows: d.Rows, BytesRead: d.BytesRead, BytesWritten: d.BytesWritten,
		CPUSeconds: d.CPU, Phases: d.Phases, Started: d.Started, Percent: d.Percent, Generation: d.Generation,
	}
	if d.Ended != nil {
		r.Ended = *d.Ended
	}
	return r
}

// observedInput is how the inputs of a run are kept, for people who look into a failure.
type observedInput struct {
	Warehouse string `json:"warehouse"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UUID      string `json:"uuid,omitempty"`
	Location  string `json:"metadata-location,omitempty"`
}

const writeRunSQL = `
INSERT INTO refresh (refresh_id, view_uuid, status, action, mode, strategy, reason, error, engine, snapshot_id, buckets,
       buckets_total, rows_written, bytes_read, bytes_written, cpu_seconds, percent, phases, inputs, generation, started_at, ended_at)
VALUES (@id, @view, @status, @action, @mode, @strategy, @reason, @error, @engine, @snapshot, @buckets,
       @buckets_total, @rows, @bytes_read, @bytes_written, @cpu, @percent, @phases, @inputs, @generation,
       coalesce(@started, clock_timestamp()), coalesce(@ended, clock_timestamp()))
    ON CONFLICT (refresh_id) DO UPDATE
   SET status = excluded.status, action = excluded.action, mode = excluded.mode, strategy = excluded.strategy,
       reason = excluded.reason, error = excluded.error, engine = excluded.engine, snapshot_id = excluded.snapshot_id,
       buckets = excluded.buckets, buckets_total = excluded.buckets_total, rows_written = excluded.rows_written,
       bytes_read = excluded.bytes_read, bytes_written = excluded.bytes_written, cpu_seconds = excluded.cpu_seconds,
       percent = excluded.percent, phases = excluded.phases, inputs = excluded.inputs,
       generation = greatest(refresh.generation, excluded.generation), ended_at = excluded.ended_at`

// writeRun writes the end of a run; id is empty if it never began.
func writeRun(ctx context.Context, tx pgx.Tx, a mv.Attempt, id string) error {
	if id == "" {
		id = uuid.NewString()
	}
	r := *a.Refresh
	inputs := make([]observedInput, 0, len(a.Inputs))
	for k, o := range a.Inputs {
		inputs = append(inputs, observedInput{k.Warehouse, k.Namespace, k.Name, o.UUID, o.MetadataLocation})
	}
	inputsDoc, err := json.Marshal(inputs)
	if err != nil {
		return err
	}
	phases := r.Phases
	if phases == nil {
		phases = map[string]time.Duration{}
	}
	phasesDoc, err := json.Marshal(phases)
	if err != nil {
		return err
	}
	percent := r.Percent
	if r.Status == mv.RefreshSucceeded {
		percent = 100
	}
	_, err = tx.Exec(ctx, writeRunSQL, pgx.NamedArgs{
		"id": id, "view": a.ViewUUID, "status": string(endStatus(a)), "action": r.Action, "mode": r.Mode, "strategy": r.Strategy,
		"reason": r.Reason, "error": r.Error, "engine": r.Engine, "snapshot": r.SnapshotID, "buckets": r.Buckets,
		"buckets_total": r.BucketsTotal, "rows": r.Rows, "bytes_read": r.BytesRead, "bytes_written": r.BytesWritten,
		"cpu": r.CPUSeconds, "percent": percent, "phases": string(phasesDoc), "inputs": string(inputsDoc),
		"generation": seenGeneration(a), "started": timeOrNow(r.Started), "ended": timeOrNow(r.Ended),
	})
	return err
}

// endStatus is the status a run ends with, whatever its author left in it.
func endStatus(a mv.Attempt) mv.RefreshStatus {
	switch {
	case a.Refresh.Status == mv.RefreshSucceeded || a.Refresh.Status == mv.RefreshFailed || a.Refresh.Status == mv.RefreshLost:
		return a.Refresh.Status
	case a.Outcome == mv.OutcomeDone:
		return mv.RefreshSucceeded
	default:
		return mv.RefreshFailed
	}
}

// timeOrNow gives SQL a null, which stands for the database's own clock.
func timeOrNow(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}
