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
