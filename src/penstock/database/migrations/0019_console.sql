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

-- How large a table was in a version that was looked at.
CREATE TABLE table_sizes (
    table_id KEYTEXT PRIMARY KEY REFERENCES tables (id),
    version BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL
);

-- By how much a table grew on a day, which counts from 1970.
CREATE TABLE table_growth (
    table_id KEYTEXT NOT NULL REFERENCES tables (id),
    day BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    PRIMARY KEY (table_id, day)
);

CREATE INDEX table_growth_by_day ON table_growth (day);
