-- A name in a view's own query keeps its meaning. One in the SQL of an Iceberg view means whatever has
-- it: it is recorded with that view, and looked up at each refresh. Views over Iceberg views are
-- refreshed once more, because what they read was recorded by the names alone.
CREATE TABLE sources_before AS SELECT * FROM view_sources;
DROP TABLE view_sources;

CREATE TABLE view_sources (
    view_id KEYTEXT NOT NULL REFERENCES materialized_views (id),
    -- The Iceberg view whose SQL has the name; empty for the view's own query.
    reader KEYTEXT NOT NULL DEFAULT '',
    name KEYTEXT NOT NULL,
    -- JSON: the names that it stands for in turn while nothing has this one.
    fallbacks TEXT NOT NULL DEFAULT '[]',
    source_id KEYTEXT NOT NULL,
    -- At the last refresh: of an Iceberg view its metadata file, of another name in one the source.
    state TEXT,
    -- What is here is consented to: of an Iceberg view the SQL that came with this file.
    edition KEYTEXT NOT NULL DEFAULT '',
    consented_by KEYTEXT NOT NULL DEFAULT '',
    consented_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (view_id, reader, name)
);

CREATE INDEX view_sources_by_source ON view_sources (source_id);

INSERT INTO view_sources (view_id, name, source_id, edition, consented_by, consented_at) SELECT view_id, name, source_id, edition, consented_by, consented_at FROM sources_before;

DROP TABLE sources_before;
