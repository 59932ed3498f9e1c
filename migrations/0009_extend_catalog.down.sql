DROP TABLE iceberg_function;
DROP TABLE idempotency_record;
CREATE TABLE idempotency_record (
    catalog_name    text NOT NULL,
    idempotency_key uuid NOT NULL,
    request_digest  bytea NOT NULL,
    status          integer NOT NULL,
    body            bytea NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (catalog_name, idempotency_key)
);
CREATE INDEX idempotency_record_created_idx ON idempotency_record (created_at);
DROP INDEX iceberg_tables_location_key_idx;
ALTER TABLE iceberg_tables DROP COLUMN location_key;
