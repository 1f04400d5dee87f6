"""Looks into the file of a queue, without becoming one of those who work there; for pages and commands."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tsuzuki.backends.sqlite.faults import fault
from tsuzuki.llm.queue.jobs import FILE, SQL

_STATUSES: Final = {"PENDING": "pending", "IN_PROGRESS": "in_progress", "COMPLETED": "completed", "FAILED": "failed"}
_PATIENCE: Final = 5.0
"""How long to wait for who is writing (seconds)."""


def processes(folder: Path) -> list[dict[str, Any]]:
    """Lists the processes of the queue in a folder, with how many of their jobs are how far."""
    found: dict[str, dict[str, Any]] = {}
    for process, status, count, batch, created, updated in _rows(folder, "processes"):
        entry = found.setdefault(
            process,
            {"process_id": process, **dict.fromkeys(_STATUSES.values(), 0), "batch_job_id": batch}
            | {"open_batches": [], "unclear_batches": 0, "created_at": created, "updated_at": updated},
        )
        entry[_STATUSES[status]] = count
        entry["batch_job_id"] = entry["batch_job_id"] or batch
        entry["created_at"] = min(entry["created_at"], created)
        entry["updated_at"] = max(entry["updated_at"], updated)
    for process, batch, state in _rows(folder, "unended"):
        if process in found and state == "open":
            found[process]["open_batches"].append(batch)
        elif process in found:
            found[process]["unclear_batches"] += 1
    return list(found.values())


def jobs(folder: Path, process_id: str, most: int) -> list[dict[str, Any]]:
    """Lists jobs of a process, without what is asked and answered, and how it is with the batch that may have them."""
    names = ("id", "status", "batch_job_id", "error_message", "created_at", "updated_at", "batch_state")
    rows = _rows(folder, "outlines", {"process_id": process_id, "most": most})
    return [dict(zip(names, row, strict=True)) for row in rows]


def placed(folder: Path, submission: str) -> tuple[str, ...]:
    """Gives the jobs in a batch, as far as the queue in a folder knows them."""
    return tuple(row[0] for row in _rows(folder, "placed", (submission,)))


def _rows(folder: Path, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
    path = folder / FILE
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as connection:
            return connection.execute(SQL[query], values).fetchall()
    except sqlite3.Error as error:
        raise fault(error, path) from error
