-- Runs that bring their flow as YAML, the keys that submitted them, and small documents of the whole store.
ALTER TABLE runs ADD COLUMN workflow TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN workflow_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN api_key TEXT NOT NULL DEFAULT '';

CREATE INDEX runs_by_workflow ON runs (workflow, updated_at)
    WHERE workflow <> '';

DROP INDEX runs_waiting;
CREATE INDEX runs_waiting ON runs (tag, priority DESC, number, not_before, version, flow, workflow)
    WHERE status = 'PENDING' AND private = 0;

CREATE TABLE records (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
