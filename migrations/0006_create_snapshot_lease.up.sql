-- A snapshot that an answer named and that may not be removed before a moment.
CREATE TABLE snapshot_lease (
    table_uuid  uuid NOT NULL,
    snapshot_id bigint NOT NULL,
    until       timestamptz NOT NULL,
    PRIMARY KEY (table_uuid, snapshot_id)
);
CREATE INDEX snapshot_lease_until_idx ON snapshot_lease (until);
