-- What a materialized view has beyond its table: what was asked for, and what it is now.
CREATE TABLE materialized_views (
    id KEYTEXT PRIMARY KEY REFERENCES tables (id),
    kind KEYTEXT NOT NULL,
    request TEXT NOT NULL,
    definition TEXT NOT NULL,
    owner KEYTEXT NOT NULL,
    auto_refresh BIGINT NOT NULL,
    target_lag_seconds BIGINT,
    watermark TEXT,
    refreshed_at BIGINT,
    created_at BIGINT NOT NULL
);

-- What a view reads: tables and Iceberg views, and the name that its query has for each.
CREATE TABLE view_sources (
    view_id KEYTEXT NOT NULL REFERENCES materialized_views (id),
    name KEYTEXT NOT NULL,
    source_id KEYTEXT NOT NULL,
    -- Of an Iceberg view: its metadata file at the last refresh.
    state TEXT,
    PRIMARY KEY (view_id, name)
);

CREATE INDEX view_sources_by_source ON view_sources (source_id);
