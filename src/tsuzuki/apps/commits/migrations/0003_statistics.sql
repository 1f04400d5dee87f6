-- What statistics are read from: each commit of a project once, in however many branches it is, and sums of them.
CREATE TABLE IF NOT EXISTS authors (
  author_id INTEGER PRIMARY KEY,
  author_key TEXT NOT NULL UNIQUE,
  author_name TEXT NOT NULL,
  named_at_utc TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS counted_commits (
  project_id INTEGER NOT NULL,
  sha TEXT NOT NULL,
  is_merge INTEGER NOT NULL,
  has_stats INTEGER NOT NULL,
  PRIMARY KEY (project_id, sha)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS activity (
  project_id INTEGER NOT NULL,
  month TEXT NOT NULL,
  author_id INTEGER NOT NULL REFERENCES authors(author_id),
  is_merge INTEGER NOT NULL,
  commits INTEGER NOT NULL,
  additions INTEGER NOT NULL,
  deletions INTEGER NOT NULL,
  missing_stats INTEGER NOT NULL,
  PRIMARY KEY (month, author_id, project_id, is_merge)
) WITHOUT ROWID;

-- Commits that an earlier version stored: nothing says which are merges, and their figures are taken as they are.
INSERT INTO authors (author_key, author_name, named_at_utc)
SELECT CASE author_email WHEN '' THEN author_name ELSE lower(author_email) END, author_name, MAX(committed_date_utc)
FROM commits WHERE true GROUP BY 1
ON CONFLICT (author_key) DO NOTHING;

INSERT OR IGNORE INTO counted_commits (project_id, sha, is_merge, has_stats)
SELECT project_id, sha, 0, 1 FROM commits;

INSERT OR IGNORE INTO activity (project_id, month, author_id, is_merge, commits, additions, deletions, missing_stats)
SELECT c.project_id, substr(c.committed_date_utc, 1, 7), a.author_id, 0, COUNT(*), SUM(c.additions), SUM(c.deletions), 0
FROM (SELECT project_id, sha, author_name, author_email, committed_date_utc, additions, deletions
      FROM commits GROUP BY project_id, sha) c
JOIN authors a ON a.author_key = CASE c.author_email WHEN '' THEN c.author_name ELSE lower(c.author_email) END
GROUP BY 1, 2, 3;
