"""The only code that reads the clock."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Wall time for facts, monotonic time for waiting, and the wait itself."""

    def now(self) -> float:
        """Gives Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Gives seconds that never run backwards and stand still while the machine sleeps."""
        ...

    def elapsed(self) -> float:
        """Gives seconds that never run backwards and go on while the machine sleeps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...

    def call_later(self, seconds: float, call: Callable[[], object]) -> "Timer":
        """Calls something after a time, unless it is cancelled before."""
        ...


class Timer(Protocol):
    """A call that is going to be made."""

    def cancel(self) -> object:
        """Calls it off."""
        ...


def until_tick(now: float, every: float) -> float:
    """Gives the time to the next full so many seconds: whatever is done so often wakes the process once for all."""
    return every - now % every


class SystemClock:
    """The clock of the machine."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def elapsed(self) -> float:
        """Reads the clock that counts sleep too, where the system has one."""
        boottime = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boottime is None else time.clock_gettime(boottime)

    async def sleep(self, seconds: float) -> None:
        """Waits in real time."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Calls something after a time."""
        return asyncio.get_running_loop().call_later(seconds, call)
