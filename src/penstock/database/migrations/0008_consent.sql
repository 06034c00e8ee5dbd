-- Who wrote the SQL that an Iceberg view has now (the names of their grants, as JSON; empty when
-- nobody knows), and the metadata file that it came with.
ALTER TABLE views ADD COLUMN edited_in KEYTEXT NOT NULL DEFAULT '';

ALTER TABLE views ADD COLUMN edited_by TEXT NOT NULL DEFAULT '';

-- Without any grant there never was authentication, and everybody was trusted.
UPDATE views SET edited_in = metadata_location,
    edited_by = CASE WHEN EXISTS (SELECT 1 FROM grants) THEN '' ELSE '[]' END;

-- What a view reads is consented to: of an Iceberg view the SQL that came with this file.
ALTER TABLE view_sources ADD COLUMN edition KEYTEXT NOT NULL DEFAULT '';

ALTER TABLE view_sources ADD COLUMN consented_by KEYTEXT NOT NULL DEFAULT '';

ALTER TABLE view_sources ADD COLUMN consented_at BIGINT NOT NULL DEFAULT 0;

-- An Iceberg view that was replaced since the last refresh was not read by it.
UPDATE view_sources SET edition = coalesce(
    state, (SELECT v.metadata_location FROM views v WHERE v.id = view_sources.source_id), '');
