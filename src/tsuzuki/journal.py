"""The journal of a claimed run: an index of what it did before, and the pen that records what it does now.

What gathers while a write is under way goes into the next one; a lone step is written at once. A call counts
as done only after `record` was acknowledged.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from tsuzuki.backends import Backend, Claim, Entry
from tsuzuki.errors import ClaimLost, NotAStore, StoreError, TsuzukiError
from tsuzuki.facts import FAILURES, Fact, ItemDone, ItemFailed, ItemSkipped, Outcome, StepDone, StepFailed
from tsuzuki.identity import again
from tsuzuki.keyindex import KeyIndex
from tsuzuki.settled import Settled
from tsuzuki.tallies import Tallies

LINGER: Final = 0.002
"""How long a write waits for company while many calls are under way (seconds)."""
RIDE: Final = 0.2
"""How long a fact that nobody waits for may wait for a write to ride along with (seconds)."""
LARGE: Final = 256 * 1024
"""Values above this many bytes of JSON are kept as blobs."""
PAGE: Final = 5000
_SUCCESSES: Final = (StepDone, ItemDone, ItemSkipped)
_FAILURES: Final = (StepFailed, ItemFailed)


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """Where an outcome stands in the journal, and whether it was a failure."""

    position: int
    failed: bool


class Replay:
    """What a run had done: the position of the outcome that counts, for each step and item."""

    def __init__(self, expected: int = 0) -> None:
        self._index = KeyIndex(expected)
        self.tried: dict[tuple[str, str], int] = {}
        """Where the last failed try stands of each step and item that has no outcome yet."""
        self._retried_before = 0
        self._read_to = 0

    def __len__(self) -> int:
        return len(self._index)

    @property
    def retried(self) -> bool:
        """Whether the run was resumed, and what had failed is tried again."""
        return self._retried_before > 0

    @classmethod
    async def load(cls, backend: Backend, run_id: str, *, items_only: bool = False, expected: int = 0) -> "Replay":
        """Reads the outcomes of a run, in batches, without their values; about as many as are expected."""
        replay = cls(expected)
        await replay.catch_up(backend, run_id, items_only=items_only)
        return replay

    async def catch_up(self, backend: Backend, run_id: str, *, items_only: bool = False) -> None:
        """Reads the outcomes that were recorded since."""
        while marks := await backend.outcomes(run_id, after=self._read_to, limit=PAGE):
            for position, kind, step, key in map(msgspec.structs.astuple, marks):
                if kind == "ResumeAsked":
                    self._retried_before = position
                    self.tried.clear()  # a person let it go on: all tries may be made again
                elif kind == "TryFailed":
                    self.tried[step, key] = position
                elif not items_only or kind in ("ItemDone", "ItemSkipped"):
                    self._index.put(step, key, position * 2 + (kind in FAILURES))
                    if self.tried:
                        self.tried.pop((step, key), None)
            self._read_to = marks[-1].position
            await asyncio.sleep(0)  # other runs of this worker have their turn

    def find(self, step: str, key: str) -> Recorded | None:
        """Finds the outcome that counts; a failure that is to be tried again does not."""
        code = self._index.get(step, key)
        if code == 0:
            return None
        position, failed = code >> 1, bool(code & 1)
        return None if failed and position < self._retried_before else Recorded(position, failed)

    def last_try(self, step: str, key: str, since: int) -> int:
        """Return where the last failed try of a call without an outcome stands, after a position; 0 without one."""
        position = self.tried.get((step, key), 0)
        return position if position > since else 0

    def answer(self, step: str, key: str, since: int) -> tuple[str, Recorded | None]:
        """Finds the outcome that answers a call in a try that began after a position; gives under which id.

        Where the call failed in a try before, it is made again, and recorded under another id: of one id there is one
        outcome in an attempt.
        """
        if self is NOTHING_DONE:
            return step, None
        code = self._index.get(step, key)
        if not code & 1:  # nothing is recorded, or a success
            return step, Recorded(code >> 1, failed=False) if code else None
        while (found := self.find(step, key)) is not None and found.failed and found.position <= since:
            step = again(step)
        return step, found


NOTHING_DONE: Final = Replay()
"""The index of a run that begins."""


class Owner(Protocol):
    """Whose journal it is: how many calls are under way there, and who is told that nothing more can be recorded."""

    active: int
    tallies: Tallies

    def broken(self) -> None:
        """Stops."""


class Journal(msgspec.Struct, eq=False):
    """Records the facts of one claim."""

    _backend: Backend
    _claim: Claim
    _owner: Owner | None
    _loop: asyncio.AbstractEventLoop
    _tallies: Tallies
    position: int
    writing: bool = False
    _waiting: list[Fact] = msgspec.field(default_factory=list)
    _ack: Settled | None = None
    _timer: asyncio.Handle | None = None
    _ride: asyncio.Handle | None = None
    _closed: bool = False
    _error: TsuzukiError | None = None

    @property
    def broken(self) -> TsuzukiError | None:
        """Why nothing more can be recorded, if so."""
        return self._why() if self._closed else None

    def _why(self) -> TsuzukiError:
        """Makes the error when somebody is told: most runs end, and nobody comes too late."""
        if self._error is None:
            self._error = ClaimLost("the run has ended here: this call came too late and is not recorded")
        return self._error

    def record(self, fact: Fact) -> "Settled":
        """Writes a fact; await what it gives to know that it is kept."""
        if self._closed:
            raise self._why()
        self._waiting.append(fact)
        if self._ack is None:
            self._ack = Settled(loop=self._loop)
            if not self.writing:
                self._schedule()
        return self._ack

    def conclude(self, fact: Fact, begun: Fact, *, alone: bool) -> "Settled":
        """Writes the outcome of a step, at once where it is alone; that it began is left out if not written yet.

        `alone` says that it was called by the flow itself, and no branch of it has a call under way.
        """
        if self._waiting and self._waiting[-1] is begun:
            self._waiting.pop()
        if self.writing or self._ack is not None or self._owner is None or self._owner.active:
            return self.record(fact)
        self._waiting.append(fact)
        written = self._write(alone=alone)
        return written if isinstance(written, Settled) else self._acknowledged(written)

    def _acknowledged(self, written: "asyncio.Future[int]") -> Settled:
        """Gives a future that cannot be cancelled for one that can."""
        ack = Settled(loop=self._loop)
        if written.done():
            return _as(ack, written)
        written.remove_done_callback(self._written)
        written.add_done_callback(partial(self._written, ack=ack))
        return ack

    def note(self, fact: Fact) -> None:
        """Writes a fact that nobody waits for: it rides along with the next write, or goes alone after a while."""
        if self._closed:
            return
        self._waiting.append(fact)
        if self._ride is None:
            self._ride = self._loop.call_later(RIDE, self._go_alone)

    def _go_alone(self) -> None:
        self._ride = None
        if self._waiting and self._timer is None and not self.writing:
            self._write()

    def end(self, fact: Fact) -> Awaitable[Any]:
        """Writes the last fact, with all that waits; await what it gives. Nothing may follow, not even with it."""
        if self.writing or self._ack is not None or self._closed:
            kept: Awaitable[Any] = self.record(fact)
        else:
            self._tallies.wrote(self._waiting)
            facts, self._waiting = [*self._waiting, fact], []
            kept = self._backend.append(self._claim, facts)
        self.close()
        return kept

    def close(self) -> None:
        """Refuses whatever comes after the end of the run."""
        if self._ride is not None:
            self._ride.cancel()
        self._closed = True
        self._owner = None  # two that know each other would wait for the garbage collector

    async def fetch(self, positions: Sequence[int]) -> list[Entry]:
        """Reads facts of this run."""
        return await self._backend.fetch(self._claim.run.id, positions)

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_soon(self._linger)

    def _linger(self) -> None:
        self._timer = None
        if not self._waiting or self.writing:
            return
        if self._owner is not None and self._owner.active > len(self._waiting):
            self._timer = self._loop.call_later(LINGER, self._after_lingering)
        else:
            self._write()

    def _after_lingering(self) -> None:
        self._timer = None
        if self._waiting and not self.writing:
            self._write()

    def _write(self, *, alone: bool = False) -> "asyncio.Future[int]":
        """Writes what waits."""
        self._timer = None
        facts, ack = self._waiting, self._ack
        self._waiting, self._ack = [], None
        self._tallies.wrote(facts)
        self.writing = True
        append = self._backend.append(self._claim, facts, alone=alone)
        written = append if isinstance(append, asyncio.Future) else asyncio.ensure_future(append)
        if written.done():
            self._written(written, ack)
        else:
            written.add_done_callback(self._written if ack is None else partial(self._written, ack=ack))
        return written

    def _written(self, done: "asyncio.Future[int]", ack: Settled | None = None) -> None:
        self.writing = False
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            self._break(error, ack)
            return
        self.position = done.result()
        if ack is not None:
            ack.set_result(self.position)
        if self._waiting:
            self._schedule()

    def _break(self, error: BaseException, ack: Settled | None) -> None:
        """Nothing more can be recorded: whoever waits is told, and the run stops here."""
        told = error if isinstance(error, ClaimLost | StoreError) else StoreError(f"the store failed us: {error!r}")
        self._closed, self._error, owner, self._owner = True, told, self._owner, None
        for waiting in (ack, self._ack):
            if waiting is not None and not waiting.done():
                waiting.set_exception(told)
                waiting.exception()  # nobody may be waiting any more; that is not worth a warning
        self._waiting, self._ack = [], None
        if owner is not None:
            owner.broken()


def _as(ack: Settled, done: "asyncio.Future[int]") -> Settled:
    error = done.exception()
    if error is None:
        ack.set_result(done.result())
    else:
        ack.set_exception(error)
    return ack


def success_of(entry: Entry, step: str, key: str) -> StepDone | ItemDone | ItemSkipped:
    """Gives a recorded success, having checked that it is the one that was looked for."""
    fact = entry.fact
    if isinstance(fact, _SUCCESSES) and fact.key == key and fact.step == step:
        return fact
    raise NotAStore(_mixed_up(entry, step, key))


def failure_of(entry: Entry, step: str, key: str) -> StepFailed | ItemFailed:
    """Gives a recorded failure, having checked that it is the one that was looked for."""
    fact = entry.fact
    if isinstance(fact, _FAILURES) and fact.key == key and fact.step == step:
        return fact
    raise NotAStore(_mixed_up(entry, step, key))


def _mixed_up(entry: Entry, step: str, key: str) -> str:
    found = (entry.fact.step, entry.fact.key) if isinstance(entry.fact, Outcome) else entry.fact
    return f"position {entry.position} of the journal holds {found}, not the outcome of {(step, key)}"
