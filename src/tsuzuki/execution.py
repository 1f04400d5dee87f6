"""The state of one run while it is executed: what steps, maps and frames share.

A run has one asyncio task, which loads it, calls its flow and records its end. When that task does not leave the
flow although it is over, the end is recorded without it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast
from weakref import WeakSet

import msgspec

from tsuzuki import facts as f
from tsuzuki import settings
from tsuzuki.backends import Backend, Claim
from tsuzuki.clock import Clock
from tsuzuki.errors import ClaimLost, NameTaken, TsuzukiError
from tsuzuki.flow import Task
from tsuzuki.journal import LARGE, NOTHING_DONE, Journal, Replay
from tsuzuki.leaving import gave_up
from tsuzuki.limits import Limits
from tsuzuki.redact import reason_text
from tsuzuki.runlog import RunLog
from tsuzuki.settled import Settled
from tsuzuki.tallies import Tallies
from tsuzuki.threads import Threads, Work

Stop: TypeAlias = Literal["cancel", "release", "lost", "ended"]
"""Why work stops: somebody asked, the run is handed back, it is not ours any more, or its flow is over."""

SHORT_WAIT: Final = 1.0
"""A `Later` of up to so many seconds is waited for here; for a longer one the run is handed back."""

PASSING: Final = 0.02
"""How long a cancellation may take on its way through those who wait for each other (seconds)."""
LANE: Final = "tsuzuki-lane-"
"""How the names of the tasks begin that carry out the items of a map."""
MOMENT: Final = 0.1
"""Seconds without a new call after which a run that waits for a `Later` counts as idle."""


_MAKING: Final = threading.Lock()


def _nothing() -> None:
    """Nobody needs to be told."""


class Abandoned(BaseException):
    """The grace period is over: whatever still runs is no longer waited for."""


@dataclass(slots=True)
class Cut:
    """What a stop cut off."""

    never_started: int = 0
    finished_anyway: int = 0
    interrupted: int = 0


@dataclass(slots=True)
class Calls:
    """What the calls of one run share."""

    told: set[str] = field(default_factory=set)
    tasks: dict[str, Task[..., Any]] = field(default_factory=dict)
    under_way: set["asyncio.Task[Any] | None"] = field(default_factory=set)
    bridged: set["asyncio.Task[Any]"] = field(default_factory=set)
    cancelled: "WeakSet[asyncio.Task[Any]]" = field(default_factory=WeakSet)
    """The lanes that their map has cancelled."""
    on_threads: set[Work] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    """The threads that wait for the answer of a call."""
    postponed: list[float] = field(default_factory=list)
    afterwards: set["asyncio.Task[None]"] = field(default_factory=set)
    cut: Cut = field(default_factory=Cut)
    inputs_kept: int | None = None


class Execution(msgspec.Struct, eq=False, weakref=True):
    """One claimed run, being executed; `ended` is told once, when its end is recorded or it is lost."""

    backend: Backend
    claim: Claim
    clock: Clock
    threads: Threads
    limits: Limits
    ended: Callable[["Execution", BaseException | None], None]
    grace: float = 30.0
    tallies: Tallies = msgspec.field(default_factory=Tallies)
    replay: Replay = NOTHING_DONE
    inherited: Replay | None = None
    active: int = 0
    waiting: int = 0
    """How many of the active calls only wait: for calls that they have made, or for a time to come."""
    resting: int = 0
    """How many of them wait for a time to come, such as their turn at a provider."""
    begun: int = 0
    given_up: bool = False
    overdue: bool = False
    """Whether something still ran when the grace period was over."""
    interrupted: bool = False
    winding_down: bool = False
    """Whether nothing more is begun, and what is under way may end before the run stops."""
    stopping: Stop | None = None
    wait: float = 0.0
    """For how long it is handed back (seconds), where a `Later` said so."""
    waits_for: str = ""
    """Why it is handed back, where a `Later` said so."""
    main: "asyncio.Task[None] | None" = None
    in_flow: bool = False
    ending: f.Fact | None = None
    """The fact that ends this attempt; it is recorded when `ended` is told of no error."""
    failure: BaseException | None = None
    """What the flow raised."""
    loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)
    """The loop it is executed on; whoever starts many gives it, since to ask for it is a call of the system."""
    journal: Journal = cast("Journal", None)
    began: float = 0.0
    _log: RunLog | None = None
    _calls: Calls | None = None

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()
        self.journal = Journal(self.backend, self.claim, self, self.loop, self.tallies, self.claim.run.position)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Gives the run its task."""
        self.main = self.loop.create_task(work)
        self.main.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if task is self.main:  # one that was given up is late, and of no interest
            self._over(error)

    async def end(self, ending: f.Fact) -> None:
        """Records the end, the last thing that its task does; the run is over once that is kept.

        The task need not wait for it, and nobody for the task: that is one call of the loop less, 2 µs.
        """
        self.ending = ending
        kept = self.journal.end(ending)
        if self.main is None or not isinstance(kept, Settled):
            await kept
        else:
            self.main.remove_done_callback(self._finished)
            kept.add_done_callback(self._recorded)

    def _recorded(self, kept: "asyncio.Future[Any]") -> None:
        self._over(kept.exception())

    def _over(self, error: BaseException | None) -> None:
        self.ended(self, error)

    @property
    def calls(self) -> Calls:
        """What its calls share; a run that makes none never has it."""
        if self._calls is None:
            with _MAKING:  # a sync flow makes its first call while this thread begins to keep it in mind
                return self._made_calls()
        return self._calls

    def _made_calls(self) -> Calls:
        if self._calls is None:
            self._calls = Calls()
        return self._calls

    @property
    def inputs_kept(self) -> int:
        """So many bytes of what a call was given are kept with its outcome."""
        calls = self.calls
        if calls.inputs_kept is None:
            calls.inputs_kept = settings.inputs_kept()
        return calls.inputs_kept

    @property
    def log(self) -> RunLog:
        """Its lines and progress; a run that says nothing never has them."""
        if self._log is None:
            self._log = RunLog(self.backend, self.run_id, self.clock, self.journal)
        return self._log

    @property
    def unsaid(self) -> bool:
        """Whether lines or progress wait to be written."""
        return self._log is not None and self._log.waiting

    @property
    def has_calls(self) -> bool:
        """Whether a call or a map is under way."""
        return self._calls is not None and bool(self._calls.under_way)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.claim.run.id

    def fact(self, kind: Callable[..., f.Fact], **fields: Any) -> f.Fact:
        """Makes a fact of this attempt, now."""
        return kind(at=self.clock.now(), attempt=self.claim.attempt, **fields)

    def know(self, task: Task[..., Any]) -> None:
        """Notes a task by its name, and refuses another one under the same name."""
        known = self.calls.tasks.setdefault(task.name, task)
        if known is not task and known.function is not task.function:
            raise NameTaken(
                f"two tasks of this run are called {task.name!r} ({known.place} and {task.place}): "
                "give one of them another name, @task(name=…)"
            )

    # Stopping

    def stop(self, why: Stop, *, wait: float = 0.0) -> None:
        """Starts nothing more and interrupts what can be interrupted; finished work is still recorded."""
        if self.stopping is not None:
            return
        self.stopping = why
        self.wait = wait
        self.loop.call_later(self.grace, self.abandon)
        if self.main is not None and self.in_flow:
            self.main.cancel()
        for task in self.calls.bridged:
            task.cancel()
        self.loop.call_later(PASSING, self._stop_strays)

    def abandon(self) -> None:
        """Stops to wait for what still runs: what it returns later is refused, and told."""
        for work in list(self.calls.on_threads):
            if work.thread in self.calls.waiting:  # for another one, and ends when that is given up
                work.late = _nothing
            elif work.thread and not work.done():
                self.overdue = True
                text = f"{work.what} still runs, {self.grace:g} s after it was to stop, and is not waited for any more"
                self.log.line(f"{text}: its thread goes on, and its result will be refused", "warning")
            work.abandon(Abandoned())
        self.loop.call_later(0.5, self._give_up)  # what was freed just now has a moment to leave in order

    def _stop_strays(self) -> None:
        """Interrupts the branches that nobody who waits for them has interrupted; lanes follow their map."""
        for task in self.calls.under_way:
            if task is not None and not task.cancelling() and not task.get_name().startswith(LANE):
                task.cancel()

    def _give_up(self) -> None:
        """Goes on without the flow, and every call, that is not over by now."""
        if not self.given_up:
            self.calls.cut.interrupted += self.active or int(self.in_flow)
            if self.in_flow:
                self.start(self._write_off())
        self.given_up = True
        gave_up(self.loop)

    async def _write_off(self) -> None:
        try:
            if self.stopping == "lost":
                raise self.lost()
            await self.log.flush()
            await self.end(self.stopped())
        finally:
            self.journal.close()

    def lost(self) -> TsuzukiError:
        """Says why the run is not ours any more."""
        return self.journal.broken or ClaimLost("another worker holds the run now")

    def stopped(self) -> f.Fact:
        """Gives the fact that ends this attempt where a stop has cut it off."""
        if self.stopping == "cancel":
            cut = self.calls.cut
            return self.fact(
                f.RunCancelled,
                never_started=cut.never_started,
                finished_anyway=cut.finished_anyway,
                interrupted=cut.interrupted,
            )
        return self.released(self.wait, self.waits_for) if self.wait else self.released(0.0, "stopped on the way")

    def released(self, wait: float, reason: str) -> f.Fact:
        """Return the fact that hands the run back for so many seconds."""
        until = self.clock.now() + wait if wait else 0.0
        return self.fact(f.Released, reason=reason_text(reason), not_before=until, wait=wait)

    async def settled(self) -> None:
        """Waits until every call and map that a stop found under way has ended and is recorded, or is given up.

        The flow may be over before: `gather` leaves as soon as one of its branches does.
        """
        while self.has_calls and not self.given_up:  # noqa: ASYNC110 - only while a run stops; calls pay nothing for it
            await asyncio.sleep(0.002)

    def late(self, what: str) -> None:
        """Tells of a function that ended after nobody waited for it any more."""
        self.log.line(f"{what} ended after it had been given up; its result is refused", "warning")
        if self.journal.broken is not None:  # the run has ended here: nobody else writes its log any more
            self.afterwards(self.log.flush())

    def afterwards(self, work: Coroutine[Any, Any, None]) -> None:
        """Does something that nobody waits for."""
        task = self.loop.create_task(work)
        self.calls.afterwards.add(task)
        task.add_done_callback(self.calls.afterwards.discard)

    def broken(self) -> None:
        """Stops: nothing more can be recorded."""
        self.stop("lost")
        self.abandon()

    # Calls

    def enter(self, task: "asyncio.Task[Any] | None") -> "asyncio.Task[Any] | None":
        """Notes that a task has a call or a map under way; gives None if it had one already."""
        under_way = self.calls.under_way
        if task in under_way:
            return None
        under_way.add(task)
        return task

    def leave(self, task: "asyncio.Task[Any] | None") -> None:
        """Notes that what was entered has settled."""
        if task is not None:
            self.calls.under_way.discard(task)

    @property
    def alone(self) -> bool:
        """Whether nothing is under way but a call of the flow's own task."""
        under_way = self.calls.under_way
        return len(under_way) == 1 and self.main in under_way

    def track(self, work: Work) -> Work:
        """Keeps a call on a thread in mind until it ends."""
        on_threads = self.calls.on_threads
        on_threads.add(work)
        work.add_done_callback(on_threads.discard)
        return work

    async def postpone(self, seconds: float, reason: str = "") -> None:
        """Waits for a `Later`; when nothing else is going on and it takes long, the run is handed back."""
        elapsed = self.clock.elapsed  # the wall clock may be set back meanwhile, by an hour or more
        with self.idle(seconds) as until:
            while (left := until - elapsed()) > 0:
                if await self._quiet():
                    self.waits_for = self.waits_for or reason
                    self.stop("release", wait=self._soonest())
                await self.clock.sleep(min(left, 0.25))

    @contextmanager
    def idle(self, seconds: float) -> Iterator[float]:
        """Count a call as one that does nothing for a time; yield when that is over, by `Clock.elapsed`."""
        until = self.clock.elapsed() + seconds
        self.calls.postponed.append(until)
        self.active -= 1
        try:
            yield until
        finally:
            self.active += 1
            self.calls.postponed.remove(until)

    def _soonest(self) -> float:
        """Return after how many seconds the first of the idle calls continues."""
        return min(self.calls.postponed) - self.clock.elapsed()

    async def _quiet(self) -> bool:
        """Return whether every call waits for long, or for calls it has made, and did so for a moment of real time."""
        begun = self.begun
        if self._soonest() <= SHORT_WAIT:
            return False
        await asyncio.sleep(MOMENT)
        busy = self.active > self.waiting - self.resting
        return not busy and self.begun == begun and not self.journal.writing and self._soonest() > 0

    async def catch_up(self) -> None:
        """Reads what this attempt has recorded so far, so that a call which is made again finds what it had done."""
        if self.replay is NOTHING_DONE:
            self.replay = Replay()
        await self.replay.catch_up(self.backend, self.run_id)

    async def blob(self, data: bytes) -> tuple[bytes, str]:
        """Gives JSON as it goes into a fact: itself, or null and the blob that holds it."""
        if len(data) <= LARGE:
            return data, ""
        return b"null", await self.backend.put_blob(self.run_id, data)

    async def recorded(self, run_id: str, result: bytes, blob: str) -> bytes:
        """Gives the JSON of a recorded value, wherever it is kept."""
        return await self.backend.get_blob(run_id, blob) if blob else result
