"""Who holds runs, or waits with them: which of these processes are still there."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tsuzuki.backends import Backend, Query, WorkerRecord, WorkerState
from tsuzuki.errors import KeyHeld, RunHeld
from tsuzuki.lifecycle import ACTIVE, Run, Status, is_waiting, stamp
from tsuzuki.presence import is_gone, process_of, state_of

_PAGE: Final = 200


def interrupted(run: Run, gone: frozenset[str], waited_for: frozenset[str] = frozenset()) -> bool:
    """Tells whether a run was stopped on the way, and waits for somebody to go on with it."""
    if run.status not in ACTIVE or not run.private or run.id in waited_for:
        return False
    return run.holder in gone if run.holder is not None else run.started_at is not None


def waits(run: Run, waiter: WorkerRecord) -> RunHeld:
    """Says that a living process waits with a run until its time has come, and what to do."""
    where = f"run {run.number} of {run.flow} waits until {stamp(run.not_before)} in {process_of(waiter)}"
    ways = f"wake it (tsuzuki resume {run.number}), cancel it (tsuzuki cancel {run.number})"
    return RunHeld(f"{where}: let it go on there, {ways}, or start anew with fresh=True or --fresh")


class Holders:
    """The holders of the runs of a store."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def explained(self, held: KeyHeld) -> KeyHeld:
        """Says how to get on when the run that holds a key has lost whoever executed it."""
        row = await self._backend.get(held.run_id)
        if row is None or await self.lives(row) or (row.holder is None and not row.private):
            return held
        if await self.waiter(row) is not None:
            return held
        ways = f"continue it (tsuzuki resume {row.number}) or give it up (tsuzuki cancel {row.number})"
        text = f"the key {row.key!r} is held by run {row.number}, which nobody executes any more: {ways}"
        return KeyHeld(text, held.run_id)

    async def with_interrupted(self, query: Query) -> list[Run]:
        """Return the runs with one of the query's statuses, and the interrupted ones.

        No store keeps that as a status, so the active runs are looked at one by one.
        """
        gone, rows = await self.gone(), list[Run]()
        wanted = tuple(status for status in Status if status in ACTIVE or status in query.status)
        page = replace(query, status=wanted, private=None if query.status else True, limit=_PAGE)
        while True:
            found = await self._backend.search(page)
            for row in found:
                if row.status in query.status or interrupted(row, gone, await self.waited_for([row])):
                    rows.append(row)
            if len(found) < _PAGE or len(rows) >= query.limit:
                return rows[: query.limit]
            page = replace(page, before=(found[-1].updated_at, found[-1].id))

    async def lives(self, row: Run) -> bool:
        """Tells whether somebody alive holds a run."""
        return row.holder is not None and not await self.gone_from(row)

    async def gone(self) -> frozenset[str]:
        """Gives the holders of runs that have ended for certain."""
        return self._gone_of(await self._backend.workers(holding=True))

    async def lost(self, now: float, silent: float) -> frozenset[str]:
        """Gives the holders of runs that have ended for certain, or have been silent for so long (seconds)."""
        records = await self._backend.workers(holding=True)
        quiet = frozenset(r.id for r in records if state_of(r, now, silent) is WorkerState.DISCONNECTED)
        return self._gone_of(records) | quiet

    async def gone_from(self, row: Run) -> frozenset[str]:
        """Gives the holder of a run if it has ended for certain."""
        return self._gone_of([r for r in await self._backend.workers() if r.id == row.holder] if row.holder else [])

    async def left_by(self, process: int) -> list[Run]:
        """Gives the runs that a process of this machine held when it died, until somebody has taken them over."""
        records = await self._backend.workers(holding=True)
        names = [record.id for record in records if process_of(record) == f"process {process}"]
        return [run for name in names for run in await self._backend.search(Query(holder=name))]

    def _gone_of(self, records: Sequence[WorkerRecord]) -> frozenset[str]:
        return frozenset(r.id for r in records if r.stopped or self._is_gone(r))

    def _is_gone(self, record: WorkerRecord) -> bool:
        return is_gone(record, one_machine=self._backend.one_machine, now=self._backend.clock.now())

    async def takers(self, row: Run) -> list[str]:
        """Gives the living workers that would take a run."""
        records = [record for record in await self._backend.workers() if record.takes(row)]
        gone = self._gone_of(records)
        return [record.id for record in records if record.id not in gone]

    async def waiter(self, row: Run) -> WorkerRecord | None:
        """Return the living process that waits with a private run: it released the run, or was started again for it."""
        if not row.private or not is_waiting(row):
            return None
        records = [r for r in await self._backend.workers() if r.id == row.worker or r.current_run_id == row.id]
        gone = self._gone_of(records)
        return next((record for record in records if record.id not in gone), None)

    async def waited_for(self, rows: Sequence[Run]) -> frozenset[str]:
        """Gives the ids of those runs that a living process waits with."""
        return frozenset([row.id for row in rows if await self.waiter(row) is not None])
