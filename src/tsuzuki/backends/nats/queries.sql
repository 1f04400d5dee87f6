-- Every statement about the projection by name. It is a copy: the journal is the truth, and rebuilds it.

-- schema: Rows of runs with what claims need, in memory or in a file, and their large params.
CREATE TABLE IF NOT EXISTS runs (
    id          TEXT PRIMARY KEY,
    seq         INTEGER NOT NULL,
    first       INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    flow        TEXT    NOT NULL,
    digest      TEXT    NOT NULL,
    tag         TEXT    NOT NULL,
    tags        TEXT    NOT NULL,
    priority    INTEGER NOT NULL,
    key         TEXT,
    tenant      TEXT    NOT NULL,
    private     INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    holder      TEXT,
    not_before  REAL    NOT NULL,
    wait        REAL    NOT NULL,
    finished_at TEXT,
    updated_at  REAL    NOT NULL,
    version     INTEGER NOT NULL,
    workflow    TEXT    NOT NULL,
    error       TEXT,
    spent       INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    row         BLOB    NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_held ON runs (holder, updated_at DESC) WHERE holder IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_waiting ON runs (tag, priority DESC, number) WHERE status = 'PENDING' AND private = 0;
CREATE INDEX IF NOT EXISTS runs_unclaimed ON runs (tag, updated_at DESC, id DESC)
    WHERE status = 'PENDING' AND private = 0;
CREATE INDEX IF NOT EXISTS runs_delayed ON runs (not_before) WHERE status = 'PENDING' AND not_before > 0;
CREATE TABLE IF NOT EXISTS params (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

-- in_memory: A database that is gone with its process: nothing is ever rolled back.
PRAGMA journal_mode = OFF;
{schema};

-- file: How a file is read and written by several processes; a power cut may cost the last rows, never the file.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 4000;

-- whole: All that is kept: which journal it follows and up to where, the rows, labels, and how many runs have a status.
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS about (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    created TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    mark    TEXT    NOT NULL,
    at      REAL    NOT NULL,
    latest  REAL    NOT NULL
);
{schema};
CREATE INDEX IF NOT EXISTS runs_active ON runs (status) WHERE status IN ('PENDING', 'RUNNING', 'CANCELLING');
CREATE TABLE IF NOT EXISTS labels (
    label      TEXT,
    updated_at REAL,
    id         TEXT,
    PRIMARY KEY (label, updated_at DESC, id DESC)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (
    flow   TEXT,
    tag    TEXT,
    tenant TEXT,
    status TEXT,
    runs   INTEGER NOT NULL,
    PRIMARY KEY (flow, tag, tenant, status)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS run_added AFTER INSERT ON runs BEGIN
    {count_new};
    INSERT OR IGNORE INTO labels SELECT value, new.updated_at, new.id FROM json_each(new.tags);
END;
CREATE TRIGGER IF NOT EXISTS run_moved AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
    {uncount_old};
    {count_new};
END;
CREATE TRIGGER IF NOT EXISTS run_updated AFTER UPDATE OF updated_at ON runs WHEN new.tags <> '[]' BEGIN
    {unlabel};
    INSERT OR IGNORE INTO labels SELECT value, new.updated_at, new.id FROM json_each(new.tags);
END;
CREATE TRIGGER IF NOT EXISTS run_removed AFTER DELETE ON runs BEGIN
    {uncount_old};
    {unlabel};
    DELETE FROM params WHERE id = old.id;
END;
PRAGMA user_version = {layout};
COMMIT;

-- count_new: Counts a run under its status.
INSERT INTO counts VALUES (new.flow, new.tag, new.tenant, new.status, 1)
ON CONFLICT (flow, tag, tenant, status) DO UPDATE SET runs = runs + 1

-- uncount_old: Counts a run no more under the status that it had.
UPDATE counts SET runs = runs - 1
WHERE flow = old.flow AND tag = old.tag AND tenant = old.tenant AND status = old.status

-- unlabel: Forgets the labels of a run that changes, or is no more.
DELETE FROM labels
    WHERE label IN (SELECT value FROM json_each(old.tags)) AND updated_at = old.updated_at AND id = old.id

-- layout: The version of this layout; a file with another one is built anew.
3

-- layout_found: Tells the layout of a file.
PRAGMA user_version;

-- listing: What lists need, made when one is first asked for: a worker that only works pays for none of it.
BEGIN IMMEDIATE;
CREATE INDEX IF NOT EXISTS runs_by_number ON runs (number);
CREATE INDEX IF NOT EXISTS runs_listed ON runs (updated_at DESC, id DESC);
CREATE INDEX IF NOT EXISTS runs_by_status ON runs (status, updated_at DESC);
CREATE INDEX IF NOT EXISTS runs_by_flow ON runs (flow, updated_at DESC);
CREATE INDEX IF NOT EXISTS runs_by_tag ON runs (tag, updated_at DESC);
CREATE INDEX IF NOT EXISTS runs_by_flow_and_tag ON runs (flow, tag, updated_at DESC);
CREATE INDEX IF NOT EXISTS runs_by_digest ON runs (digest, updated_at DESC) WHERE digest <> '';
CREATE INDEX IF NOT EXISTS runs_by_key ON runs (key, updated_at DESC) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_spent ON runs (updated_at DESC) WHERE spent;
CREATE INDEX IF NOT EXISTS runs_by_failures ON runs (updated_at DESC) WHERE failures;
CREATE INDEX IF NOT EXISTS runs_by_workflow ON runs (workflow, updated_at DESC) WHERE workflow <> '';
COMMIT;

-- listable: Tells whether there is what lists need.
SELECT 1 FROM sqlite_schema WHERE name = 'runs_by_workflow';

-- intact: Looks a whole file over.
PRAGMA quick_check(1);

-- begin: Begins to look at several things as they are at one time.
BEGIN;

-- begin_writing: Begins to write several rows, alone.
BEGIN IMMEDIATE;

-- commit: Ends it.
COMMIT;

-- roll_back: Gives up what was written.
ROLLBACK;

-- begun: Says which journal is followed, where nobody has said so.
INSERT OR IGNORE INTO about VALUES (1, ?, 0, '', 0, 0);

-- about: Tells which journal is followed, up to where, and when.
SELECT created, seq, mark, at, latest FROM about;

-- reached: Sets up to where the journal is followed.
UPDATE about SET seq = :seq, mark = :mark, at = :at, latest = max(latest, :latest) WHERE seq <= :seq;

-- put: Sets the row of a run, unless a newer one is known.
INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, position = excluded.position, status = excluded.status,
    private = excluded.private, holder = excluded.holder, not_before = excluded.not_before, wait = excluded.wait,
    finished_at = excluded.finished_at, updated_at = excluded.updated_at, version = excluded.version, error = excluded.error,
    spent = excluded.spent, failures = excluded.failures, row = excluded.row
WHERE excluded.seq > runs.seq;

-- known: Tells which message of a chain is known, and the status in it.
SELECT seq, status FROM runs WHERE id = ?;

-- forget: Removes the row of a run that is gone since.
DELETE FROM runs WHERE id = ? AND seq < ?;

-- columns: What is read of a run.
runs.seq, runs.first, runs.row, runs.updated_at, params.body

-- listed: What is read of a run in a list.
runs.seq, runs.first, runs.row, runs.updated_at, iif(:params, params.body, NULL)

-- joined: A run with its large params.
runs LEFT JOIN params ON params.id = runs.id

-- active: Reads the rows of runs that have not ended.
SELECT * FROM runs INDEXED BY runs_active WHERE status IN ('PENDING', 'RUNNING', 'CANCELLING');

-- labelled: Counts the runs with a label, up to a number.
SELECT count(*) FROM (SELECT 1 FROM labels WHERE label = ? LIMIT ?);

-- position: Tells how far a run is known to have come.
SELECT position FROM runs WHERE id = ?;

-- run: Reads a run.
SELECT {columns} FROM {joined} WHERE runs.id = ?;

-- dealt_with: The flow of a group of tickets; runs that bring their workflow are dealt out apart, whatever it is called.
iif(workflow = '', flow, '')

-- waiting: Finds the shared runs of a tag that may be claimed, the most urgent first.
SELECT priority, number, id, tag, {dealt_with}, not_before = 0 FROM runs INDEXED BY runs_waiting
WHERE status = 'PENDING' AND private = 0 AND tag = :tag AND version <= :version
    AND (not_before <= :now OR wait > 0 AND not_before - wait > :ahead) -- `lifecycle.is_misdated`
    AND iif(workflow <> '', :workflows, :flows IS NULL OR flow IN (SELECT value FROM json_each(:flows)))
ORDER BY priority DESC, number LIMIT :limit;

-- orphaned: Finds the shared runs of a holder.
SELECT priority, number, id, tag, {dealt_with}, row FROM runs INDEXED BY runs_held
WHERE holder = :holder AND holder IS NOT NULL AND private = 0 AND version <= :version
    AND iif(workflow <> '', :workflows, :flows IS NULL OR flow IN (SELECT value FROM json_each(:flows)));

-- due: Tells when the next delayed run is due.
SELECT min(not_before) FROM runs INDEXED BY runs_delayed
WHERE status = 'PENDING' AND not_before > 0 AND not_before > ?;

-- held: Lists the runs that a worker holds.
SELECT row FROM runs INDEXED BY runs_held WHERE holder = ? AND holder IS NOT NULL;

-- holders: Lists who holds runs.
SELECT DISTINCT holder FROM runs INDEXED BY runs_held WHERE holder IS NOT NULL;

-- touch: Sets the time of a run's last update.
UPDATE runs SET updated_at = :at WHERE id = :id AND updated_at < :at;

-- keep_params: Keeps the large params of a run.
INSERT OR REPLACE INTO params VALUES (?, ?);

-- filters: What else a list may be asked for; unset, it does not filter.
    AND (:statuses IS NULL OR runs.status IN (SELECT value FROM json_each(:statuses)))
    AND runs.updated_at > :updated_after AND runs.updated_at <= :before
    AND (runs.updated_at < :before OR runs.id < :before_id)
    AND (:flow IS NULL OR runs.flow = :flow)
    AND (:tag IS NULL OR runs.tag = :tag)
    AND (:key IS NULL OR runs.key = :key)
    AND (:tenant IS NULL OR runs.tenant = :tenant)
    AND (:private IS NULL OR runs.private = :private)
    AND (:digest IS NULL OR runs.digest = :digest)
    AND (:number IS NULL OR runs.number = :number)
    AND (:holder IS NULL OR runs.holder = :holder)
    AND (:finished_before IS NULL OR runs.finished_at < :finished_before)
    AND (:prefix IS NULL OR substr(runs.id, 1, length(:prefix)) = :prefix)
    AND (:workflow IS NULL OR runs.workflow = :workflow)
    AND (:spent IS NULL OR runs.spent = :spent)
    AND (NOT :failures OR runs.status <> 'COMPLETED' OR runs.failures)
    AND (:text IS NULL OR instr(lower(runs.id), :text) OR instr(lower(runs.flow), :text)
        OR instr(lower(coalesce(runs.error, '')), :text))
    AND (:label IS NULL OR EXISTS (SELECT 1 FROM json_each(runs.tags) WHERE value = :label))

-- rest: What else a list may be asked for, along an index.
{filters} ORDER BY runs.updated_at DESC, runs.id DESC LIMIT :limit

-- rest_of_few: What else a list may be asked for, where so few are looked at that they are sorted.
{filters} ORDER BY +runs.updated_at DESC, runs.id DESC LIMIT :limit

-- list: Lists runs.
SELECT {listed} FROM {joined} WHERE TRUE {rest};

-- list_unclaimed: Lists the shared runs of a tag that wait.
SELECT {listed} FROM {joined} WHERE runs.status = 'PENDING' AND runs.private = 0 AND runs.tag = :tag {rest};

-- list_by_number: Finds a run by its number.
SELECT {listed} FROM {joined} WHERE runs.number = :number {rest_of_few};

-- list_by_holder: Lists runs of a holder.
SELECT {listed} FROM {joined} WHERE runs.holder = :holder AND runs.holder IS NOT NULL {rest};

-- list_by_digest: Lists runs of one flow with the same params.
SELECT {listed} FROM {joined} WHERE runs.digest = :digest AND runs.digest <> '' {rest};

-- list_by_workflow: Lists runs that bring the same workflow.
SELECT {listed} FROM {joined} WHERE runs.workflow = :workflow AND runs.workflow <> '' {rest};

-- list_by_key: Lists runs with a key.
SELECT {listed} FROM {joined} WHERE runs.key = :key {rest};

-- list_by_status: Lists runs with a status.
SELECT {listed} FROM {joined} WHERE runs.status = :status {rest};

-- list_by_label: Lists runs with a label.
SELECT {listed} FROM labels CROSS JOIN {joined}
WHERE labels.label = :label AND labels.updated_at <= :before AND runs.id = labels.id
{filters} ORDER BY labels.updated_at DESC, labels.id DESC LIMIT :limit;

-- list_by_flow: Lists runs of a flow.
SELECT {listed} FROM {joined} WHERE runs.flow = :flow {rest};

-- list_by_flow_and_tag: Lists runs of a flow with a tag; perhaps no run has both, however many have one of them.
SELECT {listed} FROM {joined} WHERE runs.flow = :flow AND runs.tag = :tag {rest};

-- list_by_tag: Lists runs with a tag.
SELECT {listed} FROM {joined} WHERE runs.tag = :tag {rest};

-- list_by_spent: Lists runs that have spent something.
SELECT {listed} FROM {joined} WHERE runs.spent {rest};

-- list_by_failures: Lists completed runs with failed items.
SELECT {listed} FROM {joined} WHERE runs.failures {rest};

-- list_by_prefix: Lists runs by the beginning of their id.
SELECT {listed} FROM {joined} WHERE runs.id >= :prefix AND runs.id < :prefix || char(0x10ffff) {rest_of_few};

-- counts: Counts the runs by status.
SELECT status, sum(runs) FROM counts GROUP BY status HAVING sum(runs) > 0;

-- counts_of: Counts the runs of a flow, tag or tenant by status.
SELECT status, sum(runs) FROM counts
WHERE (:flow IS NULL OR flow = :flow) AND (:tag IS NULL OR tag = :tag) AND (:tenant IS NULL OR tenant = :tenant)
GROUP BY status HAVING sum(runs) > 0;

-- counts_of_since: Counts those that changed after a time, by another.
SELECT status, count(*) FROM runs
WHERE status IN ('PENDING', 'RUNNING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')
    AND updated_at > :after AND updated_at <= :by
    AND (:flow IS NULL OR flow = :flow) AND (:tag IS NULL OR tag = :tag) AND (:tenant IS NULL OR tenant = :tenant)
GROUP BY status;

-- counts_since: Counts the runs of a status that changed after a time, by another.
SELECT count(*) FROM runs INDEXED BY runs_by_status WHERE status = ? AND updated_at > ? AND updated_at <= ?;

-- waiting_since: Finds since when the run that waits longest could have been claimed; delayed runs are looked at apart.
SELECT (
    SELECT updated_at FROM runs INDEXED BY runs_by_status
    WHERE status = 'PENDING' AND private = 0 AND not_before = 0 ORDER BY updated_at LIMIT 1
)
UNION ALL
SELECT min(max(updated_at, not_before)) FROM runs INDEXED BY runs_delayed
WHERE status = 'PENDING' AND not_before > 0 AND not_before <= ? AND private = 0;

-- failed: Lists the ids of runs that failed.
SELECT row FROM runs WHERE status = 'FAILED';

-- unclaimed: Lists the shared runs that wait.
SELECT row FROM runs WHERE status = 'PENDING' AND private = 0;

-- known_runs: Tells which of the ids in a JSON list are runs.
SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?));
