-- A store of schema 1, as the Tsuzuki of that time left it.
PRAGMA application_id = 1415203633;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body   TEXT NOT NULL
);
INSERT INTO "dead_letters" VALUES(1,'{"run_id":"506a9751-424f-4240-93b5-fcdfa0dd4f4c","number":2,"flow":"broken","tag":"default","reason":"execution_error","error":"it cannot be done","at":1794813774.1633372}');
CREATE TABLE facts (
    run      INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    step     TEXT,
    key      TEXT,
    attempt  INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
INSERT INTO "facts" VALUES(1,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813774.0044794,"flow":"weights","params":{"count":8}}');
INSERT INTO "facts" VALUES(1,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1794813774.141214,"worker":"old-worker","fingerprint":"GK4ytGGGxSa-GQsr"}');
INSERT INTO "facts" VALUES(1,3,'StepStarted',NULL,NULL,1,'{"kind":"StepStarted","at":1794813774.1621754,"step":"SG8IDEWSV2OOoV-f","name":"weigh","map":true,"total":8}');
INSERT INTO "facts" VALUES(1,4,'ItemDone','SG8IDEWSV2OOoV-f','0',1,'{"kind":"ItemDone","at":1794813774.1625538,"step":"","took":0.00024117899738484994,"result":0}');
INSERT INTO "facts" VALUES(1,5,'ItemDone','SG8IDEWSV2OOoV-f','1',1,'{"kind":"ItemDone","at":1794813774.1626487,"step":"","took":0.00004143299884162843,"result":10}');
INSERT INTO "facts" VALUES(1,6,'ItemDone','SG8IDEWSV2OOoV-f','2',1,'{"kind":"ItemDone","at":1794813774.1774178,"step":"","took":0.0000686979983584024,"result":20}');
INSERT INTO "facts" VALUES(1,7,'ItemFailed','SG8IDEWSV2OOoV-f','3',1,'{"kind":"ItemFailed","at":1794813774.177976,"step":"","took":0.000046471999667119235,"error":{"type":"ValueError","message":"3 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 11, in weigh\n    if n%4==3 and not GO: raise ValueError(f\"{n} is too heavy\")\n                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 3 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,8,'ItemDone','SG8IDEWSV2OOoV-f','4',1,'{"kind":"ItemDone","at":1794813774.1820307,"step":"","took":0.00006277999636949971,"result":40}');
INSERT INTO "facts" VALUES(1,9,'ItemDone','SG8IDEWSV2OOoV-f','5',1,'{"kind":"ItemDone","at":1794813774.1821096,"step":"","took":0.00003838100383291021,"result":50}');
INSERT INTO "facts" VALUES(1,10,'ItemDone','SG8IDEWSV2OOoV-f','6',1,'{"kind":"ItemDone","at":1794813774.1829371,"step":"","took":0.00005481800326379016,"result":60}');
INSERT INTO "facts" VALUES(1,11,'ItemFailed','SG8IDEWSV2OOoV-f','7',1,'{"kind":"ItemFailed","at":1794813774.1834488,"step":"","took":0.00004297199484426528,"error":{"type":"ValueError","message":"7 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 11, in weigh\n    if n%4==3 and not GO: raise ValueError(f\"{n} is too heavy\")\n                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 7 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,12,'RunCompleted',NULL,NULL,1,'{"kind":"RunCompleted","at":1794813774.2016253,"result":180}');
INSERT INTO "facts" VALUES(2,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813774.0354486,"flow":"broken","params":{}}');
INSERT INTO "facts" VALUES(2,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1794813774.141214,"worker":"old-worker","fingerprint":"vv_evo1To2ONvoe9"}');
INSERT INTO "facts" VALUES(2,3,'RunFailed',NULL,NULL,1,'{"kind":"RunFailed","at":1794813774.1633372,"error":{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 18, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"}}');
INSERT INTO "facts" VALUES(3,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813774.0428467,"flow":"kept","params":{"site":"a"}}');
INSERT INTO "facts" VALUES(4,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813774.0572813,"flow":"kept","params":{"site":"b"}}');
INSERT INTO "facts" VALUES(4,2,'CancelAsked',NULL,NULL,1,'{"kind":"CancelAsked","at":1794813774.069662,"reason":"too dear"}');
INSERT INTO "facts" VALUES(4,3,'RunCancelled',NULL,NULL,1,'{"kind":"RunCancelled","at":1794813774.069662}');
CREATE TABLE labels (
    label      TEXT    NOT NULL,
    updated_at REAL    NOT NULL,
    run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    PRIMARY KEY (label, updated_at, run)
) WITHOUT ROWID;
INSERT INTO "labels" VALUES('café',1.79481377421337604527e+09,1);
INSERT INTO "labels" VALUES('night',1.79481377421337604527e+09,1);
CREATE TABLE limit_places (
    name   TEXT    NOT NULL,
    worker TEXT    NOT NULL,
    taken  INTEGER NOT NULL,
    PRIMARY KEY (name, worker)
) WITHOUT ROWID;
CREATE TABLE limits (
    name     TEXT PRIMARY KEY,
    due      REAL NOT NULL,
    asked_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE logs (
    run    INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body   TEXT    NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
INSERT INTO "logs" VALUES(1,1,'{"at":1794813774.1624355,"text":"weighing 0","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"0","position":2}');
INSERT INTO "logs" VALUES(1,2,'{"at":1794813774.16264,"text":"weighing 1","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"1","position":2}');
INSERT INTO "logs" VALUES(1,3,'{"at":1794813774.1773999,"text":"weighing 2","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"2","position":5}');
INSERT INTO "logs" VALUES(1,4,'{"at":1794813774.1774745,"text":"weighing 3","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"3","position":5}');
INSERT INTO "logs" VALUES(1,5,'{"at":1794813774.1820133,"text":"weighing 4","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"4","position":7}');
INSERT INTO "logs" VALUES(1,6,'{"at":1794813774.1821015,"text":"weighing 5","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"5","position":7}');
INSERT INTO "logs" VALUES(1,7,'{"at":1794813774.182923,"text":"weighing 6","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"6","position":9}');
INSERT INTO "logs" VALUES(1,8,'{"at":1794813774.182995,"text":"weighing 7","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"7","position":9}');
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
INSERT INTO "meta" VALUES('clock',0.0);
CREATE TABLE params (
    run  INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
    body TEXT NOT NULL
);
INSERT INTO "params" VALUES(1,'{"count":8}');
INSERT INTO "params" VALUES(2,'{}');
INSERT INTO "params" VALUES(3,'{"site":"a"}');
INSERT INTO "params" VALUES(4,'{"site":"b"}');
CREATE TABLE runs (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    flow            TEXT    NOT NULL,
    created_at      TEXT    NOT NULL,
    digest          TEXT    NOT NULL,
    tag             TEXT    NOT NULL,
    tags            TEXT    NOT NULL,
    priority        INTEGER NOT NULL,
    key             TEXT,
    idempotency_key TEXT,
    tenant          TEXT    NOT NULL,
    private         INTEGER NOT NULL,
    source          TEXT    NOT NULL,
    continues       TEXT,
    status          TEXT    NOT NULL,
    attempt         INTEGER NOT NULL,
    holder          TEXT,
    not_before      REAL    NOT NULL,
    started_at      TEXT,
    finished_at     TEXT,
    updated_at      REAL    NOT NULL,
    heartbeat_at    REAL,
    position        INTEGER NOT NULL,
    done            INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,
    steps           INTEGER NOT NULL,
    barren          INTEGER NOT NULL,
    fingerprint     TEXT    NOT NULL,
    blob            TEXT    NOT NULL,
    cancel_asked_at REAL,
    cancel_asked_by TEXT    NOT NULL,
    cancel_reason   TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    progress        TEXT    NOT NULL,
    error           TEXT,
    result          TEXT
);
INSERT INTO "runs" VALUES(1,'1d3d6385-86e4-4770-82d8-d763cbb22f8b','weights','2026-11-16T07:22:54+00:00','shBlAkxLYITykohf','default','["night","café"]',3,NULL,NULL,'',0,'',NULL,'COMPLETED',1,NULL,0.0,'2026-11-16T07:22:54+00:00','2026-11-16T07:22:54+00:00',1.79481377421337604527e+09,1.79481377414121389388e+09,12,6,2,0,0,0,'GK4ytGGGxSa-GQsr','',NULL,'','',1,'[]',NULL,'180');
INSERT INTO "runs" VALUES(2,'506a9751-424f-4240-93b5-fcdfa0dd4f4c','broken','2026-11-16T07:22:54+00:00','CxGihKnaTBWIPHm9','default','[]',0,NULL,NULL,'',0,'',NULL,'FAILED',1,NULL,0.0,'2026-11-16T07:22:54+00:00','2026-11-16T07:22:54+00:00',1.79481377416521763797e+09,1.79481377414121389388e+09,3,0,0,0,0,1,'vv_evo1To2ONvoe9','',NULL,'','',1,'[]','{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 18, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"}',NULL);
INSERT INTO "runs" VALUES(3,'c0e6cbea-a428-41fe-9f83-2497696f19f5','kept','2026-11-16T07:22:54+00:00','-Olg2UuvL4L0Ytx8','default','[]',0,'site:a','once','',0,'',NULL,'PENDING',1,NULL,0.0,NULL,NULL,1.7948137740430569649e+09,NULL,1,0,0,0,0,0,'','',NULL,'','',1,'[]',NULL,NULL);
INSERT INTO "runs" VALUES(4,'c832d711-0286-4306-b426-c236b3208ea7','kept','2026-11-16T07:22:54+00:00','RHfJtwxvBt3cdvi0','default','[]',0,'site:b',NULL,'',0,'',NULL,'CANCELLED',1,NULL,0.0,NULL,'2026-11-16T07:22:54+00:00',1.79481377406993484495e+09,NULL,3,0,0,0,0,0,'','',1.79481377406966209411e+09,'','too dear',1,'[]',NULL,NULL);
CREATE TABLE workers (
    id           TEXT PRIMARY KEY,
    heartbeat_at REAL    NOT NULL,
    beats        INTEGER NOT NULL,
    body         TEXT    NOT NULL
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('old-worker',1.79481377422185325626e+09,2,'{"id":"old-worker","host":"3c8f89a9-cc4e-4485-8291-40bf0d2f55e8/mnt:[4026531832]","presence":"/run/tsuzuki/old-worker.alive","tags":["default"],"flows":["weights","broken"],"heartbeat_at":1794813774.2217584,"started_at":1794813774.0927474,"state":"STOPPED_GRACEFUL"}');
CREATE UNIQUE INDEX runs_one_active_per_key ON runs (tenant, key)
    WHERE key IS NOT NULL AND status IN ('PENDING', 'RUNNING', 'CANCELLING');
CREATE UNIQUE INDEX runs_one_per_idempotency_key ON runs (tenant, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_waiting ON runs (tag, priority DESC, number, not_before, version, flow)
    WHERE status = 'PENDING' AND private = 0;
CREATE INDEX runs_delayed ON runs (not_before)
    WHERE status = 'PENDING' AND not_before > 0;
CREATE INDEX runs_by_digest ON runs (digest)
    WHERE digest <> '';
CREATE INDEX runs_held ON runs (holder)
    WHERE holder IS NOT NULL;
CREATE INDEX runs_listed ON runs (status, updated_at, finished_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_flow ON runs (status, flow, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_tag ON runs (status, tag, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_flow_and_tag ON runs (status, flow, tag, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_tenant ON runs (status, tenant, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_private ON runs (status, private, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_key ON runs (status, key, updated_at) WHERE holder IS NULL AND key IS NOT NULL;
CREATE INDEX labels_by_run ON labels (run);
CREATE UNIQUE INDEX facts_one_outcome ON facts (run, step, key, attempt)
    WHERE step IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',4);
INSERT INTO "sqlite_sequence" VALUES('dead_letters',1);
COMMIT;
