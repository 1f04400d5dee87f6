-- A job has no status of its own for what was cancelled: it waits again, and what else there is to know stands here.
-- Since when a process is cancelled, until somebody works on it again; when whoever waits for its batches looks again.
ALTER TABLE llm_processes ADD COLUMN cancelled_at TEXT;
ALTER TABLE llm_processes ADD COLUMN due_at REAL;

-- Whether the end of a batch was asked for here: what it has not done then is no failure, it waits.
ALTER TABLE llm_submissions ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;
