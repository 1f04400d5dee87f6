"""The only code that commits: it gathers what waits into one transaction and acknowledges it together.

What was put in one tick of the event loop is written at its end, on the loop: for a lone step that is the
shortest way, and for many it is one fsync. Nothing on the loop ever blocks: when another process has its
turn, when a job is heavy or when the disk is slow, a thread writes instead, one group at a time, while the
next group gathers. Where the turn does not come, the loop writes without one.
"""

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from os.path import samestat
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeVar

from tsuzuki.backends.sqlite import turnstile
from tsuzuki.backends.sqlite.faults import UnclearCommit, busy, fault, refused_io
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.turnstile import Turnstile
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import ClaimLost, Conflict, StoreClosed, StoreUnavailable
from tsuzuki.tallies import SIZES, sizes

Answer = TypeVar("Answer")

SLOW: Final = 0.002
"""A disk whose commits take longer on average is written by the thread."""
LONGEST: Final = 0.008
"""A commit counts as no longer than this: one checkpoint does not make a disk slow."""
AT_ONCE: Final = 0.005
"""How long jobs that are alone are written at once, before the loop has its turn again (seconds)."""
TRY_AGAIN: Final = 2.0
"""After so many seconds on the thread the loop is tried again."""
PATIENCE: Final = 10.0
"""How long a write waits while another program locks the file, before it is refused."""
LONGEST_TURN: Final = 30.0
"""How long a write waits while another process is in the middle of its own, before it is refused."""
OVERTAKING: Final = 0.02
"""How often a write without a turn is tried (seconds)."""

LOOK: Final = 0.1
"""How often a writer looks whether its file is still there (seconds)."""

REFUSALS: Final = (ClaimLost, Conflict)
"""What a job may raise before it has written anything; the others in its group are not harmed."""

_seconds: Final = SystemClock().monotonic


class Times:
    """Gives out `updated_at`: strictly increasing per store, across processes, also when the clock steps back."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._execute, self._clock = connection.execute, clock
        self._last = 0.0
        self._version = -1

    def begin(self) -> float:
        """Gives the time at the beginning of a transaction; looks for later times only if others have written."""
        version = self._execute("PRAGMA data_version").fetchall()[0][0]
        if version != self._version:
            self._version = version
            self._last = max(self._last, self._execute(SQL["latest"]).fetchall()[0][0])
        return self._clock.now()

    def next(self, now: float, count: int = 1) -> float:
        """Gives out the next one, or the first of the next few, which are a microsecond apart."""
        first = max(now, self._last + 1e-6)
        self._last = first + 1e-6 * (count - 1)
        return first


class Transaction:
    """A write transaction under way: its connection, its time, and whom it concerns."""

    __slots__ = ("_times", "careful", "execute", "executemany", "facts", "now", "rings", "runs", "work")

    def __init__(self, connection: sqlite3.Connection, times: Times, *, careful: bool = False) -> None:
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.facts: list[tuple[Any, ...]] = []
        self.now = times.begin()
        self.careful = careful
        self.runs: set[str] = set()
        self.rings = self.work = False
        self._times = times

    def stamp(self) -> float:
        """Gives out the next `updated_at`."""
        return self._times.next(self.now)

    def stamps(self, count: int) -> float:
        """Gives out the next few, a microsecond apart; gives the first."""
        return self._times.next(self.now, count)

    def flush(self) -> None:
        """Writes the facts that gathered, all with one statement."""
        if self.facts:
            self.executemany(SQL["insert_fact"], self.facts)
            self.facts = []


class Job(Protocol):
    """Something to write, and who waits for it."""

    future: asyncio.Future[Any]
    heavy: bool


Settled = tuple[Job, Any, Exception | None]
"""A job with its answer or its error."""
Concerned = tuple[AbstractSet[str], bool, bool]
"""The runs that a commit has changed, whether other processes may wait for it, and whether it may mean work."""
NOBODY: Final[Concerned] = (frozenset(), False, False)
Perform = Callable[[Transaction, Sequence[Job]], list[Settled]]


class _Group:
    """Jobs on their way through the thread; given up as long as they have not begun."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs, self.since = jobs, _seconds()
        self._lock = threading.Lock()
        self._state = "waits"

    def move(self, state: str) -> bool:
        """Begins it or gives it up, whichever comes first."""
        with self._lock:
            if self._state == "waits":
                self._state = state
            return self._state == state


class Writer:
    """Writes jobs in groups; each gets its answer after its group is on the disk."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        turnstile: Turnstile,
        *,
        clock: Clock,
        perform: Perform,
        committed: Callable[[AbstractSet[str], bool, bool], None],
    ) -> None:
        self._connection, self._turnstile, self._path = connection, turnstile, path
        self._file, self._seen = path.stat(), _seconds()
        self._times = Times(connection, clock)
        self._perform, self._committed = perform, committed
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Job] = []
        self._scheduled = self._away = self._closed = False
        self._let_go = 0.0
        self._average = SLOW / 4
        self._slow_since: float | None = None
        self._queue: SimpleQueue[_Group | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self.sizes = sizes()

    def put(self, job: Job, *, alone: bool = False) -> None:
        """Takes a job; its future is settled when it is written or refused, for one that is alone at once.

        Not always, though: whoever gets its answers at once never lets the loop go on.
        """
        if self._closed:
            job.future.set_exception(StoreClosed(f"{self._path} was closed; open it again"))
            return
        self._waiting.append(job)
        if self._scheduled or self._away:
            return
        if alone and _seconds() - self._let_go < AT_ONCE:
            self._tick()
            return
        self._scheduled = True
        self._loop.call_soon(self._tick_of_the_loop)

    async def close(self, last: Job) -> None:
        """Writes what waits, a last job included, and ends the thread."""
        self.put(last)
        self._closed = True
        await last.future
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(PATIENCE)

    # On the loop

    def _tick_of_the_loop(self) -> None:
        self._scheduled = False
        self._let_go = _seconds()
        self._tick()

    def _tick(self) -> None:
        if not self._waiting or self._away:
            return
        jobs, self._waiting = self._waiting, []
        if self._belongs_to_the_thread(jobs) or not self._turnstile.try_enter():
            self._send_away(jobs)
            return
        try:
            settled, concerned = self._write(jobs, patient=False)
        except sqlite3.Error:  # busy: somebody writes without taking a turn; the thread has more patience
            self._send_away(jobs)
            return
        finally:
            self._turnstile.leave()
        self._settle(settled, concerned)

    def _belongs_to_the_thread(self, jobs: list[Job]) -> bool:
        for job in jobs:
            if job.heavy:
                return True
        if self._slow_since is None:
            return False
        if _seconds() - self._slow_since < TRY_AGAIN:
            return True
        self._slow_since, self._average = None, SLOW / 2
        return False

    def _send_away(self, jobs: list[Job]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tsuzuki-writer", daemon=True)
            self._thread.start()
        self._away = True
        group = _Group(jobs)
        self._queue.put(group)
        self._alarm = self._loop.call_later(turnstile.PATIENCE, self._overtake, group)

    def _overtake(self, group: _Group) -> None:
        """Write without a turn what waited too long for one, until the thread has got it.

        A process elsewhere keeps its turn: it is stopped, or a long call keeps its interpreter. If that happened in the
        middle of its transaction, SQLite refuses, and in the end so do we.
        """
        if not group.move("given up"):
            return  # the thread writes it
        jobs, group.jobs, self._waiting = [*group.jobs, *self._waiting], [], []
        settled, concerned = list[Settled](), NOBODY
        try:
            if jobs:
                settled, concerned = self._write(jobs, patient=False)
            group.since = _seconds()
        except sqlite3.Error:
            if _seconds() - group.since < LONGEST_TURN:
                self._waiting = jobs
            else:
                settled, group.since = [(job, None, self._kept_waiting()) for job in jobs], _seconds()
        self._alarm = self._loop.call_later(OVERTAKING, self._overtake, group)
        self._settle(settled, concerned)

    def _kept_waiting(self) -> StoreUnavailable:
        who = self._turnstile.holder()
        advice = f"another process has been writing for {LONGEST_TURN:.0f} s"
        advice += f" ({who}): if it is stopped, let it go on; if it hangs, end it" if who else "; if it hangs, end it"
        return StoreUnavailable(f"{self._path}: {advice}", advice)

    def _back(self, settled: list[Settled], concerned: Concerned) -> None:
        self._away = False
        if self._alarm is not None:
            self._alarm.cancel()
        self._settle(settled, concerned)
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._tick_of_the_loop)

    def _settle(self, settled: list[Settled], concerned: Concerned) -> None:
        for job, answer, error in settled:
            if job.future.done():  # whoever waited was cancelled; what was written stands
                continue
            if error is None:
                job.future.set_result(answer)
            else:
                job.future.set_exception(error)
        if concerned[0]:
            self._committed(*concerned)

    # On the thread

    def _run(self) -> None:
        while (group := self._queue.get()) is not None:
            settled, concerned = self._in_turn(group)
            try:
                self._loop.call_soon_threadsafe(self._back, settled, concerned)
            except RuntimeError:  # the loop is gone, and with it all who waited
                return

    def _in_turn(self, group: _Group) -> tuple[list[Settled], Concerned]:
        self._turnstile.enter(patient=True)
        try:
            if not group.move("begun"):
                return [], NOBODY
            return self._write(group.jobs, patient=True)
        except sqlite3.Error as error:
            return [(job, None, fault(error, self._path)) for job in group.jobs], NOBODY
        finally:
            self._turnstile.leave()

    # In turn

    def _write(self, jobs: list[Job], *, patient: bool) -> tuple[list[Settled], Concerned]:
        """Writes a group; when something unexpected happens to one of them, each on its own."""
        if (removed := self._removed()) is not None:
            return [(job, None, removed) for job in jobs], NOBODY
        begin(self._connection, patient=patient)
        try:
            return self._finish(jobs)
        except sqlite3.OperationalError as error:  # the store's fault, not that of one job
            return [(job, None, fault(error, self._path)) for job in jobs], NOBODY
        except Exception:  # noqa: BLE001 - told to the job it belongs to, below
            return self._one_by_one(jobs)

    def _removed(self) -> StoreUnavailable | None:
        """A file that was removed or replaced still takes writes, but nobody would ever find them.

        It is looked at a few times a second: what was written just before it went is gone as well.
        """
        now = _seconds()
        if now - self._seen < LOOK:
            return None
        try:
            if samestat(self._path.stat(), self._file):
                self._seen = now
                return None
        except OSError:
            pass
        return StoreUnavailable(f"{self._path} was removed or replaced while it was in use; put it back, or start anew")

    def _one_by_one(self, jobs: list[Job]) -> tuple[list[Settled], Concerned]:
        settled: list[Settled] = []
        concerned: set[str] = set()
        rings = work = False
        for job in jobs:
            try:
                begin(self._connection, patient=False)
                done, (its_runs, its_rings, its_work) = self._finish([job], careful=True)
                settled += done
                concerned |= its_runs
                rings |= its_rings
                work |= its_work
            except sqlite3.Error as error:
                settled.append((job, None, fault(error, self._path)))
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for this job
                settled.append((job, None, error))
        return settled, (concerned, rings, work)

    def _finish(self, jobs: list[Job], *, careful: bool = False) -> tuple[list[Settled], Concerned]:
        """Does jobs in the transaction that was begun, and commits; whatever goes wrong, it does not stay open."""
        try:
            transaction = Transaction(self._connection, self._times, careful=careful)
            settled = self._perform(transaction, jobs)
            transaction.flush()
            started = _seconds()
            commit(self._connection)
        except BaseException:
            roll_back(self._connection)
            raise
        self._measure(_seconds() - started)
        self.sizes.add(len(jobs), SIZES)
        return settled, (transaction.runs, transaction.rings, transaction.work)

    def _measure(self, took: float) -> None:
        self._average += 0.1 * (min(took, LONGEST) - self._average)
        if self._average > SLOW and self._slow_since is None:
            self._slow_since = _seconds()


def begin(connection: sqlite3.Connection, *, patient: bool) -> None:
    """Begins to write; patient, it waits for a program that writes without taking a turn."""
    if patient:
        patiently(lambda: connection.execute("BEGIN IMMEDIATE"), PATIENCE)
    else:
        connection.execute("BEGIN IMMEDIATE")


def patiently(work: Callable[[], Answer], patience: float) -> Answer:
    """Does something, again and again while somebody else locks the file."""
    deadline = _seconds() + patience
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if not busy(error) or _seconds() >= deadline:
                raise
        time.sleep(random.uniform(0.001, 0.02))


def roll_back(connection: sqlite3.Connection) -> None:
    """Undoes a transaction, unless SQLite has done so itself."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def commit(connection: sqlite3.Connection) -> None:
    """Commit; when the disk refuses, write over what that left in the log.

    A commit whose sync fails is in the log whole. Nobody sees it there, but if all processes died before the next
    write, SQLite would take it for a commit of theirs, and what was refused would happen.
    """
    try:
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        roll_back(connection)
        if not refused_io(error):
            raise
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SQL["write_over"])
            connection.execute("COMMIT")
        except sqlite3.Error as again:
            roll_back(connection)
            raise UnclearCommit(str(again)) from error
        raise


def transact(connection: sqlite3.Connection, work: Callable[[], Answer]) -> Answer:
    """Does something in one transaction, for those who hold the turn: the migrations."""
    begin(connection, patient=True)
    try:
        answer = work()
        commit(connection)
    except BaseException:
        roll_back(connection)
        raise
    return answer
