-- What is asked again: what the tries so far took, which batch the next one follows, and what is said in it.
CREATE TABLE llm_tries (
    job_id     TEXT PRIMARY KEY,
    follows    TEXT,
    reply_json TEXT NOT NULL,
    turns_json TEXT NOT NULL
) WITHOUT ROWID;
