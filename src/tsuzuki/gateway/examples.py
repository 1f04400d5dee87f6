"""Examples of answers, for the OpenAPI document: one run of a crawl, and what there is to see of it."""

from typing import Any, Final

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
    "interrupted": False,
    "worker_lost": False,
}

SNAPSHOT: Final[dict[str, Any]] = SUMMARY | {
    "workflow_yaml_sha256": None,
    "workflow_yaml_bytes": None,
    "cancel_requested_at": None,
    "cancel_requested_by": None,
    "cancel_reason": None,
    "params": {"site": "a", "pages": 500},
    "tasks": {"plan": "SUCCEEDED", "fetch": "RUNNING"},
    "start_time": 1767225600.01,
    "end_time": None,
    "position": 316,
    "key": "crawl:a",
    "priority": 0,
    "continues": None,
    "not_before": None,
    "result": None,
    "result_blob": None,
}

COUNTED: Final[dict[str, Any]] = {
    "runs": {"PENDING": 0, "RUNNING": 1, "CANCELLING": 0, "COMPLETED": 11, "FAILED": 0, "CANCELLED": 0},
    "at_least": False,
}

HISTORY: Final[dict[str, Any]] = {
    "width": 75.0,
    "bars": [
        {
            "start": 1767225600.0,
            "ended": {"COMPLETED": 3, "FAILED": 1, "CANCELLED": 0},
            "took": [12.0, 40.0],
            "waited": [0.0, 1.0],
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
