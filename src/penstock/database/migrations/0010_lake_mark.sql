-- Which catalog this is: the same id is in a file at the lake's root.
CREATE TABLE lake_mark (
    name KEYTEXT PRIMARY KEY,
    id KEYTEXT NOT NULL,
    created_at BIGINT NOT NULL
);
