-- A connection that is removed stays as a mark, so that its projects are known again when it is registered again.
ALTER TABLE connections ADD COLUMN removed_at_utc TEXT;
