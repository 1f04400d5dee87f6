"""The flow: extract as one step, then transform and load as two maps, the second fed by the first."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import count
from typing import Any, Final, cast

from tsuzuki import current, flow, settings, task
from tsuzuki.apps.notes.extracting import completed, told_again
from tsuzuki.apps.notes.extracting import extract as extracted
from tsuzuki.apps.notes.items import StageType
from tsuzuki.apps.notes.looking import cost_of
from tsuzuki.apps.notes.outputs import COMPLETE
from tsuzuki.apps.notes.patience import Patience
from tsuzuki.apps.notes.phases import PhaseStatus
from tsuzuki.apps.notes.presses import Lent
from tsuzuki.apps.notes.refusals import BadExport, ExtractDamaged, SessionBusy
from tsuzuki.apps.notes.room import room
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.apps.notes.stagelog import Lines, message_of, type_of
from tsuzuki.apps.notes.stages import BENCH, LENT, Workbench
from tsuzuki.apps.notes.times import now
from tsuzuki.apps.notes.vault import sweep
from tsuzuki.errors import StoreError, StoreUnavailable

OFFLINE_LANES: Final = 256
"""How many conversations are worked on at once where nobody is asked: what is done together shares calls and syncs."""
LANES: Final = 5
WRITERS: Final = 256
"""How many notes are written at once."""
KEY: Final = "notes:{}"
Outcomes = AsyncGenerator[Any, None]


@task(name="extract")
def extract(session_id: str) -> dict[str, int]:
    """Extracts the items of a session, unless that was done."""
    run, lent, session = current(), LENT.get(), _session(session_id)

    def tell(number: int) -> None:
        if run.cancelled:  # what is half done is done anew
            raise asyncio.CancelledError
        run.progress(number)
        lent.expect(number)

    with room():
        if completed(session) is None:
            lent.foresee(session.input)
        try:
            return extracted(session, tell)
        except BadExport:
            session.input  # noqa: B018 - where the export was changed meanwhile it raises, and says more
            raise


@task(name="plan")
def plan(session_id: str) -> int:
    """Gives where the log ends as the run begins: what it says up to there is what was done before."""
    log = _session(session_id).stage_log
    return log.stat().st_size if log.exists() else 0


@task(name="group")
def group() -> dict[str, Any]:
    """Says what a batch is asked about next: what one from before owes comes first."""
    with room():
        return BENCH.get().next_group()


@task(name="transform")
async def transform(item_id: str) -> dict[str, Any]:
    """Makes the note of an item."""
    bench = BENCH.get()
    with room(), bench.at_work:
        return await bench.transform(item_id)


@task(name="load")
async def load(item_id: str) -> dict[str, Any]:
    """Writes the note of an item."""
    bench = BENCH.get()
    with room(), bench.at_work:
        return await bench.load(item_id)


@task(name="conclude")
def conclude(ids: list[str]) -> dict[str, Any]:
    """Counts what became of the run's items, and writes it down."""
    bench = BENCH.get()
    counts = bench.statistics(set(ids))
    status = counts.ended(passed_over=bench.passed_over)
    with room():
        bench.session.enter(status, counts, completed_at=now(), run_id=current().run_id)
    told = {
        "status": status.value,
        "success": counts.success_count,
        "failed": counts.error_count,
        "skipped": counts.skipped_count,
        "total": counts.total_count,
        "cost": cost_of(bench.session),
    }
    with room():
        _note(bench.session, "ended", **told)
    return told


@flow(name="notes_import", key=KEY.format("{session_id}"))
async def import_notes(session_id: str, limit: int = 0, only: str = "", item: str = "") -> dict[str, Any]:
    """Makes notes of what a session has not made notes of yet: of all, of so many, only of what failed, or of one."""
    session = await asyncio.to_thread(_session, session_id)
    async with AsyncExitStack() as stack:
        stack.enter_context(room())
        await stack.enter_async_context(_held(session))
        if session.lost_its_vault:
            raise StoreUnavailable(f"the folder {session.vault} is not there any more: put it back, and it goes on")
        if session.found_its_vault_empty:
            raise StoreUnavailable(f"{session.vault} is empty, its notes are gone: put them back, and it goes on")
        await asyncio.to_thread(_begin, session)
        try:
            async with _lent(session, limit):
                with room():  # a disk that is full or read-only has crashed nothing
                    return await _carried_out(session_id, session, (limit, only, item))
        except asyncio.CancelledError:
            session.enter(PhaseStatus.PARTIAL, run_id=current().run_id)
            raise
        except StoreError:  # it is stopped, and goes on
            raise
        except Exception as error:
            if isinstance(error, ExtractDamaged):
                (session.extracted / COMPLETE).unlink(missing_ok=True)  # whoever resumes does it anew
            said, kind = message_of(error), type_of(error)
            session.enter(PhaseStatus.CRASHED, error=said, error_type=kind, run_id=current().run_id)
            raise


@asynccontextmanager
async def _held(session: Session) -> AsyncIterator[None]:
    """Holds a session. Whoever held the run before may be frozen in the midst of it: then it is waited for."""
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(session.held_soon())
        except SessionBusy as error:
            if current().attempt == 1:
                raise
            raise StoreUnavailable(f"{error}: the run was taken over, and waits until who had it lets go") from error
        yield


async def _carried_out(session_id: str, session: Session, wanted: tuple[int, str, str]) -> dict[str, Any]:
    await extract.step(session_id)
    if await asyncio.to_thread(completed, session) is None:  # it was done, and somebody has removed it since
        await extract.keyed(f"again {current().attempt}")(session_id)  # type: ignore[misc] # awaited in an async flow
    await asyncio.to_thread(told_again, session)
    until = await plan.step(session_id)
    async with _opened(session) as bench:
        parts, parents = await asyncio.to_thread(bench.chosen, until, *wanted)
        total = len(parts) + len(parents)
        await asyncio.to_thread(bench.expect, total)
        patience = Patience(total, bench.options.get("failure_threshold"), _lanes(bench.options))
        async for ids in _together(bench, parts):
            await _written(bench, ids, total, patience)
        await _written(bench, parents, total, patience)
        if patience.damaged:
            raise ExtractDamaged
        _tell(bench, total, total)
        # Each attempt counts anew: one that tries again what failed has other figures.
        told: dict[str, Any] = await conclude.keyed(f"conclude {current().attempt}")([*parts, *parents])  # type: ignore[misc] # awaited in an async flow
        return told


async def _written(bench: Workbench, ids: list[str], total: int, patience: Patience) -> None:
    """Has notes made and written; where it stops midway, both stages have ended before the session is closed."""
    async with aclosing(_made(bench, ids, total, patience)) as made:
        files = load.stream(made, concurrency=WRITERS, on_error="collect", ordered=False)
        async with aclosing(cast("Outcomes", files)):
            async for file in files:
                patience.failed(file)
                if isinstance(file, dict):
                    bench.ensure(StageType.LOAD, file)


async def _made(bench: Workbench, ids: list[str], total: int, patience: Patience) -> AsyncGenerator[str, None]:
    """Gives items as their notes are made: none waits for another that takes long; what failed is left out."""
    notes = transform.stream(ids, concurrency=_lanes(bench.options), on_error="collect", ordered=False)
    async with aclosing(cast("Outcomes", notes)):
        async for made in notes:
            bench.settled += 1
            patience.transformed(made)
            if isinstance(made, dict):
                bench.ensure(StageType.TRANSFORM, made)
                bench.ready[made["item_id"]] = made
                yield made["item_id"]
            _tell(bench, bench.settled, total)


def in_batches(options: dict[str, Any]) -> bool:
    """Whether the provider's batches are used."""
    return options.get("strategy") in ("batch", "auto") and bool(options.get("batches"))


async def _together(bench: Workbench, ids: list[str]) -> AsyncIterator[list[str]]:
    """Gives the items that are worked on together: as many as a batch has answered, without batches all of them.

    Which these are is a step, and in the session's own file: a replay, and another run, ask for the same batches.
    """
    if in_batches(bench.options):
        bench.left = dict.fromkeys(ids)
        for number in count(1):
            told = await group.keyed(f"group {number}")()  # type: ignore[misc] # awaited in an async flow
            if not told:
                break
            asked = await asyncio.to_thread(bench.batches.taken, told["name"], told["items"])
            worked_on = await bench.batched(asked, inherited=told["inherited"])
            yield worked_on
            await asyncio.to_thread(bench.settle, asked, worked_on)
        ids = list(bench.left)  # notes that are made, and only to be written
    yield ids


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
