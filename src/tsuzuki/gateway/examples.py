"""Examples of answers, for the OpenAPI document: one run of a crawl, and what there is to see of it."""

from typing import Any, Final

from tsuzuki.gateway.wheel_models import EVENT, NAME, NO_WHEELS, WHEEL

RUN_ID: Final = "6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e"

SUMMARY: Final[dict[str, Any]] = {
    "run_id": RUN_ID,
    "number": 12,
    "flow_name": "crawl",
    "tag": "default",
    "tags": ["nightly"],
    "tenant_id": None,
    "api_key_id": None,
    "status": "RUNNING",
    "updated_at": 1767225612.25,
    "heartbeat_at": 1767225612.0,
    "error": None,
    "worker_id": "worker-1",
    "created_at": "2026-01-01T00:00:00+00:00",
    "started_at": "2026-01-01T00:00:00+00:00",
    "finished_at": None,
    "counts": {"done": 311, "failed": 2, "skipped": 0, "steps": 1},
    "attempt": 1,
    "progress": [{"step": "fetch", "name": "fetch", "total": 500, "done": 311, "failed": 2, "running": 8, "eta": 4.2}],
    "usage": None,
    "cost": None,
    "waiting_reason": None,
    "waiting_until": None,
    "interrupted": False,
    "worker_lost": False,
}

SNAPSHOT: Final[dict[str, Any]] = SUMMARY | {
    "workflow_yaml_sha256": None,
    "workflow_yaml_bytes": None,
    "cancel_requested_at": None,
    "cancel_requested_by": None,
    "cancel_reason": None,
    "cut": None,
    "params": {"site": "a", "pages": 500},
    "params_truncated": False,
    "tasks": {"plan": "SUCCEEDED", "fetch": "RUNNING"},
    "start_time": 1767225600.01,
    "end_time": None,
    "wheels": {"crawling-1.2.0-py3-none-any.whl": "beb0893ad92381c5f61bf6d0d519210a80d5c2d5062d16320bb7290c1909564a"},
    "position": 316,
    "key": "crawl:a",
    "priority": 0,
    "continues": None,
    "not_before": None,
    "result": None,
    "result_truncated": False,
    "result_blob": None,
}

COUNTED: Final[dict[str, Any]] = {
    "runs": {"PENDING": 0, "RUNNING": 1, "CANCELLING": 0, "COMPLETED": 11, "FAILED": 0, "CANCELLED": 0},
    "at_least": False,
    "more": [],
}

HISTORY: Final[dict[str, Any]] = {
    "width": 75.0,
    "bars": [
        {
            "start": 1767225600.0,
            "ended": {"COMPLETED": 3, "FAILED": 1, "CANCELLED": 0},
            "took": [12.0, 40.0],
            "waited": [0.0, 1.0],
            "queue_age": 1.0,
        }
    ],
    "at_least": False,
}

ITEM: Final[dict[str, Any]] = {
    "position": 41,
    "status": "failed",
    "kind": "ItemFailed",
    "task": "fetch",
    "step": "b1946ac9",
    "key": "https://a.example/17",
    "attempt": 1,
    "tries": 3,
    "took": 1.204,
    "at": "2026-01-01T00:00:07+00:00",
    "ended_at": 1767225607.25,
    "error": "TimeoutError: timed out after 60 s",
    "usage": None,
    "inputs": {"url": "https://a.example/17"},
    "inputs_truncated": False,
    "preview": "",
}

LOG_LINE: Final[dict[str, Any]] = {
    "number": 3,
    "at": 1767225603.5,
    "level": "warning",
    "text": "try 1 of 3 failed (TimeoutError: timed out after 60 s); again in 2.0 s",
    "name": "fetch",
    "key": "https://a.example/17",
    "step": "b1946ac9",
    "logger": "",
    "position": 12,
}

FLOW: Final[dict[str, Any]] = {
    "name": "crawl",
    "doc": "Fetches the pages of a site.",
    "params": {"type": "object", "properties": {"site": {"type": "string"}}, "required": ["site"]},
    "tag": "default",
    "tags": ["default"],
    "workers": ["worker-1"],
}

LETTER: Final[dict[str, Any]] = {
    "id": "7",
    "timestamp": 1767225700.1,
    "reason": "execution_error",
    "error": "plan failed: ValueError: no such site",
    "run_id": RUN_ID,
    "number": 12,
    "flow_name": "crawl",
    "tag": "default",
    "tags": ["nightly"],
    "worker_id": "worker-1",
    "num_delivered": 1,
    "subject": "work.default",
}

ACCEPTED: Final[dict[str, Any]] = {"run_id": RUN_ID, "status": "PENDING", "number": 12}

RECORD: Final[dict[str, Any]] = {
    "state": "SUCCEEDED",
    "started_at": 1767225600.02,
    "ended_at": 1767225600.34,
    "duration_ms": 320.0,
    "error": None,
    "traceback": None,
    "inputs": None,
    "output": ["https://a.example/1", "https://a.example/2"],
    "artifacts": [],
    "done": 1,
    "failed": 0,
    "skipped": 0,
    "total": None,
    "busy_ms": 320.0,
    "strip": None,
}

WORKER: Final[dict[str, Any]] = {
    "worker_id": "worker-1",
    "instance_id": "b1b5f6c2",
    "state": "RUNNING",
    "hidden": False,
    "tags": ["default"],
    "flows": ["crawl"],
    "resolves": False,
    "last_seen_at": 1767225612.0,
    "last_heartbeat_at": 1767225612.0,
    "heartbeat_at": 1767225612.0,
    "started_at": 1767220000.0,
    "current_run_id": RUN_ID,
    "last_run_id": None,
    "last_run_status": None,
    "last_run_started_at": None,
    "last_run_finished_at": None,
    "stopped_at": None,
    "stop_reason": None,
    "updated_at": 1767225612.0,
    "wheel_sync": NO_WHEELS,
}

USED: Final[dict[str, Any]] = {
    "requests": 40,
    "cached": 8,
    "unpriced": 0,
    "uncertain": 0,
    "input_tokens": 18200,
    "output_tokens": 2600,
    "cost": 0.0131,
}
USAGE: Final[dict[str, Any]] = USED | {"models": [{"provider": "openai", "model": "gpt-4o-mini"} | USED]}

PROCESS_ID: Final = "0b9d0f0e-5a0c-4c5f-8f0e-3f1c2a7d9e11"
JOB: Final[dict[str, Any]] = {
    "id": "a3c1d6c4-7f5e-4d0b-9a55-1d2b8c0e6f42",
    "status": "COMPLETED",
    "batch_job_id": "batch_67a1f0",
    "batch_state": None,
    "error_message": None,
    "created_at": "2026-01-01T00:00:00.000000+00:00",
    "updated_at": "2026-01-01T00:04:10.250000+00:00",
}

CURSOR: Final = "eyJ1IjoxNzY3MjI1NjEyLjI1LCJyIjoiNmYxZTBiM2MifQ"
FACT: Final = {"position": 41, "kind": "ItemFailed", "at": 1767225607.25, "step": "b1946ac9", "key": "17", "tries": 3}

WATCH: Final = f"""event: snapshot
data: {{"run_id":"{RUN_ID}","snapshot":{{"status":"RUNNING","tasks":{{"fetch":"RUNNING"}}}},"ts":1767225612.3}}

event: heartbeat
data: {{"run_id":"{RUN_ID}","ts":1767225614.8}}

"""
EVENTS: Final = f"""id: 1
event: fact
data: {{"position":1,"kind":"Submitted","at":1767225600.0,"flow":"crawl","params":{{"site":"a"}}}}

id: 2
event: fact
data: {{"position":2,"kind":"Claimed","at":1767225600.01,"worker":"worker-1"}}

event: end
data: {{"run_id":"{RUN_ID}","status":"COMPLETED","position":2}}

"""
METRICS: Final = """# HELP tsuzuki_runs_total Runs in the store, by status.
# TYPE tsuzuki_runs_total gauge
tsuzuki_runs_total{status="PENDING"} 0.0
tsuzuki_runs_total{status="RUNNING"} 1.0
"""

ANSWERS: Final[dict[str, Any]] = {
    "GET /runs": [SUMMARY],
    "POST /runs/batch": {
        "items": [
            {"run_id": RUN_ID, "number": 12, "status": "PENDING", "error": None, "error_id": None},
            {
                "run_id": None,
                "number": None,
                "status": None,
                "error": "invalid request: runs.1.flow_name: String should have at least 1 character",
                "error_id": "ERR-TSUZUKI-0002",
                "errors": [
                    {
                        "type": "string_too_short",
                        "loc": ["body", "runs", 1, "flow_name"],
                        "msg": "String should have at least 1 character",
                    }
                ],
            },
        ],
        "accepted": 1,
        "refused": 1,
    },
    "GET /runs/{run_id}/tasks": {
        "run_id": RUN_ID,
        "flow_name": "crawl",
        "status": "RUNNING",
        "tasks": {"plan": "SUCCEEDED"},
        "task_records": {"plan": RECORD},
        "task_records_truncated": False,
    },
    "GET /runs/{run_id}/result": {"ok": 498, "failed": 2},
    "GET /runs/{run_id}/watch": WATCH,
    "GET /runs/{run_id}/events": EVENTS,
    "GET /runs/{run_id}/items": {"items": [ITEM], "next_cursor": CURSOR},
    "GET /runs/{run_id}/items/{position}": ITEM
    | {
        "output": None,
        "output_bytes": 4,
        "output_truncated": False,
        "traceback": "Traceback (most recent call last): …",
        "artifacts": [],
    },
    "GET /runs/{run_id}/facts": {"items": [FACT], "next_after": 41},
    "GET /runs/{run_id}/graph": {
        "nodes": [
            {"name": "load", "callable": "lab:load", "needs": [], "stage": 0, "mapped": False},
            {"name": "count", "callable": "lab:count", "needs": ["load"], "stage": 1, "mapped": False},
        ],
        "workflow": "flow:\n  graph: load >> count\ntasks: …\n",
    },
    "GET /runs/{run_id}/logs": {"items": [LOG_LINE], "next_after": 3},
    "GET /workers": [WORKER],
    "GET /flows": [FLOW],
    "GET /dlq": {"items": [LETTER], "next_cursor": None},
    "POST /dlq/{letter_id}/replay": ACCEPTED,
    "GET /overview": {
        "runs": {"PENDING": 0, "RUNNING": 1, "CANCELLING": 0, "COMPLETED": 11, "FAILED": 0, "CANCELLED": 0},
        "at_least": False,
        "workers_alive": 1,
        "dead_letters": 0,
        "queue_age": 0.0,
        "tenant": None,
        "now": 1767225612.5,
    },
    "GET /config": [
        {
            "name": "TSUZUKI_DEFAULT_TAG",
            "value": "gpu",
            "from": ".env",
            "means": "the tag of runs and workers that name none",
            "refusal": None,
        }
    ],
    "GET /wheels": [WHEEL],
    "GET /wheels/history": [EVENT],
    "GET /wheels/{wheel_name}": f"(the bytes of {NAME})",
    "GET /llm/usage": {
        "usage": USAGE,
        "runs": 1,
        "at_least": False,
        "latest": [SUMMARY | {"flow_name": "summaries", "usage": USAGE, "cost": USAGE["cost"]}],
    },
    "GET /llm/jobs": {
        "host": "lab-1",
        "hidden": False,
        "processes": [
            {
                "process_id": PROCESS_ID,
                "pending": 12,
                "in_progress": 4,
                "completed": 84,
                "failed": 0,
                "batch_job_id": "batch_67a1f0",
                "open_batches": ["batch_67a1f0"],
                "unclear_batches": 0,
                "created_at": "2026-01-01T00:00:00.000000+00:00",
                "updated_at": "2026-01-01T00:04:10.250000+00:00",
            }
        ],
    },
    "GET /llm/jobs/{process_id}": {"host": "lab-1", "items": [JOB]},
    "GET /metrics": METRICS,
    "GET /apps": [{"name": "commits", "title": {"en": "Commits", "ja": "コミット"}, "module": "/apps/commits/main.js"}],
}
"""Examples of answers that no single shape has, by their route."""
