-- How much there is, kept beside it: to add up all answers for each new one grows with their number.
CREATE TABLE kept (bytes INTEGER NOT NULL);
INSERT INTO kept (bytes) SELECT coalesce(sum(bytes), 0) FROM answers;
CREATE TRIGGER answer_added AFTER INSERT ON answers BEGIN
    UPDATE kept SET bytes = bytes + new.bytes;
END;
CREATE TRIGGER answer_changed AFTER UPDATE OF bytes ON answers BEGIN
    UPDATE kept SET bytes = bytes + new.bytes - old.bytes;
END;
CREATE TRIGGER answer_gone AFTER DELETE ON answers BEGIN
    UPDATE kept SET bytes = bytes - old.bytes;
END;
