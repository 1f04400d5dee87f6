-- A store of schema 7, made from 6.sql by the migration to 7: no program of that schema wrote it.
PRAGMA application_id = 1415203633;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body   TEXT NOT NULL
);
INSERT INTO "dead_letters" VALUES(1,'{"id":"","run_id":"fa105b62-d02d-4115-b647-10d92cc71390","number":2,"flow":"broken","tag":"default","reason":"execution_error","error":"it cannot be done","at":1795007451.6490643,"tags":[],"worker":"old-worker","attempt":1,"tenant":"","subject":"work.default"}');
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
INSERT INTO "facts" VALUES(1,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1795007451.6291618,"flow":"weights","params":{"count":8}}');
INSERT INTO "facts" VALUES(1,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1795007451.6467583,"worker":"old-worker","fingerprint":"PZe6KX1Usd0jddxk"}');
INSERT INTO "facts" VALUES(1,3,'StepStarted',NULL,NULL,1,'{"kind":"StepStarted","at":1795007451.648412,"step":"SG8IDEWSV2OOoV-f","name":"weigh","map":true,"total":8,"takes":"n"}');
INSERT INTO "facts" VALUES(1,4,'ItemDone','SG8IDEWSV2OOoV-f','0',1,'{"kind":"ItemDone","at":1795007451.6493227,"step":"","took":0.00008990400010588928,"result":0}');
INSERT INTO "facts" VALUES(1,5,'ItemDone','SG8IDEWSV2OOoV-f','1',1,'{"kind":"ItemDone","at":1795007451.6493611,"step":"","took":0.00001405099965268164,"result":10}');
INSERT INTO "facts" VALUES(1,6,'ItemDone','SG8IDEWSV2OOoV-f','2',1,'{"kind":"ItemDone","at":1795007451.651712,"step":"","took":0.00017677400001048227,"result":20}');
INSERT INTO "facts" VALUES(1,7,'ItemFailed','SG8IDEWSV2OOoV-f','3',1,'{"kind":"ItemFailed","at":1795007451.652083,"step":"","took":0.000042564000068523455,"error":{"type":"ValueError","message":"3 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 6, in weigh\n    if n % 4 == 3: raise ValueError(f\"{n} is too heavy\")\n                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 3 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,8,'ItemDone','SG8IDEWSV2OOoV-f','4',1,'{"kind":"ItemDone","at":1795007451.6527119,"step":"","took":0.00002779199985525338,"result":40}');
INSERT INTO "facts" VALUES(1,9,'ItemDone','SG8IDEWSV2OOoV-f','5',1,'{"kind":"ItemDone","at":1795007451.6528568,"step":"","took":0.00003138600004604086,"result":50}');
INSERT INTO "facts" VALUES(1,10,'ItemDone','SG8IDEWSV2OOoV-f','6',1,'{"kind":"ItemDone","at":1795007451.6534514,"step":"","took":0.00008889200034900568,"result":60}');
INSERT INTO "facts" VALUES(1,11,'ItemFailed','SG8IDEWSV2OOoV-f','7',1,'{"kind":"ItemFailed","at":1795007451.6540534,"step":"","took":0.00009512199994787807,"error":{"type":"ValueError","message":"7 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 6, in weigh\n    if n % 4 == 3: raise ValueError(f\"{n} is too heavy\")\n                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 7 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,12,'RunCompleted',NULL,NULL,1,'{"kind":"RunCompleted","at":1795007451.6551733,"result":180}');
INSERT INTO "facts" VALUES(2,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1795007451.6353035,"flow":"broken","params":{}}');
INSERT INTO "facts" VALUES(2,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1795007451.6467583,"worker":"old-worker","fingerprint":"vv_evo1To2ONvoe9"}');
INSERT INTO "facts" VALUES(2,3,'RunFailed',NULL,NULL,1,'{"kind":"RunFailed","at":1795007451.6490643,"error":{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 13, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"},"worker":"old-worker"}');
INSERT INTO "facts" VALUES(3,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1795007451.6374228,"flow":"kept","params":{"site":"a"}}');
INSERT INTO "facts" VALUES(4,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1795007451.6385603,"flow":"kept","params":{"site":"b"}}');
INSERT INTO "facts" VALUES(4,2,'CancelAsked',NULL,NULL,1,'{"kind":"CancelAsked","at":1795007451.6397505,"reason":"too expensive"}');
INSERT INTO "facts" VALUES(4,3,'RunCancelled',NULL,NULL,1,'{"kind":"RunCancelled","at":1795007451.6397505}');
CREATE TABLE labels (
    label      TEXT    NOT NULL,
    updated_at REAL    NOT NULL,
    run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    PRIMARY KEY (label, updated_at, run)
) WITHOUT ROWID;
INSERT INTO "labels" VALUES('café',1.79500745165586662291e+09,1);
INSERT INTO "labels" VALUES('night',1.79500745165586662291e+09,1);
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
INSERT INTO "logs" VALUES(1,1,'{"at":1795007451.6492574,"text":"weighing 0","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"0","position":2}');
INSERT INTO "logs" VALUES(1,2,'{"at":1795007451.6493568,"text":"weighing 1","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"1","position":2}');
INSERT INTO "logs" VALUES(1,3,'{"at":1795007451.6516213,"text":"weighing 2","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"2","position":5}');
INSERT INTO "logs" VALUES(1,4,'{"at":1795007451.651766,"text":"weighing 3","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"3","position":5}');
INSERT INTO "logs" VALUES(1,5,'{"at":1795007451.6527011,"text":"weighing 4","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"4","position":7}');
INSERT INTO "logs" VALUES(1,6,'{"at":1795007451.65285,"text":"weighing 5","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"5","position":7}');
INSERT INTO "logs" VALUES(1,7,'{"at":1795007451.6533744,"text":"weighing 6","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"6","position":9}');
INSERT INTO "logs" VALUES(1,8,'{"at":1795007451.6535585,"text":"weighing 7","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"7","position":9}');
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
CREATE TABLE records (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO "records" VALUES('flow','broken',X'7B226E616D65223A2262726F6B656E222C22646F63223A22222C22706172616D73223A7B226164646974696F6E616C50726F70657274696573223A66616C73652C2270726F70657274696573223A7B7D2C227469746C65223A2262726F6B656E20706172616D73222C2274797065223A226F626A656374227D2C22746167223A2264656661756C74222C226B6579223A6E756C6C2C2266696E6765727072696E74223A2276765F65766F31546F324F4E766F6539222C226D6F64756C65223A225F5F6D61696E5F5F227D');
INSERT INTO "records" VALUES('flow','weights',X'7B226E616D65223A2277656967687473222C22646F63223A22222C22706172616D73223A7B226164646974696F6E616C50726F70657274696573223A66616C73652C2270726F70657274696573223A7B22636F756E74223A7B227469746C65223A22436F756E74222C2274797065223A22696E7465676572227D7D2C227265717569726564223A5B22636F756E74225D2C227469746C65223A227765696768747320706172616D73222C2274797065223A226F626A656374227D2C22746167223A2264656661756C74222C226B6579223A6E756C6C2C2266696E6765727072696E74223A22505A65364B5831557364306A6464786B222C226D6F64756C65223A225F5F6D61696E5F5F227D');
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
, workflow TEXT NOT NULL DEFAULT '', workflow_bytes INTEGER NOT NULL DEFAULT 0, api_key TEXT NOT NULL DEFAULT '', shelf INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '', spent TEXT NOT NULL DEFAULT '');
INSERT INTO "runs" VALUES(1,'55358158-261b-4c63-ac22-c70ecd8cf4cd','weights','2026-11-18T13:10:51+00:00','shBlAkxLYITykohf','default','["night","café"]',3,NULL,NULL,'',0,'',NULL,'COMPLETED',1,NULL,0.0,'2026-11-18T13:10:51+00:00','2026-11-18T13:10:51+00:00',1.79500745165586662291e+09,1.79500745164675831796e+09,12,6,2,0,0,0,'PZe6KX1Usd0jddxk','',NULL,'','',1,'[]',NULL,'180','',0,'',1,'old-worker','');
INSERT INTO "runs" VALUES(2,'fa105b62-d02d-4115-b647-10d92cc71390','broken','2026-11-18T13:10:51+00:00','CxGihKnaTBWIPHm9','default','[]',0,NULL,NULL,'',0,'',NULL,'FAILED',1,NULL,0.0,'2026-11-18T13:10:51+00:00','2026-11-18T13:10:51+00:00',1.79500745164938187601e+09,1.79500745164675831796e+09,3,0,0,0,0,1,'vv_evo1To2ONvoe9','',NULL,'','',1,'[]','{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 13, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"}',NULL,'',0,'',2,'old-worker','');
INSERT INTO "runs" VALUES(3,'edeb52f6-db7a-42a1-b697-824112caaa5d','kept','2026-11-18T13:10:51+00:00','-Olg2UuvL4L0Ytx8','default','[]',0,'site:a','once','',0,'',NULL,'PENDING',1,NULL,0.0,NULL,NULL,1.79500745163768291468e+09,NULL,1,0,0,0,0,0,'','',NULL,'','',1,'[]',NULL,NULL,'',0,'',3,'','');
INSERT INTO "runs" VALUES(4,'227a6196-1a36-4e46-a06a-85ccef3ca992','kept','2026-11-18T13:10:51+00:00','RHfJtwxvBt3cdvi0','default','[]',0,'site:b',NULL,'',0,'',NULL,'CANCELLED',1,NULL,0.0,NULL,'2026-11-18T13:10:51+00:00',1.79500745163982748991e+09,NULL,3,0,0,0,0,0,'','',1.79500745163975048064e+09,'','too expensive',1,'[]',NULL,NULL,'',0,'',3,'','');
CREATE TABLE shelves (
    number  INTEGER PRIMARY KEY,
    flow    TEXT    NOT NULL,
    tag     TEXT    NOT NULL,
    tenant  TEXT    NOT NULL,
    private INTEGER NOT NULL
);
INSERT INTO "shelves" VALUES(1,'weights','default','',0);
INSERT INTO "shelves" VALUES(2,'broken','default','',0);
INSERT INTO "shelves" VALUES(3,'kept','default','',0);
CREATE TABLE workers (
    id           TEXT PRIMARY KEY,
    heartbeat_at REAL    NOT NULL,
    beats        INTEGER NOT NULL,
    body         TEXT    NOT NULL
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('old-worker',1.79500745165743541718e+09,2,'{"id":"old-worker","host":"3c8f89a9-cc4e-4485-8291-40bf0d2f55e8/mnt:[4026531832]","presence":"/run/tsuzuki/old-worker-15ea52a1.alive","tags":["default"],"flows":["weights","broken"],"heartbeat_at":1795007451.6573658,"started_at":1795007451.6452146,"state":"STOPPED_GRACEFUL","instance_id":"9a747bf126ea427cae6750b324eca7d5","last_run_id":"55358158-261b-4c63-ac22-c70ecd8cf4cd","last_run_status":"COMPLETED","last_run_started_at":1795007451.0,"last_run_finished_at":1795007451.0,"stopped_at":1795007451.6573658,"stop_reason":"stopped in order","marks":["9774eb01e8a3","2a627a8d8368"],"version":"0.1.0","tallies":{"claims":2,"runs":[[1,1,0,0,0,0,0,0,0,0,0,0,0],0.01156873900026767],"steps":[[8,0,0,0,0,0,0,0,0,0,0,0,0],0.0005664850000357546],"writes":[[16,0,0,0,0,0,0,0,0,0],16.0]}}');
CREATE UNIQUE INDEX runs_one_active_per_key ON runs (tenant, key)
    WHERE key IS NOT NULL AND status IN ('PENDING', 'RUNNING', 'CANCELLING');
CREATE UNIQUE INDEX runs_one_per_idempotency_key ON runs (tenant, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_delayed ON runs (not_before)
    WHERE status = 'PENDING' AND not_before > 0;
CREATE INDEX runs_by_digest ON runs (digest)
    WHERE digest <> '';
CREATE INDEX runs_held ON runs (holder)
    WHERE holder IS NOT NULL;
CREATE INDEX runs_listed ON runs (status, updated_at, finished_at) WHERE holder IS NULL;
CREATE INDEX runs_listed_by_key ON runs (status, key, updated_at) WHERE holder IS NULL AND key IS NOT NULL;
CREATE INDEX labels_by_run ON labels (run);
CREATE UNIQUE INDEX facts_one_outcome ON facts (run, step, key, attempt)
    WHERE step IS NOT NULL;
CREATE TRIGGER runs_purged AFTER DELETE ON runs BEGIN
    DELETE FROM facts WHERE run = old.number;
    DELETE FROM logs WHERE run = old.number;
    DELETE FROM labels WHERE run = old.number;
    DELETE FROM params WHERE run = old.number;
END;
CREATE INDEX runs_by_workflow ON runs (workflow, updated_at)
    WHERE workflow <> '';
CREATE INDEX runs_waiting ON runs (tag, priority DESC, number, not_before, version, flow, workflow)
    WHERE status = 'PENDING' AND private = 0;
CREATE UNIQUE INDEX shelves_by_what_stands_there ON shelves (flow, tag, tenant, private);
CREATE INDEX runs_on_shelves ON runs (shelf, status, updated_at) WHERE holder IS NULL;
CREATE INDEX runs_spent ON runs (updated_at)
    WHERE spent <> '';
CREATE INDEX runs_completed_with_failures ON runs (updated_at)
    WHERE status = 'COMPLETED' AND failed > 0;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',4);
INSERT INTO "sqlite_sequence" VALUES('dead_letters',1);
COMMIT;
