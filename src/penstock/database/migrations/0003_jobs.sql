CREATE TABLE jobs (
    id KEYTEXT PRIMARY KEY,
    number BIGINT NOT NULL UNIQUE,
    kind KEYTEXT NOT NULL,
    object KEYTEXT NOT NULL,
    target KEYTEXT NOT NULL,
    slot KEYTEXT NOT NULL,
    spec TEXT NOT NULL,
    spec_hash KEYTEXT NOT NULL,
    cluster KEYTEXT NOT NULL,
    manifest TEXT,
    properties TEXT NOT NULL,
    state KEYTEXT NOT NULL,
    attempt BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    runner KEYTEXT NOT NULL,
    ready_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    progress TEXT NOT NULL,
    result TEXT NOT NULL,
    error TEXT NOT NULL,
    retryable BIGINT NOT NULL,
    last_report KEYTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);

-- Whatever goes wrong elsewhere, two jobs never work on the same thing.
CREATE UNIQUE INDEX jobs_running ON jobs (slot) WHERE state = 'RUNNING';

CREATE INDEX jobs_by_state ON jobs (state, number);

CREATE INDEX jobs_by_slot ON jobs (slot, number);

CREATE INDEX jobs_finished_at ON jobs (finished_at);

-- What happened to a job: its states, one after the other.
CREATE TABLE job_events (
    job_id KEYTEXT NOT NULL REFERENCES jobs (id),
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    state KEYTEXT NOT NULL,
    attempt BIGINT NOT NULL,
    runner KEYTEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
);

CREATE TABLE job_logs (
    job_id KEYTEXT NOT NULL REFERENCES jobs (id),
    number BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    at BIGINT NOT NULL,
    level KEYTEXT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
);

CREATE TABLE manifests (
    name KEYTEXT PRIMARY KEY,
    content TEXT NOT NULL,
    checksum KEYTEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE columns (
    table_id KEYTEXT NOT NULL REFERENCES tables (id),
    branch KEYTEXT NOT NULL,
    name KEYTEXT NOT NULL,
    binding KEYTEXT NOT NULL,
    expression TEXT NOT NULL,
    inputs TEXT NOT NULL,
    data_type TEXT NOT NULL,
    watermark TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (table_id, branch, name)
);

INSERT INTO locks (name, taken) VALUES ('jobs', 0);
