-- What a job works on besides its slot: no other job works on it meanwhile.
CREATE TABLE job_slots (
    job_id KEYTEXT NOT NULL REFERENCES jobs (id),
    slot KEYTEXT NOT NULL,
    PRIMARY KEY (job_id, slot)
);

CREATE INDEX job_slots_by_slot ON job_slots (slot);
