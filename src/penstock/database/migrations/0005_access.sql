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

-- Who made it; empty where authentication is off.
ALTER TABLE transactions ADD COLUMN principal KEYTEXT NOT NULL DEFAULT '';

-- The key of the runner that holds it; empty where authentication is off.
ALTER TABLE jobs ADD COLUMN token KEYTEXT NOT NULL DEFAULT '';

CREATE INDEX jobs_by_token ON jobs (token, state);
