"""How fast and how many at once: the rate and the places of a task, in this process or in the whole backend."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tsuzuki.backends import Backend
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreError
from tsuzuki.flow import Task

_LOOK: Final = 0.02
"""How often a task looks whether a place that the whole backend shares has become free (seconds)."""
_KEPT: Final = 0.25
"""How long a process may hand a shared place on among its own calls before others have their turn (seconds)."""


class _Shared:
    """The calls of this process that wait for places of one shared limit, and since when it keeps one to itself."""

    def __init__(self) -> None:
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.kept_since: float | None = None


class Limits:
    """The limits of the tasks that a worker calls."""

    def __init__(self, backend: Backend, clock: Clock, worker: str, dead: Callable[[], frozenset[str]]) -> None:
        self._backend = backend
        self._clock = clock
        self._worker = worker
        self._dead = dead
        self._next: dict[str, float] = {}
        self._places: dict[str, asyncio.Semaphore] = {}
        self._shared: dict[str, _Shared] = {}
        self._aside: set[asyncio.Task[None]] = set()

    async def enter(self, task: Task[..., object]) -> None:
        """Waits for a place and for the task's turn."""
        if task.concurrency is not None:
            await self._take_place(task, task.concurrency)
        if task.interval is not None:
            try:
                await self._take_turn(task, task.interval)
            except BaseException:
                await self.leave(task)
                raise

    async def leave(self, task: Task[..., object]) -> None:
        """Gives the place back."""
        if task.concurrency is None:
            return
        if task.limit is None:
            self._places[task.limited_as].release()
        else:
            await self._give_back(task.limit)

    async def _give_back(self, limit: str) -> None:
        if not self._hand_on(self._shared[limit]):
            await self._backend.leave(limit, worker=self._worker)

    def _hand_on(self, shared: _Shared) -> bool:
        """Gives a shared place to the next call of this process, unless it kept it from the others long enough."""
        now = self._clock.monotonic()
        shared.kept_since = shared.kept_since or now
        while shared.waiting and now - shared.kept_since < _KEPT:
            waiter = shared.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return True
        shared.kept_since = None
        return False

    async def _take_place(self, task: Task[..., object], places: int) -> None:
        if task.limit is None:
            await self._places.setdefault(task.limited_as, asyncio.Semaphore(places)).acquire()
            return
        self._shared.setdefault(task.limit, _Shared())
        while not await self._entered(task.limit, places):
            if await self._was_handed_one(task.limit):
                return

    async def _entered(self, limit: str, places: int) -> bool:
        """Asks the store for a place; one that comes after whoever asked has given up is given back."""
        asking = asyncio.ensure_future(
            self._backend.enter(limit, places=places, worker=self._worker, dead=self._dead())
        )
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            self._do_aside(self._give_back_late(limit, asking))
            raise

    async def _was_handed_one(self, limit: str) -> bool:
        """Waits a moment for a place of another call of this process; tells whether it came."""
        waiting = self._shared[limit].waiting
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(waiter)
        try:
            await asyncio.wait([waiter], timeout=_LOOK)
            return waiter.done()
        except asyncio.CancelledError:
            if waiter.done():  # it came in the same moment: all calls of a run that is stopped are cancelled at once
                self._do_aside(self._give_back(limit))
            raise
        finally:
            if not waiter.done():
                waiter.cancel()
                waiting.remove(waiter)

    async def _give_back_late(self, limit: str, asking: "asyncio.Future[bool]") -> None:
        if await asking:
            await self._give_back(limit)

    def _do_aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Does what nobody waits for any more; where the store fails, our places are free once we are gone."""

        async def quietly() -> None:
            with contextlib.suppress(StoreError):
                await work

        task = asyncio.create_task(quietly(), name="tsuzuki-limits")
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _take_turn(self, task: Task[..., object], interval: float) -> None:
        if task.limit is None:
            now = self._clock.monotonic()
            turn = max(self._next.get(task.limited_as, now), now)
            self._next[task.limited_as] = turn + interval
            wait = turn - now
        else:
            wait = await self._backend.take(task.limit, interval=interval)
        if wait > 0:
            await self._clock.sleep(wait)
