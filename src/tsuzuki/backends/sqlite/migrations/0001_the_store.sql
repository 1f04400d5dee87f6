-- The store: the row of each run, its journal, its log, and what workers share.

-- Small values that belong to the whole store: the last `updated_at` of the runs that were purged.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('clock', 0.0);

-- The row of a run: what its submission fixed, and the fold of its facts. Numbers are never used twice.
CREATE TABLE runs (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    flow            TEXT    NOT NULL,
    created_at      TEXT    NOT NULL,
    digest          TEXT    NOT NULL,
    tag             TEXT    NOT NULL,
    tags            TEXT    NOT NULL,
    priority        INTEGER NOT NULL,
    key             TEXT,
    idempotency_key TEXT,
    tenant          TEXT    NOT NULL,
    private         INTEGER NOT NULL,
    source          TEXT    NOT NULL,
    continues       TEXT,
    status          TEXT    NOT NULL,
    attempt         INTEGER NOT NULL,
    holder          TEXT,
    not_before      REAL    NOT NULL,
    started_at      TEXT,
    finished_at     TEXT,
    updated_at      REAL    NOT NULL,
    heartbeat_at    REAL,
    position        INTEGER NOT NULL,
    done            INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,
    steps           INTEGER NOT NULL,
    barren          INTEGER NOT NULL,
    fingerprint     TEXT    NOT NULL,
    blob            TEXT    NOT NULL,
    cancel_asked_at REAL,
    cancel_asked_by TEXT    NOT NULL,
    cancel_reason   TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    progress        TEXT    NOT NULL,
    error           TEXT,
    result          TEXT
);

-- At most one active run holds a key, and an idempotency key makes one run: these two decide, no check does.
CREATE UNIQUE INDEX runs_one_active_per_key ON runs (tenant, key)
    WHERE key IS NOT NULL AND status IN ('PENDING', 'RUNNING', 'CANCELLING');
CREATE UNIQUE INDEX runs_one_per_idempotency_key ON runs (tenant, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- The queue, in the order in which runs are claimed, and what delays a run.
CREATE INDEX runs_waiting ON runs (tag, priority DESC, number, not_before, version, flow)
    WHERE status = 'PENDING' AND private = 0;
CREATE INDEX runs_delayed ON runs (not_before)
    WHERE status = 'PENDING' AND not_before > 0;
-- Runs of one flow with the same params: few, and found without an order, so that nothing here moves with a run.
CREATE INDEX runs_by_digest ON runs (digest)
    WHERE digest <> '';
CREATE INDEX runs_held ON runs (holder)
    WHERE holder IS NOT NULL;

-- The lists. A held run is written with every outcome, and is in none of them (there are few: `runs_held` finds
-- them), so that recording an outcome touches no list.
CREATE INDEX runs_listed ON runs (status, updated_at, finished_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_flow ON runs (status, flow, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_tag ON runs (status, tag, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_flow_and_tag ON runs (status, flow, tag, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_tenant ON runs (status, tenant, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_private ON runs (status, private, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_key ON runs (status, key, updated_at) WHERE holder IS NULL AND key IS NOT NULL;

-- What was submitted, apart from the row: a row is rewritten often, and these may be large.
CREATE TABLE params (
    run  INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
    body TEXT NOT NULL
);

-- The labels of a run; `updated_at` is that of the row when nobody holds it.
CREATE TABLE labels (
    label      TEXT    NOT NULL,
    updated_at REAL    NOT NULL,
    run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    PRIMARY KEY (label, updated_at, run)
) WITHOUT ROWID;
CREATE INDEX labels_by_run ON labels (run);

-- The journals. Only outcomes have a step and a key here (other facts keep theirs in the body); of those of one
-- step or item in one attempt, the first one written wins. A list of kinds here would cost 2 µs an item.
CREATE TABLE facts (
    run      INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    step     TEXT,
    key      TEXT,
    attempt  INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX facts_one_outcome ON facts (run, step, key, attempt)
    WHERE step IS NOT NULL;

-- The logs beside the journals: lossy, capped, never replayed.
CREATE TABLE logs (
    run    INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body   TEXT    NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;

CREATE TABLE workers (
    id           TEXT PRIMARY KEY,
    heartbeat_at REAL    NOT NULL,
    beats        INTEGER NOT NULL,
    body         TEXT    NOT NULL
) WITHOUT ROWID;

-- The rates that all workers share: when the next turn is due, and when somebody last asked.
CREATE TABLE limits (
    name     TEXT PRIMARY KEY,
    due      REAL NOT NULL,
    asked_at REAL NOT NULL
) WITHOUT ROWID;

-- The places that all workers share, and who has taken how many.
CREATE TABLE limit_places (
    name   TEXT    NOT NULL,
    worker TEXT    NOT NULL,
    taken  INTEGER NOT NULL,
    PRIMARY KEY (name, worker)
) WITHOUT ROWID;

-- Runs that failed; a letter outlives its run.
CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body   TEXT NOT NULL
);
