-- Who claimed a run last, also when it has ended: lists tell it without a look into the journal.
ALTER TABLE runs ADD COLUMN worker TEXT NOT NULL DEFAULT '';
UPDATE runs SET worker = holder WHERE holder IS NOT NULL;
