"""How fast and how many at once: the rate and the places of a task, in this process or in the whole backend."""

import asyncio
from collections.abc import Callable
from typing import Final

from tsuzuki.backends import Backend
from tsuzuki.clock import Clock
from tsuzuki.flow import Task

_LOOK: Final = 0.05
_LOOK_MOST: Final = 1.0


class Limits:
    """The limits of the tasks that a worker calls."""

    def __init__(self, backend: Backend, clock: Clock, worker: str, dead: Callable[[], frozenset[str]]) -> None:
        self._backend = backend
        self._clock = clock
        self._worker = worker
        self._dead = dead
        self._next: dict[str, float] = {}
        self._places: dict[str, asyncio.Semaphore] = {}

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
            self._places[task.name].release()
        else:
            await self._backend.leave(task.limit, worker=self._worker)

    async def _take_place(self, task: Task[..., object], places: int) -> None:
        if task.limit is None:
            await self._places.setdefault(task.name, asyncio.Semaphore(places)).acquire()
            return
        look = _LOOK
        while not await self._backend.enter(task.limit, places=places, worker=self._worker, dead=self._dead()):
            await self._clock.sleep(look)
            look = min(look * 2, _LOOK_MOST)

    async def _take_turn(self, task: Task[..., object], interval: float) -> None:
        if task.limit is None:
            now = self._clock.monotonic()
            turn = max(self._next.get(task.name, now), now)
            self._next[task.name] = turn + interval
            wait = turn - now
        else:
            wait = await self._backend.take(task.limit, interval=interval)
        if wait > 0:
            await self._clock.sleep(wait)
