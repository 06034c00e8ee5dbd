-- What views of an Iceberg table compare with: the last snapshot that changed its rows, 0 for none,
-- -1 when unknown.
ALTER TABLE iceberg_tables ADD COLUMN rows_snapshot BIGINT NOT NULL DEFAULT -1;
