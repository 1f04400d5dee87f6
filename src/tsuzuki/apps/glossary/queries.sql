-- projects: All projects, by name.
SELECT id, name, doc_root, llm_provider, llm_model, llm_base_url, created_at, updated_at FROM projects ORDER BY name;

-- project: One project.
SELECT id, name, doc_root, llm_provider, llm_model, llm_base_url, created_at, updated_at FROM projects WHERE id = ?;

-- project_named: One project by its name.
SELECT id, name, doc_root, llm_provider, llm_model, llm_base_url, created_at, updated_at FROM projects WHERE name = ?;

-- project_at: The project of a folder.
SELECT id, name, doc_root, llm_provider, llm_model, llm_base_url, created_at, updated_at
FROM projects WHERE doc_root = ? ORDER BY id LIMIT 1;

-- project_add: A new project.
INSERT INTO projects (name, doc_root, llm_provider, llm_model, llm_base_url, created_at, updated_at)
VALUES (:name, :doc_root, :llm_provider, :llm_model, :llm_base_url, :now, :now);

-- project_change: Changes what a project is called and whom it asks.
UPDATE projects SET name = :name, doc_root = :doc_root, llm_provider = :llm_provider, llm_model = :llm_model,
  llm_base_url = :llm_base_url, updated_at = :now
WHERE id = :id;

-- project_remove: Forgets a project.
DELETE FROM projects WHERE id = ?;

-- counts: How much there is of everything; of terms those that count, as they are listed.
SELECT (SELECT count(*) FROM documents),
  (SELECT count(*) FROM (
    SELECT term_text FROM terms WHERE term_text NOT IN (SELECT term_text FROM excluded_terms)
    UNION SELECT term_text FROM required_terms)),
  (SELECT count(*) FROM provisional), (SELECT count(*) FROM issues), (SELECT count(*) FROM refined);

-- documents: All documents, without their text.
SELECT id, file_name, content_hash, length(content), created_at FROM documents ORDER BY file_name;

-- document_texts: All documents with their text, one after the other.
SELECT file_name, content FROM documents ORDER BY file_name;

-- document: One document.
SELECT id, file_name, content_hash, length(content), created_at, content FROM documents WHERE id = ?;

-- document_named: Whether a document of that name is there.
SELECT id, content_hash FROM documents WHERE file_name = ?;

-- document_add: A new document.
INSERT INTO documents (file_name, content, content_hash, created_at, from_folder) VALUES (?, ?, ?, ?, ?);

-- documents_of_folder: The names of the documents that were read from the project's folder.
SELECT file_name FROM documents WHERE from_folder;

-- document_change: A document that says something else now.
UPDATE documents SET content = ?, content_hash = ? WHERE id = ?;

-- document_remove: Removes a document.
DELETE FROM documents WHERE id = ?;

-- terms: All terms in the order in which they were found.
SELECT id, term_text, category, user_notes, by_person FROM terms ORDER BY id;

-- term: One term.
SELECT id, term_text, category, user_notes, by_person FROM terms WHERE id = ?;

-- term_named: One term by its text.
SELECT id, term_text, category, user_notes, by_person FROM terms WHERE term_text = ?;

-- term_add: A new term; one that is there stays as it is.
INSERT INTO terms (term_text, category, user_notes, by_person) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- term_change: Changes a term; from now on it is a person's.
UPDATE terms SET term_text = :term_text, category = :category, user_notes = :user_notes, by_person = :by_person
WHERE id = :id;

-- term_remove: Removes a term.
DELETE FROM terms WHERE id = ?;

-- terms_clear: Removes what an extraction found; what a person did stays.
DELETE FROM terms WHERE by_person = 0;

-- excluded: Terms that are left out.
SELECT id, term_text, source, created_at FROM excluded_terms ORDER BY id;

-- excluded_named: Whether a term is left out.
SELECT id, term_text, source, created_at FROM excluded_terms WHERE term_text = ?;

-- excluded_add: Leaves a term out.
INSERT INTO excluded_terms (term_text, source, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- excluded_remove: Does not leave it out any more.
DELETE FROM excluded_terms WHERE id = ?;

-- required: Terms that are always there.
SELECT id, term_text, source, created_at FROM required_terms ORDER BY id;

-- required_named: Whether a term is always there.
SELECT id, term_text, source, created_at FROM required_terms WHERE term_text = ?;

-- required_add: Lets a term be always there.
INSERT INTO required_terms (term_text, source, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- required_remove: It need not be there any more.
DELETE FROM required_terms WHERE id = ?;

-- synonyms: All members of all groups.
SELECT g.id, g.primary_term_text, m.id, m.term_text
FROM synonym_groups g JOIN synonym_members m ON m.group_id = g.id ORDER BY g.id, m.id;

-- synonym_group_add: A new group.
INSERT INTO synonym_groups (primary_term_text) VALUES (?);

-- synonym_group_primary: Another member is the primary term.
UPDATE synonym_groups SET primary_term_text = ? WHERE id = ?;

-- synonym_group_remove: Removes a group with its members.
DELETE FROM synonym_groups WHERE id = ?;

-- synonym_member_named: In which group a term is.
SELECT id, group_id FROM synonym_members WHERE term_text = ?;

-- synonym_member: A member of a group.
SELECT term_text FROM synonym_members WHERE id = ? AND group_id = ?;

-- synonym_member_add: A new member.
INSERT INTO synonym_members (group_id, term_text) VALUES (?, ?);

-- synonym_member_remove: Removes a member.
DELETE FROM synonym_members WHERE id = ?;

-- provisional: The provisional glossary.
SELECT id, term_name, definition, confidence, aliases, occurrences, by_person, kept FROM provisional ORDER BY id;

-- provisional_entry: One of its entries.
SELECT id, term_name, definition, confidence, aliases, occurrences, by_person, kept FROM provisional WHERE id = ?;

-- provisional_clear: Takes the old one away.
DELETE FROM provisional;

-- provisional_add: An entry of the new one.
INSERT INTO provisional (term_name, definition, confidence, aliases, occurrences, by_person, kept)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- provisional_change: Another definition, by a person or by a model that a person asked again.
UPDATE provisional SET definition = ?, confidence = ?, by_person = ?, kept = 0 WHERE term_name = ?;

-- provisional_remove: Removes an entry.
DELETE FROM provisional WHERE id = ?;

-- persons: Definitions that people wrote; both glossaries have the same text for a term.
SELECT term_name, definition, confidence FROM provisional WHERE by_person
UNION SELECT term_name, definition, confidence FROM refined WHERE by_person;

-- issues: What the review found; of one type where one is named.
SELECT id, term_name, issue_type, description, should_exclude, exclusion_reason
FROM issues WHERE :issue_type IS NULL OR issue_type = :issue_type ORDER BY id;

-- issue: One of them.
SELECT id, term_name, issue_type, description, should_exclude, exclusion_reason FROM issues WHERE id = ?;

-- issues_clear: Takes the old ones away.
DELETE FROM issues;

-- issue_add: Something the review found.
INSERT INTO issues (term_name, issue_type, description, should_exclude, exclusion_reason) VALUES (?, ?, ?, ?, ?);

-- refined: The refined glossary.
SELECT id, term_name, definition, confidence, aliases, occurrences, by_person, kept FROM refined ORDER BY id;

-- refined_entry: One of its entries.
SELECT id, term_name, definition, confidence, aliases, occurrences, by_person, kept FROM refined WHERE id = ?;

-- refined_clear: Takes the old one away.
DELETE FROM refined;

-- refined_add: An entry of the new one.
INSERT INTO refined (term_name, definition, confidence, aliases, occurrences, by_person, kept)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- refined_change: Another definition, by a person.
UPDATE refined SET definition = ?, confidence = ?, by_person = ?, kept = 0 WHERE term_name = ?;

-- refined_release: The next run may write this definition again.
UPDATE refined SET by_person = 0 WHERE term_name = ?;

-- refined_remove: Removes an entry.
DELETE FROM refined WHERE id = ?;

-- run_columns: What a run is.
id, scope, status, started_at, finished_at, triggered_by, error_message, progress_current, progress_total,
  current_step, created_at;

-- run_add: A new run, which waits.
INSERT INTO runs (scope, status, triggered_by, created_at) VALUES (?, 'pending', ?, ?);

-- run: One run.
SELECT {run_columns} FROM runs WHERE id = ?;

-- active_run: The run that waits or runs, the newest first.
SELECT {run_columns} FROM runs WHERE status IN ('pending', 'running') ORDER BY created_at DESC, id DESC LIMIT 1;

-- current_run: The run that waits or runs; where there is none, the newest.
SELECT {run_columns} FROM runs ORDER BY status IN ('pending', 'running') DESC, created_at DESC, id DESC LIMIT 1;

-- runs: All runs, the newest first.
SELECT {run_columns} FROM runs ORDER BY created_at DESC, id DESC;

-- run_status: Sets a status; times are changed where they are given, an error goes when a run goes on; what ran since nobody knows when had begun by its end.
UPDATE runs SET status = :status,
  started_at = coalesce(:started_at, started_at, CASE WHEN status <> 'pending' THEN :completed_at END),
  finished_at = coalesce(:finished_at, finished_at),
  error_message = CASE WHEN :goes_on THEN NULL ELSE coalesce(:error_message, error_message) END
WHERE id = :id;

-- run_end_active: Ends a run that waits or runs; what only waits cannot be completed.
UPDATE runs SET status = :status, finished_at = :finished_at, started_at = coalesce(started_at, :completed_at),
  error_message = coalesce(:error_message, error_message)
WHERE id = :id AND (status = 'running' OR (status = 'pending' AND :status <> 'completed'));

-- run_end_running: Ends a run that runs.
UPDATE runs SET status = :status, finished_at = :finished_at, started_at = coalesce(started_at, :completed_at)
WHERE id = :id AND status = 'running';

-- run_begin: Lets a run be running; one that goes on loses its end.
UPDATE runs SET status = 'running', started_at = coalesce(started_at, :started_at), finished_at = NULL,
  error_message = NULL
WHERE id = :id AND status <> 'completed';

-- run_progress: How far a run is.
UPDATE runs SET progress_current = ?, progress_total = ?, current_step = ? WHERE id = ?;

-- run_origin_add: Which run of the engine a run stands for.
INSERT INTO run_origins
  (run_id, engine_run, llm_provider, llm_model, llm_base_url, llm_debug, review_batch_size, documents)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- run_of_engine: Which run stands for one of the engine.
SELECT run_id FROM run_origins WHERE engine_run = ?;

-- run_origin: What a run was started with.
SELECT run_id, engine_run, llm_provider, llm_model, llm_base_url, llm_debug, review_batch_size, documents
FROM run_origins WHERE run_id = ?;

-- runs_forget: A copy of a project has done nothing yet.
DELETE FROM runs;

-- run_save_add: A run has saved the results of a step.
INSERT INTO run_saves (run_id, step) VALUES (?, ?) ON CONFLICT DO NOTHING;
