CREATE TABLE views (
    id KEYTEXT PRIMARY KEY REFERENCES objects (id),
    location KEYTEXT NOT NULL,
    folder KEYTEXT NOT NULL,
    metadata_location KEYTEXT NOT NULL,
    metadata TEXT NOT NULL
);

CREATE INDEX views_by_location ON views (location);

CREATE INDEX views_by_folder ON views (folder);

CREATE INDEX views_by_metadata ON views (metadata_location);

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
