-- What belongs to a run goes with it. A trigger says so when a run goes; foreign keys would look at every fact that
-- comes (0.8 µs each), and are not enforced.
CREATE TRIGGER runs_purged AFTER DELETE ON runs BEGIN
    DELETE FROM facts WHERE run = old.number;
    DELETE FROM logs WHERE run = old.number;
    DELETE FROM labels WHERE run = old.number;
    DELETE FROM params WHERE run = old.number;
END;
