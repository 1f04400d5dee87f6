"""The document of a run: its row, and its tasks folded from the journal.

Folds are kept for the runs that somebody looked at last, with the position they reached: no fact is read twice, also
by those who look at once. Between two pages others have their turn: a store on this machine reads without waiting.
"""

import asyncio
import contextlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from tsuzuki.backends import Entry
from tsuzuki.errors import BadRequest
from tsuzuki.gateway.fitting import fitted
from tsuzuki.gateway.standing import Standings
from tsuzuki.lifecycle import Run, Status, is_waiting, last_heartbeat
from tsuzuki.overview import Overview
from tsuzuki.spending import usage
from tsuzuki.taskfold import TaskFold
from tsuzuki.yamlflow import parse, shown_input

MOST_WEIGHT: Final = 16_000_000
"""Folds are kept up to about so many bytes."""
MOST_PAGES: Final = 25
"""One look folds no more pages than this: of a very long journal the next look folds the rest."""
_PAGE: Final = 2000
_LAST: Final = 3
"""So many facts at the end of a cancelled run tell what was cut off."""


@dataclass(slots=True)
class _Kept:
    """The fold of a run, who reads on in its journal just now, and whether the last look left some of it unread."""

    fold: TaskFold = field(default_factory=TaskFold)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    behind: bool = False
    weight: int = 0
    """What it weighed when it was last read."""


class Snapshots:
    """The folds of the runs that were looked at last."""

    def __init__(self, overview: Overview, standings: Standings, most_bytes: int) -> None:
        self._overview = overview
        self._standings = standings
        self._most_bytes = most_bytes
        self._folds: OrderedDict[str, _Kept] = OrderedDict()
        self._weight = 0

    async def fold(self, row: Run) -> TaskFold:
        """Gives the tasks of a run, up to its row."""
        kept = self._folds.setdefault(row.id, _Kept())
        self._folds.move_to_end(row.id)
        async with kept.reading:
            kept.behind = await self._read_on(kept.fold, row)
        self._weigh(row.id, kept)
        return kept.fold

    async def _read_on(self, fold: TaskFold, row: Run) -> bool:
        """Folds what one look may; whether there is more."""
        for _ in range(MOST_PAGES):
            if fold.position >= row.position:
                return False
            entries = await self._overview.facts(row.id, after=fold.position, limit=_PAGE)
            _feed(fold, entries)
            if not entries:  # it was removed
                return False
            await asyncio.sleep(0)
        return fold.position < row.position

    def behind(self, run_id: str) -> bool:
        """Tells whether the journal of a run was too long for the last look, so that another one shows more."""
        return (kept := self._folds.get(run_id)) is not None and kept.behind

    def forget(self, run_id: str) -> None:
        """Lets go of a run that was removed."""
        if (kept := self._folds.pop(run_id, None)) is not None:
            self._weight -= kept.weight

    def _weigh(self, run_id: str, kept: _Kept) -> None:
        """Count what a fold weighs now, and let go of those that were looked at longest ago."""
        if self._folds.get(run_id) is not kept:  # let go meanwhile
            return
        weight = kept.fold.weight
        self._weight, kept.weight = self._weight + weight - kept.weight, weight
        while self._weight > MOST_WEIGHT and len(self._folds) > 1:
            _, old = self._folds.popitem(last=False)
            self._weight -= old.weight

    async def document(
        self, row: Run, *, records: bool = False, params: bool = False, most: int | None = None
    ) -> dict[str, Any]:
        """Gives the snapshot of a run; with `records` also what is recorded of its tasks.

        Above a size the records are left out, then the result, and params are shortened unless all `params` are wanted.
        """
        limit = self._most_bytes if most is None else min(most, self._most_bytes)
        fold = await self.fold(row) if row.position > 1 else TaskFold()
        document = _document(row, fold) | await self.standing(row) | {"cut": await self._cut(row, fold)}
        if records:
            measured = document | {"params": {}, "result": None} if params else document
            document |= await self._records(row, measured, fold, limit)
        return document if params else document | fitted(document, limit)

    async def _cut(self, row: Run, fold: TaskFold) -> dict[str, int] | None:
        """Gives what the cancel of a run cut off; of a journal too long for one look, from its end."""
        if row.status is not Status.CANCELLED or fold.position >= row.position:
            return fold.cut
        end = TaskFold()
        _feed(end, await self._overview.facts(row.id, after=max(row.position - _LAST, 0), limit=_LAST))
        return end.cut

    async def standing(self, row: Run) -> dict[str, bool]:
        """Tells whether somebody goes on with a run."""
        return (await self._standings.of([row]))[0]

    async def tasks(self, row: Run) -> dict[str, Any]:
        """Gives only the tasks of a run, with their records."""
        fold = await self.fold(row)
        shown = {"run_id": row.id, "flow_name": row.flow, "status": row.status.value, "tasks": fold.states()}
        return shown | await self._records(row, shown, fold, self._most_bytes)

    async def _records(self, row: Run, document: dict[str, Any], fold: TaskFold, most: int) -> dict[str, Any]:
        for name, blob in fold.blobs().items():
            fold.put_output(name, blob, await self._overview.blob(row.id, blob))
        whole = {"task_records": _with_inputs(fold.records(), row, fold), "task_records_truncated": False}
        if fold.too_large or len(msgspec.json.encode(document | whole)) > most:
            return {"task_records": {}, "task_records_truncated": True}
        return whole


def _feed(fold: TaskFold, entries: list[Entry]) -> None:
    for entry in entries:
        fold.feed(entry.position, entry.fact)
    if fold.workflow:
        _list_nodes(fold, fold.workflow)
        fold.workflow = ""


def _list_nodes(fold: TaskFold, text: str) -> None:
    """Names the tasks of a YAML flow; one that a newer version accepted shows those that have begun."""
    with contextlib.suppress(BadRequest):
        workflow = parse(text)
        fold.list_nodes(workflow.nodes, {name: workflow.tasks[name].inputs for name in workflow.nodes})


def _with_inputs(records: dict[str, dict[str, Any]], row: Run, fold: TaskFold) -> dict[str, dict[str, Any]]:
    """Add the inputs that the text of a YAML flow names to those that the journal keeps of each task's last call.

    The text tells them while the task still runs, and whole; only the journal has what was wired by name.
    """
    if not fold.inputs:
        return records
    params = msgspec.json.decode(row.params)
    outputs = {name: msgspec.json.decode(one["output"]) for name, one in records.items() if one["output"] is not None}
    for name, record in records.items():
        if record["started_at"] is not None and name in fold.inputs:
            recorded = {} if record["inputs"] is None else msgspec.json.decode(record["inputs"])
            record["inputs"] = recorded | shown_input(dict(fold.inputs[name]), params, outputs)
    return records


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
        "heartbeat_at": last_heartbeat(row),
        "error": error_text(row),
        "worker_id": row.holder or row.worker or None,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "counts": {"done": row.done, "failed": row.failed, "skipped": row.skipped, "steps": row.steps},
        "attempt": row.attempt,
        "progress": row.progress,
        "usage": (used := usage(row.spent)),
        "cost": None if used is None else used["cost"],
        "waiting_reason": (row.waiting_reason or None) if is_waiting(row) else None,
        "waiting_until": row.not_before if is_waiting(row) else None,
    }


def error_text(row: Run) -> str | None:
    """Gives what a run failed of in one line."""
    if row.error is None:
        return None
    message = row.error.message
    return message if message.startswith("flow_not_found") else row.error.said


def _document(row: Run, fold: TaskFold) -> dict[str, Any]:
    return summary(row) | {
        "workflow_yaml_sha256": row.workflow or None,
        "workflow_yaml_bytes": row.workflow_bytes or None,
        "cancel_requested_at": row.cancel_asked_at,
        "cancel_requested_by": row.cancel_asked_by or None,
        "cancel_reason": row.cancel_reason or None,
        "params": row.params,
        "params_truncated": False,
        "tasks": fold.states(),
        "start_time": fold.started_at,
        "end_time": fold.ended_at,
        "worker_id": row.holder or row.worker or fold.worker,
        "wheels": fold.wheels,
        "position": row.position,
        "key": row.key,
        "priority": row.priority,
        "continues": row.continues,
        "not_before": row.not_before or None,
        "result": row.result,
        "result_truncated": bool(row.blob),
        "result_blob": row.blob or None,
    }
