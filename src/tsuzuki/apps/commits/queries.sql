-- gathered: What a collection has gathered so far; it lies beside the file and locks nobody.
CREATE TEMP TABLE IF NOT EXISTS gathered (
  sha TEXT PRIMARY KEY, author_name TEXT, author_email TEXT, committed_date_utc TEXT,
  additions INTEGER, deletions INTEGER, is_merge INTEGER, has_stats INTEGER
) WITHOUT ROWID;

-- gathered_none: Begins anew.
DELETE FROM gathered;

-- gathered_more: One more commit; the same commit on two pages is one.
INSERT OR IGNORE INTO gathered VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- lost: The commits that the branch does not reach any more.
CREATE TEMP TABLE IF NOT EXISTS lost (sha TEXT PRIMARY KEY) WITHOUT ROWID;

-- lost_none: Begins anew.
DELETE FROM lost;

-- lost_more: One more commit that was left behind.
INSERT OR IGNORE INTO lost VALUES (?);

-- lost_others: All that is stored of the branch, and that its new history does not have.
INSERT OR IGNORE INTO lost SELECT sha FROM commits
WHERE project_id = :project_id AND branch_name = :branch_name AND sha NOT IN (SELECT sha FROM gathered);

-- unreachable_add: They stay stored, and are not counted for the branch.
INSERT OR IGNORE INTO unreachable_commits (project_id, branch_name, sha)
SELECT :project_id, :branch_name, sha FROM lost
WHERE sha IN (SELECT sha FROM commits WHERE project_id = :project_id AND branch_name = :branch_name);

-- unreachable_remove: What the branch has again is counted again.
DELETE FROM unreachable_commits
WHERE project_id = :project_id AND branch_name = :branch_name AND sha IN (SELECT sha FROM gathered);

-- counted_remove: What no branch of the project reaches is not counted any more.
DELETE FROM counted_commits WHERE project_id = :project_id AND sha IN (SELECT sha FROM lost)
AND NOT EXISTS (SELECT 1 FROM commits c WHERE c.project_id = :project_id AND c.sha = counted_commits.sha
                AND NOT EXISTS {unreachable});

-- unreachable: Whether a branch does not reach a commit any more.
(SELECT 1 FROM unreachable_commits u
 WHERE u.project_id = c.project_id AND u.branch_name = c.branch_name AND u.sha = c.sha);

-- commits_add: Stores what is new for the branch.
INSERT OR IGNORE INTO commits
  (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions)
SELECT :project_id, :branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions
FROM gathered;

-- gathered_figures: Figures that were missing before: the history of a repository was cut off at these commits.
SELECT g.additions, g.deletions, k.project_id, k.sha FROM counted_commits k JOIN gathered g ON g.sha = k.sha
WHERE k.project_id = :project_id AND k.has_stats = 0 AND g.has_stats = 1;

-- figures_set: A commit has figures after all.
UPDATE commits SET additions = ?, deletions = ? WHERE project_id = ? AND sha = ?;

-- figures_counted: It is no longer one without.
UPDATE counted_commits SET has_stats = 1 WHERE project_id = ? AND sha = ?;

-- cut_off: Whether commits of a project lack their figures.
SELECT 1 FROM counted_commits WHERE project_id = ? AND has_stats = 0 LIMIT 1;

-- gathered_uncounted: Leaves those that no branch of the project has brought before.
DELETE FROM gathered WHERE EXISTS
  (SELECT 1 FROM counted_commits c WHERE c.project_id = :project_id AND c.sha = gathered.sha);

-- author_key: Who somebody is: the e-mail address, or the name where there is none.
CASE author_email WHEN '' THEN author_name ELSE lower(author_email) END;

-- author_key_of_commit: Who somebody is, where there are several tables.
CASE c.author_email WHEN '' THEN c.author_name ELSE lower(c.author_email) END;

-- authors_add: Knows the authors by their newest names.
INSERT INTO authors (author_key, author_name, named_at_utc)
SELECT {author_key}, author_name, MAX(committed_date_utc) FROM gathered WHERE true GROUP BY 1
ON CONFLICT (author_key) DO UPDATE SET author_name = excluded.author_name, named_at_utc = excluded.named_at_utc
WHERE excluded.named_at_utc > named_at_utc;

-- counted_add: From now on they are counted.
INSERT INTO counted_commits (project_id, sha, is_merge, has_stats)
SELECT :project_id, sha, is_merge, has_stats FROM gathered;

-- activity_add: Adds them to the sums.
INSERT INTO activity (project_id, month, author_id, is_merge, commits, additions, deletions, missing_stats)
SELECT :project_id, substr(committed_date_utc, 1, 7), a.author_id, is_merge,
       COUNT(*), SUM(additions), SUM(deletions), SUM(1 - has_stats)
FROM gathered c JOIN authors a ON a.author_key = {author_key_of_commit}
WHERE true GROUP BY 2, 3, 4
ON CONFLICT (project_id, month, author_id, is_merge) DO UPDATE SET
  commits = commits + excluded.commits, additions = additions + excluded.additions,
  deletions = deletions + excluded.deletions, missing_stats = missing_stats + excluded.missing_stats;

-- head_set: Everything that this head reaches is stored.
INSERT INTO branch_heads (project_id, branch_name, head_sha) VALUES (:project_id, :branch_name, :head_sha)
ON CONFLICT (project_id, branch_name) DO UPDATE SET head_sha = excluded.head_sha;

-- head: Up to where a branch is stored.
SELECT head_sha FROM branch_heads WHERE project_id = ? AND branch_name = ?;

-- checkpoint: When the newest stored commit of a branch was made.
SELECT MAX(committed_date_utc) AS last_collect_time
FROM commits
WHERE project_id = ? AND branch_name = ?;

-- receipt_add: A single collection has settled a branch.
INSERT INTO collection_receipts (run_id, project_id, branch_name, new_commits_count, processed_at_utc)
VALUES (:run_id, :project_id, :branch_name, :new_commits_count, :now);

-- receipt: What a single collection has settled of a branch.
SELECT new_commits_count FROM collection_receipts WHERE run_id = ? AND project_id = ? AND branch_name = ?;

-- targets: The pairs that have a history, and that their source still has.
SELECT DISTINCT project_id, branch_name
FROM commits
WHERE (project_id, branch_name) NOT IN (SELECT project_id, branch_name FROM gone_branches)
ORDER BY project_id, branch_name;

-- gone_add: The source of a branch does not have it any more.
INSERT OR IGNORE INTO gone_branches (project_id, branch_name, gone_at_utc)
SELECT DISTINCT project_id, branch_name, :now FROM commits
WHERE project_id = :project_id AND branch_name = :branch_name;

-- gone_remove: It has it again.
DELETE FROM gone_branches WHERE project_id = :project_id AND branch_name = :branch_name;

-- failed_targets: The pairs that failed in a run.
SELECT project_id, branch_name
FROM bulk_collection_results
WHERE run_id = ? AND status = 'failed'
ORDER BY project_id, branch_name;

-- running: The run that is running, if there is one.
SELECT run_id FROM bulk_collection_runs
WHERE status = 'running';

-- run_add: A run begins.
INSERT INTO bulk_collection_runs (run_id, started_at_utc, status, total_targets)
VALUES (:run_id, :now, 'running', :total_targets);

-- pending_add: One of its targets.
INSERT INTO bulk_collection_results (run_id, project_id, branch_name, status) VALUES (?, ?, ?, 'pending');

-- run_status: How a run stands.
SELECT status, total_targets FROM bulk_collection_runs WHERE run_id = ?;

-- run_reopen: A cancelled run goes on.
UPDATE bulk_collection_runs SET status = 'running', completed_at_utc = NULL WHERE run_id = ? AND status = 'cancelled';

-- run_close: A running run has ended.
UPDATE bulk_collection_runs SET status = :status, completed_at_utc = MAX(:now, started_at_utc)
WHERE run_id = :run_id AND status = 'running';

-- run_targets: The targets of a run in their order.
SELECT project_id, branch_name FROM bulk_collection_results WHERE run_id = ? ORDER BY project_id, branch_name;

-- next_pending: The target of a run that comes next.
SELECT project_id, branch_name FROM bulk_collection_results
WHERE run_id = ? AND status = 'pending' ORDER BY project_id, branch_name LIMIT 1;

-- result: How a target of a run stands.
SELECT status, new_commits_count, error_message FROM bulk_collection_results
WHERE run_id = ? AND project_id = ? AND branch_name = ?;

-- result_success: A target of a running run has succeeded.
UPDATE bulk_collection_results
SET status = 'success', new_commits_count = :new_commits_count, processed_at_utc = :now
WHERE run_id = :run_id AND project_id = :project_id AND branch_name = :branch_name AND status = 'pending';

-- result_failed: A target of a running run has failed.
UPDATE bulk_collection_results
SET status = 'failed', error_message = :error_message, processed_at_utc = :now
WHERE run_id = :run_id AND project_id = :project_id AND branch_name = :branch_name AND status = 'pending';

-- count_success: Counts it.
UPDATE bulk_collection_runs SET success_count = success_count + 1, completed_count = completed_count + 1
WHERE run_id = ? AND status = 'running';

-- count_failed: Counts it.
UPDATE bulk_collection_runs SET failed_count = failed_count + 1 WHERE run_id = ? AND status = 'running';

-- leftovers_failed: Targets whose failure could not be written at its time.
UPDATE bulk_collection_results SET status = 'failed', error_message = :error_message, processed_at_utc = :now
WHERE run_id = :run_id AND status = 'pending';

-- leftovers_count: Counts so many of them.
UPDATE bulk_collection_runs SET failed_count = failed_count + :number WHERE run_id = :run_id;

-- summary: How a run went.
SELECT
  r.run_id,
  r.started_at_utc,
  r.completed_at_utc,
  r.status as run_status,
  r.total_targets,
  r.success_count,
  r.failed_count,
  COUNT(CASE WHEN br.status = 'pending' THEN 1 END) as pending_count
FROM bulk_collection_runs r
LEFT JOIN bulk_collection_results br ON r.run_id = br.run_id
WHERE r.run_id = ?
GROUP BY r.run_id;

-- history: The newest runs first.
SELECT
  r.run_id,
  r.started_at_utc,
  r.completed_at_utc,
  r.status as run_status,
  r.total_targets,
  r.success_count,
  r.failed_count,
  r.total_targets - r.success_count - r.failed_count as pending_count
FROM bulk_collection_runs r
ORDER BY r.started_at_utc DESC, r.rowid DESC LIMIT ?;

-- latest: The run that was started last.
SELECT run_id FROM bulk_collection_runs ORDER BY started_at_utc DESC, rowid DESC LIMIT 1;

-- results: The targets of a run with the names of their projects.
SELECT br.project_id, coalesce(p.name, br.project_id) AS project_name, br.branch_name, br.status,
       br.new_commits_count, br.error_message, br.processed_at_utc
FROM bulk_collection_results br LEFT JOIN projects p ON p.project_id = br.project_id
WHERE br.run_id = :run_id AND (:status IS NULL OR br.status = :status)
ORDER BY br.project_id, br.branch_name;

-- forget_runs: Removes ended runs from before a time, and with them their results.
DELETE FROM bulk_collection_runs WHERE status <> 'running' AND completed_at_utc < ?;

-- forget_receipts: Removes receipts from before a time.
DELETE FROM collection_receipts WHERE processed_at_utc < ?;

-- connection_add: A connection, or a new token for one; one that was removed is there again, with its projects.
INSERT INTO connections (kind, address, token_from, created_at_utc) VALUES (:kind, :address, :token_from, :now)
ON CONFLICT (kind, address) DO UPDATE SET token_from = excluded.token_from, removed_at_utc = NULL
RETURNING connection_id, kind, address, token_from, created_at_utc;

-- connections: Every connection.
SELECT connection_id, kind, address, token_from, created_at_utc FROM connections
WHERE removed_at_utc IS NULL ORDER BY connection_id;

-- connection: One connection.
SELECT connection_id, kind, address, token_from, created_at_utc FROM connections
WHERE connection_id = ? AND removed_at_utc IS NULL;

-- connection_remove: Removes a connection; its projects and their commits stay.
UPDATE connections SET removed_at_utc = :now, token_from = 'none' WHERE connection_id = :connection_id;

-- project_add: A project as its source knows it.
INSERT INTO projects (connection_id, source_key, name, default_branch, synced_at_utc)
VALUES (:connection_id, :source_key, :name, :default_branch, :now)
ON CONFLICT (connection_id, source_key) DO UPDATE SET
  name = excluded.name, default_branch = excluded.default_branch, synced_at_utc = excluded.synced_at_utc;

-- branches_of: How many branches of a project are stored: the index is jumped through, a branch at a time.
WITH RECURSIVE stored(name) AS (
  SELECT MIN(c.branch_name) FROM commits c WHERE c.project_id = p.project_id
  UNION ALL
  SELECT (SELECT MIN(c.branch_name) FROM commits c WHERE c.project_id = p.project_id AND c.branch_name > stored.name)
  FROM stored WHERE stored.name IS NOT NULL
) SELECT COUNT(name) FROM stored;

-- projects_of: The projects of a source, or all.
SELECT p.project_id, n.connection_id, p.source_key, p.name, p.default_branch, p.synced_at_utc,
       ({branches_of}) AS collected_branches
FROM projects p LEFT JOIN connections n ON n.connection_id = p.connection_id AND n.removed_at_utc IS NULL
WHERE :connection_id IS NULL OR n.connection_id = :connection_id ORDER BY p.project_id;

-- project: One project.
SELECT p.project_id, n.connection_id, p.source_key, p.name, p.default_branch, p.synced_at_utc,
       ({branches_of}) AS collected_branches
FROM projects p LEFT JOIN connections n ON n.connection_id = p.connection_id AND n.removed_at_utc IS NULL
WHERE p.project_id = ?;

-- branches: What is stored of the branches of a project.
SELECT branch_name, COUNT(*) AS commits, MAX(committed_date_utc) AS last_collect_time,
       (SELECT gone_at_utc FROM gone_branches g WHERE g.project_id = c.project_id AND g.branch_name = c.branch_name)
FROM commits c WHERE project_id = ? GROUP BY branch_name ORDER BY branch_name;

-- branch_count: How many commits are stored for a branch.
SELECT COUNT(*) FROM commits WHERE project_id = ? AND branch_name = ?;

-- branch_remove_counted: Those that no other branch has are not counted any more.
DELETE FROM counted_commits WHERE project_id = :project_id
AND sha IN (SELECT sha FROM commits WHERE project_id = :project_id AND branch_name = :branch_name)
AND sha NOT IN (SELECT sha FROM commits c WHERE c.project_id = :project_id AND c.branch_name <> :branch_name
                AND NOT EXISTS {unreachable});

-- branch_remove_commits: Removes the commits of a branch.
DELETE FROM commits WHERE project_id = :project_id AND branch_name = :branch_name;

-- branch_remove_unreachable: And what it had lost.
DELETE FROM unreachable_commits WHERE project_id = :project_id AND branch_name = :branch_name;

-- branch_remove_head: And forgets how far it was stored.
DELETE FROM branch_heads WHERE project_id = :project_id AND branch_name = :branch_name;

-- activity_remove: Takes the sums of a project away, to be made anew.
DELETE FROM activity WHERE project_id = :project_id;

-- activity_again: Makes the sums of a project anew.
INSERT INTO activity (project_id, month, author_id, is_merge, commits, additions, deletions, missing_stats)
SELECT :project_id, substr(c.committed_date_utc, 1, 7), a.author_id, k.is_merge,
       COUNT(*), SUM(c.additions), SUM(c.deletions), SUM(1 - k.has_stats)
FROM (SELECT sha, author_name, author_email, committed_date_utc, additions, deletions
      FROM commits WHERE project_id = :project_id GROUP BY sha) c
JOIN counted_commits k ON k.project_id = :project_id AND k.sha = c.sha
JOIN authors a ON a.author_key = {author_key_of_commit}
GROUP BY 2, 3, 4;

-- statistics: Sums by month and author.
SELECT s.month, s.author_id, s.commits, s.additions, s.deletions, s.missing_stats
FROM (SELECT month, author_id, SUM(commits) AS commits, SUM(additions) AS additions, SUM(deletions) AS deletions,
             SUM(missing_stats) AS missing_stats
      FROM activity
      WHERE (:project_id IS NULL OR project_id = :project_id)
        AND (:merges OR NOT is_merge)
        AND (:since IS NULL OR month >= :since) AND (:until IS NULL OR month <= :until)
        AND (:authors IS NULL OR author_id IN (SELECT value FROM json_each(:authors)))
      GROUP BY month, author_id) s
JOIN authors a USING (author_id)
ORDER BY s.month, a.author_name, s.author_id;

-- statistics_closely: The same by day or hour, out of the commits themselves.
SELECT substr(c.committed_date_utc, 1, :width) AS period, a.author_id, COUNT(*) AS commits,
       SUM(c.additions) AS additions, SUM(c.deletions) AS deletions, SUM(1 - k.has_stats) AS missing_stats
FROM (SELECT project_id, sha, author_name, author_email, committed_date_utc, additions, deletions
      FROM commits WHERE :project_id IS NULL OR project_id = :project_id GROUP BY project_id, sha) c
JOIN counted_commits k ON k.project_id = c.project_id AND k.sha = c.sha
JOIN authors a ON a.author_key = {author_key_of_commit}
WHERE (:merges OR NOT k.is_merge)
  AND (:since IS NULL OR substr(c.committed_date_utc, 1, 7) >= :since)
  AND (:until IS NULL OR substr(c.committed_date_utc, 1, 7) <= :until)
  AND (:authors IS NULL OR a.author_id IN (SELECT value FROM json_each(:authors)))
GROUP BY 1, 2
ORDER BY 1, a.author_name, 2;

-- statistics_of_branch: The same of one branch.
SELECT substr(c.committed_date_utc, 1, 7) AS month, a.author_id, COUNT(*) AS commits,
       SUM(c.additions) AS additions, SUM(c.deletions) AS deletions, SUM(1 - k.has_stats) AS missing_stats
FROM commits c
JOIN counted_commits k ON k.project_id = c.project_id AND k.sha = c.sha
JOIN authors a ON a.author_key = {author_key_of_commit}
WHERE c.project_id = :project_id AND c.branch_name = :branch_name AND NOT EXISTS {unreachable}
  AND (:merges OR NOT k.is_merge)
  AND (:since IS NULL OR substr(c.committed_date_utc, 1, 7) >= :since)
  AND (:until IS NULL OR substr(c.committed_date_utc, 1, 7) <= :until)
  AND (:authors IS NULL OR a.author_id IN (SELECT value FROM json_each(:authors)))
GROUP BY 1, 2
ORDER BY 1, a.author_name, 2;

-- authors: Everybody who was ever known.
SELECT author_id, author_name FROM authors ORDER BY author_id;

-- authors_of: Everybody who has written something.
SELECT DISTINCT author_id FROM activity WHERE :project_id IS NULL OR project_id = :project_id;

-- counted_projects: The projects that have commits in the sums.
SELECT DISTINCT project_id FROM activity;
