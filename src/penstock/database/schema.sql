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

CREATE TABLE transactions (
    id KEYTEXT PRIMARY KEY,
    operation KEYTEXT NOT NULL,
    target TEXT NOT NULL,
    status KEYTEXT NOT NULL,
    properties TEXT NOT NULL,
    created_at BIGINT NOT NULL
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
    metadata TEXT NOT NULL
);

CREATE INDEX views_by_location ON views (location);

CREATE INDEX views_by_folder ON views (folder);

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
