-- Who last changed an entry, which entries kept their former definition, and which documents belong to the folder.
ALTER TABLE refined ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0 CHECK (by_person IN (0, 1));
ALTER TABLE provisional ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1));
ALTER TABLE refined ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1));
ALTER TABLE documents ADD COLUMN from_folder INTEGER NOT NULL DEFAULT 0 CHECK (from_folder IN (0, 1));
