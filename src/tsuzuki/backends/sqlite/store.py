"""The store in one SQLite file: the verbs of the port, each a read on the loop or a job for the writer."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import (
    ALWAYS,
    NO_FINGERPRINTS,
    Check,
    Claim,
    DeadLetter,
    Entry,
    Holding,
    Line,
    Mark,
    Query,
    WorkerRecord,
    forgettable,
)
from tsuzuki.backends.sqlite import bell, journal, lists, queue, room
from tsuzuki.backends.sqlite.blobs import Blobs
from tsuzuki.backends.sqlite.examine import examine
from tsuzuki.backends.sqlite.faults import fault
from tsuzuki.backends.sqlite.file import Opened, prepare, refill_reserve
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import Columns, entry_from, line_columns, line_from, numbers, run_from, text
from tsuzuki.backends.sqlite.wheels import SqliteWheels
from tsuzuki.backends.sqlite.writer import Transaction, Writer
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import StoreClosed, StoreError, StoreUnavailable
from tsuzuki.lifecycle import Run, RunUpdateResult, Status
from tsuzuki.tallies import Histogram

Answer = TypeVar("Answer")

_DIGITS: Final = 18
MOST_LINES: Final = 20_000
"""How many log lines a run keeps."""

_worker: Final = msgspec.json.Decoder(WorkerRecord).decode
_letter: Final = msgspec.json.Decoder(DeadLetter).decode


class SqliteBackend:
    """Keeps everything in one file that any number of processes on this machine may share."""

    def __init__(self, opened: Opened, clock: Clock) -> None:
        self._path, self._turnstile, self._writing, self._reading = opened
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._blobs = Blobs(self._path)
        self._bell = bell.Bell(self._path, Sight(self._rows))
        self._writer = Writer(
            self._path,
            self._writing,
            self._turnstile,
            clock=clock,
            perform=journal.perform,
            committed=self._bell.ring,
        )
        self.wheels = SqliteWheels(self._path, self._rows, self._write)
        self._holders = journal.Holders(self._writer)
        self._closed = False

    @classmethod
    async def open(cls, path: str | PathLike[str], *, clock: Clock | None = None) -> "SqliteBackend":
        """Opens the store in a file, which is made when it is not there."""
        return cls(await asyncio.to_thread(prepare, Path(path)), clock or SystemClock())

    @property
    def one_machine(self) -> bool:
        return True  # a write-ahead log is shared memory: its users are on one machine

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def url(self) -> str:
        """The address that opens this store again."""
        return f"sqlite:{self._path}"

    @property
    def writes(self) -> Histogram:
        return self._writer.sizes

    # The journal

    def append(self, claim: Claim, facts: Sequence[f.Fact], *, alone: bool = False) -> Awaitable[int]:
        return self._holders.append(claim, facts, alone=alone)

    async def read(self, run_id: str, *, after: int = 0, limit: int = 2000) -> list[Entry]:
        return [entry_from(row) for row in self._rows("facts", run_id, after, limit)]

    async def outcomes(self, run_id: str, *, after: int = 0, limit: int = 5000) -> list[Mark]:
        return [Mark(*row) for row in self._rows("marks", run_id, after, limit)]

    async def fetch(self, run_id: str, positions: Sequence[int]) -> list[Entry]:
        return [entry_from(row) for row in self._rows("facts_at", run_id, numbers(positions))]

    async def changed(self, run_id: str, position: int, timeout: float) -> None:
        await self._bell.run(run_id, position, timeout)

    # The log

    async def log(self, run_id: str, lines: Sequence[Line], progress: bytes | None = None) -> None:
        await self._write(partial(_log, run_id=run_id, lines=lines, progress=progress))

    async def read_log(self, run_id: str, *, after: int = 0, limit: int = 1000) -> list[Line]:
        return [line_from(row) for row in self._rows("lines", run_id, after, limit)]

    # The queue

    async def submit(self, run: Run, fact: f.Fact, *, claimed: f.Claimed | None = None) -> Run:
        facts = [fact] if claimed is None else [fact, claimed]
        return await self._write(partial(queue.submit, run=run, facts=facts))

    async def claim(
        self,
        worker: str,
        *,
        tags: Sequence[str] = (),
        limit: int = 1,
        flows: Collection[str] | None = None,
        workflows: bool = True,
        dead: frozenset[str] = frozenset(),
        run_id: str | None = None,
        fingerprints: Mapping[str, str] = NO_FINGERPRINTS,
        wheels: Mapping[str, str] = NO_FINGERPRINTS,
        alone: bool = False,
    ) -> list[Claim]:
        # A look without a transaction: an idle worker writes nothing.
        wanted = queue.Wanted(worker, tags, limit, dead, run_id, fingerprints, flows, workflows, wheels, alone)
        with self._reading_faults():
            if run_id is None and not queue.candidates(self._reading.execute, wanted, self._clock.now(), 1):
                return []
        return await self._write(partial(queue.claim, wanted=wanted))

    async def ask(
        self, run_id: str, fact: f.Fact, *, dead: frozenset[str] = frozenset()
    ) -> tuple[RunUpdateResult, Run | None]:
        return await self._write(partial(queue.ask, run_id=run_id, fact=fact, dead=dead))

    async def work(self, timeout: float) -> None:
        now = self._clock.now()
        due = self._rows("due", now)[0][0]
        await self._bell.work(timeout if due is None else min(timeout, due - now))

    # Workers

    async def beat(self, worker: WorkerRecord) -> list[Holding]:
        def record(transaction: Transaction) -> list[Holding]:
            shown = text(msgspec.structs.replace(worker, hidden=False))  # what is there stays
            if transaction.execute(SQL["beat"], (worker.id, transaction.now, shown)).fetchall() == [(1,)]:
                _forget_workers(transaction, worker.id)
            rows = transaction.execute(SQL["holdings"], (worker.id,)).fetchall()
            return [Holding(run_id, attempt, bool(cancelling)) for run_id, attempt, cancelling in rows]

        held: list[Holding] = await self._write(record)
        self._holders.forget_lost(worker.id, {(each.run_id, each.attempt) for each in held})
        return held

    async def workers(self, *, holding: bool = False) -> list[WorkerRecord]:
        return [_worker_from(row) for row in self._rows("holders" if holding else "workers")]

    async def hide(self, worker_id: str, hidden: bool) -> bool:
        def hide(transaction: Transaction) -> bool:
            return bool(transaction.execute(SQL["hide"], (hidden, worker_id)).fetchall())

        return await self._write(hide)

    # The index

    async def get(self, run_id: str) -> Run | None:
        rows = self._rows("run_by_id", run_id)
        return run_from(rows[0]) if rows else None

    async def search(self, query: Query) -> list[Run]:
        with self._reading_faults(), lists.one_look(self._reading):
            return lists.search(self._reading.execute, query)

    async def counts(
        self,
        *,
        flow: str | None = None,
        tag: str | None = None,
        tenant: str | None = None,
        updated_after: float = 0.0,
        updated_by: float = ALWAYS,
    ) -> dict[str, int]:
        if flow is tag is tenant is None:
            rows = self._rows("counts", updated_after, updated_by)
        else:
            rows = self._rows("counts_on_shelves", updated_after, updated_by, flow, tag, tenant, text(list(Status)))
        counts: dict[str, int] = {}
        for status, count in rows:
            counts[status] = counts.get(status, 0) + count
        return {status: count for status, count in counts.items() if count}

    async def waiting_since(self) -> float | None:
        found = [since for (since,) in self._rows("waiting_since", self._clock.now()) if since is not None]
        return min(found, default=None)

    async def dead_letters(self, *, limit: int = 100, before: str | None = None) -> list[DeadLetter]:
        older_than = 2**62 if before is None else _number(before)
        return [_letter_from(row) for row in self._rows("dead_letters", older_than, limit)]

    async def count_letters(self) -> int:
        return int(self._rows("count_letters")[0][0])

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        rows = self._rows("dead_letter", _number(letter))
        return _letter_from(rows[0]) if rows else None

    async def drop_letter(self, letter: str) -> bool:
        return await self._write(
            lambda transaction: transaction.execute(SQL["drop_letter"], (_number(letter),)).rowcount > 0
        )

    # Records

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        await self._write(lambda transaction: transaction.execute(SQL["put_record"], (kind, name, body)))

    async def record(self, kind: str, name: str) -> bytes | None:
        rows = self._rows("record", kind, name)
        return rows[0][0] if rows else None

    async def records(self, kind: str) -> list[tuple[str, bytes]]:
        return [(name, body) for name, body in self._rows("records", kind)]

    async def drop_record(self, kind: str, name: str) -> bool:
        return await self._write(lambda transaction: transaction.execute(SQL["drop_record"], (kind, name)).rowcount > 0)

    # Blobs

    async def put_blob(self, run_id: str, data: bytes) -> str:
        if not self._rows("run_by_id", run_id):
            raise StoreError(f"there is no run {run_id} to keep a blob for")
        return await asyncio.to_thread(self._blobs.put, run_id, data)

    async def get_blob(self, run_id: str, blob: str) -> bytes:
        return await asyncio.to_thread(self._blobs.get, run_id, blob)

    # Shared limits

    async def take(self, limit: str, *, interval: float, burst: int = 1) -> float:
        now = self._clock.elapsed()
        return await self._write(partial(_take, limit=limit, interval=interval, burst=burst, now=now))

    async def enter(self, limit: str, *, places: int, worker: str, dead: frozenset[str] = frozenset()) -> bool:
        def enter(transaction: Transaction) -> bool:
            transaction.executemany(SQL["free_places"], [(limit, gone) for gone in dead])
            free: bool = transaction.execute(SQL["places_taken"], (limit,)).fetchall()[0][0] < places
            if free:
                transaction.execute(SQL["take_place"], (limit, worker))
            return free

        return await self._write(enter)

    async def leave(self, limit: str, *, worker: str) -> None:
        await self._write(lambda transaction: transaction.execute(SQL["leave_place"], (limit, worker)))

    # The store itself

    async def rebuild(self, run_id: str) -> Run | None:
        return await self._write(partial(queue.rebuild, run_id=run_id), heavy=True)

    async def purge(self, run_ids: Sequence[str]) -> int:
        try:
            return await self._purge(run_ids)
        except StoreUnavailable:
            if len(run_ids) <= 1:
                raise
        # On a full disk the log has no room for all of them at once, and a little for each.
        return sum([await self._purge([run_id]) for run_id in run_ids])

    async def _purge(self, run_ids: Sequence[str]) -> int:
        def remove(transaction: Transaction) -> list[str]:
            transaction.flush()
            transaction.execute(SQL["keep_clock"], (transaction.stamp(),))
            gone = [transaction.execute(SQL["purge"], (run_id,)).fetchall() for run_id in run_ids]
            return [rows[0][0] for rows in gone if rows]

        purged = await self._write(remove, heavy=True)
        # A crash here leaves folders of unknown runs, which `examine` sweeps.
        await asyncio.to_thread(self._blobs.remove, purged)
        if purged:
            with contextlib.suppress(StoreUnavailable):  # a full disk: what is left is given back by the next purge
                while await self._write(room.give_back, heavy=True):
                    pass
            await asyncio.to_thread(room.merge, self._path)
        return len(purged)

    async def compact(self) -> Check:
        return await asyncio.to_thread(room.compact, self._path)

    async def examine(self) -> list[Check]:
        return await asyncio.to_thread(examine, self._path, self._blobs, self._clock.now())

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(StoreUnavailable):  # whoever waits for a job was told
            await self._writer.close(journal.Errand(lambda _: None, self._loop.create_future(), heavy=False))
        self._bell.close()
        self._reading.close()
        self._writing.close()
        self._turnstile.close()
        refill_reserve(self._path)

    # Reading and writing

    def _rows(self, query: str, *values: object) -> list[Columns]:
        """Reads all rows of a bounded query: an unfinished one would hide what others commit."""
        with self._reading_faults():
            return self._reading.execute(SQL[query], values).fetchall()

    @contextlib.contextmanager
    def _reading_faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if self._closed:
                raise StoreClosed(f"{self._path} was closed; open it again") from error
            raise fault(error, self._path) from error

    async def _write(self, work: Callable[[Transaction], Answer], *, heavy: bool = False) -> Answer:
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._writer.put(journal.Errand(work, future, heavy=heavy))
        return await future


class Sight:
    """What the bell reads from the file."""

    def __init__(self, rows: Callable[..., list[Columns]]) -> None:
        self._rows = rows

    def version(self) -> int:
        """Gives a number that differs after every commit of anybody."""
        number: int = self._rows("data_version")[0][0]
        return number

    def news(self) -> bell.News:
        """Tells what a worker would look for."""
        return self._rows("news")[0]

    def mark(self, run_id: str) -> bell.Mark | None:
        """Tells how far a run has come."""
        rows = self._rows("mark", run_id)
        return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def _worker_from(row: Columns) -> WorkerRecord:
    heartbeat_at, beats, body = row
    return msgspec.structs.replace(_worker(body), heartbeat_at=heartbeat_at, beats=beats)


def _forget_workers(transaction: Transaction, new: str) -> None:
    records = [_worker_from(row) for row in transaction.execute(SQL["workers"]).fetchall()]
    holders = {row[0] for row in transaction.execute(SQL["held_by"]).fetchall()}
    forgotten = forgettable([r for r in records if r.id != new], holders, transaction.now)
    transaction.executemany(SQL["forget_worker"], [(worker,) for worker in forgotten])


def _log(transaction: Transaction, run_id: str, lines: Sequence[Line], progress: bytes | None) -> None:
    found = transaction.execute(SQL["log_of"], (run_id,)).fetchall()
    if not found:  # purged meanwhile: the log is lossy
        return
    number, position, last = found[0]
    first = (last or 0) + 1
    rows = [(number, at, line_columns(line, position)) for at, line in enumerate(lines, first)]
    transaction.executemany(SQL["insert_line"], rows[-MOST_LINES:])
    if first + len(rows) - 1 > MOST_LINES:
        transaction.execute(SQL["cut_log"], (number, first + len(rows) - 1 - MOST_LINES))
    if progress is not None:
        updated_at = transaction.stamp()
        transaction.execute(SQL["set_progress"], (progress.decode(), updated_at, number))
        transaction.execute(SQL["move_labels"], (updated_at, number))
    transaction.runs.add(run_id)


def _letter_from(row: Columns) -> DeadLetter:
    return msgspec.structs.replace(_letter(row[1]), id=str(row[0]))


def _number(letter: str) -> int:
    """Reads the id of a dead letter; one that was never given belongs to none."""
    return int(letter) if letter.isascii() and letter.isdigit() and len(letter) <= _DIGITS else 0


def _take(transaction: Transaction, limit: str, interval: float, burst: int, now: float) -> float:
    """Gives the next turn; `now` counts from the start of the machine, so that setting the clock moves no turn."""
    found = transaction.execute(SQL["turn"], (limit,)).fetchall()
    due, asked_at = found[0] if found else (now, now)
    if asked_at > now:  # the machine was started anew
        due = now
    turn = max(due, now)
    transaction.execute(SQL["set_turn"], (limit, turn + interval, now))
    wait: float = turn - (burst - 1) * interval - now
    return max(0.0, wait)
