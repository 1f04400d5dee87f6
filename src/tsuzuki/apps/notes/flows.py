"""The flow: extract as one step, then transform and load as two maps, the second fed by the first."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from typing import Any, Final, cast

from tsuzuki import current, flow, settings, task
from tsuzuki.apps.notes.extracting import completed, told_again
from tsuzuki.apps.notes.extracting import extract as extracted
from tsuzuki.apps.notes.items import StageType
from tsuzuki.apps.notes.patience import Patience
from tsuzuki.apps.notes.phases import PhaseStatus
from tsuzuki.apps.notes.presses import Lent
from tsuzuki.apps.notes.refusals import SessionBusy
from tsuzuki.apps.notes.room import room
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.apps.notes.stagelog import Lines, message_of
from tsuzuki.apps.notes.stages import BENCH, LENT, Workbench
from tsuzuki.apps.notes.times import now
from tsuzuki.apps.notes.vault import sweep
from tsuzuki.errors import StoreError, StoreUnavailable

OFFLINE_LANES: Final = 256
"""How many conversations are worked on at once where nobody is asked: what is done together shares calls and syncs."""
LANES: Final = 5
GROUP: Final = 1000
"""How many conversations go into a batch: their questions are in memory together."""
WRITERS: Final = 256
"""How many notes are written at once."""
KEY: Final = "notes:{}"
Outcomes = AsyncGenerator[Any, None]


@task(name="extract")
def extract(session_id: str) -> dict[str, int]:
    """Extracts the items of a session, unless that was done."""
    run, lent = current(), LENT.get()

    def tell(number: int) -> None:
        if run.cancelled:  # what is half done is done anew
            raise asyncio.CancelledError
        run.progress(number)
        lent.expect(number)

    with room():
        return extracted(_session(session_id), tell)


@task(name="plan")
def plan(session_id: str) -> int:
    """Gives where the log ends as the run begins: what it says up to there is what was done before."""
    log = _session(session_id).stage_log
    return log.stat().st_size if log.exists() else 0


@task(name="transform")
async def transform(item_id: str) -> dict[str, Any]:
    """Makes the note of an item."""
    bench = BENCH.get()
    with room(), bench.at_work():
        return await bench.transform(item_id)


@task(name="load")
async def load(item_id: str) -> dict[str, Any]:
    """Writes the note of an item."""
    bench = BENCH.get()
    with room(), bench.at_work():
        return await bench.load(item_id)


@task(name="conclude")
def conclude(ids: list[str]) -> dict[str, Any]:
    """Counts what became of the run's items, and writes it down."""
    bench = BENCH.get()
    counts = bench.statistics(set(ids))
    with room():
        bench.session.enter(counts.status, counts, completed_at=now(), run_id=current().run_id)
    told = {
        "status": counts.status.value,
        "success": counts.success_count,
        "failed": counts.error_count,
        "skipped": counts.skipped_count,
        "total": counts.total_count,
        "cost": bench.cost,
    }
    with room():
        _note(bench.session, "ended", **told)
    return told


@flow(name="notes_import", key=KEY.format("{session_id}"))
async def import_notes(session_id: str, limit: int = 0, only: str = "") -> dict[str, Any]:
    """Makes notes of what a session has not made notes of yet: of all, of so many, or only of what failed."""
    session = await asyncio.to_thread(_session, session_id)
    with room(), _held(session):
        await asyncio.to_thread(_begin, session)
        try:
            async with _lent(session, limit):
                with room():  # a disk that is full or read-only has crashed nothing
                    return await _carried_out(session_id, session, limit, only)
        except asyncio.CancelledError:
            session.enter(PhaseStatus.PARTIAL, run_id=current().run_id)
            raise
        except StoreError:  # it is stopped, and goes on
            raise
        except Exception as error:
            session.enter(PhaseStatus.CRASHED, error=message_of(error), run_id=current().run_id)
            raise


@contextmanager
def _held(session: Session) -> Iterator[None]:
    """Holds a session. Whoever held the run before may be frozen in the midst of it: then it is waited for."""
    with ExitStack() as stack:
        try:
            stack.enter_context(session.held())
        except SessionBusy as error:
            if current().attempt == 1:
                raise
            raise StoreUnavailable(f"{error}: the run was taken over, and waits until who had it lets go") from error
        yield


async def _carried_out(session_id: str, session: Session, limit: int, only: str) -> dict[str, Any]:
    await extract.step(session_id)
    if await asyncio.to_thread(completed, session) is None:  # it was done, and somebody has removed it since
        await extract.keyed(f"again {current().attempt}")(session_id)  # type: ignore[misc] # awaited in an async flow
    await asyncio.to_thread(told_again, session)
    until = await plan.step(session_id)
    async with _opened(session) as bench:
        parts, parents = await asyncio.to_thread(bench.chosen, until, limit, only)
        total = len(parts) + len(parents)
        await asyncio.to_thread(bench.expect, total)
        patience = Patience(total, bench.options.get("failure_threshold"), _lanes(bench.options))
        for ids in (*_groups(parts, bench.options), parents):
            if in_batches(bench.options) and ids is not parents:
                await bench.batched(ids, until)
            await _written(bench, ids, total, patience)
        _tell(bench, total, total)
        # Each attempt counts anew: one that tries again what failed has other figures.
        told: dict[str, Any] = await conclude.keyed(f"conclude {current().attempt}")([*parts, *parents])  # type: ignore[misc] # awaited in an async flow
        return told


async def _written(bench: Workbench, ids: list[str], total: int, patience: Patience) -> None:
    """Has notes made and written; where it stops midway, both stages have ended before the session is closed."""
    async with aclosing(_made(bench, ids, total, patience)) as made:
        files = load.stream(made, concurrency=WRITERS, on_error="collect")
        async with aclosing(cast("Outcomes", files)):
            async for file in files:
                patience.failed(file)
                if isinstance(file, dict):
                    bench.ensure(StageType.LOAD, file)


async def _made(bench: Workbench, ids: list[str], total: int, patience: Patience) -> AsyncGenerator[str, None]:
    """Gives the items whose notes are made, in order; what failed is left out."""
    notes = transform.stream(ids, concurrency=_lanes(bench.options), on_error="collect")
    async with aclosing(cast("Outcomes", notes)):
        async for made in notes:
            bench.settled += 1
            patience.transformed(made)
            if isinstance(made, dict):
                bench.ensure(StageType.TRANSFORM, made)
                cost = made["note"].get("cost")
                bench.cost = bench.cost if cost is None else (bench.cost or 0.0) + cost
                bench.ready[made["item_id"]] = made
                yield made["item_id"]
            _tell(bench, bench.settled, total)


def in_batches(options: dict[str, Any]) -> bool:
    """Whether the provider's batches are used."""
    return options.get("strategy") in ("batch", "auto") and bool(options.get("batches"))


def _groups(ids: list[str], options: dict[str, Any]) -> list[list[str]]:
    """Gives the items that go into a batch together; without batches all of them go on as they come."""
    size = GROUP if in_batches(options) else len(ids) or 1
    return [ids[begin : begin + size] for begin in range(0, len(ids), size)]


def _tell(bench: Workbench, done: int, total: int) -> None:
    current().progress(done, total, "" if bench.cost is None else f"${bench.cost:.4f}")


def _lanes(options: dict[str, Any]) -> int:
    """Gives how many conversations are asked about at once."""
    asked = int(options.get("concurrency") or 0) or int(settings.value("TSUZUKI_LLM_CONCURRENCY") or 0)
    if options.get("provider") == "offline":
        return max(asked, OFFLINE_LANES)
    return asked or (1 if options.get("local") else LANES)


@asynccontextmanager
async def _lent(session: Session, limit: int) -> AsyncIterator[None]:
    """Has processes beside the run where nobody is asked, and many notes may be made."""
    lent = Lent(most=(limit or None) if session.options.get("provider") == "offline" else 0)
    token = LENT.set(lent)
    try:
        yield
    finally:
        LENT.reset(token)
        await asyncio.to_thread(lent.close)


@asynccontextmanager
async def _opened(session: Session) -> AsyncIterator[Workbench]:
    bench = await asyncio.to_thread(Workbench, session)
    token = BENCH.set(bench)
    try:
        yield bench
    finally:
        BENCH.reset(token)
        await asyncio.to_thread(bench.close)


def _session(session_id: str) -> Session:
    """Finds the session among those of the tenant that the run belongs to; no param can say another."""
    return Sessions(current().tenant).find(session_id)


def _begin(session: Session) -> None:
    """Says that the phase is worked on, and by which run."""
    run_id, about = current().run_id, session.about
    if run_id not in about["runs"]:
        session.change(runs=[*about["runs"], run_id])
    session.enter(PhaseStatus.IN_PROGRESS, started_at=session.state().get("started_at") or now(), run_id=run_id)
    _note(session, "began", attempt=current().attempt)
    sweep(session.vault, session.session_id)


def _note(session: Session, event: str, **more: Any) -> None:
    with Lines(session.steps_log) as log:
        log.append({"timestamp": now(), "session_id": session.session_id, "phase": "import", "event": event,
                    "run_id": current().run_id, **more})  # fmt: skip


def flows() -> list[Any]:
    """Gives the flows of this application."""
    return [import_notes]
