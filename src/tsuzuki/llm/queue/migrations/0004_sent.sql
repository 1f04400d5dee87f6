-- When a batch was last sent, where it may have been taken: one that was never sent need not be looked for.
ALTER TABLE llm_submissions RENAME COLUMN searched_at TO sent_at;
UPDATE llm_submissions SET sent_at = coalesce(sent_at, intended_at);

-- Which batch one follows; and how many jobs go into one that follows, where the provider refused a larger one.
ALTER TABLE llm_submissions ADD COLUMN follows TEXT NOT NULL DEFAULT '';
ALTER TABLE llm_submissions ADD COLUMN most INTEGER;
