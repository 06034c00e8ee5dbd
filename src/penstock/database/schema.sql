-- The whole schema as the newest migration leaves it; fresh databases start from this text.

CREATE TABLE namespaces (
    path KEYTEXT PRIMARY KEY,
    parent KEYTEXT REFERENCES namespaces (path),
    name KEYTEXT NOT NULL,
    properties TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (parent, name)
);

INSERT INTO namespaces (path, parent, name, properties, created_at)
VALUES ('', NULL, '', '{}', now_millis());

CREATE TABLE objects (
    id KEYTEXT PRIMARY KEY,
    namespace KEYTEXT NOT NULL REFERENCES namespaces (path),
    name KEYTEXT NOT NULL,
    kind KEYTEXT NOT NULL,
    properties TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (namespace, name)
);

-- Listing reads names from here alone.
CREATE INDEX objects_by_kind ON objects (namespace, kind, name);

CREATE TABLE tables (
    id KEYTEXT PRIMARY KEY REFERENCES objects (id),
    location KEYTEXT NOT NULL UNIQUE,
    managed BIGINT NOT NULL
);

CREATE TABLE table_versions (
    table_id KEYTEXT NOT NULL REFERENCES tables (id),
    branch KEYTEXT NOT NULL,
    version BIGINT NOT NULL,
    manifest_path TEXT NOT NULL,
    manifest_size BIGINT NOT NULL,
    timestamp_millis BIGINT NOT NULL,
    e_tag TEXT,
    metadata TEXT NOT NULL,
    staged_path TEXT NOT NULL,
    settled BIGINT NOT NULL,
    hidden BIGINT NOT NULL,
    transaction_id KEYTEXT NOT NULL,
    PRIMARY KEY (table_id, branch, version)
);

CREATE INDEX table_versions_unsettled ON table_versions (table_id, branch, version) WHERE settled = 0;

-- How large a table was in a version that was looked at.
CREATE TABLE table_sizes (
    table_id KEYTEXT PRIMARY KEY REFERENCES tables (id),
    version BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL
);

-- By how much a table grew on a day, which counts from 1970, and how many versions came.
CREATE TABLE table_growth (
    table_id KEYTEXT NOT NULL REFERENCES tables (id),
    day BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    commits BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (table_id, day)
);

CREATE INDEX table_growth_by_day ON table_growth (day);

CREATE TABLE transactions (
    id KEYTEXT PRIMARY KEY,
    operation KEYTEXT NOT NULL,
    target TEXT NOT NULL,
    status KEYTEXT NOT NULL,
    properties TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    principal KEYTEXT NOT NULL DEFAULT ''
);

CREATE INDEX transactions_created_at ON transactions (created_at);

CREATE TABLE removals (
    location KEYTEXT PRIMARY KEY,
    created_at BIGINT NOT NULL,
    claimed_at BIGINT NOT NULL
);

CREATE TABLE locks (
    name KEYTEXT PRIMARY KEY,
    taken BIGINT NOT NULL
);

INSERT INTO locks (name, taken) VALUES ('locations', 0);

CREATE TABLE views (
    id KEYTEXT PRIMARY KEY REFERENCES objects (id),
    location KEYTEXT NOT NULL,
    folder KEYTEXT NOT NULL,
    metadata_location KEYTEXT NOT NULL,
    metadata TEXT NOT NULL,
    -- Who wrote the SQL that it has now (the names of their grants, as JSON; empty when nobody
    -- knows), and the metadata file that it came with.
    edited_in KEYTEXT NOT NULL DEFAULT '',
    edited_by TEXT NOT NULL DEFAULT ''
);

CREATE INDEX views_by_location ON views (location);

CREATE INDEX views_by_folder ON views (folder);

CREATE INDEX views_by_metadata ON views (metadata_location);

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
    commit_digest KEYTEXT NOT NULL,
    -- The last snapshot that changed its rows: 0 for none, -1 when unknown.
    rows_snapshot BIGINT NOT NULL DEFAULT -1
);

CREATE INDEX iceberg_tables_by_location ON iceberg_tables (location);

CREATE INDEX iceberg_tables_by_folder ON iceberg_tables (folder);

CREATE INDEX iceberg_tables_by_metadata ON iceberg_tables (metadata_folder);

CREATE TABLE idempotency_keys (
    principal KEYTEXT NOT NULL,
    value KEYTEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    request KEYTEXT NOT NULL,
    transaction_id KEYTEXT NOT NULL,
    notes TEXT NOT NULL,
    status BIGINT NOT NULL,
    answer TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (principal, value)
);

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

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
    finished_at BIGINT,
    token KEYTEXT NOT NULL DEFAULT '',
    object_id KEYTEXT NOT NULL DEFAULT '',
    pause_requested BIGINT NOT NULL DEFAULT 0
);

-- Whatever goes wrong elsewhere, two jobs never work on the same thing.
CREATE UNIQUE INDEX jobs_running ON jobs (slot) WHERE state = 'RUNNING';

CREATE INDEX jobs_by_state ON jobs (state, number);

CREATE INDEX jobs_by_slot ON jobs (slot, number);

CREATE INDEX jobs_finished_at ON jobs (finished_at);

CREATE INDEX jobs_by_token ON jobs (token, state);

CREATE INDEX jobs_by_object ON jobs (object_id, state);

-- What a job works on besides its slot: no other job works on it meanwhile.
CREATE TABLE job_slots (
    job_id KEYTEXT NOT NULL REFERENCES jobs (id),
    slot KEYTEXT NOT NULL,
    object_id KEYTEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, slot)
);

CREATE INDEX job_slots_by_slot ON job_slots (slot);

CREATE INDEX job_slots_by_object ON job_slots (object_id);

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
    watermarks TEXT,
    created_at BIGINT NOT NULL,
    function TEXT,
    auto_backfill BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (table_id, branch, name)
);

INSERT INTO locks (name, taken) VALUES ('jobs', 0);

-- The code of functions, by its hash, and how fast it was measured to be.
CREATE TABLE function_code (
    sha256 KEYTEXT PRIMARY KEY,
    content BYTEA NOT NULL,
    name KEYTEXT NOT NULL,
    version KEYTEXT NOT NULL,
    rate DOUBLE PRECISION,
    created_at BIGINT NOT NULL
);

CREATE INDEX function_code_by_version ON function_code (name, version);

-- Functions with a name: what a function has beyond an object.
CREATE TABLE functions (
    id KEYTEXT PRIMARY KEY REFERENCES objects (id),
    -- The newest number that was given to a version; none is given twice.
    newest BIGINT NOT NULL,
    disabled BIGINT NOT NULL
);

CREATE TABLE function_versions (
    function_id KEYTEXT NOT NULL REFERENCES functions (id),
    version BIGINT NOT NULL,
    -- Of everything that the version is: equal content is the same version.
    digest KEYTEXT NOT NULL,
    sha256 KEYTEXT NOT NULL REFERENCES function_code (sha256),
    definition TEXT NOT NULL,
    disabled BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by KEYTEXT NOT NULL,
    PRIMARY KEY (function_id, version),
    UNIQUE (function_id, digest)
);

-- Which functions were declared for the columns of a table, by somebody who may bring code. What a
-- table's own metadata binds a column to counts only if it is here. Those without a manifest's
-- checksum are from before it was noted.
CREATE TABLE declarations (
    table_id KEYTEXT NOT NULL REFERENCES tables (id),
    binding KEYTEXT NOT NULL,
    digest KEYTEXT NOT NULL,
    function TEXT NOT NULL,
    manifest KEYTEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (table_id, binding, digest)
);

-- Keys that principals show; only the digest of the secret part is here.
CREATE TABLE tokens (
    id KEYTEXT PRIMARY KEY,
    digest KEYTEXT NOT NULL,
    kind KEYTEXT NOT NULL,
    principal KEYTEXT NOT NULL,
    member_of TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    used_at BIGINT,
    revoked_at BIGINT,
    -- Of a runner's key: whose jobs it leases, as JSON; none means the default cluster.
    clusters TEXT NOT NULL DEFAULT '[]'
);

CREATE INDEX tokens_by_principal ON tokens (principal);

-- Sessions of people who signed in with a browser; only the digest of a session's secret is here.
CREATE TABLE console_sessions (
    digest KEYTEXT PRIMARY KEY,
    principal KEYTEXT NOT NULL,
    -- The key that it began with; empty if that was an identity provider.
    token KEYTEXT NOT NULL,
    member_of TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX console_sessions_by_principal ON console_sessions (principal, created_at);

-- What short-lived tokens are signed with, by all servers of this catalog.
CREATE TABLE signing_keys (
    id KEYTEXT PRIMARY KEY,
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Which role a principal or group holds on a namespace (by its path) or an object (by its id).
CREATE TABLE grants (
    grantee KEYTEXT NOT NULL,
    scope KEYTEXT NOT NULL,
    target KEYTEXT NOT NULL,
    role KEYTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by KEYTEXT NOT NULL,
    PRIMARY KEY (grantee, scope, target, role)
);

CREATE INDEX grants_by_target ON grants (scope, target);

-- Who changed what, and how it went; the id begins with the time.
CREATE TABLE audit (
    id KEYTEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    principal KEYTEXT NOT NULL,
    token KEYTEXT NOT NULL,
    operation KEYTEXT NOT NULL,
    object KEYTEXT NOT NULL,
    status BIGINT NOT NULL,
    outcome KEYTEXT NOT NULL,
    request_id KEYTEXT NOT NULL,
    address KEYTEXT NOT NULL
);

-- Environments that columns were declared with, by the hash of their text.
CREATE TABLE environments (
    sha256 KEYTEXT PRIMARY KEY,
    created_at BIGINT NOT NULL
);

INSERT INTO locks (name, taken) VALUES ('access', 0);

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
    created_at BIGINT NOT NULL,
    -- How often it was altered.
    edition BIGINT NOT NULL DEFAULT 0
);

-- By which definitions the versions of a view were made, and by whom these.
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

-- Alterations that are under way: what a view becomes with the commit of a job.
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

-- Views that are refreshed by the clock: a cron expression, the time zone that it is read in (UTC
-- when null), and the moment up to which its ticks are done.
CREATE TABLE refresh_schedules (
    view_id KEYTEXT PRIMARY KEY REFERENCES materialized_views (id),
    expression TEXT NOT NULL,
    timezone TEXT,
    done_until BIGINT NOT NULL
);

-- What a view reads: tables and Iceberg views, and the name that a query has for each. A name in the
-- view's own query keeps its meaning; one in the SQL of an Iceberg view means whatever has it.
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

-- Which catalog this is: the same id is in a file at the lake's root.
CREATE TABLE lake_mark (
    name KEYTEXT PRIMARY KEY,
    id KEYTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Where its lake is, with a slash at its end; locations below it are kept relative to it.
    root KEYTEXT NOT NULL DEFAULT ''
);

-- Policies by which servers keep tables small, and what the last run of each did.
CREATE TABLE upkeep_policies (
    table_id KEYTEXT PRIMARY KEY REFERENCES tables (id),
    policy TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    -- Until then a server works on it.
    claimed_until BIGINT NOT NULL DEFAULT 0,
    ran_at BIGINT,
    result TEXT NOT NULL DEFAULT '{}',
    error TEXT NOT NULL DEFAULT '',
    failures BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX upkeep_policies_by_due ON upkeep_policies (due_at);
