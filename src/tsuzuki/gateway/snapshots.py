"""The document of a run: its row, and its tasks folded from the journal.

Folds are kept for the runs that somebody looked at last, with the position they reached: no fact is read twice.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec

from tsuzuki.backends import Entry
from tsuzuki.errors import BadRequest
from tsuzuki.gateway.standing import Standings
from tsuzuki.lifecycle import Run
from tsuzuki.overview import Overview
from tsuzuki.taskfold import TaskFold
from tsuzuki.yamlflow import parse

MOST_WEIGHT: Final = 16_000_000
"""Folds are kept up to about so many bytes."""
MOST_PAGES: Final = 25
"""One look folds no more pages than this: of a very long journal the next look folds the rest."""
_PAGE: Final = 2000


class Snapshots:
    """The folds of the runs that were looked at last."""

    def __init__(self, overview: Overview, standings: Standings, most_bytes: int) -> None:
        self._overview = overview
        self._standings = standings
        self._most_bytes = most_bytes
        self._folds: OrderedDict[str, TaskFold] = OrderedDict()

    async def fold(self, row: Run) -> TaskFold:
        """Gives the tasks of a run, up to its row."""
        fold = self._folds.get(row.id)
        if fold is None:
            fold = self._folds[row.id] = TaskFold()
        self._folds.move_to_end(row.id)
        for _ in range(MOST_PAGES):
            if fold.position >= row.position:
                break
            entries = await self._overview.facts(row.id, after=fold.position, limit=_PAGE)
            _feed(fold, entries)
            if not entries:
                break
        self._let_go()
        return fold

    def forget(self, run_id: str) -> None:
        """Lets go of a run that was removed."""
        self._folds.pop(run_id, None)

    def _let_go(self) -> None:
        weight = sum(fold.weight for fold in self._folds.values()) if len(self._folds) % 64 == 0 else 0
        while weight > MOST_WEIGHT and len(self._folds) > 1:
            _, fold = self._folds.popitem(last=False)
            weight -= fold.weight

    async def document(self, row: Run, *, records: bool = False) -> dict[str, Any]:
        """Gives the snapshot of a run; with `records` also what is recorded of its tasks."""
        fold = await self.fold(row) if row.position > 1 else TaskFold()
        document = _document(row, fold) | await self.standing(row)
        if records:
            for name, blob in fold.blobs().items():
                fold.put_output(name, blob, await self._overview.blob(row.id, blob))
            document |= self._records(document, fold)
        return document

    async def standing(self, row: Run) -> dict[str, bool]:
        """Tells whether somebody goes on with a run."""
        return (await self._standings.of([row]))[0]

    async def tasks(self, row: Run) -> dict[str, Any]:
        """Gives only the tasks of a run, with their records."""
        document = await self.document(row, records=True)
        names = ("run_id", "flow_name", "status", "tasks", "task_records", "task_records_truncated")
        return {name: document[name] for name in names}

    def _records(self, document: dict[str, Any], fold: TaskFold) -> dict[str, Any]:
        whole = {"task_records": fold.records(), "task_records_truncated": False}
        if fold.too_large or len(msgspec.json.encode(document | whole)) > self._most_bytes:
            return {"task_records": {}, "task_records_truncated": True}
        return whole


def _feed(fold: TaskFold, entries: list[Entry]) -> None:
    """Feeds what is new: another look may have fed some of it while this one read."""
    for entry in entries:
        if entry.position > fold.position:
            fold.feed(entry.position, entry.fact)
    if fold.workflow:
        fold.list_nodes(_nodes(fold.workflow))
        fold.workflow = ""


def _nodes(workflow: str) -> tuple[str, ...]:
    """Gives the tasks of a YAML flow; one that a newer version accepted shows those that have begun."""
    try:
        return parse(workflow).nodes
    except BadRequest:
        return ()


def summary(row: Run) -> dict[str, Any]:
    """Gives the short form of a run, for lists."""
    return {
        "run_id": row.id,
        "number": row.number,
        "flow_name": row.flow,
        "tag": row.tag,
        "tags": row.tags,
        "tenant_id": row.tenant or None,
        "api_key_id": row.api_key or None,
        "status": row.status.value,
        "updated_at": row.updated_at,
        "heartbeat_at": row.updated_at if row.heartbeat_at is None else row.heartbeat_at,
        "error": error_text(row),
        "worker_id": row.holder or row.worker or None,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "counts": {"done": row.done, "failed": row.failed, "skipped": row.skipped, "steps": row.steps},
        "attempt": row.attempt,
        "progress": row.progress,
    }


def error_text(row: Run) -> str | None:
    """Gives what a run failed of in one line."""
    if row.error is None:
        return None
    message = row.error.message
    return message if message.startswith("flow_not_found") else f"{row.error.type}: {message}"


def _document(row: Run, fold: TaskFold) -> dict[str, Any]:
    return summary(row) | {
        "workflow_yaml_sha256": row.workflow or None,
        "workflow_yaml_bytes": row.workflow_bytes or None,
        "cancel_requested_at": row.cancel_asked_at,
        "cancel_requested_by": row.cancel_asked_by or None,
        "cancel_reason": row.cancel_reason or None,
        "params": row.params,
        "tasks": fold.states(),
        "start_time": fold.started_at,
        "end_time": fold.ended_at,
        "worker_id": row.holder or row.worker or fold.worker,
        "position": row.position,
        "key": row.key,
        "priority": row.priority,
        "continues": row.continues,
        "not_before": row.not_before or None,
        "result": row.result,
        "result_blob": row.blob or None,
    }
