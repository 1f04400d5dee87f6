"""Clocks that tests move by hand: one that stands still, and one that runs but can be set."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from tsuzuki.clock import SystemClock, Timer


class FakeClock:
    """A clock that stands still until a test moves it.

    With `autoadvance=True` a sleep moves the clock itself, as soon as everybody else had a turn, so that
    waits of hours take no time; several sleepers still wake in the order of their times.
    """

    def __init__(self, start: float = 1_700_000_000.0, *, autoadvance: bool = False) -> None:
        self._wall = start
        self._monotonic = 1000.0
        self._elapsed = 1000.0
        self._autoadvance = autoadvance
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Gives Unix seconds."""
        return self._wall

    def monotonic(self) -> float:
        """Gives seconds that stand still while the machine sleeps."""
        return self._monotonic

    def elapsed(self) -> float:
        """Gives seconds that go on while the machine sleeps."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Waits until the clock was moved far enough."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), waiter))
        while self._autoadvance and not waiter.done():
            await asyncio.sleep(0)
            self._wake_next(waiter)
        await waiter

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Calls something when the clock was moved far enough, or after so many real seconds, whichever comes first.

        A call that waits does not move the clock by itself, so that a timeout leaves real work its time.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), waiter))
        loop.call_later(seconds, _wake, waiter)
        waiter.add_done_callback(lambda done: None if done.cancelled() else call())
        return waiter

    @property
    def sleeping(self) -> int:
        """Counts those who wait for this clock; a test waits for it before it moves the time."""
        return sum(not waiter.done() for _, _, waiter in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Lets time pass: every clock moves, and those whose time has come wake in order."""
        if seconds < 0:
            raise ValueError(f"time does not pass backwards; to set the wall clock back use jump({seconds})")
        end = self._monotonic + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            time, _, waiter = heapq.heappop(self._sleepers)
            self._pass(time - self._monotonic)
            _wake(waiter)
        self._pass(end - self._monotonic)

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back, as a time server or a person does; nobody wakes."""
        self._wall += seconds

    def sleep_machine(self, seconds: float) -> None:
        """Lets the machine sleep: wall time and elapsed time go on, monotonic time stands still, nobody wakes."""
        self._wall += seconds
        self._elapsed += seconds

    def _pass(self, seconds: float) -> None:
        self._wall += seconds
        self._monotonic += seconds
        self._elapsed += seconds

    def _wake_next(self, waiter: asyncio.Future[None]) -> None:
        """Moves to the earliest sleeper; those that gave up are dropped without moving the time."""
        while self._sleepers and not waiter.done():
            time, _, earliest = heapq.heappop(self._sleepers)
            if not earliest.done():
                self._pass(max(0.0, time - self._monotonic))
                _wake(earliest)
                return


class ShiftedClock:
    """The machine's clock with a wall clock that a test can set; waiting takes real time."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self._shift = 0.0

    def now(self) -> float:
        """Gives Unix seconds, shifted."""
        return self._system.now() + self._shift

    def monotonic(self) -> float:
        """Gives the machine's own."""
        return self._system.monotonic()

    def elapsed(self) -> float:
        """Gives the machine's own."""
        return self._system.elapsed()

    async def sleep(self, seconds: float) -> None:
        """Waits in real time."""
        await self._system.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Calls something after a time, in real time."""
        return self._system.call_later(seconds, call)

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back."""
        self._shift += seconds


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
