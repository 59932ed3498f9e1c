-- Plans of scans. A page is a row only if a job has written it.
CREATE TABLE scan_plan (
    plan_id           uuid PRIMARY KEY,
    table_uuid        text NOT NULL,
    metadata_location text NOT NULL,
    status            text NOT NULL CONSTRAINT scan_plan_status_check CHECK (status IN ('submitted', 'completed', 'cancelled', 'failed')),
    request           jsonb NOT NULL,
    secret            bytea NOT NULL,
    stored            boolean NOT NULL,
    pages             integer NOT NULL,
    failure_kind      text,
    failure           text,
    expires_at        timestamptz NOT NULL
);
CREATE INDEX scan_plan_expires_at_idx ON scan_plan (expires_at);
CREATE TABLE scan_plan_page (
    plan_id uuid NOT NULL REFERENCES scan_plan ON DELETE CASCADE,
    page    integer NOT NULL,
    body    bytea NOT NULL, -- deflated
    size    bigint NOT NULL, -- inflated, as is the crc
    crc     bigint NOT NULL,
    PRIMARY KEY (plan_id, page)
);
ALTER TABLE scan_plan_page ALTER COLUMN body SET STORAGE EXTERNAL;
