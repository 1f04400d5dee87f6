-- A store of schema 2, as the Tsuzuki of that time left it.
PRAGMA application_id = 1415203633;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body   TEXT NOT NULL
);
INSERT INTO "dead_letters" VALUES(1,'{"run_id":"b5f92fdc-8f05-4543-9457-713fbbd29975","number":2,"flow":"broken","tag":"default","reason":"execution_error","error":"it cannot be done","at":1794813776.0866246}');
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
INSERT INTO "facts" VALUES(1,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813776.004871,"flow":"weights","params":{"count":8}}');
INSERT INTO "facts" VALUES(1,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1794813776.077998,"worker":"old-worker","fingerprint":"GK4ytGGGxSa-GQsr"}');
INSERT INTO "facts" VALUES(1,3,'StepStarted',NULL,NULL,1,'{"kind":"StepStarted","at":1794813776.0859087,"step":"SG8IDEWSV2OOoV-f","name":"weigh","map":true,"total":8}');
INSERT INTO "facts" VALUES(1,4,'ItemDone','SG8IDEWSV2OOoV-f','0',1,'{"kind":"ItemDone","at":1794813776.0870159,"step":"","took":0.00011125500168418512,"result":0}');
INSERT INTO "facts" VALUES(1,5,'ItemDone','SG8IDEWSV2OOoV-f','1',1,'{"kind":"ItemDone","at":1794813776.0870938,"step":"","took":0.00005644300108542666,"result":10}');
INSERT INTO "facts" VALUES(1,6,'ItemDone','SG8IDEWSV2OOoV-f','2',1,'{"kind":"ItemDone","at":1794813776.1033983,"step":"","took":0.00007815199933247641,"result":20}');
INSERT INTO "facts" VALUES(1,7,'ItemFailed','SG8IDEWSV2OOoV-f','3',1,'{"kind":"ItemFailed","at":1794813776.103905,"step":"","took":0.000044359003368299454,"error":{"type":"ValueError","message":"3 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 11, in weigh\n    if n%4==3 and not GO: raise ValueError(f\"{n} is too heavy\")\n                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 3 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,8,'ItemDone','SG8IDEWSV2OOoV-f','4',1,'{"kind":"ItemDone","at":1794813776.1066363,"step":"","took":0.00006113100243965164,"result":40}');
INSERT INTO "facts" VALUES(1,9,'ItemDone','SG8IDEWSV2OOoV-f','5',1,'{"kind":"ItemDone","at":1794813776.1067064,"step":"","took":0.00003653600288089365,"result":50}');
INSERT INTO "facts" VALUES(1,10,'ItemDone','SG8IDEWSV2OOoV-f','6',1,'{"kind":"ItemDone","at":1794813776.1110213,"step":"","took":0.00006307199510047212,"result":60}');
INSERT INTO "facts" VALUES(1,11,'ItemFailed','SG8IDEWSV2OOoV-f','7',1,'{"kind":"ItemFailed","at":1794813776.1115692,"step":"","took":0.00006654100434388965,"error":{"type":"ValueError","message":"7 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 11, in weigh\n    if n%4==3 and not GO: raise ValueError(f\"{n} is too heavy\")\n                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 7 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,12,'RunCompleted',NULL,NULL,1,'{"kind":"RunCompleted","at":1794813776.1214948,"result":180}');
INSERT INTO "facts" VALUES(2,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813776.0176783,"flow":"broken","params":{}}');
INSERT INTO "facts" VALUES(2,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1794813776.077998,"worker":"old-worker","fingerprint":"vv_evo1To2ONvoe9"}');
INSERT INTO "facts" VALUES(2,3,'RunFailed',NULL,NULL,1,'{"kind":"RunFailed","at":1794813776.0866246,"error":{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 18, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"}}');
INSERT INTO "facts" VALUES(3,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813776.0257401,"flow":"kept","params":{"site":"a"}}');
INSERT INTO "facts" VALUES(4,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813776.0303273,"flow":"kept","params":{"site":"b"}}');
INSERT INTO "facts" VALUES(4,2,'CancelAsked',NULL,NULL,1,'{"kind":"CancelAsked","at":1794813776.0454912,"reason":"too dear"}');
INSERT INTO "facts" VALUES(4,3,'RunCancelled',NULL,NULL,1,'{"kind":"RunCancelled","at":1794813776.0454912}');
CREATE TABLE labels (
    label      TEXT    NOT NULL,
    updated_at REAL    NOT NULL,
    run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    PRIMARY KEY (label, updated_at, run)
) WITHOUT ROWID;
INSERT INTO "labels" VALUES('café',1.7948137761293280124e+09,1);
INSERT INTO "labels" VALUES('night',1.7948137761293280124e+09,1);
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
INSERT INTO "logs" VALUES(1,1,'{"at":1794813776.086939,"text":"weighing 0","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"0","position":2}');
INSERT INTO "logs" VALUES(1,2,'{"at":1794813776.0870886,"text":"weighing 1","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"1","position":2}');
INSERT INTO "logs" VALUES(1,3,'{"at":1794813776.1033838,"text":"weighing 2","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"2","position":5}');
INSERT INTO "logs" VALUES(1,4,'{"at":1794813776.103452,"text":"weighing 3","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"3","position":5}');
INSERT INTO "logs" VALUES(1,5,'{"at":1794813776.106623,"text":"weighing 4","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"4","position":7}');
INSERT INTO "logs" VALUES(1,6,'{"at":1794813776.1066978,"text":"weighing 5","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"5","position":7}');
INSERT INTO "logs" VALUES(1,7,'{"at":1794813776.1110084,"text":"weighing 6","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"6","position":9}');
INSERT INTO "logs" VALUES(1,8,'{"at":1794813776.1111047,"text":"weighing 7","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"7","position":9}');
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
INSERT INTO "runs" VALUES(1,'367b4d70-e22e-48a1-a218-829c3ff948d5','weights','2026-11-16T07:22:56+00:00','shBlAkxLYITykohf','default','["night","café"]',3,NULL,NULL,'',0,'',NULL,'COMPLETED',1,NULL,0.0,'2026-11-16T07:22:56+00:00','2026-11-16T07:22:56+00:00',1.7948137761293280124e+09,1.79481377607799792292e+09,12,6,2,0,0,0,'GK4ytGGGxSa-GQsr','',NULL,'','',1,'[]',NULL,'180');
INSERT INTO "runs" VALUES(2,'b5f92fdc-8f05-4543-9457-713fbbd29975','broken','2026-11-16T07:22:56+00:00','CxGihKnaTBWIPHm9','default','[]',0,NULL,NULL,'',0,'',NULL,'FAILED',1,NULL,0.0,'2026-11-16T07:22:56+00:00','2026-11-16T07:22:56+00:00',1.79481377608716702459e+09,1.79481377607799792292e+09,3,0,0,0,0,1,'vv_evo1To2ONvoe9','',NULL,'','',1,'[]','{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 18, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"}',NULL);
INSERT INTO "runs" VALUES(3,'6d4f04f7-af03-422b-995d-a2607e8233bb','kept','2026-11-16T07:22:56+00:00','-Olg2UuvL4L0Ytx8','default','[]',0,'site:a','once','',0,'',NULL,'PENDING',1,NULL,0.0,NULL,NULL,1.79481377602588391302e+09,NULL,1,0,0,0,0,0,'','',NULL,'','',1,'[]',NULL,NULL);
INSERT INTO "runs" VALUES(4,'80c68194-c6b8-4631-9053-d57a1081473f','kept','2026-11-16T07:22:56+00:00','RHfJtwxvBt3cdvi0','default','[]',0,'site:b',NULL,'',0,'',NULL,'CANCELLED',1,NULL,0.0,NULL,'2026-11-16T07:22:56+00:00',1.7948137760456588268e+09,NULL,3,0,0,0,0,0,'','',1.79481377604549121856e+09,'','too dear',1,'[]',NULL,NULL);
CREATE TABLE workers (
    id           TEXT PRIMARY KEY,
    heartbeat_at REAL    NOT NULL,
    beats        INTEGER NOT NULL,
    body         TEXT    NOT NULL
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('old-worker',1.79481377613592267038e+09,2,'{"id":"old-worker","host":"3c8f89a9-cc4e-4485-8291-40bf0d2f55e8/mnt:[4026531832]","presence":"/run/tsuzuki/old-worker-a19b177e.alive","tags":["default"],"flows":["weights","broken"],"heartbeat_at":1794813776.135851,"started_at":1794813776.0608504,"state":"STOPPED_GRACEFUL","instance_id":"08aec3c487434a6d9d560bf1b7c74c2c","last_run_status":"COMPLETED","stopped_at":1794813776.135851,"stop_reason":"stopped in order"}');
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
CREATE TRIGGER runs_purged AFTER DELETE ON runs BEGIN
    DELETE FROM facts WHERE run = old.number;
    DELETE FROM logs WHERE run = old.number;
    DELETE FROM labels WHERE run = old.number;
    DELETE FROM params WHERE run = old.number;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',4);
INSERT INTO "sqlite_sequence" VALUES('dead_letters',1);
COMMIT;
