-- Who claimed a run last, also when it has ended: lists tell it without a look into the journal.
ALTER TABLE runs ADD COLUMN worker TEXT NOT NULL DEFAULT '';
UPDATE runs SET worker = coalesce((
    SELECT json_extract(body, '$.worker') FROM facts
    WHERE facts.run = runs.number AND facts.kind = 'Claimed'
    ORDER BY facts.position DESC LIMIT 1
), '');
