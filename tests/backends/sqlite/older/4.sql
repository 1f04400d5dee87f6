-- A store of schema 4, as the Tsuzuki of that time left it.
PRAGMA application_id = 1415203633;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body   TEXT NOT NULL
);
INSERT INTO "dead_letters" VALUES(1,'{"id":"","run_id":"76ba1c53-e7e3-4ab5-815a-e42733bbe5d0","number":2,"flow":"broken","tag":"default","reason":"execution_error","error":"it cannot be done","at":1794813780.0224712,"tags":[],"worker":"old-worker","attempt":1,"tenant":""}');
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
INSERT INTO "facts" VALUES(1,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813779.8945496,"flow":"weights","params":{"count":8}}');
INSERT INTO "facts" VALUES(1,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1794813780.0054746,"worker":"old-worker","fingerprint":"GK4ytGGGxSa-GQsr"}');
INSERT INTO "facts" VALUES(1,3,'StepStarted',NULL,NULL,1,'{"kind":"StepStarted","at":1794813780.021716,"step":"SG8IDEWSV2OOoV-f","name":"weigh","map":true,"total":8}');
INSERT INTO "facts" VALUES(1,4,'ItemDone','SG8IDEWSV2OOoV-f','0',1,'{"kind":"ItemDone","at":1794813780.025621,"step":"","took":0.0001490600043325685,"result":0}');
INSERT INTO "facts" VALUES(1,5,'ItemDone','SG8IDEWSV2OOoV-f','1',1,'{"kind":"ItemDone","at":1794813780.0257218,"step":"","took":0.00007228300091810524,"result":10}');
INSERT INTO "facts" VALUES(1,6,'ItemDone','SG8IDEWSV2OOoV-f','2',1,'{"kind":"ItemDone","at":1794813780.0414479,"step":"","took":0.00012054100079694763,"result":20}');
INSERT INTO "facts" VALUES(1,7,'ItemFailed','SG8IDEWSV2OOoV-f','3',1,'{"kind":"ItemFailed","at":1794813780.0418425,"step":"","took":0.00004219100082991645,"error":{"type":"ValueError","message":"3 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 11, in weigh\n    if n%4==3 and not GO: raise ValueError(f\"{n} is too heavy\")\n                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 3 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,8,'ItemDone','SG8IDEWSV2OOoV-f','4',1,'{"kind":"ItemDone","at":1794813780.065382,"step":"","took":0.00008462899859296158,"result":40}');
INSERT INTO "facts" VALUES(1,9,'ItemDone','SG8IDEWSV2OOoV-f','5',1,'{"kind":"ItemDone","at":1794813780.0654435,"step":"","took":0.000023340006009675562,"result":50}');
INSERT INTO "facts" VALUES(1,10,'ItemDone','SG8IDEWSV2OOoV-f','6',1,'{"kind":"ItemDone","at":1794813780.0724056,"step":"","took":0.00009190000128000975,"result":60}');
INSERT INTO "facts" VALUES(1,11,'ItemFailed','SG8IDEWSV2OOoV-f','7',1,'{"kind":"ItemFailed","at":1794813780.072851,"step":"","took":0.00004697099939221516,"error":{"type":"ValueError","message":"7 is too heavy","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 11, in weigh\n    if n%4==3 and not GO: raise ValueError(f\"{n} is too heavy\")\n                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: 7 is too heavy\n"}}');
INSERT INTO "facts" VALUES(1,12,'RunCompleted',NULL,NULL,1,'{"kind":"RunCompleted","at":1794813780.077634,"result":180}');
INSERT INTO "facts" VALUES(2,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813779.9099035,"flow":"broken","params":{}}');
INSERT INTO "facts" VALUES(2,2,'Claimed',NULL,NULL,1,'{"kind":"Claimed","at":1794813780.0054746,"worker":"old-worker","fingerprint":"vv_evo1To2ONvoe9"}');
INSERT INTO "facts" VALUES(2,3,'RunFailed',NULL,NULL,1,'{"kind":"RunFailed","at":1794813780.0224712,"error":{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 18, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"},"worker":"old-worker"}');
INSERT INTO "facts" VALUES(3,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813779.9153223,"flow":"kept","params":{"site":"a"}}');
INSERT INTO "facts" VALUES(4,1,'Submitted',NULL,NULL,1,'{"kind":"Submitted","at":1794813779.9227452,"flow":"kept","params":{"site":"b"}}');
INSERT INTO "facts" VALUES(4,2,'CancelAsked',NULL,NULL,1,'{"kind":"CancelAsked","at":1794813779.9286504,"reason":"too dear"}');
INSERT INTO "facts" VALUES(4,3,'RunCancelled',NULL,NULL,1,'{"kind":"RunCancelled","at":1794813779.9286504}');
CREATE TABLE labels (
    label      TEXT    NOT NULL,
    updated_at REAL    NOT NULL,
    run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    PRIMARY KEY (label, updated_at, run)
) WITHOUT ROWID;
INSERT INTO "labels" VALUES('café',1.79481378008542895316e+09,1);
INSERT INTO "labels" VALUES('night',1.79481378008542895316e+09,1);
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
INSERT INTO "logs" VALUES(1,1,'{"at":1794813780.025528,"text":"weighing 0","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"0","position":2}');
INSERT INTO "logs" VALUES(1,2,'{"at":1794813780.0257163,"text":"weighing 1","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"1","position":2}');
INSERT INTO "logs" VALUES(1,3,'{"at":1794813780.0414279,"text":"weighing 2","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"2","position":5}');
INSERT INTO "logs" VALUES(1,4,'{"at":1794813780.0415027,"text":"weighing 3","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"3","position":5}');
INSERT INTO "logs" VALUES(1,5,'{"at":1794813780.0653648,"text":"weighing 4","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"4","position":7}');
INSERT INTO "logs" VALUES(1,6,'{"at":1794813780.065439,"text":"weighing 5","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"5","position":7}');
INSERT INTO "logs" VALUES(1,7,'{"at":1794813780.0723872,"text":"weighing 6","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"6","position":9}');
INSERT INTO "logs" VALUES(1,8,'{"at":1794813780.0724695,"text":"weighing 7","step":"SG8IDEWSV2OOoV-f","name":"weigh","key":"7","position":9}');
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
INSERT INTO "records" VALUES('flow','weights',X'7B226E616D65223A2277656967687473222C22646F63223A22222C22706172616D73223A7B226164646974696F6E616C50726F70657274696573223A66616C73652C2270726F70657274696573223A7B22636F756E74223A7B227469746C65223A22436F756E74222C2274797065223A22696E7465676572227D7D2C227265717569726564223A5B22636F756E74225D2C227469746C65223A227765696768747320706172616D73222C2274797065223A226F626A656374227D2C22746167223A2264656661756C74222C226B6579223A6E756C6C2C2266696E6765727072696E74223A22474B3479744747477853612D47517372222C226D6F64756C65223A225F5F6D61696E5F5F227D');
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
, workflow TEXT NOT NULL DEFAULT '', workflow_bytes INTEGER NOT NULL DEFAULT 0, api_key TEXT NOT NULL DEFAULT '', shelf INTEGER NOT NULL DEFAULT 0);
INSERT INTO "runs" VALUES(1,'e5e72071-11d3-475a-b547-46701ebbb788','weights','2026-11-16T07:22:59+00:00','shBlAkxLYITykohf','default','["night","café"]',3,NULL,NULL,'',0,'',NULL,'COMPLETED',1,NULL,0.0,'2026-11-16T07:23:00+00:00','2026-11-16T07:23:00+00:00',1.79481378008542895316e+09,1.79481378000547456743e+09,12,6,2,0,0,0,'GK4ytGGGxSa-GQsr','',NULL,'','',1,'[]',NULL,'180','',0,'',1);
INSERT INTO "runs" VALUES(2,'76ba1c53-e7e3-4ab5-815a-e42733bbe5d0','broken','2026-11-16T07:22:59+00:00','CxGihKnaTBWIPHm9','default','[]',0,NULL,NULL,'',0,'',NULL,'FAILED',1,NULL,0.0,'2026-11-16T07:23:00+00:00','2026-11-16T07:23:00+00:00',1.79481378002578377721e+09,1.79481378000547456743e+09,3,0,0,0,0,1,'vv_evo1To2ONvoe9','',NULL,'','',1,'[]','{"type":"RuntimeError","message":"it cannot be done","traceback":"Traceback (most recent call last):\n  File \"flows.py\", line 18, in broken\n    async def broken() -> None: raise RuntimeError(\"it cannot be done\")\n                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: it cannot be done\n"}',NULL,'',0,'',2);
INSERT INTO "runs" VALUES(3,'f58cb9ed-8264-4ba2-83f3-875837a84c71','kept','2026-11-16T07:22:59+00:00','-Olg2UuvL4L0Ytx8','default','[]',0,'site:a','once','',0,'',NULL,'PENDING',1,NULL,0.0,NULL,NULL,1.79481377991545796397e+09,NULL,1,0,0,0,0,0,'','',NULL,'','',1,'[]',NULL,NULL,'',0,'',3);
INSERT INTO "runs" VALUES(4,'72287e4b-4d92-4dae-82ca-fdee7e85bed8','kept','2026-11-16T07:22:59+00:00','RHfJtwxvBt3cdvi0','default','[]',0,'site:b',NULL,'',0,'',NULL,'CANCELLED',1,NULL,0.0,NULL,'2026-11-16T07:22:59+00:00',1.79481377993320059772e+09,NULL,3,0,0,0,0,0,'','',1.79481377992865037923e+09,'','too dear',1,'[]',NULL,NULL,'',0,'',3);
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
INSERT INTO "workers" VALUES('old-worker',1.79481378009783935543e+09,2,'{"id":"old-worker","host":"3c8f89a9-cc4e-4485-8291-40bf0d2f55e8/mnt:[4026531832]","presence":"/run/tsuzuki/old-worker-c7757912.alive","tags":["default"],"flows":["weights","broken"],"heartbeat_at":1794813780.0977325,"started_at":1794813779.9704356,"state":"STOPPED_GRACEFUL","instance_id":"764009fdb690451f9a9e5dbd55f08669","last_run_id":"e5e72071-11d3-475a-b547-46701ebbb788","last_run_status":"COMPLETED","last_run_started_at":1794813780.0,"last_run_finished_at":1794813780.0,"stopped_at":1794813780.0977325,"stop_reason":"stopped in order"}');
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',4);
INSERT INTO "sqlite_sequence" VALUES('dead_letters',1);
COMMIT;
