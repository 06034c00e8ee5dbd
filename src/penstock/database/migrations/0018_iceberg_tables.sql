-- Iceberg tables: each is a pointer to a metadata file.
CREATE TABLE iceberg_tables (
    id KEYTEXT PRIMARY KEY REFERENCES objects (id),
    uuid KEYTEXT NOT NULL,
    -- Where its files are; it overlaps no place of anything else.
    location KEYTEXT NOT NULL,
    -- The folder that this server made for it, or empty.
    folder KEYTEXT NOT NULL,
    -- The current metadata file, which is all that the table is, and that file's folder.
    metadata_location KEYTEXT NOT NULL,
    metadata_folder KEYTEXT NOT NULL,
    -- Of the commit that made it so: who sends that again is told that it is done.
    commit_digest KEYTEXT NOT NULL
);

CREATE INDEX iceberg_tables_by_location ON iceberg_tables (location);

CREATE INDEX iceberg_tables_by_folder ON iceberg_tables (folder);

CREATE INDEX iceberg_tables_by_metadata ON iceberg_tables (metadata_folder);
