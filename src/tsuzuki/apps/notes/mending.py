"""The log of a session written anew where lines are missing: each fact of its runs carries the line written for it."""

from typing import Any

from tsuzuki import Runs
from tsuzuki.apps.notes.completed import CompletedItemsCache
from tsuzuki.apps.notes.items import StageType
from tsuzuki.apps.notes.outputs import lines_of
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.errors import RunNotFound, TsuzukiError

_STAGES = (StageType.TRANSFORM, StageType.LOAD)


async def mended(runs: Runs, session: Session) -> int:
    """Adds lines that the journals have and the log has not: it was removed, or a power cut took its end.

    The journals are read only where they count more than the log does. Gives how many lines were missing.
    """
    rows = [row for run_id in session.about["runs"] if (row := await _row(runs, run_id)) is not None]
    done = {stage.value: CompletedItemsCache.from_jsonl(session.stage_log, stage).items for stage in _STAGES}
    if sum(row.done for row in rows) <= sum(len(items) for items in done.values()):
        return 0
    found = [each for row in rows for each in await _recorded(runs, row.id, session.session_id)]
    return _written(session, found, done)


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


def _written(session: Session, found: list[dict[str, Any]], done: dict[str, set[str]]) -> int:
    files = {StageType.TRANSFORM.value: session.transformed, StageType.LOAD.value: session.loaded}
    missing = 0
    with Lines(session.stage_log) as log:
        for stage, path in files.items():
            kept = {item_id for item_id, _, _ in lines_of(path)}
            with Lines(path) as output:
                for result in found:
                    record, item_id = result["record"], result["item_id"]
                    if record["stage"] != stage or item_id in done[stage]:
                        continue
                    done[stage].add(item_id)
                    if item_id not in kept:
                        output.append(result)
                    log.append(record)
                    missing += 1
    return missing
