-- The registry: what each materialized view is, its policy, and what holds it back.
CREATE TABLE materialized_view (
    view_uuid         uuid PRIMARY KEY,
    catalog_name      text COLLATE "C" NOT NULL,
    namespace         text COLLATE "C" NOT NULL,
    name              text COLLATE "C" NOT NULL,
    view_version_id   integer NOT NULL,
    storage_uuid      uuid,          -- null: the storage table lives in another catalog
    storage_namespace text COLLATE "C" NOT NULL,
    storage_name      text COLLATE "C" NOT NULL,
    definition        jsonb NOT NULL,
    refresh_mode      text NOT NULL DEFAULT 'managed',
    max_staleness_ms  bigint,        -- null: unbounded
    debounce_ms       bigint NOT NULL DEFAULT 1000,
    stale_since       timestamptz,   -- first source swap that no refresh reflects
    not_before        timestamptz,   -- backoff and debounce: no automatic run earlier
    suspended         boolean NOT NULL DEFAULT false,
    failures          integer NOT NULL DEFAULT 0, -- in a row
    last_error        text,
    permanent_inputs  text,          -- digest of the inputs for which running again is useless
    generation        bigint NOT NULL DEFAULT 0,  -- counts manual requests
    full_generation   bigint NOT NULL DEFAULT 0,  -- the newest request that wants a full refresh
    answered          bigint NOT NULL DEFAULT 0,  -- the newest request that an attempt has seen
    parked            boolean NOT NULL DEFAULT false, -- waits for a materialized view that it reads
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX materialized_view_name_key ON materialized_view (catalog_name, namespace, name);
CREATE INDEX materialized_view_storage_idx ON materialized_view (storage_uuid);
CREATE INDEX materialized_view_storage_name_idx ON materialized_view (catalog_name, storage_namespace, storage_name);
CREATE INDEX materialized_view_due_idx ON materialized_view (not_before) WHERE stale_since IS NOT NULL AND NOT suspended;

-- Every name that a materialized view reads: its sources, the plain views in between,
-- and for a source that is itself materialized its view and its storage table. A name
-- stays listed after its object is dropped, so that its return is noticed.
CREATE TABLE materialized_view_source (
    view_uuid    uuid NOT NULL REFERENCES materialized_view ON DELETE CASCADE,
    catalog_name text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    PRIMARY KEY (catalog_name, namespace, name, view_uuid)
);
CREATE INDEX materialized_view_source_view_idx ON materialized_view_source (view_uuid);

CREATE TABLE refresh (
    refresh_id    uuid PRIMARY KEY,
    view_uuid     uuid NOT NULL REFERENCES materialized_view ON DELETE CASCADE,
    job_id        bigint,
    process_id    uuid,
    status        text NOT NULL,
    action        text NOT NULL DEFAULT '',
    mode          text NOT NULL DEFAULT '',
    strategy      text NOT NULL DEFAULT '',
    reason        text NOT NULL DEFAULT '',
    error         text NOT NULL DEFAULT '',
    engine        text NOT NULL DEFAULT '',
    snapshot_id   bigint NOT NULL DEFAULT -1,
    buckets       bigint NOT NULL DEFAULT 0,
    buckets_total bigint NOT NULL DEFAULT 0,
    rows_written  bigint NOT NULL DEFAULT 0,
    bytes_read    bigint NOT NULL DEFAULT 0,
    bytes_written bigint NOT NULL DEFAULT 0,
    cpu_seconds   double precision NOT NULL DEFAULT 0,
    percent       double precision NOT NULL DEFAULT 0,
    phases        jsonb NOT NULL DEFAULT '{}',
    inputs        jsonb NOT NULL DEFAULT '{}',
    generation    bigint NOT NULL DEFAULT 0,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    progress_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at      timestamptz
);
CREATE INDEX refresh_view_idx ON refresh (view_uuid, started_at DESC);
CREATE INDEX refresh_running_idx ON refresh (process_id) WHERE status = 'running';
