-- Commits that a rewritten branch does not reach any more: they stay stored, and are not counted for it.
CREATE TABLE IF NOT EXISTS unreachable_commits (
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  sha TEXT NOT NULL,
  PRIMARY KEY (project_id, branch_name, sha)
) WITHOUT ROWID;

-- Branches that their source does not have any more: bulk runs leave them out until they are collected again.
CREATE TABLE IF NOT EXISTS gone_branches (
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  gone_at_utc TEXT NOT NULL,
  PRIMARY KEY (project_id, branch_name)
) WITHOUT ROWID;
