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
    revoked_at BIGINT
);

CREATE INDEX tokens_by_principal ON tokens (principal);

-- What short-lived tokens are signed with, by all servers of this catalog.
CREATE TABLE signing_keys (
    id KEYTEXT PRIMARY KEY,
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

INSERT INTO locks (name, taken) VALUES ('access', 0);
