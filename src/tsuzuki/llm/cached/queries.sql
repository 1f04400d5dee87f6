-- get: an answer that is not too old
SELECT reply FROM answers WHERE key = ? AND created_at >= ?;

-- used: it was given again
UPDATE answers SET used_at = ?, hits = hits + 1 WHERE key = ?;

-- put: an answer is kept
INSERT INTO answers (key, reply, bytes, created_at, used_at, hits) VALUES (?, ?, ?, ?, ?, 0)
ON CONFLICT (key) DO UPDATE SET reply = excluded.reply, bytes = excluded.bytes, created_at = excluded.created_at,
  used_at = excluded.used_at, hits = 0;

-- expire: what is too old goes
DELETE FROM answers WHERE created_at < ?;

-- size: how much there is
SELECT bytes FROM kept;

-- evict: what was used longest ago goes, some at a time
DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY used_at LIMIT 16);

-- stats: how many, how much, how often given again
SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(hits), 0) FROM answers;

-- clear: everything goes
DELETE FROM answers;
