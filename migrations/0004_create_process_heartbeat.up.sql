-- One row a process, renewed every few seconds: a refresh job whose process is silent is
-- given to another one long before River would notice.
CREATE TABLE process_heartbeat (
    process_id uuid PRIMARY KEY,
    instance   text NOT NULL DEFAULT '', -- a place that only one process can hold at a time
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
