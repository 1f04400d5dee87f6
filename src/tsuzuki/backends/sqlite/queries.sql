-- Every statement of the SQLite store: a name, one sentence, the statement.
-- {name} stands for the statement of that name, so that a list of columns is written once.

-- columns: The columns of a row, in the order in which rows.py reads them.
    {first_columns}, (SELECT body FROM params WHERE params.run = runs.number), {last_columns}

-- first_columns: Those before the params.
    runs.number, runs.id, runs.flow, runs.created_at, runs.digest, runs.tag, runs.tags, runs.priority, runs.key,
    runs.idempotency_key, runs.tenant, runs.private, runs.source, runs.continues, runs.status, runs.attempt,
    runs.holder, runs.not_before, runs.started_at, runs.finished_at, runs.updated_at,
    (SELECT max(workers.heartbeat_at, runs.heartbeat_at) FROM workers WHERE workers.id = runs.holder),
    runs.heartbeat_at, runs.position, runs.done, runs.failed, runs.skipped, runs.steps, runs.barren,
    runs.fingerprint, runs.blob, runs.cancel_asked_at, runs.cancel_asked_by, runs.cancel_reason, runs.version,
    runs.progress, runs.error, runs.result

-- last_columns: Those after the params.
    runs.workflow, runs.workflow_bytes, runs.api_key, runs.worker, runs.spent, runs.wait, runs.waiting_reason

-- tables: Counts what a file contains, to tell an empty one from somebody else's.
SELECT count(*) FROM sqlite_schema;

-- take_room: Fills as much of the write-ahead log as fits between two checkpoints.
INSERT INTO meta (name, value) VALUES ('room', zeroblob(4100000));

-- give_room: Gives the space in the file back, to be used by runs.
DELETE FROM meta WHERE name = 'room';

-- write_over: Changes next to nothing, to be written to the log over what a failed commit left there.
UPDATE meta SET value = value + 1e-6 WHERE name = 'clock';

-- latest: Finds the last `updated_at` that was given out; `clock` remembers those of purged runs.
SELECT max(
    (SELECT value FROM meta WHERE name = 'clock'),
    (SELECT coalesce(max(updated_at), 0) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'PENDING'),
    (SELECT coalesce(max(updated_at), 0) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'COMPLETED'),
    (SELECT coalesce(max(updated_at), 0) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'FAILED'),
    (SELECT coalesce(max(updated_at), 0) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'CANCELLED'),
    (SELECT coalesce(max(updated_at), 0) FROM runs INDEXED BY runs_held WHERE holder IS NOT NULL)
);

-- keep_clock: Remembers the last `updated_at`, before the run that has it goes.
UPDATE meta SET value = ? WHERE name = 'clock';

-- news: Tells what a worker would look for: the last run that came to wait, and the last cancel asked of a holder.
SELECT
    (SELECT max(updated_at) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'PENDING'),
    max(cancel_asked_at), count(cancel_asked_at)
FROM runs INDEXED BY runs_held WHERE holder IS NOT NULL;

-- run_by_id: Reads the row of a run.
SELECT {columns} FROM runs WHERE id = ?;

-- runs_by_number: Reads the rows of runs given as a JSON list of numbers.
SELECT {columns} FROM runs WHERE number IN (SELECT value FROM json_each(?));

-- bare_runs_by_number: Reads the rows of runs given as a JSON list of numbers, without their params.
SELECT {first_columns}, '{}', {last_columns} FROM runs WHERE number IN (SELECT value FROM json_each(?));

-- run_by_idempotency_key: Finds the run that an idempotency key made.
SELECT {columns} FROM runs WHERE tenant = ? AND idempotency_key = ?;

-- run_holding_key: Finds the active run that holds a key.
SELECT id, number, status FROM runs
WHERE tenant = ? AND key = ? AND status IN ('PENDING', 'RUNNING', 'CANCELLING');

-- shelf: Finds the shelf of the runs of a flow, tag, tenant and privacy.
SELECT number FROM shelves WHERE flow = ? AND tag = ? AND tenant = ? AND private = ?;

-- put_up_shelf: Makes a shelf for runs that agree with no run so far.
INSERT INTO shelves (flow, tag, tenant, private) VALUES (?, ?, ?, ?) RETURNING number;

-- insert_run: Accepts a run, unless one of the unique indexes says no.
INSERT INTO runs (
    id, flow, created_at, digest, tag, tags, priority, key, idempotency_key, tenant, private, source, continues,
    workflow, workflow_bytes, api_key, shelf,
    status, attempt, holder, not_before, started_at, finished_at, heartbeat_at, position, done, failed, skipped,
    steps, barren, fingerprint, blob, cancel_asked_at, cancel_asked_by, cancel_reason, version, progress, error,
    result, worker, spent, wait, waiting_reason, updated_at
) VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?, ?, ?, ?
)
ON CONFLICT DO NOTHING
RETURNING number;

-- insert_params: Keeps what was submitted.
INSERT INTO params (run, body) VALUES (?, ?);

-- insert_label: Labels a run.
INSERT OR IGNORE INTO labels (label, updated_at, run) VALUES (?, ?, ?);

-- move_labels: Lets the labels of a run follow its row.
UPDATE labels SET updated_at = ? WHERE run = ?;

-- write_run: Writes what facts can change in a row.
UPDATE runs SET
    status = ?, attempt = ?, holder = ?, not_before = ?, started_at = ?, finished_at = ?, heartbeat_at = ?,
    position = ?, done = ?, failed = ?, skipped = ?, steps = ?, barren = ?, fingerprint = ?, blob = ?,
    cancel_asked_at = ?, cancel_asked_by = ?, cancel_reason = ?, version = ?, progress = ?, error = ?, result = ?,
    worker = ?, spent = ?, wait = ?, waiting_reason = ?, updated_at = ?
WHERE number = ?;

-- new_runs: Reads those of some runs (a JSON list of numbers) that nobody has claimed before; what most have alike only where it is not.
SELECT
    runs.number, runs.id, created_at, digest, params.body,
    CASE WHEN (tag, tags, priority, runs.key, idempotency_key, tenant, source, continues, workflow, api_key)
            IS (:tag, '[]', 0, NULL, NULL, '', '', NULL, '', '') THEN ''
        ELSE json_array(tag, tags, priority, runs.key, idempotency_key, tenant, source, continues, workflow, api_key,
            workflow_bytes)
    END
FROM json_each(:numbers) CROSS JOIN runs ON runs.number = value CROSS JOIN params ON params.run = value
WHERE status = 'PENDING' AND position = 1;

-- claim_new: Claims such runs: the fold of `Claimed`. To return them from here would take a quarter longer.
UPDATE runs SET
    status = 'RUNNING', holder = :holder, worker = :holder, position = 2, barren = 1, started_at = :started_at, heartbeat_at = :now,
    fingerprint = :fingerprint, not_before = 0.0, updated_at = :first + 1e-6 * (number - :lowest)
WHERE number IN (SELECT value FROM json_each(:numbers));

-- complete_runs: The fold of `RunCompleted` in rows that are still as their holder claimed them; their results, by number.
UPDATE runs NOT INDEXED SET
    status = 'COMPLETED', holder = NULL, position = :position, finished_at = :finished_at, progress = '[]', error = NULL,
    result = ended.value, blob = '', updated_at = :first + 1e-6 * (number - :lowest)
FROM json_each(:results) AS ended
WHERE number = CAST(ended.key AS INTEGER) AND holder = :holder AND attempt = :attempt AND position = :position - 1;

-- insert_completed: Adds the last facts of such runs to their journals; facts by number.
INSERT INTO facts (run, position, kind, attempt, body)
SELECT key, :position, 'RunCompleted', :attempt, value FROM json_each(:facts);

-- fenced: Tells whoever still holds a run where its journal ends.
SELECT position FROM runs WHERE number = ? AND holder = ? AND attempt = ?;

-- count_outcomes: Fences outcomes, makes room for them in a journal that ends as is thought, and counts them.
UPDATE runs SET
    position = position + ?,
    done = done + ?,
    failed = failed + ?,
    skipped = skipped + ?,
    steps = steps + ?,
    barren = CASE WHEN ? THEN 0 ELSE barren END,
    updated_at = ?
WHERE number = ? AND holder = ? AND attempt = ? AND position = ?;

-- share_run: Lets the workers have a run that was private.
UPDATE runs SET private = FALSE, shelf = ? WHERE number = ?;

-- spent: Reads what a run has spent.
SELECT spent FROM runs WHERE number = ?;

-- spend: Writes it.
UPDATE runs SET spent = ? WHERE number = ?;

-- insert_claims: Adds the same fact to the journals of runs that were claimed for the first time.
INSERT INTO facts (run, position, kind, attempt, body)
SELECT value, 2, 'Claimed', 1, :body FROM json_each(:numbers);

-- insert_fact: Adds a fact to a journal.
INSERT INTO facts (run, position, kind, step, key, attempt, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- outcome: Tells whether an outcome is recorded.
SELECT 1 FROM facts
WHERE run = ? AND step = ? AND key = ? AND attempt = ?
    AND step IS NOT NULL;

-- facts: Reads a stretch of a journal.
SELECT position, kind, step, key, body FROM facts
WHERE run = (SELECT number FROM runs WHERE id = ?) AND position > ? ORDER BY position LIMIT ?;

-- facts_at: Reads facts at positions given as a JSON list.
SELECT position, kind, step, key, body FROM facts
WHERE run = (SELECT number FROM runs WHERE id = ?) AND position IN (SELECT value FROM json_each(?));

-- marks: Reads the outcomes, the failed tries and the resumes that retry failures, without their values.
SELECT
    position, kind, coalesce(step, json_extract(body, '$.step'), ''), coalesce(key, json_extract(body, '$.key'), '')
FROM facts
WHERE run = (SELECT number FROM runs WHERE id = ?) AND position > ?
    AND (step IS NOT NULL
        OR kind = 'TryFailed'
        OR kind = 'ResumeAsked' AND coalesce(json_extract(body, '$.failed'), 1))
ORDER BY position LIMIT ?;

-- mark: Tells how far a run and its log have come.
SELECT position, updated_at, (SELECT max(logs.number) FROM logs WHERE logs.run = runs.number)
FROM runs WHERE id = ?;

-- log_of: Tells where the log of a run goes on.
SELECT number, position, (SELECT max(logs.number) FROM logs WHERE logs.run = runs.number)
FROM runs WHERE id = ?;

-- insert_line: Adds a line to a log.
INSERT INTO logs (run, number, body) VALUES (?, ?, ?);

-- cut_log: Drops the oldest lines of a log.
DELETE FROM logs WHERE run = ? AND number <= ?;

-- lines: Reads a stretch of a log.
SELECT number, body FROM logs
WHERE run = (SELECT number FROM runs WHERE id = ?) AND number > ? ORDER BY number LIMIT ?;

-- set_progress: Shows how far the steps of a run are.
UPDATE runs SET progress = ?, updated_at = ? WHERE number = ?;

-- waiting: Finds the shared runs of a tag that may be claimed, the most urgent first.
SELECT -priority, number, flow FROM runs INDEXED BY runs_waiting
WHERE status = 'PENDING' AND private = 0 AND tag = :tag AND version <= :version
    AND (not_before <= :now OR wait > 0 AND not_before - wait > :ahead) -- `lifecycle.is_misdated`
    AND iif(workflow <> '', :workflows, :flows IS NULL OR flow IN (SELECT value FROM json_each(:flows)))
ORDER BY priority DESC, number LIMIT :limit;

-- orphaned: Finds the shared runs of a holder, without their params.
SELECT {first_columns}, '{}', {last_columns} FROM runs WHERE holder = :holder AND private = 0 AND version <= :version
    AND iif(workflow <> '', :workflows, :flows IS NULL OR flow IN (SELECT value FROM json_each(:flows)));

-- due: Tells when the next delayed run is due.
SELECT min(not_before) FROM runs INDEXED BY runs_delayed
WHERE status = 'PENDING' AND not_before > 0 AND not_before > ?;

-- beat: Records that a worker lives, and tells how often it has done so; whether it is hidden stays.
INSERT INTO workers (id, heartbeat_at, beats, body) VALUES (?, ?, 1, ?)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, beats = beats + 1,
    body = iif(json_extract(body, '$.hidden'), json_set(excluded.body, '$.hidden', json('true')), excluded.body)
RETURNING beats;

-- hide: Sets whether a worker is to be shown.
UPDATE workers SET body = json_set(body, '$.hidden', json(iif(?, 'true', 'false'))) WHERE id = ? RETURNING id;

-- held_by: Lists who holds a run or a place of a limit.
{holding};

-- forget_worker: Removes the record of a worker.
DELETE FROM workers WHERE id = ?;

-- holdings: Lists the runs that a worker holds.
SELECT id, attempt, cancel_asked_at IS NOT NULL FROM runs WHERE holder = ?;

-- workers: Lists the workers, the last seen first.
SELECT heartbeat_at, beats, body FROM workers ORDER BY heartbeat_at DESC, id;

-- holding: Who holds a run or a place of a limit.
SELECT holder FROM runs WHERE holder IS NOT NULL UNION SELECT worker FROM limit_places WHERE taken > 0

-- holders: Lists the workers that hold a run or a place of a limit, the last seen first.
SELECT heartbeat_at, beats, body FROM workers
WHERE id IN ({holding})
ORDER BY heartbeat_at DESC, id;

-- rest: What else a list may be asked for; unset, it does not filter.
    AND updated_at > :updated_after AND updated_at <= :before
    AND (:flow IS NULL OR flow = :flow)
    AND (:tag IS NULL OR tag = :tag)
    AND (:key IS NULL OR key = :key)
    AND (:tenant IS NULL OR tenant = :tenant)
    AND (:private IS NULL OR private = :private)
    AND (:digest IS NULL OR digest = :digest)
    AND (:holder IS NULL OR holder = :holder)
    AND (:finished_before IS NULL OR finished_at < :finished_before)
    AND (:prefix IS NULL OR substr(id, 1, length(:prefix)) = :prefix)
    AND (:workflow IS NULL OR workflow = :workflow)
    AND (:spent IS NULL OR (spent <> '') = :spent)
    AND (NOT :failures OR status <> 'COMPLETED' OR failed > 0)
    {said}
    AND (:label IS NULL OR EXISTS (SELECT 1 FROM labels WHERE labels.run = runs.number AND labels.label = :label))

-- said: What a list may be asked to contain.
    AND (:text IS NULL OR instr(lower(id), :text) OR instr(lower(flow), :text)
        OR instr(lower(coalesce(json_extract(error, '$.message'), '')), :text))

-- list: Lists runs that nobody holds, of one status.
SELECT updated_at, number FROM runs INDEXED BY runs_listed
WHERE holder IS NULL AND status = :status {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- shelves: Finds the shelves that a list may be about.
SELECT number FROM shelves
WHERE (:flow IS NULL OR flow = :flow) AND (:tag IS NULL OR tag = :tag)
    AND (:tenant IS NULL OR tenant = :tenant) AND (:private IS NULL OR private = :private);

-- list_by_shelf: Lists runs that nobody holds, of one status, on one shelf.
SELECT updated_at, number FROM runs INDEXED BY runs_on_shelves
WHERE holder IS NULL AND shelf = :shelf AND status = :status {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_by_shelves: Lists runs that nobody holds, on many shelves with few runs.
SELECT updated_at, number FROM (SELECT value AS place FROM json_each(:shelves))
    CROSS JOIN runs INDEXED BY runs_on_shelves ON shelf = place
WHERE holder IS NULL AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- few_by_shelf: Counts the runs that nobody holds, on some shelves, as far as it matters.
SELECT count(*) FROM (
    SELECT 1 FROM (SELECT value AS place FROM json_each(:shelves))
        CROSS JOIN runs INDEXED BY runs_on_shelves ON shelf = place
    WHERE holder IS NULL LIMIT :few
);

-- few_by_key: Counts the runs that nobody holds, with one key, as far as it matters.
SELECT count(*) FROM (
    SELECT 1 FROM runs INDEXED BY runs_listed_by_key
    WHERE holder IS NULL AND status IN (SELECT value FROM json_each(:statuses)) AND key = :key AND key IS NOT NULL
    LIMIT :few
);

-- list_by_digest: Lists runs of one flow with the same params.
SELECT updated_at, number FROM runs INDEXED BY runs_by_digest
WHERE digest = :digest AND digest <> '' AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_by_workflow: Lists runs that bring the same workflow.
SELECT updated_at, number FROM runs INDEXED BY runs_by_workflow
WHERE workflow = :workflow AND workflow <> '' AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_spent: Lists runs that have spent something.
SELECT updated_at, number FROM runs INDEXED BY runs_spent
WHERE spent <> '' AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_with_failures: Lists completed runs with failed items.
SELECT updated_at, number FROM runs INDEXED BY runs_completed_with_failures
WHERE status = 'COMPLETED' AND failed > 0 {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- digests: Counts the runs of one flow with the same params, as far as it matters.
SELECT count(*) FROM (SELECT 1 FROM runs WHERE digest = ? AND digest <> '' LIMIT ?);

-- list_by_key: Lists runs that nobody holds, of one status and key.
SELECT updated_at, number FROM runs INDEXED BY runs_listed_by_key
WHERE holder IS NULL AND status = :status AND key = :key AND key IS NOT NULL {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_by_label: Lists runs that nobody holds, with a label.
SELECT labels.updated_at, number FROM labels CROSS JOIN runs ON runs.number = labels.run
WHERE holder IS NULL AND label = :label AND status IN (SELECT value FROM json_each(:statuses))
    AND labels.updated_at > :updated_after AND labels.updated_at <= :before
    AND (:flow IS NULL OR flow = :flow)
    AND (:tag IS NULL OR tag = :tag)
    AND (:key IS NULL OR key = :key)
    AND (:tenant IS NULL OR tenant = :tenant)
    AND (:private IS NULL OR private = :private)
    AND (:digest IS NULL OR digest = :digest)
    AND (:finished_before IS NULL OR finished_at < :finished_before)
    AND (:prefix IS NULL OR substr(id, 1, length(:prefix)) = :prefix)
    AND (:workflow IS NULL OR workflow = :workflow)
    AND (:spent IS NULL OR (spent <> '') = :spent)
    AND (NOT :failures OR status <> 'COMPLETED' OR failed > 0)
    {said}
ORDER BY labels.updated_at DESC LIMIT :limit;

-- list_held: Lists runs that somebody holds; there are few.
SELECT updated_at, number FROM runs INDEXED BY runs_held
WHERE holder IS NOT NULL AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_by_id: Lists runs by the beginning of their id.
SELECT updated_at, number FROM runs
WHERE id >= :prefix AND id < :prefix || char(0x10ffff) AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- list_by_number: Finds a run by its number.
SELECT updated_at, number FROM runs
WHERE number = :number AND status IN (SELECT value FROM json_each(:statuses)) {rest}
ORDER BY updated_at DESC LIMIT :limit;

-- counts: Counts runs by status, those that changed after a time and by another: a range of an index for each, without sorting.
SELECT 'PENDING', count(*) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'PENDING' AND updated_at > ?1 AND updated_at <= ?2
UNION ALL
SELECT 'COMPLETED', count(*) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'COMPLETED' AND updated_at > ?1 AND updated_at <= ?2
UNION ALL
SELECT 'FAILED', count(*) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'FAILED' AND updated_at > ?1 AND updated_at <= ?2
UNION ALL
SELECT 'CANCELLED', count(*) FROM runs INDEXED BY runs_listed WHERE holder IS NULL AND status = 'CANCELLED' AND updated_at > ?1 AND updated_at <= ?2
UNION ALL
SELECT status, count(*) FROM runs INDEXED BY runs_held WHERE holder IS NOT NULL AND updated_at > ?1 AND updated_at <= ?2 GROUP BY status;

-- counts_on_shelves: Counts the runs of a flow, tag or tenant by status, along the index of their shelves.
WITH places AS (
    SELECT number FROM shelves WHERE (?3 IS NULL OR flow = ?3) AND (?4 IS NULL OR tag = ?4) AND (?5 IS NULL OR tenant = ?5)
)
SELECT status, count(*) FROM places CROSS JOIN runs INDEXED BY runs_on_shelves ON runs.shelf = places.number
WHERE holder IS NULL AND status IN (SELECT value FROM json_each(?6)) AND updated_at > ?1 AND updated_at <= ?2
GROUP BY status
UNION ALL
SELECT status, count(*) FROM runs INDEXED BY runs_held
WHERE holder IS NOT NULL AND updated_at > ?1 AND updated_at <= ?2 AND shelf IN (SELECT number FROM places) GROUP BY status;

-- waiting_since: Finds since when the run that waits longest could have been claimed; delayed runs are looked at apart.
SELECT (
    SELECT updated_at FROM runs INDEXED BY runs_listed
    WHERE holder IS NULL AND status = 'PENDING' AND private = 0 AND not_before = 0 ORDER BY updated_at LIMIT 1
)
UNION ALL
SELECT min(max(updated_at, not_before)) FROM runs INDEXED BY runs_delayed
WHERE status = 'PENDING' AND not_before > 0 AND not_before <= ? AND private = 0;

-- count_letters: Counts the dead letters.
SELECT count(*) FROM dead_letters;

-- insert_dead_letter: Keeps what is known of a run that failed.
INSERT INTO dead_letters (body) VALUES (?);

-- dead_letters: Lists dead letters, the newest first.
SELECT number, body FROM dead_letters WHERE number < ? ORDER BY number DESC LIMIT ?;

-- dead_letter: Reads a dead letter.
SELECT number, body FROM dead_letters WHERE number = ?;

-- drop_letter: Removes a dead letter.
DELETE FROM dead_letters WHERE number = ?;

-- put_record: Keeps a document.
INSERT INTO records (kind, name, body) VALUES (?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body;

-- record: Reads a document.
SELECT body FROM records WHERE kind = ? AND name = ?;

-- records: Reads the documents of a kind.
SELECT name, body FROM records WHERE kind = ? ORDER BY name;

-- drop_record: Removes a document.
DELETE FROM records WHERE kind = ? AND name = ?;

-- records_from: Reads the documents of a kind from a name on.
SELECT name, body FROM records WHERE kind = ? AND name >= ? ORDER BY name;

-- last_record: Gives the last name of a kind.
SELECT name FROM records WHERE kind = ? ORDER BY name DESC LIMIT 1;

-- drop_records_before: Removes the documents of a kind before a name.
DELETE FROM records WHERE kind = ? AND name < ?;

-- turn: Reads when the next turn of a rate is due.
SELECT due, asked_at FROM limits WHERE name = ?;

-- set_turn: Moves the next turn of a rate.
INSERT INTO limits (name, due, asked_at) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET due = excluded.due, asked_at = excluded.asked_at;

-- free_places: Frees the places of a dead worker.
DELETE FROM limit_places WHERE name = ? AND worker = ?;

-- places_taken: Counts the places that are taken.
SELECT coalesce(sum(taken), 0) FROM limit_places WHERE name = ?;

-- take_place: Takes a place.
INSERT INTO limit_places (name, worker, taken) VALUES (?, ?, 1)
ON CONFLICT (name, worker) DO UPDATE SET taken = taken + 1;

-- leave_place: Gives a place back.
UPDATE limit_places SET taken = taken - 1 WHERE name = ? AND worker = ? AND taken > 0;

-- purge: Removes an ended run, and by a trigger all that belongs to it.
DELETE FROM runs WHERE id = ? AND status IN ('COMPLETED', 'FAILED', 'CANCELLED') RETURNING id;

-- known_runs: Tells which of the ids in a JSON list are runs.
SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?));

-- forget_run: Removes a run whatever its status, and by a trigger all that belongs to it.
DELETE FROM runs WHERE id = ?;

-- disown_workers: Says of all workers that they are of another machine: whoever has their names here is not them.
UPDATE workers SET body = json_set(body, '$.host', 'elsewhere', '$.presence', '');

-- references: Names the blobs that facts refer to, with their runs.
SELECT runs.id, json_extract(facts.body, '$.blob') FROM facts JOIN runs ON runs.number = facts.run
WHERE facts.body LIKE '%"blob":"_%' AND json_extract(facts.body, '$.blob') <> ''
UNION
SELECT runs.id, json_extract(saved.value, '$.blob')
FROM facts JOIN runs ON runs.number = facts.run JOIN json_each(facts.body, '$.artifacts') AS saved
WHERE facts.body LIKE '%"artifacts":%' AND json_extract(saved.value, '$.blob') <> '';

-- orphans: Counts what belongs to no run: facts, log lines, params, labels.
SELECT (SELECT count(*) FROM facts WHERE run NOT IN (SELECT number FROM runs)),
       (SELECT count(*) FROM logs WHERE run NOT IN (SELECT number FROM runs)),
       (SELECT count(*) FROM params WHERE run NOT IN (SELECT number FROM runs)),
       (SELECT count(*) FROM labels WHERE run NOT IN (SELECT number FROM runs));

-- sweep_facts: Removes facts of no run.
DELETE FROM facts WHERE run NOT IN (SELECT number FROM runs);

-- sweep_logs: Removes log lines of no run.
DELETE FROM logs WHERE run NOT IN (SELECT number FROM runs);

-- sweep_params: Removes params of no run.
DELETE FROM params WHERE run NOT IN (SELECT number FROM runs);

-- sweep_labels: Removes labels of no run.
DELETE FROM labels WHERE run NOT IN (SELECT number FROM runs);

-- bare_runs: Counts runs that have lost their params, and those that have lost labels.
SELECT (SELECT count(*) FROM runs WHERE number NOT IN (SELECT run FROM params)),
       (SELECT count(*) FROM runs WHERE tags <> '[]'
        AND (SELECT count(DISTINCT value) FROM json_each(runs.tags))
            <> (SELECT count(*) FROM labels WHERE labels.run = runs.number));

-- mend_params: Gives runs that have lost their params those of their first fact.
INSERT INTO params (run, body)
SELECT run, coalesce(json_extract(body, '$.params'), '{}') FROM facts
WHERE position = 1 AND kind = 'Submitted' AND run NOT IN (SELECT run FROM params);

-- mend_labels: Gives runs the labels that their rows name.
INSERT OR IGNORE INTO labels (label, updated_at, run)
SELECT value, runs.updated_at, runs.number FROM runs JOIN json_each(runs.tags)
WHERE NOT EXISTS (SELECT 1 FROM labels WHERE labels.run = runs.number AND labels.label = value);

-- disagreeing: Counts rows that are not where their journals end.
SELECT count(*) FROM runs
WHERE position <> coalesce((SELECT max(facts.position) FROM facts WHERE facts.run = runs.number), 0);

-- totals: Counts runs, the facts they should have, and the facts there are.
SELECT (SELECT count(*) FROM runs), (SELECT coalesce(sum(position), 0) FROM runs), (SELECT count(*) FROM facts);

-- data_version: Tells whether another connection has committed since the last look.
PRAGMA data_version;
