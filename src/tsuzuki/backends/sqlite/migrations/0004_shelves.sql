-- Lists by flow, tag, tenant and privacy had an index each, five of them, all rewritten whenever a run was claimed and
-- whenever it ended. Runs that agree in all four now stand on one shelf, and one index by shelf serves any mixture.
CREATE TABLE shelves (
    number  INTEGER PRIMARY KEY,
    flow    TEXT    NOT NULL,
    tag     TEXT    NOT NULL,
    tenant  TEXT    NOT NULL,
    private INTEGER NOT NULL
);
CREATE UNIQUE INDEX shelves_by_what_stands_there ON shelves (flow, tag, tenant, private);

INSERT INTO shelves (flow, tag, tenant, private) SELECT DISTINCT flow, tag, tenant, private FROM runs;

DROP INDEX runs_listed_by_flow;
DROP INDEX runs_listed_by_tag;
DROP INDEX runs_listed_by_flow_and_tag;
DROP INDEX runs_listed_by_tenant;
DROP INDEX runs_listed_by_private;

ALTER TABLE runs ADD COLUMN shelf INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET shelf = (
    SELECT shelves.number FROM shelves
    WHERE (shelves.flow, shelves.tag, shelves.tenant, shelves.private)
        = (runs.flow, runs.tag, runs.tenant, runs.private)
);
CREATE INDEX runs_on_shelves ON runs (shelf, status, updated_at) WHERE holder IS NULL;
