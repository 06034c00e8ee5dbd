-- Views that are refreshed by the clock: a cron expression, the time zone that it is read in (UTC
-- when null), and the moment up to which its ticks are done.
CREATE TABLE refresh_schedules (
    view_id KEYTEXT PRIMARY KEY REFERENCES materialized_views (id),
    expression TEXT NOT NULL,
    timezone TEXT,
    done_until BIGINT NOT NULL
);
