-- Functions get names: what was called functions is the code of functions, by its hash.
CREATE TABLE function_code (
    sha256 KEYTEXT PRIMARY KEY,
    content BYTEA NOT NULL,
    name KEYTEXT NOT NULL,
    version KEYTEXT NOT NULL,
    rate DOUBLE PRECISION,
    created_at BIGINT NOT NULL
);

INSERT INTO function_code (sha256, content, name, version, rate, created_at) SELECT sha256, content, name, version, rate, created_at FROM functions;

DROP TABLE functions;

CREATE INDEX function_code_by_version ON function_code (name, version);

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
