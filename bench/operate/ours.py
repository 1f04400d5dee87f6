"""Backs a store up and brings it back, and compares the two item by item; in a process of its own."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from bench.operate.comparing import items, names
from bench.process import Figures, peak_mb
from bench.wheels.ours import upload
from tests.wheels.making import make_wheel
from tsuzuki import Runs, Worker, flow
from tsuzuki.backends import copying
from tsuzuki.examination import examine

WHEELS: Final = 20
SUBMITTED_AT_ONCE: Final = 64
MEGABYTE: Final = 1 << 20


@flow
async def no_op(number: int) -> int:
    return number


def on_nats(folder: Path, runs: int, megabytes: int) -> Figures:
    """Fills the first server, backs it up, restores it into the second one, and compares all streams."""
    here, there = (folder / "address").read_text().split()
    return asyncio.run(_on_nats(folder, here, there, runs, megabytes))


async def _on_nats(folder: Path, here: str, there: str, count: int, megabytes: int) -> Figures:
    await _runs(here, count)
    await _wheels(here, folder, megabytes)
    figures = await _timed(folder / "backup", here, there)
    streams = await names(here)
    assert streams == await names(there)
    compared = 0
    for stream in streams:
        one, other = await items(here, stream), await items(there, stream)
        assert one == other, f"{stream} differs"
        compared += len(one)
    return {**figures, "compared": compared, "streams": len(streams)}


def on_sqlite(folder: Path, runs: int, megabytes: int) -> Figures:
    """Fills a file and the wheels beside it, backs it up, restores it elsewhere, and compares all rows and files."""
    return asyncio.run(_on_sqlite(folder, runs, megabytes))


async def _on_sqlite(folder: Path, count: int, megabytes: int) -> Figures:
    here, there = folder / "here" / "runs.db", folder / "there" / "runs.db"
    await _runs(f"sqlite:{here}", count)
    await _wheels(f"sqlite:{here}", folder, megabytes)
    figures = await _timed(folder / "backup", f"sqlite:{here}", f"sqlite:{there}")
    one, other = _contents(here), _contents(there)
    assert one == other, "they differ"
    return {**figures, "compared": sum(map(len, one.values())), "streams": len(one)}


def _contents(file: Path) -> dict[str, set[Any]]:
    """Gives all rows of all tables but the workers', who are of another machine on purpose, and all files beside it."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {name: set(connection.execute(f"SELECT * FROM {name}")) for name in tables if name != "workers"}  # noqa: S608 - its own names
    beside = {path.relative_to(file.parent) for path in file.parent.glob(f"{file.name}-*/**/*") if path.is_file()}
    return {**rows, "files": {(str(path), (file.parent / path).read_bytes()) for path in beside}}


async def _wheels(url: str, folder: Path, megabytes: int) -> None:
    """Uploads real wheels that have so much together."""
    async with Runs.open(url) as runs:
        for number in range(WHEELS):
            content = {f"package{number}/content.bin": os.urandom(megabytes * MEGABYTE // WHEELS)}
            await upload(runs.backend, make_wheel(folder, f"package{number}", "1.0", content, packed=False))


async def _runs(url: str, count: int) -> None:
    """Submits runs and executes them all."""
    async with Runs.open(url) as runs:
        gate = asyncio.Semaphore(SUBMITTED_AT_ONCE)

        async def submit(number: int) -> None:
            async with gate:
                await runs.submit(no_op, {"number": number})

        await asyncio.gather(*(submit(number) for number in range(count)))
        async with Worker(runs.backend, [no_op], concurrency=50) as worker:
            working = asyncio.create_task(worker.run())
            while (await runs.backend.counts()).keys() - {"COMPLETED"}:
                await asyncio.sleep(0.05)
            worker.stop()
            await working


async def _timed(folder: Path, here: str, there: str) -> Figures:
    figures: Figures = {}
    made = await _took(figures, "backup", lambda: copying.backup(here, folder))
    _, flaws = await _took(figures, "verify", lambda: copying.verify(folder))
    assert not flaws
    await _took(figures, "restore", lambda: copying.restore(folder, there))
    async with Runs.open(there) as runs:
        checks = await _took(figures, "doctor", lambda: examine(runs))
        assert all(check.ok for check in checks), checks
    return {**figures, "mb": made.size / MEGABYTE, "peak_mb": peak_mb()}


async def _took(figures: Figures, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
    started = perf_counter()
    answer = await work()
    figures[name] = perf_counter() - started
    return answer
