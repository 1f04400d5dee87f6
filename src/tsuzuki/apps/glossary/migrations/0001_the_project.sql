-- What a project is made of: documents, terms, and the three results that follow from them.
CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  file_name TEXT NOT NULL UNIQUE,
  content TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE TABLE terms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  term_text TEXT NOT NULL UNIQUE CHECK (trim(term_text) <> ''),
  category TEXT CHECK (category IN
    ('person_name', 'place_name', 'organization', 'title', 'technical_term', 'common_noun')),
  user_notes TEXT NOT NULL DEFAULT '',
  by_person INTEGER NOT NULL DEFAULT 0 CHECK (by_person IN (0, 1))
);

CREATE TABLE excluded_terms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  term_text TEXT NOT NULL UNIQUE CHECK (trim(term_text) <> ''),
  source TEXT NOT NULL DEFAULT 'manual' CHECK (source IN ('auto', 'manual')),
  created_at TEXT NOT NULL
);

CREATE TABLE required_terms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  term_text TEXT NOT NULL UNIQUE CHECK (trim(term_text) <> ''),
  source TEXT NOT NULL DEFAULT 'manual' CHECK (source IN ('auto', 'manual')),
  created_at TEXT NOT NULL
);

CREATE TABLE synonym_groups (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  primary_term_text TEXT NOT NULL
);

CREATE TABLE synonym_members (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  group_id INTEGER NOT NULL REFERENCES synonym_groups(id) ON DELETE CASCADE,
  term_text TEXT NOT NULL UNIQUE CHECK (trim(term_text) <> '')
);

CREATE INDEX synonym_members_of ON synonym_members(group_id);

CREATE TABLE provisional (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  term_name TEXT NOT NULL UNIQUE,
  definition TEXT NOT NULL,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  aliases TEXT NOT NULL DEFAULT '[]',
  occurrences TEXT NOT NULL DEFAULT '[]'
);

CREATE TABLE issues (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  term_name TEXT NOT NULL,
  issue_type TEXT NOT NULL CHECK (issue_type IN ('unclear', 'contradiction', 'missing_relation', 'unnecessary')),
  description TEXT NOT NULL,
  should_exclude INTEGER NOT NULL DEFAULT 0 CHECK (should_exclude IN (0, 1)),
  exclusion_reason TEXT
);

CREATE TABLE refined (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  term_name TEXT NOT NULL UNIQUE,
  definition TEXT NOT NULL,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  aliases TEXT NOT NULL DEFAULT '[]',
  occurrences TEXT NOT NULL DEFAULT '[]'
);
