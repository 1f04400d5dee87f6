"""The runs that a worker holds: those under way, and those claimed ahead that wait for a place."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Claim, Query
from tsuzuki.clock import Clock
from tsuzuki.context import EXECUTING
from tsuzuki.errors import ClaimLost, StoreError
from tsuzuki.execution import Execution
from tsuzuki.lifecycle import Status


class Held:
    """What a worker holds, and how it lets go of it."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend, self._clock = backend, clock
        self.running: dict[str, Execution] = {}
        self.queue: deque[Claim] = deque()
        self.taken_at = 0.0
        """When runs were last taken into the queue, by the monotonic clock."""
        self.freed = asyncio.Event()
        """Set whenever a run has left, and a place is free."""
        EXECUTING.add(self)

    async def see_cancels(self, worker: str) -> None:
        """Stops the runs that somebody asked to cancel."""
        if not self.running:
            return
        for row in await self._backend.search(Query(holder=worker, status=(Status.CANCELLING,), limit=1000)):
            run = self.running.get(row.id)
            if run is not None and run.stopping is None:
                run.journal.note(run.fact(f.CancelSeen))
                run.stop("cancel")

    async def all_ended(self) -> None:
        """Waits until nothing is under way."""
        while self.running:
            self.freed.clear()
            await self.freed.wait()

    async def drain(self, grace: float) -> None:
        """Lets what is under way end within the grace period (seconds)."""
        await self.release_queued()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.all_ended()

    async def hand_back(self) -> None:
        """Hands back what has not ended."""
        await self.release_queued()
        for run in self.running.values():
            run.stop("release")
        await self.all_ended()

    def take(self, claims: Sequence[Claim]) -> None:
        """Takes claims into the queue."""
        if claims:
            self.queue.extend(claims)
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
