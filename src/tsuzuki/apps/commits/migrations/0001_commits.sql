-- Where commits come from, the commits themselves, and the head up to which a branch is stored.
CREATE TABLE IF NOT EXISTS connections (
  connection_id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK(kind IN ('git', 'gitlab')),
  address TEXT NOT NULL,
  token_from TEXT NOT NULL DEFAULT 'none' CHECK(token_from IN ('none', 'file', 'environment')),
  created_at_utc TEXT NOT NULL,
  UNIQUE (kind, address)
);

CREATE TABLE IF NOT EXISTS projects (
  project_id INTEGER PRIMARY KEY AUTOINCREMENT,
  connection_id INTEGER REFERENCES connections(connection_id) ON DELETE SET NULL,
  source_key TEXT NOT NULL,
  name TEXT NOT NULL,
  default_branch TEXT NOT NULL DEFAULT '',
  synced_at_utc TEXT NOT NULL,
  UNIQUE (connection_id, source_key)
);

CREATE TABLE IF NOT EXISTS commits (
  project_id INTEGER NOT NULL REFERENCES projects(project_id),
  branch_name TEXT NOT NULL,
  sha TEXT NOT NULL,
  author_name TEXT NOT NULL,
  author_email TEXT NOT NULL,
  committed_date_utc TEXT NOT NULL,
  additions INTEGER NOT NULL,
  deletions INTEGER NOT NULL,
  UNIQUE (project_id, branch_name, sha)
);

CREATE INDEX IF NOT EXISTS idx_commits_checkpoint
  ON commits(project_id, branch_name, committed_date_utc);

CREATE TABLE IF NOT EXISTS branch_heads (
  project_id INTEGER NOT NULL REFERENCES projects(project_id),
  branch_name TEXT NOT NULL,
  head_sha TEXT NOT NULL,
  PRIMARY KEY (project_id, branch_name)
);

-- What single collections have settled: a task that is repeated after a crash finds its own.
CREATE TABLE IF NOT EXISTS collection_receipts (
  run_id TEXT NOT NULL,
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  new_commits_count INTEGER NOT NULL,
  processed_at_utc TEXT NOT NULL,
  PRIMARY KEY (run_id, project_id, branch_name)
);
