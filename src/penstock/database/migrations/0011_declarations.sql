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

INSERT INTO declarations (table_id, binding, digest, function, created_at)
SELECT table_id, binding, branch || '/' || name, function, created_at
FROM columns WHERE function IS NOT NULL;
