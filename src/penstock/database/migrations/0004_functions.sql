-- The code of functions, by its hash, and how fast it was measured to be.
CREATE TABLE functions (
    sha256 KEYTEXT PRIMARY KEY,
    content BYTEA NOT NULL,
    name KEYTEXT NOT NULL,
    version KEYTEXT NOT NULL,
    rate DOUBLE PRECISION,
    created_at BIGINT NOT NULL
);

CREATE INDEX functions_by_version ON functions (name, version);

ALTER TABLE columns ADD COLUMN function TEXT;

ALTER TABLE columns ADD COLUMN auto_backfill BIGINT NOT NULL DEFAULT 0;

ALTER TABLE columns RENAME COLUMN watermark TO watermarks;

UPDATE columns SET watermarks = '[' || watermarks || ']' WHERE watermarks IS NOT NULL;
