"""The runs that a worker holds: those under way, and those claimed ahead that wait for a place."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Claim, Query
from tsuzuki.clock import Clock
from tsuzuki.context import EXECUTING
from tsuzuki.errors import ClaimLost, StoreError, StoreUnavailable
from tsuzuki.execution import Execution
from tsuzuki.lifecycle import Run, Status, executed_alone
from tsuzuki.probing import try_writing
from tsuzuki.stumbles import Stumbles
from tsuzuki.winding import wind_down

logger: Final = logging.getLogger("tsuzuki.worker")

AT_ONCE: Final = 0.2
"""How long what is handed back after the grace period may take to leave (seconds)."""
FLUSH: Final = 0.25
"""How often log lines and progress are written (seconds)."""
WRITING: Final = 10.0
"""How long the store may take beyond that; what it has not taken by then is left as after a kill (seconds)."""


class Held:
    """What a worker holds, and how it lets go of it."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend, self._clock = backend, clock
        self.running: dict[str, Execution] = {}
        self.awaited: Run | None = None
        """The run that this process waits with until its time has come."""
        self.begun = asyncio.Event()
        """Set whenever a run begins."""
        self.queue: deque[Claim] = deque()
        self.stumbles = Stumbles()
        self.taken_at = 0.0
        """When runs were last taken into the queue, by the monotonic clock."""
        self.freed = asyncio.Event()
        """Set whenever a run has left, and a place is free."""
        self.changed = asyncio.Event()
        """Set whenever a run begins or has left, until that is told to others."""
        self._unwritable = False
        EXECUTING.add(self)

    @property
    def current(self) -> Run | None:
        """The run that has been in progress for longest, as it was claimed, or the one that is waited with."""
        return next((run.claim.run for run in self.running.values()), self.awaited)

    async def see_cancels(self, worker: str) -> None:
        """Stops the runs that somebody asked to cancel."""
        if not self.running and not self.stumbles.ours():
            return
        for row in await self._backend.search(
            Query(holder=worker, status=(Status.CANCELLING,), limit=1000, params=False)
        ):
            run = self.running.get(row.id)
            if row.id in self.stumbles:
                self.stumbles.hurry(row.id)
            elif run is not None and run.stopping is None:
                run.journal.note(run.fact(f.CancelSeen))
                run.stop("cancel")

    async def all_ended(self) -> None:
        """Waits until nothing is under way."""
        while self.running:
            self.freed.clear()
            await self.freed.wait()

    async def wait_for_one(self, timeout: float | None = None) -> None:
        """Waits until a run begins, or so many seconds: without one there is nothing to write or to tell of."""
        self.begun.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.begun.wait()

    async def flushing(self) -> None:
        """Writes log lines and progress again and again, while runs are under way."""
        while True:
            if not self.running:
                await self.wait_for_one()
            await asyncio.sleep(FLUSH)
            await asyncio.gather(*(run.log.flush() for run in self.running.values() if run.unsaid))

    async def rest(self, stopping: asyncio.Event) -> None:
        """Hands back what has not begun, and waits until nothing is under way or the worker stops."""
        await self.release_queued("its worker installs new wheels first")
        while self.running and not stopping.is_set():
            self.freed.clear()
            await self.freed.wait()

    def interrupt(self, *, at_once: bool) -> None:
        """Stops what is under way, now or once what it has begun has ended; finished work is recorded."""
        for run in self.running.values():
            if at_once:
                run.stop("release")
            else:
                wind_down(run)

    async def drain(self, grace: float) -> None:
        """Lets what is under way end within the grace period (seconds): runs in its first half, calls in the second.

        A run that would go on beyond it begins nothing more from the middle on: what it has begun then is recorded, and
        not done, and paid for, again. What has not ended by then is handed back at once.
        """
        if await self._all_left(grace / 2):
            return
        for run in self.running.values():
            run.grace = min(grace / 2, run.grace)
            wind_down(run)
        if not await self._all_left(grace / 2):
            await self.hand_back(grace=AT_ONCE)

    async def hand_back(self, grace: float | None = None) -> None:
        """Hands back what has not ended, once it could be interrupted; what cannot has that long (seconds).

        A store that is away would be waited for by whoever writes to it. Who leaves does not: its runs are taken over.
        """
        for run in self.running.values():
            run.grace = run.grace if grace is None else min(grace, run.grace)
            run.stop("release")
        longest = max((run.grace for run in self.running.values()), default=0.0)
        if not await self._all_left(longest + WRITING):
            left = len(self.running) + len(self.queue)
            logger.warning("%d runs are left as they are, the store does not answer: others take them over", left)
            self.running.clear()
            self.queue.clear()

    async def _all_left(self, seconds: float) -> bool:
        """Hands back what has not begun, and waits for the rest; tells whether nothing was left in time.

        Nobody can cancel a write that is under way: whoever waits for it is left behind with it.
        """

        async def leave() -> None:
            await self.release_queued()
            await self.all_ended()

        leaving = asyncio.create_task(leave(), name="tsuzuki-leaving")
        try:
            await asyncio.wait({leaving}, timeout=seconds)
        finally:
            done = leaving.done()
            leaving.cancel()
        return done

    def ours(self) -> set[tuple[str, int]]:
        """Names what is held here, and under which attempt."""
        running = {(run.run_id, run.claim.attempt) for run in self.running.values()}
        return running | {(claim.run.id, claim.attempt) for claim in self.queue} | self.stumbles.ours()

    async def go_on(self, worker: str) -> None:
        """Takes up again what a fault of the store has stopped, where the pause is over and it is still ours."""
        due = self.stumbles.due(self._clock.monotonic())
        try:
            writable = bool(due) and await self._takes_writes(worker)
            while due:
                await self._take_up(due[0], worker, writable=writable)
                due.pop(0)
        finally:
            for claim in due:  # the store is away, or we are told to leave: it is still ours, and waits on
                self.stumbles.postpone(claim, self._clock.monotonic())

    async def _take_up(self, claim: Claim, worker: str, *, writable: bool) -> None:
        row = await self._backend.get(claim.run.id)
        if row is None or (row.holder, row.attempt) != (worker, claim.attempt):
            self.stumbles.forget(claim.run.id)
        elif writable or row.status is Status.CANCELLING:  # which only has to be settled
            self.queue.append(Claim(row, worker, claim.attempt, row.fingerprint))
        else:
            self.stumbles.postpone(claim, self._clock.monotonic())

    async def _takes_writes(self, worker: str) -> bool:
        """Tries whether the store takes as much as a run may want to write: what it does may be paid for.

        On a full disk the calls of a run would be made again and again, and none of their results kept.
        """
        try:
            await try_writing(self._backend, worker)
        except StoreUnavailable as error:
            if not self._unwritable:
                logger.warning("what a fault has stopped waits until the store takes writes: %s", error)
            self._unwritable = True
        else:
            self._unwritable = False
        return not self._unwritable

    def take(self, claims: Sequence[Claim]) -> None:
        """Takes claims into the queue, first one that must be executed alone."""
        if claims:
            for claim in claims:
                if executed_alone(claim.run):
                    self.queue.appendleft(claim)
                else:
                    self.queue.append(claim)
            self.taken_at = self._clock.monotonic()

    async def release_queued(self, reason: str = "the worker stopped before it began") -> None:
        """Hands back what has not begun."""
        while self.queue:
            await self.release(self.queue.popleft(), reason)

    async def release_stuck(self, patience: float) -> bool:
        """Hands back what was claimed ahead and waits behind runs longer than those before; tells whether any did."""
        stuck = bool(self.queue) and self._clock.monotonic() - self.taken_at > patience
        if stuck:
            await self.release_queued("it would have waited behind longer runs")
        return stuck

    async def release(self, claim: Claim, reason: str) -> None:
        """Hands back one run; where that cannot be written, it is taken over when we are gone."""
        with contextlib.suppress(ClaimLost, StoreError):
            fact = f.Released(at=self._clock.now(), attempt=claim.attempt, reason=reason)
            await self._backend.append(claim, [fact])
