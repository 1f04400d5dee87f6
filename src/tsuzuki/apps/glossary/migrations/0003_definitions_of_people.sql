-- A definition that a person has changed is theirs: runs leave it alone.
ALTER TABLE provisional ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0 CHECK (by_person IN (0, 1));
