-- Views can be altered: how often each was, by which definitions its versions were made, and the
-- alteration that is under way.
ALTER TABLE materialized_views ADD COLUMN edition BIGINT NOT NULL DEFAULT 0;

CREATE TABLE view_definitions (
    view_id KEYTEXT NOT NULL REFERENCES materialized_views (id),
    edition BIGINT NOT NULL,
    request TEXT NOT NULL,
    -- The first version of the view that was made by it.
    version BIGINT NOT NULL,
    job_id KEYTEXT NOT NULL DEFAULT '',
    made_by KEYTEXT NOT NULL DEFAULT '',
    made_at BIGINT NOT NULL,
    PRIMARY KEY (view_id, edition)
);

CREATE TABLE view_alterations (
    view_id KEYTEXT PRIMARY KEY REFERENCES materialized_views (id),
    -- It counts while the job is queued or running.
    job_id KEYTEXT NOT NULL,
    request TEXT NOT NULL,
    definition TEXT NOT NULL,
    -- What it reads, the settings that come with it, and whose rights it reads with.
    sources TEXT NOT NULL,
    settings TEXT NOT NULL,
    owner KEYTEXT NOT NULL,
    made_by KEYTEXT NOT NULL DEFAULT '',
    made_at BIGINT NOT NULL
);

INSERT INTO view_definitions (view_id, edition, request, version, made_at) SELECT id, 0, request, 1, created_at FROM materialized_views;
