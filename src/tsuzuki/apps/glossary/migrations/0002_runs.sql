-- Runs as the requirement has them, and beside each which run of the engine it stands for and what it was started with.
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL CHECK (scope IN ('full', 'extract', 'generate', 'review', 'refine')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'cancelled', 'failed')),
  started_at TEXT,
  finished_at TEXT,
  triggered_by TEXT NOT NULL DEFAULT 'api',
  error_message TEXT,
  progress_current INTEGER,
  progress_total INTEGER,
  current_step TEXT CHECK (current_step IN ('extract', 'provisional', 'issues', 'refined')),
  created_at TEXT NOT NULL,
  CHECK (status <> 'completed' OR started_at IS NOT NULL)
);

CREATE INDEX IF NOT EXISTS runs_by_status ON runs(status);

CREATE TABLE run_origins (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  engine_run TEXT NOT NULL UNIQUE,
  llm_provider TEXT NOT NULL,
  llm_model TEXT NOT NULL,
  llm_base_url TEXT NOT NULL,
  llm_debug INTEGER NOT NULL DEFAULT 0,
  review_batch_size INTEGER NOT NULL DEFAULT 10 CHECK (review_batch_size >= 1),
  documents TEXT NOT NULL DEFAULT ''
);

CREATE TABLE run_saves (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  step TEXT NOT NULL CHECK (step IN ('extract', 'provisional', 'issues', 'refined')),
  PRIMARY KEY (run_id, step)
) WITHOUT ROWID;
