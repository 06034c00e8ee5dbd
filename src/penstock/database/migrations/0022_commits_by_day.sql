-- How many versions came on a day.
ALTER TABLE table_growth ADD COLUMN commits BIGINT NOT NULL DEFAULT 0;
