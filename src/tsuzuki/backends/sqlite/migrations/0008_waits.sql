-- For how long and for what a run waits. A wait that is dated by a wrong clock is found in the index of the queue.
ALTER TABLE runs ADD COLUMN wait REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN waiting_reason TEXT NOT NULL DEFAULT '';

DROP INDEX runs_waiting;
CREATE INDEX runs_waiting ON runs (tag, priority DESC, number, not_before, wait, version, flow, workflow)
    WHERE status = 'PENDING' AND private = 0;
