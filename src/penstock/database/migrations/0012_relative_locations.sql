-- Where the catalog's lake is, with a slash at its end. The first server that starts fills it in,
-- and makes locations below it relative to it.
ALTER TABLE lake_mark ADD COLUMN root KEYTEXT NOT NULL DEFAULT '';
