"""The log of a session written anew where lines are missing: each fact of its runs carries the line written for it.

So does each line of what a stage put out: where the journals are lost too, these tell.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tsuzuki import Runs
from tsuzuki.apps.notes.completed import done_in
from tsuzuki.apps.notes.items import StageType
from tsuzuki.apps.notes.looking import stage_records
from tsuzuki.apps.notes.outputs import lines_of
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.errors import RunNotFound, TsuzukiError

_STAGES = (StageType.TRANSFORM, StageType.LOAD)


async def mended(runs: Runs, session: Session) -> int:
    """Adds lines that the journals have and the log has not: it was removed, or a power cut took its end.

    The journals are read only where they count more than the log does, or where what a stage put out is gone; where a
    journal is unknown here, what the stages put out is read. Gives how many lines were missing.
    """
    named = session.about["runs"]
    rows = [row for run_id in named if (row := await _row(runs, run_id)) is not None]
    counted = sum(len(done_in(session.stage_log, stage).items) for stage in _STAGES)
    missing = 0
    if sum(row.done for row in rows) > counted or (counted and any(map(_gone, _outputs(session).values()))):
        found = [each for row in rows for each in await _recorded(runs, row.id, session.session_id)]
        missing = _written(session, found)
    if len(rows) < len(named):
        missing += _written(session, _kept(session))
    return missing


def _outputs(session: Session) -> dict[str, Path]:
    return {StageType.TRANSFORM.value: session.transformed, StageType.LOAD.value: session.loaded}


def _gone(path: Path) -> bool:
    return not path.exists() or not path.stat().st_size


async def _row(runs: Runs, run_id: str) -> Any:
    try:
        return await runs.get(run_id)
    except RunNotFound:
        return None


async def _recorded(runs: Runs, run_id: str, session_id: str) -> list[dict[str, Any]]:
    """Gives the results of a run's items that tell of this session."""
    found = []
    try:
        async for fact in runs.export(run_id):
            result = fact.get("result") if fact.get("kind") == "ItemDone" else None
            if isinstance(result, dict) and result.get("record", {}).get("session_id") == session_id:
                found.append(result)
    except TsuzukiError:  # its large values are gone: what can be read counts
        pass
    return found


def _kept(session: Session) -> Iterable[dict[str, Any]]:
    """Gives what the stages put out of items that the log does not even name: a failure after it would count more."""
    named = {(record["stage"], record["item_id"]) for record in stage_records(session.stage_log)}
    for stage, path in _outputs(session).items():
        for item_id, _, line in lines_of(path):
            if (stage, item_id) not in named and isinstance((found := msgspec.json.decode(line)).get("record"), dict):
                yield found


def _written(session: Session, found: Iterable[dict[str, Any]]) -> int:
    """Writes what is missing, of outputs and of the log; what the log says last of an item takes nothing back."""
    results, missing = list(found), 0
    last = {(each["stage"], each["item_id"]): str(each.get("timestamp")) for each in stage_records(session.stage_log)}
    with Lines(session.stage_log) as log:
        for stage, path in _outputs(session).items():
            kept = {item_id for item_id, _, _ in lines_of(path)}
            with Lines(path) as output:
                for result in results:
                    record, item_id = result["record"], result["item_id"]
                    if record.get("stage") == stage and item_id not in kept:
                        output.append(result)
                        kept.add(item_id)
                    at = str(record.get("timestamp"))
                    if record.get("stage") == stage and at > last.get((stage, item_id), ""):
                        log.append(record)
                        last[stage, item_id] = at
                        missing += 1
    return missing
