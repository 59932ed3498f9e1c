-- Which places belong to tables. The key is the location in one spelling; it is null in
-- rows that other catalog implementations wrote.
ALTER TABLE iceberg_tables ADD COLUMN location_key text COLLATE "C";
CREATE INDEX iceberg_tables_location_key_idx ON iceberg_tables (location_key) WHERE location_key IS NOT NULL;
UPDATE iceberg_tables
   SET location_key = regexp_replace(regexp_replace(location, '^file:/+', '/'), '/+$', '')
 WHERE location LIKE 'file:%' OR location LIKE '/%';

-- A receipt of a request that its client may repeat: what the answer was.
DROP TABLE idempotency_record;
CREATE TABLE idempotency_record (
    catalog_name      text NOT NULL,
    idempotency_key   uuid NOT NULL,
    request_digest    bytea NOT NULL,
    metadata_location text,  -- the file that the answer returned
    detail            text,  -- the rest of the answer, JSON
    failure           text,  -- null: it succeeded
    message           text,
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (catalog_name, idempotency_key)
);
CREATE INDEX idempotency_record_created_idx ON idempotency_record (created_at);
CREATE INDEX idempotency_record_location_idx ON idempotency_record (metadata_location) WHERE metadata_location IS NOT NULL;

-- Functions as clients load them. The text is kept as it came.
CREATE TABLE iceberg_function (
    catalog_name text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    metadata     text NOT NULL,
    changed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (catalog_name, namespace, name)
);
