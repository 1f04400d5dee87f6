"""What the disk and Python give without any engine: the denominators of the ratios."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Iterable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.process import Figures, Stopwatch

LANES = 100


def connect(folder: Path) -> sqlite3.Connection:
    """Opens a fresh file as durable as ours: WAL, FULL, transactions spelled out."""
    connection = sqlite3.connect(folder / "yardstick.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def commits(folder: Path, rows: int) -> Figures:
    """Y: one row per commit."""
    connection = connect(folder)
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    watch = Stopwatch()
    for number in range(rows):
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, "null"))
    return watch.figures(rows)


def fsyncs(folder: Path, count: int) -> Figures:
    """The time of an fsync after a write of 4 KB that extends a file."""
    times = []
    with (folder / "file").open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * 4096)
            started = perf_counter()
            os.fsync(file.fileno())
            times.append(perf_counter() - started)
    return {"ms": median(times) * 1000}


async def no_op(item: int) -> int:
    return item


class GroupCommit:
    """Writes what gathered in a tick of the loop in one transaction."""

    def __init__(self, connection: sqlite3.Connection, statement: str) -> None:
        self._connection, self._statement = connection, statement
        self._loop = asyncio.get_running_loop()
        self._rows: list[tuple[int, ...]] = []
        self._written = self._loop.create_future()

    def put(self, row: tuple[int, ...]) -> "asyncio.Future[None]":
        """Takes a row; await what it gives to know that it is on the disk."""
        if not self._rows:
            self._loop.call_soon(self._commit)
        self._rows.append(row)
        return self._written

    def _commit(self) -> None:
        rows, self._rows = self._rows, []
        written, self._written = self._written, self._loop.create_future()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(self._statement, rows)
        self._connection.execute("COMMIT")
        written.set_result(None)


def bare_items(folder: Path, count: int) -> Figures:
    """Lanes of no-op coroutines that share one input; each result is a row."""
    connection = connect(folder)
    connection.execute("CREATE TABLE items (key INTEGER PRIMARY KEY, result INTEGER)")

    async def work() -> Figures:
        group = GroupCommit(connection, "INSERT INTO items VALUES (?, ?)")
        items = iter(range(count))

        async def lane() -> None:
            for item in items:
                await group.put((item, await no_op(item)))

        return await timed([lane() for _ in range(LANES)], count)

    figures = asyncio.run(work())
    assert connection.execute("SELECT count(*) FROM items").fetchone() == (count,)
    return figures


def bare_runs(folder: Path, count: int) -> Figures:
    """The same over rows that wait: claimed 100 at a time before they run, completed afterwards, both on the disk."""
    connection = connect(folder)
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, status TEXT, result INTEGER)")
    connection.execute("CREATE INDEX waiting ON runs (id) WHERE status = 'PENDING'")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO runs VALUES (?, 'PENDING', NULL)", [(number,) for number in range(count)])
    connection.execute("COMMIT")

    def claimed() -> Iterator[int]:
        while found := connection.execute(
            "UPDATE runs SET status = 'RUNNING' WHERE id IN "
            "(SELECT id FROM runs WHERE status = 'PENDING' ORDER BY id LIMIT ?) RETURNING id",
            (LANES,),
        ).fetchall():
            yield from (number for (number,) in found)

    async def work() -> Figures:
        group = GroupCommit(connection, "UPDATE runs SET status = 'COMPLETED', result = ? WHERE id = ?")
        numbers = claimed()

        async def lane() -> None:
            for number in numbers:
                await group.put((await no_op(number), number))

        return await timed([lane() for _ in range(LANES)], count)

    figures = asyncio.run(work())
    assert connection.execute("SELECT count(*) FROM runs WHERE status = 'COMPLETED'").fetchone() == (count,)
    return figures


async def timed(lanes: Iterable[Awaitable[None]], count: int) -> Figures:
    watch = Stopwatch()
    await asyncio.gather(*lanes)
    return watch.figures(count)
