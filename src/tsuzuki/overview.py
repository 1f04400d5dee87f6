"""What one can see and do beyond a single run's life: news of a run, pages of its items, workers, counts.

The gateway calls these beside `Runs`; rules stay below, in the port and the lifecycle.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tsuzuki import facts as f
from tsuzuki.backends import ALWAYS, Entry, Line, Query, WorkerRecord
from tsuzuki.backends.registry import PUBLISHED
from tsuzuki.crew import ALIVE, Crew, SeenWorker
from tsuzuki.errors import MoveRefused, RunNotFound
from tsuzuki.inputs import given_to, shortened
from tsuzuki.lifecycle import TERMINAL, Run, stamp
from tsuzuki.probing import try_writing
from tsuzuki.runs import Runs
from tsuzuki.spending import usage
from tsuzuki.tallies import Histogram, Odometer, Tallies

OUTCOMES: Final = {
    "ItemDone": "done",
    "StepDone": "done",
    "ItemSkipped": "skipped",
    "ItemFailed": "failed",
    "StepFailed": "failed",
}
"""How an outcome is called in a page of items."""
MOST_PREVIEW: Final = 120
"""So many bytes of a value are shown in a list of items."""
MOST_INPUTS: Final = 240
"""And so many of what it was given."""
DAY: Final = 86_400
MOST_SPENDERS: Final = 20_000
"""What so many runs have spent is added up."""
_SPENDERS: Final = 500
_PAGE: Final = 2000
_MOST_READ: Final = 50_000
"""A page of items looks at no more facts than this; with a rare filter it is short, and its cursor goes on."""


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items to list; unset fields do not filter."""

    status: str | None = None
    error: str | None = None
    step: str | None = None
    key: str | None = None
    failed_after: int = 0
    """Failures before this position were tried again; they are not listed as failed."""
    spent: bool = False
    """Only what has spent something on models."""

    def fits(self, item: dict[str, Any]) -> bool:
        """Tells whether an item is asked for."""
        return (
            (self.status is None or item["status"] == self.status)
            and (self.status != "failed" or item["position"] > self.failed_after)
            and (not self.spent or item["usage"] is not None)
            and (self.step is None or self.step in (item["task"], item["step"]))
            and (self.key is None or self.key.lower() in item["key"].lower())
            and (self.error is None or self.error.lower() in str(item.get("error", "")).lower())
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a store at one moment."""

    runs: dict[str, int]
    today: dict[str, int]
    workers: list[SeenWorker]
    letters: int
    queue_age: float
    """For how long the run that waits longest has waited (seconds)."""
    tallies: Tallies
    """What all workers have counted, and what this process has written."""


@dataclass(frozen=True, slots=True)
class Spenders:
    """The runs that have spent something on models, the newest first; `more`: there are others."""

    rows: list[Run]
    more: bool


class Overview:
    """The wider view of a store."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._backend = runs.backend
        self._odometer = Odometer()

    async def try_writing(self) -> None:
        """Raises `StoreUnavailable` where the store does not take writes."""
        await try_writing(self._backend, "gateway")

    # A run as it goes

    async def facts(self, run_id: str, *, after: int, limit: int = _PAGE) -> list[Entry]:
        """Gives facts after a position."""
        return await self._backend.read(run_id, after=after, limit=limit)

    async def news(self, row: Run, timeout: float) -> Run | None:
        """Waits until a run may have changed since `row`, or the time is up; gives its row now."""
        await self._backend.changed(row.id, row.position, timeout)
        return await self._backend.get(row.id)

    async def row(self, run_id: str) -> Run | None:
        """Gives the row of a run by its whole id."""
        return await self._backend.get(run_id)

    async def blob(self, run_id: str, blob: str) -> bytes:
        """Gives a large value of a run."""
        return await self._backend.get_blob(run_id, blob)

    async def lines(self, run_id: str, *, after: int, limit: int) -> list[Line]:
        """Gives log lines after a number."""
        return await self._backend.read_log(run_id, after=after, limit=limit)

    async def spenders(self, *, tenant: str | None = None, updated_after: float | None = None) -> Spenders:
        """Gives the runs that have spent something on models, the newest of them."""
        rows: list[Run] = []
        query = Query(spent=True, tenant=tenant, updated_after=updated_after, limit=_SPENDERS, params=False)
        while len(rows) < MOST_SPENDERS:
            page = await self._runs.list(query)
            rows += page
            if len(page) < _SPENDERS:
                return Spenders(rows, more=False)
            query = replace(query, before=(page[-1].updated_at, page[-1].id))
        return Spenders(rows, more=True)

    async def items(
        self, row: Run, wanted: ItemFilter, *, after: int, limit: int, maps: dict[str, f.StepStarted]
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Gives a page of recorded steps and items, and the position to go on from; None: that was all.

        `maps` says how the maps began, by their step; what begins later is added to it.
        """
        found: list[dict[str, Any]] = []
        position = after
        async for entry in self._read(row.id, after, _MOST_READ):
            position = entry.position
            if isinstance(entry.fact, f.StepStarted) and entry.fact.map:
                maps[entry.fact.step] = entry.fact
            if isinstance(entry.fact, f.Outcome):
                item = shown_item(entry, entry.fact, maps.get(entry.fact.step), MOST_INPUTS)
                if wanted.fits(item):
                    found.append(item)
            if len(found) >= limit:
                break
        return found, position if position < row.position and position > after else None

    async def _read(self, run_id: str, after: int, most: int) -> AsyncIterator[Entry]:
        for count in itertools.count():
            entries = await self._backend.read(run_id, after=after, limit=_PAGE)
            for entry in entries:
                yield entry
            if len(entries) < _PAGE or (count + 1) * _PAGE >= most:
                return
            after = entries[-1].position
            await asyncio.sleep(0)  # others have their turn: a store on this machine reads without waiting

    async def remove(self, row: Run) -> None:
        """Removes a run that has ended, with all it left."""
        if row.status not in TERMINAL:
            raise MoveRefused(f"run {row.number} is {row.status}: only a run that has ended can be removed; cancel it")
        if not await self._backend.purge([row.id]):
            raise RunNotFound

    # The store

    async def counts(
        self,
        *,
        flow: str | None = None,
        tag: str | None = None,
        tenant: str | None = None,
        updated_after: float = 0.0,
        updated_by: float = ALWAYS,
    ) -> dict[str, int]:
        """Counts the runs by status: of a flow, tag or tenant, those that changed after a time, by another."""
        return await self._backend.counts(
            flow=flow, tag=tag, tenant=tenant, updated_after=updated_after, updated_by=updated_by
        )

    async def workers(self) -> list[SeenWorker]:
        """Gives all workers with their states, the last seen first."""
        return await Crew(self._runs).list(everyone=True, hidden=True, limit=None)

    async def alive(self) -> list[WorkerRecord]:
        """Gives the workers that live."""
        return [seen.record for seen in await self.workers() if seen.state in ALIVE]

    async def published_flows(self) -> dict[str, bytes]:
        """Gives what workers have published of their flows, by name."""
        return dict(await self._backend.records(PUBLISHED))

    def monotonic(self) -> float:
        """Gives a time that only grows, for those who remember what they read (seconds)."""
        return self._backend.clock.monotonic()

    async def waiting_since(self) -> float | None:
        """Gives since when the run that waits longest could have been claimed; None: none waits."""
        return await self._backend.waiting_since()

    async def figures(self) -> Figures:
        """Gives the figures of the store as it is now."""
        now, waiting = self._runs.now(), await self.waiting_since()
        workers = await self.workers()
        told = [(w.record.instance_id, w.record.tallies) for w in workers if w.record.tallies is not None]
        writes = self._backend.writes
        own = ("", Tallies(writes=Histogram([*writes.counts], writes.total)))  # as it is now: it goes on growing
        return Figures(
            runs=await self._backend.counts(),
            today=await self._backend.counts(updated_after=now - now % DAY),
            workers=workers,
            letters=await self._backend.count_letters(),
            queue_age=0.0 if waiting is None else max(now - waiting, 0.0),
            tallies=self._odometer.look([*told, own]),
        )

    async def hide(self, worker_id: str, *, hidden: bool) -> None:
        """Sets whether a worker is shown."""
        await Crew(self._runs).hide(worker_id, hidden=hidden)


def shown_item(entry: Entry, fact: f.Outcome, mapped: f.StepStarted | None, most: int) -> dict[str, Any]:
    """Gives an outcome as a row of a list of items; its inputs in so many bytes."""
    given = given_to(fact, mapped)
    shown = given if given is None else shortened(given, most)
    item: dict[str, Any] = {
        "position": entry.position,
        "status": OUTCOMES.get(f.kind(fact), "done"),
        "kind": f.kind(fact),
        "task": fact.name or f.name_of(mapped),
        "step": fact.step,
        "key": fact.key,
        "attempt": fact.attempt,
        "tries": fact.tries,
        "took": round(fact.took, 6),
        "at": stamp(fact.at),
        "ended_at": fact.at,
        "error": None,
        "usage": usage(fact.spent) if fact.spent else None,
        "inputs": None if shown is None else msgspec.Raw(shown),
        "inputs_truncated": fact.inputs_cut or shown is not given,
        "preview": bytes(getattr(fact, "result", b""))[:MOST_PREVIEW].decode(errors="ignore"),
    }
    if isinstance(fact, f.ItemFailed | f.StepFailed):
        item["error"] = fact.error.said
    return item
