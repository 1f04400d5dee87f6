-- Bulk collections: the tables of the requirement, and what the database refuses.
CREATE TABLE IF NOT EXISTS bulk_collection_runs (
  run_id TEXT PRIMARY KEY,
  started_at_utc TEXT NOT NULL,
  completed_at_utc TEXT,
  status TEXT NOT NULL CHECK(status IN ('running', 'completed', 'cancelled')),
  total_targets INTEGER NOT NULL,
  completed_count INTEGER NOT NULL DEFAULT 0,
  failed_count INTEGER NOT NULL DEFAULT 0,
  success_count INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS bulk_collection_results (
  run_id TEXT NOT NULL,
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('pending', 'success', 'failed')),
  new_commits_count INTEGER,
  error_message TEXT,
  processed_at_utc TEXT,
  PRIMARY KEY (run_id, project_id, branch_name),
  FOREIGN KEY (run_id) REFERENCES bulk_collection_runs(run_id) ON DELETE CASCADE
);

CREATE INDEX IF NOT EXISTS idx_bulk_results_run_status
  ON bulk_collection_results(run_id, status);

CREATE INDEX IF NOT EXISTS idx_bulk_results_target_status
  ON bulk_collection_results(project_id, branch_name, status);

CREATE INDEX IF NOT EXISTS idx_bulk_runs_status_started
  ON bulk_collection_runs(status, started_at_utc);

-- A crash of an earlier version may have left several; the newest may go on.
UPDATE bulk_collection_runs SET status = 'cancelled', completed_at_utc = started_at_utc
WHERE status = 'running' AND rowid < (SELECT MAX(rowid) FROM bulk_collection_runs WHERE status = 'running');

CREATE UNIQUE INDEX IF NOT EXISTS one_bulk_collection_runs
  ON bulk_collection_runs(status) WHERE status = 'running';

CREATE TRIGGER IF NOT EXISTS bulk_runs_begin BEFORE INSERT ON bulk_collection_runs
WHEN (NEW.status = 'running') <> (NEW.completed_at_utc IS NULL)
  OR NEW.completed_count + NEW.failed_count > NEW.total_targets OR NEW.success_count > NEW.total_targets
BEGIN SELECT RAISE(ABORT, 'bulk_collection_runs: that combination is not allowed'); END;

CREATE TRIGGER IF NOT EXISTS bulk_runs_move BEFORE UPDATE ON bulk_collection_runs
WHEN (NEW.status = 'running') <> (NEW.completed_at_utc IS NULL)
  OR NEW.completed_count + NEW.failed_count > NEW.total_targets OR NEW.success_count > NEW.total_targets
  OR (NEW.status <> OLD.status AND OLD.status || '>' || NEW.status NOT IN
      ('running>completed', 'running>cancelled', 'cancelled>running'))
BEGIN SELECT RAISE(ABORT, 'bulk_collection_runs: that move is not allowed'); END;

CREATE TRIGGER IF NOT EXISTS bulk_results_begin BEFORE INSERT ON bulk_collection_results
WHEN (NEW.status = 'pending'
      AND coalesce(NEW.new_commits_count, NEW.error_message, NEW.processed_at_utc) IS NOT NULL)
  OR (NEW.status = 'success' AND NEW.new_commits_count IS NULL)
  OR (NEW.status = 'failed' AND coalesce(NEW.error_message, '') = '')
BEGIN SELECT RAISE(ABORT, 'bulk_collection_results: that combination is not allowed'); END;

CREATE TRIGGER IF NOT EXISTS bulk_results_move BEFORE UPDATE ON bulk_collection_results
WHEN (NEW.status <> OLD.status AND OLD.status <> 'pending')
  OR (NEW.status = 'success' AND NEW.new_commits_count IS NULL)
  OR (NEW.status = 'failed' AND coalesce(NEW.error_message, '') = '')
BEGIN SELECT RAISE(ABORT, 'bulk_collection_results: that move is not allowed'); END;
