-- Policies by which servers keep tables small, and what the last run of each did.
CREATE TABLE upkeep_policies (
    table_id KEYTEXT PRIMARY KEY REFERENCES tables (id),
    policy TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL DEFAULT 0,
    ran_at BIGINT,
    result TEXT NOT NULL DEFAULT '{}',
    error TEXT NOT NULL DEFAULT '',
    failures BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX upkeep_policies_by_due ON upkeep_policies (due_at);
