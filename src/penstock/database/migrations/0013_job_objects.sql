-- The table or view that a job works on, by its id. Until now only its slot said so, which begins
-- with the id and a slash; ids have 32 characters.
ALTER TABLE jobs ADD COLUMN object_id KEYTEXT NOT NULL DEFAULT '';

UPDATE jobs SET object_id = substr(slot, 1, 32);

CREATE INDEX jobs_by_object ON jobs (object_id, state);

ALTER TABLE job_slots ADD COLUMN object_id KEYTEXT NOT NULL DEFAULT '';

UPDATE job_slots SET object_id = substr(slot, 1, 32);

CREATE INDEX job_slots_by_object ON job_slots (object_id);
