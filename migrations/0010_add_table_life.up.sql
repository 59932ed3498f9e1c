-- A protected object cannot be dropped.
ALTER TABLE iceberg_tables ADD COLUMN protected boolean NOT NULL DEFAULT false;
ALTER TABLE warehouse
    ADD COLUMN protected      boolean NOT NULL DEFAULT false,
    ADD COLUMN soft_delete_ms bigint NOT NULL DEFAULT 0 CHECK (soft_delete_ms >= 0); -- 0: a drop is final

CREATE TABLE protected_namespace (
    catalog_name varchar(255) COLLATE "C" NOT NULL,
    namespace    varchar(255) COLLATE "C" NOT NULL,
    PRIMARY KEY (catalog_name, namespace)
);

-- Rows of iceberg_tables after their drop: until expires_at they can come back. A row
-- whose files are to be deleted stays until that is done, so that nobody else begins to
-- use its location.
CREATE TABLE dropped_object (
    drop_id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    catalog_name               varchar(255) COLLATE "C" NOT NULL,
    table_namespace            varchar(255) COLLATE "C" NOT NULL,
    table_name                 varchar(255) COLLATE "C" NOT NULL,
    metadata_location          text,
    previous_metadata_location text,
    iceberg_type               varchar(5) NOT NULL,
    object_uuid                uuid,
    location                   text,
    location_key               text COLLATE "C",
    snapshot_id                bigint,
    schema_id                  integer,
    view_version_id            integer,
    is_materialized            boolean NOT NULL,
    storage_of                 uuid,
    created_at                 timestamptz NOT NULL,
    changed_at                 timestamptz NOT NULL,
    dropped_at                 timestamptz NOT NULL, -- one moment for all that one transaction drops
    expires_at                 timestamptz NOT NULL,
    purge                      boolean NOT NULL,
    registration               jsonb -- materialized views: what the registry held
);
CREATE INDEX dropped_object_name_idx ON dropped_object (catalog_name, table_namespace, table_name);
CREATE INDEX dropped_object_uuid_idx ON dropped_object (object_uuid);
CREATE INDEX dropped_object_location_key_idx ON dropped_object (location_key);
CREATE INDEX dropped_object_storage_idx ON dropped_object (storage_of) WHERE storage_of IS NOT NULL;
CREATE INDEX dropped_object_expires_idx ON dropped_object (expires_at);

-- Every object that owns a location, dropped ones that can come back or whose files are
-- being deleted included.
CREATE VIEW owned_location AS
SELECT catalog_name, table_namespace, table_name, coalesce(iceberg_type, 'TABLE') AS iceberg_type, object_uuid, storage_of,
       location, location_key, metadata_location, NULL::bigint AS drop_id, NULL::timestamptz AS dropped_at, false AS being_purged
  FROM iceberg_tables
 UNION ALL
SELECT catalog_name, table_namespace, table_name, iceberg_type, object_uuid, storage_of,
       location, location_key, metadata_location, drop_id, dropped_at, purge AND expires_at <= clock_timestamp()
  FROM dropped_object
 WHERE purge OR expires_at > clock_timestamp();

-- Metadata files that fell off the log of a table whose properties ask that they be
-- deleted. The rows are written by the commit that dropped them.
CREATE TABLE obsolete_metadata (
    metadata_location text PRIMARY KEY,
    object_uuid       uuid NOT NULL,
    not_before        timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX obsolete_metadata_due_idx ON obsolete_metadata (not_before);

-- Which folders outside of its own location a table has files in, by all snapshots that
-- were looked at. Snapshots do not change, so only new ones are looked at again.
CREATE TABLE outside_reference (
    object_uuid       uuid PRIMARY KEY,
    metadata_location text NOT NULL, -- what it was read from last
    location          text NOT NULL,
    snapshots         bigint[] NOT NULL,
    folders           text[] NOT NULL
);
