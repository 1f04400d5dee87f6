"""What `doctor` looks at on every store alike: journals, rows, wheels, versions, workers, runs that nobody will take.

What a store knows of itself it examines itself (`Backend.examine`).
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from tsuzuki import facts as f
from tsuzuki.backends import Check, Query, WorkerRecord, WorkerState
from tsuzuki.backends.shelf import Wheel, Wheels
from tsuzuki.crew import ALIVE, Crew, SeenWorker
from tsuzuki.errors import MoveRefused, StoreError, StoreUnavailable
from tsuzuki.lifecycle import Run, Status, as_submitted, fold_all
from tsuzuki.runs import Runs
from tsuzuki.version import VERSION
from tsuzuki.wheelerrors import WheelNotFound

PAGE: Final = 500
AT_ONCE: Final = 16
"""How many journals are read at the same time."""
NAMED: Final = 5
"""So many are named; the others are counted."""
_NO_PROGRESS: Final = Raw(b"[]")


async def examine(runs: Runs, *, quick: bool = False) -> list[Check]:
    """Examines a store and all that follows from it; `quick` does not read the journals and the wheels."""
    checks = list(await runs.examine())
    if not quick:
        checks += [*await _journals(runs), await _wheel_contents(runs.backend.wheels)]
    workers = await Crew(runs).list(everyone=True, hidden=True, limit=None)
    living = [worker.record for worker in workers if worker.state in ALIVE]
    return [*checks, _workers(workers), _wheel_sync(living), _versions(living), await _waiting(runs, living)]


# Journals and rows


@dataclass(slots=True)
class _Seen:
    """What reading the journals has shown, by the numbers of runs."""

    runs: int = 0
    facts: int = 0
    gaps: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    newer: list[int] = field(default_factory=list)


async def _journals(runs: Runs) -> list[Check]:
    seen = _Seen()
    async for rows in _pages(runs):
        for at in range(0, len(rows), AT_ONCE):
            await asyncio.gather(*(_read(runs, row, seen) for row in rows[at : at + AT_ONCE]))
    gaps, wrong, newer = sorted(seen.gaps), sorted(seen.wrong), sorted(seen.newer)
    return [
        Check(
            "gaps",
            ok=not gaps,
            text=f"{_those(gaps)}: facts are missing in the journal" if gaps else "no journal misses a fact",
            do="facts were removed by other means than ours: restore a backup" if gaps else "",
        ),
        Check(
            "rows",
            ok=not wrong,
            text=f"{_those(wrong)}: the row is not what the facts say"
            if wrong
            else f"{seen.runs} rows are the fold of their {seen.facts} facts",
            do="rebuild them with tsuzuki doctor --rebuild" if wrong else "",
        ),
        Check(
            "facts",
            ok=not newer,
            text=f"{_those(newer)}: written by a newer Tsuzuki, and not claimed here" if newer else "of known kinds",
            do="upgrade tsuzuki on this machine and on the workers" if newer else "",
        ),
    ]


async def _pages(runs: Runs) -> AsyncIterator[Sequence[Run]]:
    before = None
    while rows := await runs.backend.search(Query(before=before, limit=PAGE, params=False)):
        before = (rows[-1].updated_at, rows[-1].id)
        yield rows


async def _read(runs: Runs, row: Run, seen: _Seen) -> None:
    """Reads the facts up to where the row is; a run that goes on meanwhile is looked at as it was."""
    folded, position, sound = as_submitted(row), 0, True
    while position < row.position:
        entries = [e for e in await runs.backend.read(row.id, after=position) if e.position <= row.position]
        if not entries:
            break
        sound = sound and [e.position for e in entries] == list(range(position + 1, position + len(entries) + 1))
        try:
            folded = fold_all(folded, (e.fact for e in entries))
        except MoveRefused:
            sound = False
        position = entries[-1].position
    if position < row.position and await runs.backend.get(row.id) is None:  # purged meanwhile
        return
    seen.runs, seen.facts = seen.runs + 1, seen.facts + position
    if row.version > f.VERSION:
        seen.newer.append(row.number)
    if not sound or position < row.position:
        seen.gaps.append(row.number)
    elif _bare(folded) != _bare(row):
        seen.wrong.append(row.number)


def _bare(row: Run) -> Run:
    """Leaves out what is no fold of facts: what is shown of the progress, heartbeats, when it was written."""
    return replace(row, progress=_NO_PROGRESS, heartbeat_at=None, updated_at=0.0)


# Wheels


async def _wheel_contents(shelf: Wheels) -> Check:
    """Reads every wheel, and compares it with what was uploaded."""
    found = await shelf.all()
    wrong = [wheel.name for wheel in found if not await _whole(shelf, wheel)]
    if not wrong:
        text = f"every one of {len(found)} is what was uploaded" if found else "there are no wheels"
        return Check("wheel files", ok=True, text=text)
    return Check(
        "wheel files",
        ok=False,
        text=f"lost or damaged: {_named(wrong)}",
        do=f"tsuzuki wheels delete {wrong[0]}, and upload it again; or restore a backup",
    )


async def _whole(shelf: Wheels, wheel: Wheel) -> bool:
    digest = hashlib.sha256()
    try:
        async for piece in shelf.read(wheel):
            digest.update(piece)
    except StoreUnavailable:
        raise
    except (WheelNotFound, StoreError):
        return await shelf.get(wheel.name) != wheel  # deleted meanwhile, or lost
    return digest.hexdigest() == wheel.sha256


def _wheel_sync(living: Sequence[WorkerRecord]) -> Check:
    told = {record.id: record.wheel_sync or {} for record in living}
    failing = {worker: sync["last_error"] for worker, sync in told.items() if sync.get("last_result") == "error"}
    if not failing:
        return Check("wheel sync", ok=True, text=f"{sum(map(bool, told.values()))} workers sync wheels, none fails")
    worker, why = next(iter(failing.items()))
    return Check(
        "wheel sync",
        ok=False,
        text=f"fails on {_named(list(failing))}; {worker} says: {why}",
        do="mend the cause, or delete or replace that wheel (tsuzuki wheels); they try again by themselves",
    )


# Workers, their versions, and the runs that wait for them


def _workers(workers: Sequence[SeenWorker]) -> Check:
    living = sum(worker.state in ALIVE for worker in workers)
    silent = [worker.record.id for worker in workers if worker.state is WorkerState.DISCONNECTED]
    text = f"{living} live" + (f", {len(silent)} fell silent without leaving: {_named(silent)}" if silent else "")
    return Check("workers", ok=True, text=text)


def _versions(living: Sequence[WorkerRecord]) -> Check:
    found = sorted({record.version or "unknown" for record in living} | {VERSION})
    mixed = len(found) > 1
    return Check(
        "versions",
        ok=True,
        text=f"{', '.join(found)} at work on one store; that is fine while you upgrade"
        if mixed
        else f"{VERSION} everywhere",
    )


async def _waiting(runs: Runs, living: Sequence[WorkerRecord]) -> Check:
    """Looks for runs that could be claimed, and that no living worker would."""
    now = runs.now()
    rows = await runs.backend.search(Query(status=(Status.PENDING,), private=False, limit=PAGE, params=False))
    due = [row for row in rows if row.not_before <= now and row.version <= f.VERSION]
    lonely = [row for row in due if not any(record.takes(row) for record in living)]
    if not lonely:
        return Check("waiting", ok=True, text=f"{len(due)} runs wait, each for a worker that lives")
    kinds = sorted({(row.tag, row.flow) for row in lonely})
    text = f"{len(lonely)} runs wait for workers that are not there: {_kinds(kinds)}"
    tag, flow = kinds[0]
    return Check(
        "waiting", ok=False, text=text, do=f"start one: tsuzuki worker --tags {tag} --flows FILE.py (with {flow})"
    )


def _kinds(kinds: Iterable[tuple[str, str]]) -> str:
    return _named([f"{flow} (tag {tag})" for tag, flow in kinds])


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _those(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
    return f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:NAMED]))}{more}"
