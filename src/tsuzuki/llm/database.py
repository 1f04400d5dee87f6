"""A small SQLite file of our own beside the store: one thread writes, and commits what has gathered together.

The only code that commits in such files.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from tsuzuki import privacy
from tsuzuki.backends.sqlite.faults import fault, file_fault
from tsuzuki.backends.sqlite.migrations import statements, steps
from tsuzuki.backends.sqlite.turnstile import Turnstile
from tsuzuki.backends.statements import parse
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import NewerStore, StoreClosed
from tsuzuki.lifecycle import stamp

Given = TypeVar("Given")

PATIENCE: Final = 10_000
"""How long a connection waits for a lock (milliseconds)."""
MOST: Final = 256
"""How much is written in one transaction."""
LARGEST_LOG: Final = 8 * 1024 * 1024

_VERSIONS: Final = parse((Path(__file__).with_name("versions.sql")).read_text(encoding="utf-8"))


class _Work(NamedTuple):
    call: Callable[[sqlite3.Connection], Any]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


class Database:
    """A file; `async with` it."""

    def __init__(self, path: Path, migrations: Path, clock: Clock | None = None) -> None:
        self.path, self._migrations = path, migrations
        self._clock: Clock = clock or SystemClock()
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> Self:
        # A daemon: whoever is cancelled while it lets go keeps no process; what is cut off was not acknowledged.
        self._thread = threading.Thread(target=self._run, name=f"tsuzuki-{self.path.stem}", daemon=True)
        self._thread.start()
        try:
            await self.write(self._migrated)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Writes what is under way, and lets go of the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._work.put(None)
            await asyncio.to_thread(thread.join)

    async def write(self, call: Callable[[sqlite3.Connection], Given]) -> Given:
        """Does something in a transaction; it is on the disk when this returns. What has begun is not cancelled."""
        if self._thread is None:
            raise StoreClosed(f"{self.path} was closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Given] = loop.create_future()
        self._work.put(_Work(call, loop, future))
        return await asyncio.shield(future)

    # On the thread

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        turnstile: Turnstile | None = None
        while (first := self._work.get()) is not None:
            group = [first]
            ended = False
            while len(group) < MOST and not self._work.empty():
                following = self._work.get()
                if following is None:
                    ended = True
                    break
                group.append(following)
            try:
                if connection is None or turnstile is None:
                    connection, turnstile = self._opened()
                outcomes = _transacted(connection, turnstile, group)
            except (sqlite3.Error, OSError) as error:
                told = fault(error, self.path) if isinstance(error, sqlite3.Error) else file_fault(error, self.path)
                outcomes = [(None, told)] * len(group)
            _tell(group, outcomes)
            if ended:
                break
        if connection is not None:
            connection.close()
        if turnstile is not None:
            turnstile.close()

    def _opened(self) -> tuple[sqlite3.Connection, Turnstile]:
        privacy.make_file(self.path)
        with contextlib.ExitStack() as opened:  # each write tries again to open what could not be opened
            turnstile = opened.enter_context(contextlib.closing(Turnstile(self.path)))
            connection = opened.enter_context(contextlib.closing(sqlite3.connect(self.path, isolation_level=None)))
            connection.execute(f"PRAGMA busy_timeout = {PATIENCE}")
            turnstile.enter()  # to change the mode SQLite waits for nobody
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                turnstile.leave()
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
            opened.pop_all()
        return connection, turnstile

    def _migrated(self, connection: sqlite3.Connection) -> None:
        connection.execute(_VERSIONS["make_versions"])
        present = connection.execute(_VERSIONS["version"]).fetchone()[0]
        known = steps(self._migrations)
        if present > max(known):
            raise NewerStore(f"{self.path} was written by a newer Tsuzuki; upgrade tsuzuki, or choose another folder")
        for number, script in known.items():
            if number > present:
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(_VERSIONS["applied"], (number, stamp(self._clock.now())))


def _transacted(
    connection: sqlite3.Connection, turnstile: Turnstile, group: list[_Work]
) -> list[tuple[Any, Exception | None]]:
    """Does everything in one transaction; what raises is undone alone."""
    outcomes: list[tuple[Any, Exception | None]] = []
    turnstile.enter()
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for work in group:
                connection.execute("SAVEPOINT one")
                try:
                    outcomes.append((work.call(connection), None))
                except Exception as error:  # noqa: BLE001 - it is raised where the work was asked for
                    connection.execute("ROLLBACK TO one")
                    outcomes.append((None, error))
                connection.execute("RELEASE one")
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
    finally:
        turnstile.leave()
    return outcomes


def _tell(group: list[_Work], outcomes: list[tuple[Any, Exception | None]]) -> None:
    """Wakes those who wait, each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, Exception | None]]] = {}
    for work, (value, error) in zip(group, outcomes, strict=True):
        by_loop.setdefault(work.loop, []).append((work.future, value, error))
    for loop, settled in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that was closed meanwhile has nobody who waits
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: "list[tuple[asyncio.Future[Any], Any, Exception | None]]") -> None:
    for future, value, error in settled:
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
