-- make_versions: which migrations a file has seen
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);

-- version: the newest of them
SELECT coalesce(max(version), 0) FROM schema_version;

-- applied: one more
INSERT INTO schema_version (version, applied_at) VALUES (?, ?);
