-- What each source snapshot touched, read from its manifests. It outlives the snapshot.
CREATE TABLE change_log (
    table_uuid  uuid NOT NULL,
    snapshot_id bigint NOT NULL,
    parent_id   bigint,
    kind        text NOT NULL, -- none, changed, unknown
    ranges      jsonb NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (table_uuid, snapshot_id)
);
