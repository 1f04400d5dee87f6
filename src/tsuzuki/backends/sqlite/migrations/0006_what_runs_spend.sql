-- What a run has used of models that are paid for, added up; only runs that did are in the index.
ALTER TABLE runs ADD COLUMN spent TEXT NOT NULL DEFAULT '';

CREATE INDEX runs_spent ON runs (updated_at)
    WHERE spent <> '';
