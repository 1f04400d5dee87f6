-- The table of the requirement, as it stands there. What else has to be known of a job has tables of its own.
CREATE TABLE llm_jobs (
    id            TEXT PRIMARY KEY,
    process_id    TEXT NOT NULL,
    request_json  TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')),
    batch_job_id  TEXT,
    response_json TEXT,
    error_message TEXT,
    created_at    DATETIME NOT NULL,
    updated_at    DATETIME NOT NULL
);
CREATE INDEX llm_jobs_process ON llm_jobs (process_id, status);

-- What belongs to all jobs of a process: the trace that began with the first of them, and who works on its batches.
CREATE TABLE llm_processes (
    process_id TEXT PRIMARY KEY,
    trace_id   TEXT NOT NULL,
    holder     TEXT,
    created_at TEXT NOT NULL
) WITHOUT ROWID;

-- Who works on jobs: alive as long as it holds the lock on its file.
CREATE TABLE llm_holders (
    id         TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    presence   TEXT NOT NULL,
    started_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE llm_leases (
    job_id   TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    taken_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX llm_leases_holder ON llm_leases (holder);

-- Batches: the intent is written before anything is sent, the provider's id after it.
CREATE TABLE llm_submissions (
    id           TEXT PRIMARY KEY,
    process_id   TEXT NOT NULL,
    provider     TEXT NOT NULL,
    base_url     TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('INTENDED', 'OPEN', 'ENDED')),
    batch_job_id TEXT,
    intended_at  REAL NOT NULL,
    searched_at  REAL
) WITHOUT ROWID;
CREATE INDEX llm_submissions_process ON llm_submissions (process_id);

CREATE TABLE llm_submission_jobs (
    job_id        TEXT PRIMARY KEY,
    submission_id TEXT NOT NULL,
    place         INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX llm_submission_jobs_submission ON llm_submission_jobs (submission_id, place);

-- The stored configuration, for example llm.bulk_strategy.
CREATE TABLE llm_configuration (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
