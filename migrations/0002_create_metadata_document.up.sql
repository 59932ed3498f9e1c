-- Metadata files as they are served, keyed by their immutable location. Each form is a
-- raw deflate stream that ends in a sync flush, with the CRC-32 and the length of the
-- plain text, so that an answer is one gzip member spliced around it.
CREATE TABLE metadata_document (
    metadata_location text PRIMARY KEY,
    object_uuid       uuid NOT NULL,
    document          bytea NOT NULL,
    document_crc      bigint NOT NULL,
    document_size     bigint NOT NULL,
    refs              bytea,
    refs_crc          bigint,
    refs_size         bigint,
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- The bytes are compressed already: Postgres must not try again.
ALTER TABLE metadata_document
    ALTER COLUMN document SET STORAGE EXTERNAL,
    ALTER COLUMN refs SET STORAGE EXTERNAL;
CREATE INDEX metadata_document_object_idx ON metadata_document (object_uuid, created_at DESC);
