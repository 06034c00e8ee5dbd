-- The clusters whose jobs a runner's key leases, as JSON; none means the default cluster.
ALTER TABLE tokens ADD COLUMN clusters TEXT NOT NULL DEFAULT '[]';
