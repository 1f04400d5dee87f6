"""Pages of 50 out of many runs: every filter and every pair of filters, the first, the middle and the last page."""

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import msgspec

from bench.process import Figures
from tsuzuki.backends import Query
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.queue import shelf_of
from tsuzuki.backends.sqlite.rows import folded, submitted
from tsuzuki.lifecycle import Run, Status, stamp

PAGE: Final = 50
EACH: Final = 5
"""How often a page is read; its time is the median, so that a noisy neighbour is not blamed on it."""
BEGAN: Final = 1_750_000_000.0

FILTERS: Final[dict[str, tuple[Any, ...]]] = {
    "status": ((Status.COMPLETED,), (Status.FAILED,), (Status.PENDING,), (Status.RUNNING,)),
    "flow": ("crawl", "nightly", "seldom"),
    "tag": ("default", "gpu"),
    "label": ("common", "rare"),
    "key": ("site-7",),
    "private": (True, False),
}
"""The values asked for, frequent and rare. No `nightly` run has the tag `gpu`: a page of both is empty."""


def made(number: int, dice: random.Random) -> Run:
    """Makes a run as a store would hold it after a year of use."""
    status = dice.choices(list(Status), weights=[WEIGHTS[s] for s in Status])[0]
    flow = dice.choices(("crawl", "nightly", "report", "seldom"), weights=(500, 400, 99, 1))[0]
    at = BEGAN + number * 60
    held = status in (Status.RUNNING, Status.CANCELLING)
    return Run(
        id=f"{dice.getrandbits(128):032x}"[:36],
        flow=flow,
        created_at=stamp(at),
        params=msgspec.Raw(b"{}"),
        digest=f"{dice.getrandbits(64):016x}",
        tag="gpu" if flow == "crawl" and dice.random() < 0.5 else "default",
        tags=tuple(label for label, share in (("common", 0.5), ("rare", 0.001)) if dice.random() < share),
        key=f"site-{dice.randrange(1000)}" if status.terminal and dice.random() < 0.5 else None,
        private=dice.random() < 0.3,
        status=status,
        attempt=1,
        holder="worker-1" if held else None,
        finished_at=stamp(at + 30) if status.terminal else None,
        updated_at=at,
        result=msgspec.Raw(b'{"pages": 17}'),
    )


WEIGHTS: Final = {
    Status.PENDING: 2000,
    Status.RUNNING: 10,
    Status.CANCELLING: 1,
    Status.COMPLETED: 90000,
    Status.FAILED: 6000,
    Status.CANCELLED: 2000,
}


async def build(folder: Path, count: int) -> SqliteBackend:
    """Fills a store of the real schema: through the port this would take minutes."""
    path = folder / "tsuzuki.db"
    await (await SqliteBackend.open(path)).close()
    dice = random.Random(7)
    with sqlite3.connect(path) as connection:
        for number in range(1, count + 1):
            run = made(number, dice)
            connection.execute(
                SQL["insert_run"], (*submitted(run, shelf_of(connection.execute, run)), *folded(run))
            ).fetchall()
            connection.execute(SQL["insert_params"], (number, "{}"))
            connection.executemany(SQL["insert_label"], [(label, run.updated_at, number) for label in run.tags])
    connection.close()
    return await SqliteBackend.open(path)


def filters() -> Iterator[dict[str, Any]]:
    """Gives no filter, every single one, and every pair."""
    yield {}
    for name, values in FILTERS.items():
        yield from ({name: value} for value in values)
    for (one, firsts), (other, seconds) in combinations(FILTERS.items(), 2):
        yield from ({one: first, other: second} for first in firsts for second in seconds)


async def all_of(backend: SqliteBackend, chosen: dict[str, Any]) -> list[Run]:
    return await backend.search(Query(**chosen, limit=1_000_000))


async def timed(backend: SqliteBackend, query: Query, expected: list[Run]) -> float:
    times = []
    for _ in range(EACH):
        started = perf_counter()
        page = await backend.search(query)
        times.append(perf_counter() - started)
        assert [run.id for run in page] == [run.id for run in expected]
    return median(times) * 1000


async def measured(folder: Path, count: int) -> dict[str, float]:
    backend = await build(folder, count)
    times: dict[str, float] = {}
    for chosen in filters():
        runs = await all_of(backend, chosen)
        for page, begin in (("first", 0), ("middle", len(runs) // 2), ("last", max(0, len(runs) - PAGE))):
            before = (runs[begin - 1].updated_at, runs[begin - 1].id) if begin else None
            query = Query(**chosen, before=before, limit=PAGE)
            name = " ".join(f"{key}={_shown(value)}" for key, value in chosen.items()) or "no filter"
            times[f"{name}, {page}"] = await timed(backend, query, runs[begin : begin + PAGE])
    await backend.close()
    return times


def _shown(value: Any) -> str:
    return str(value[0]) if isinstance(value, tuple) else str(value)


def pages(folder: Path, count: int) -> Figures:
    times = asyncio.run(measured(folder, count))
    slowest = sorted(times, key=times.__getitem__, reverse=True)
    return {
        "max": times[slowest[0]],
        "median": median(times.values()),
        "pages": len(times),
        "above_5_ms": sum(time > 5 for time in times.values()),
        "slowest": {name: round(times[name], 2) for name in slowest[:10]},
    }
