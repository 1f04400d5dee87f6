CREATE TABLE answers (
    key        TEXT PRIMARY KEY,
    reply      BLOB NOT NULL,
    bytes      INTEGER NOT NULL,
    created_at REAL NOT NULL,
    used_at    REAL NOT NULL,
    hits       INTEGER NOT NULL
);
CREATE INDEX answers_used ON answers (used_at);
CREATE INDEX answers_created ON answers (created_at);
