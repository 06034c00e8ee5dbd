-- Whether somebody asked for a running job to pause; it is paused, or resumed, when this is 0 again.
ALTER TABLE jobs ADD COLUMN pause_requested BIGINT NOT NULL DEFAULT 0;
