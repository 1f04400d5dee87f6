-- A connection that is removed stays as a mark, so that its projects are known again when it is registered again.
ALTER TABLE connections ADD COLUMN removed_at_utc TEXT;

-- Commits without figures are few; those of a repository whose history was cut off get theirs later.
CREATE INDEX IF NOT EXISTS idx_counted_without_stats ON counted_commits(project_id, sha) WHERE has_stats = 0;
