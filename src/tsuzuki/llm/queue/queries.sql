-- enqueue: one more job
INSERT INTO llm_jobs (id, process_id, request_json, status, created_at, updated_at)
VALUES (:id, :process_id, :request, 'PENDING', :now, :now);

-- enqueue_once: one more job, unless it is there already
INSERT INTO llm_jobs (id, process_id, request_json, status, created_at, updated_at)
VALUES (:id, :process_id, :request, 'PENDING', :now, :now) ON CONFLICT DO NOTHING;

-- know_process: remembers a process, with the trace that began it
INSERT INTO llm_processes (process_id, trace_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- trace: the trace of a process
SELECT trace_id FROM llm_processes WHERE process_id = ?;

-- job: one job
SELECT id, process_id, request_json, status, batch_job_id, response_json, error_message, created_at, updated_at
FROM llm_jobs WHERE id = ?;

-- jobs: the jobs of a process from a row on, in the order in which they were asked for
SELECT rowid, id, process_id, request_json, status, batch_job_id, response_json, error_message, created_at, updated_at
FROM llm_jobs WHERE process_id = :process_id AND rowid > :after ORDER BY rowid LIMIT :most;

-- results: the jobs of a process that have ended, from a row on, in the order in which they were asked for
SELECT rowid, id, process_id, request_json, status, batch_job_id, response_json, error_message, created_at, updated_at
FROM llm_jobs WHERE process_id = :process_id AND status IN ('COMPLETED', 'FAILED') AND rowid > :after
ORDER BY rowid LIMIT :most;

-- outlines: the jobs of a process, without what is asked and answered; and how it is with a batch that may have them
SELECT jobs.id, jobs.status, coalesce(batches.batch_job_id, jobs.batch_job_id), jobs.error_message, jobs.created_at,
    jobs.updated_at, CASE batches.state WHEN 'OPEN' THEN 'open' WHEN 'INTENDED' THEN 'unclear' END
FROM llm_jobs AS jobs
LEFT JOIN llm_submission_jobs AS placed ON placed.job_id = jobs.id AND jobs.status IN ('PENDING', 'IN_PROGRESS')
LEFT JOIN llm_submissions AS batches ON batches.id = placed.submission_id AND batches.state != 'ENDED'
WHERE jobs.process_id = :process_id ORDER BY jobs.rowid LIMIT :most;

-- processes: how many jobs of each process there are, by status
SELECT process_id, status, count(*), max(batch_job_id), min(created_at), max(updated_at)
FROM llm_jobs GROUP BY process_id, status ORDER BY min(rowid);

-- unended: the batches that are not over, by process; what is not known of one comes first
SELECT process_id, batch_job_id, CASE state WHEN 'OPEN' THEN 'open' ELSE 'unclear' END
FROM llm_submissions WHERE state != 'ENDED' ORDER BY process_id, state, intended_at DESC;

-- counts: how many jobs of a process there are, by status
SELECT status, count(*) FROM llm_jobs WHERE process_id = ? GROUP BY status;

-- next: the next job of a process that waits, unless the process is cancelled; what a batch may have waits for that
SELECT id, process_id, request_json, status, batch_job_id, response_json, error_message, created_at, updated_at
FROM llm_jobs WHERE process_id = :process_id AND status = 'PENDING'
AND NOT EXISTS (SELECT 1 FROM llm_processes WHERE process_id = :process_id AND cancelled_at IS NOT NULL)
AND NOT EXISTS (SELECT 1 FROM llm_submission_jobs AS placed JOIN llm_submissions AS batches
    ON batches.id = placed.submission_id AND batches.state != 'ENDED' WHERE placed.job_id = llm_jobs.id)
ORDER BY rowid LIMIT 1;

-- take: a job that waits is taken
UPDATE llm_jobs SET status = 'IN_PROGRESS', updated_at = max(:now, created_at)
WHERE id = :id AND status IN ('PENDING', 'FAILED');

-- unfail: what an earlier try said is forgotten
UPDATE llm_jobs SET error_message = NULL WHERE id = ?;

-- lease: by whom
INSERT OR REPLACE INTO llm_leases (job_id, holder, taken_at) VALUES (?, ?, ?);

-- finish: a job that is under way has ended; so has one that waits for its batch, also after a cancel
UPDATE llm_jobs SET status = :status, response_json = :response, error_message = :error,
    updated_at = max(:now, created_at)
WHERE id = :id AND (status = 'IN_PROGRESS' OR status = 'PENDING'
    AND EXISTS (SELECT 1 FROM llm_submission_jobs WHERE job_id = :id));

-- spoil: a result that came twice is none
UPDATE llm_jobs SET status = 'FAILED', response_json = NULL, error_message = :error, updated_at = max(:now, created_at)
WHERE id = :id AND status = 'COMPLETED' AND batch_job_id = :batch;

-- unlease: nobody has the job any more
DELETE FROM llm_leases WHERE job_id = ?;

-- put_back: a job waits again; that a batch had it before stays
UPDATE llm_jobs SET status = 'PENDING', updated_at = max(:now, created_at)
WHERE id = :id AND status = 'IN_PROGRESS';

-- delete: a job is handed over
DELETE FROM llm_jobs WHERE id = ?;

-- forget_place: a job that is gone is in no batch
DELETE FROM llm_submission_jobs WHERE job_id = ?;

-- ids: the jobs of a process
SELECT id FROM llm_jobs WHERE process_id = ?;

-- forget_submissions: a process whose jobs are gone has no batches
DELETE FROM llm_submissions WHERE process_id = :process_id AND state = 'ENDED'
AND NOT EXISTS (SELECT 1 FROM llm_jobs WHERE process_id = :process_id);

-- forget_process: a process whose jobs are gone is unknown
DELETE FROM llm_processes WHERE process_id = :process_id
AND NOT EXISTS (SELECT 1 FROM llm_jobs WHERE process_id = :process_id)
AND NOT EXISTS (SELECT 1 FROM llm_submissions WHERE process_id = :process_id);

-- arrive: somebody works here
INSERT OR REPLACE INTO llm_holders (id, host, presence, started_at) VALUES (?, ?, ?, ?);

-- leave: nobody any more
DELETE FROM llm_holders WHERE id = ?;

-- holders: who works here
SELECT id, host, presence FROM llm_holders;

-- stranded: jobs of a holder
SELECT job_id FROM llm_leases WHERE holder = ?;

-- unattended: jobs of batches at which nobody has looked although it was time: they wait, and keep their place
UPDATE llm_jobs SET status = 'PENDING', updated_at = max(:now, created_at)
WHERE status = 'IN_PROGRESS' AND process_id IN (SELECT process_id FROM llm_processes
    WHERE holder IS NULL AND coalesce(due_at, 0) < :late)
AND EXISTS (SELECT 1 FROM llm_submission_jobs AS placed WHERE placed.job_id = llm_jobs.id);

-- drop_leases: a holder has nothing any more
DELETE FROM llm_leases WHERE holder = ?;

-- drop_holds: and no process
UPDATE llm_processes SET holder = NULL WHERE holder = ?;

-- hold: one works on the batches of a process
UPDATE llm_processes SET holder = :holder WHERE process_id = :process_id AND (holder IS NULL OR holder = :holder);

-- release: nobody does, until it is time to look again
UPDATE llm_processes SET holder = NULL, due_at = :due WHERE process_id = :process_id AND holder = :holder;

-- cancel_process: nothing more of a process is sent
UPDATE llm_processes SET cancelled_at = :now WHERE process_id = :process_id;

-- cancel_submissions: the end of its batches is asked for
UPDATE llm_submissions SET cancelled = 1 WHERE process_id = ? AND state != 'ENDED';

-- wait_placed: and their jobs wait
UPDATE llm_jobs SET status = 'PENDING', updated_at = max(:now, created_at)
WHERE process_id = :process_id AND status = 'IN_PROGRESS'
AND EXISTS (SELECT 1 FROM llm_submission_jobs AS placed WHERE placed.job_id = llm_jobs.id);

-- go_on: a process is worked on again
UPDATE llm_processes SET cancelled_at = NULL WHERE process_id = ? AND cancelled_at IS NOT NULL;

-- cancelled: whether a process is
SELECT 1 FROM llm_processes WHERE process_id = ? AND cancelled_at IS NOT NULL;

-- unplaced: jobs of a process that wait and are in no batch, from a row on; those that follow the same batch together
SELECT jobs.rowid, jobs.id, jobs.request_json, tries.turns_json FROM llm_jobs AS jobs
LEFT JOIN llm_tries AS tries ON tries.job_id = jobs.id
WHERE jobs.process_id = :process_id AND jobs.status = 'PENDING' AND jobs.rowid > :after
AND coalesce(tries.follows, '') = :follows
AND NOT EXISTS (SELECT 1 FROM llm_submission_jobs AS placed WHERE placed.job_id = jobs.id)
ORDER BY jobs.rowid LIMIT :most;

-- followed: batches that are over, and of which jobs wait again
SELECT DISTINCT over.id, over.most, over.sent_at FROM llm_tries AS tries
JOIN llm_jobs AS jobs ON jobs.id = tries.job_id
JOIN llm_submissions AS over ON over.id = tries.follows
WHERE jobs.process_id = ? AND jobs.status = 'PENDING' AND over.state = 'ENDED'
AND NOT EXISTS (SELECT 1 FROM llm_submission_jobs AS placed WHERE placed.job_id = jobs.id)
ORDER BY over.intended_at, over.id;

-- again: a job of a batch waits again; that it was in that batch stays
UPDATE llm_jobs SET status = 'PENDING', updated_at = max(:now, created_at)
WHERE id = :id AND status IN ('PENDING', 'IN_PROGRESS');

-- tried: what the tries of a job took so far, which batch the next one follows, and what is said in it
INSERT OR REPLACE INTO llm_tries (job_id, follows, reply_json, turns_json) VALUES (:id, :follows, :reply, :turns);

-- tries: what the tries of the jobs of a process took that were not enough
SELECT tries.job_id, tries.reply_json FROM llm_tries AS tries
JOIN llm_jobs AS jobs ON jobs.id = tries.job_id WHERE jobs.process_id = ?;

-- forget_tries: a job that is gone was never tried
DELETE FROM llm_tries WHERE job_id = ?;

-- intend: a batch is going to be created
INSERT INTO llm_submissions (id, process_id, provider, base_url, state, intended_at, follows)
VALUES (:id, :process_id, :provider, :base_url, 'INTENDED', :at, :follows) ON CONFLICT DO NOTHING;

-- place: of these jobs
INSERT INTO llm_submission_jobs (job_id, submission_id, place) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- submissions: the batches of a process that are not over
SELECT id, process_id, provider, base_url, state, batch_job_id, intended_at, sent_at, cancelled, follows
FROM llm_submissions WHERE process_id = ? AND state != 'ENDED' ORDER BY intended_at, id;

-- submission: one of them
SELECT id, process_id, provider, base_url, state, batch_job_id, intended_at, sent_at, cancelled, follows
FROM llm_submissions WHERE id = ?;

-- placed: the jobs of a batch, in order
SELECT job_id FROM llm_submission_jobs WHERE submission_id = ? ORDER BY place;

-- placed_jobs: some jobs of a batch, with what is asked
SELECT placed.job_id, jobs.request_json, tries.reply_json, tries.turns_json FROM json_each(:jobs) AS wanted
JOIN llm_submission_jobs AS placed ON placed.job_id = wanted.value AND placed.submission_id = :id
JOIN llm_jobs AS jobs ON jobs.id = placed.job_id
LEFT JOIN llm_tries AS tries ON tries.job_id = placed.job_id
ORDER BY placed.place;

-- sent: a batch is being sent, or was surely not taken
UPDATE llm_submissions SET sent_at = ? WHERE id = ?;

-- refused: a batch was too large for its provider, which takes at most so many of its jobs next time
UPDATE llm_submissions SET state = 'ENDED', most = :most, sent_at = :at WHERE id = :id;

-- take_most: how many go into the next batch that follows one which was too large
UPDATE llm_submissions SET most = :most WHERE id = :id AND most IS NOT NULL;

-- withdraw: a batch that can never be created is forgotten
DELETE FROM llm_submissions WHERE id = ?;

-- attach: the batch is known
UPDATE llm_submissions SET state = 'OPEN', batch_job_id = :batch WHERE id = :id;

-- attach_job: and its jobs know it
UPDATE llm_jobs SET batch_job_id = :batch, updated_at = max(:now, created_at)
WHERE id IN (SELECT job_id FROM llm_submission_jobs WHERE submission_id = :id) AND status IN ('PENDING', 'IN_PROGRESS');

-- begin_placed: the jobs of a batch are under way
UPDATE llm_jobs SET status = 'IN_PROGRESS', updated_at = max(:now, created_at)
WHERE id IN (SELECT job_id FROM llm_submission_jobs WHERE submission_id = :id) AND status = 'PENDING';

-- end_submission: a batch is over
UPDATE llm_submissions SET state = 'ENDED' WHERE id = ?;

-- unplace: nor are its jobs in it
DELETE FROM llm_submission_jobs WHERE submission_id = ?;

-- abandon: nobody collects the batches of a process any more
UPDATE llm_submissions SET state = 'ENDED' WHERE process_id = ?;

-- known_batches: the batches that belong to other intents
SELECT batch_job_id FROM llm_submissions WHERE batch_job_id IS NOT NULL AND id != ?;

-- configuration: what is stored
SELECT value FROM llm_configuration WHERE key = ?;

-- configure: stores it
INSERT OR REPLACE INTO llm_configuration (key, value) VALUES (?, ?);
