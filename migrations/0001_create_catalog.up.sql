-- A warehouse is a REST prefix and the catalog_name of its rows.
CREATE TABLE warehouse (
    name       text PRIMARY KEY,
    location   text NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    properties jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX warehouse_is_default_key ON warehouse (is_default) WHERE is_default;

-- The names, columns and keys of PyIceberg's SqlCatalog and Java's JdbcCatalog (V1), so
-- that both can read and write the same rows. Every column of ours is nullable or has a
-- default, because those clients insert only the six they know. The "C" collation makes
-- a listing, its page tokens and the search for nested namespaces plain key ranges.
CREATE TABLE iceberg_tables (
    catalog_name               varchar(255) COLLATE "C" NOT NULL,
    table_namespace            varchar(255) COLLATE "C" NOT NULL,
    table_name                 varchar(255) COLLATE "C" NOT NULL,
    metadata_location          text,
    previous_metadata_location text,
    iceberg_type               varchar(5),
    object_uuid                uuid,
    location                   text,
    snapshot_id                bigint,  -- tables: the current snapshot, -1 if there is none
    schema_id                  integer, -- tables: the current schema
    view_version_id            integer, -- views: the current version
    is_materialized            boolean NOT NULL DEFAULT false,
    storage_of                 uuid,    -- storage tables: the materialized view they belong to
    created_at                 timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at                 timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
) WITH (fillfactor = 80); -- room for the next pointer on the same page
CREATE INDEX iceberg_tables_object_uuid_idx ON iceberg_tables (object_uuid);
CREATE INDEX iceberg_tables_storage_of_idx ON iceberg_tables (storage_of) WHERE storage_of IS NOT NULL;

CREATE TABLE iceberg_namespace_properties (
    catalog_name   varchar(255) COLLATE "C" NOT NULL,
    namespace      varchar(255) COLLATE "C" NOT NULL,
    property_key   varchar(255) COLLATE "C" NOT NULL,
    property_value text,
    PRIMARY KEY (catalog_name, namespace, property_key)
);
