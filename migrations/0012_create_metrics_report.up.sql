-- What clients report about scans and commits, by the uuid of the table, so that a rename
-- takes them along.
CREATE TABLE metrics_report (
    report_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    object_uuid uuid NOT NULL,
    report_type text NOT NULL,
    snapshot_id bigint,
    received_at timestamptz NOT NULL,
    report      text NOT NULL -- as it came
);
CREATE INDEX metrics_report_object_idx ON metrics_report (object_uuid, report_id DESC);
CREATE INDEX metrics_report_received_idx ON metrics_report (received_at);
