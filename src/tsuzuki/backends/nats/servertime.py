"""The time that all who use a store agree on: the server's, carried on by a clock of ours that nobody sets.

Hosts whose clocks differ by minutes would otherwise hand each other runs that are due too early or too late.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.clock import Clock, SystemClock, Timer

AGREED: Final = 60.0
"""For how long the server's time is believed before it is asked for again (seconds)."""
CLOSE: Final = 0.05
"""Clocks that differ by less than this, and by less than an answer takes, agree: asking tells no better."""


class ServerTime:
    """The machine's clock, with the server's wall time once it was asked for it."""

    def __init__(self, machine: Clock | None = None) -> None:
        self._machine = machine or SystemClock()
        self.monotonic = self._machine.monotonic
        self.elapsed = self._machine.elapsed
        self._ahead = self._machine.now() - self._machine.elapsed()

    def now(self) -> float:
        """Gives Unix seconds as the server counts them."""
        return self.elapsed() + self._ahead

    async def sleep(self, seconds: float) -> None:
        """Waits in real time."""
        await self._machine.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Calls something after a time."""
        return self._machine.call_later(seconds, call)

    async def learn(self, ask: Callable[[], Any]) -> None:
        """Asks the server, whose answers bear its time; the clock moves only when it is clearly wrong."""
        asked = self.elapsed()
        answer = await ask()
        took = self.elapsed() - asked
        ahead = seconds(answer["ts"]) - (asked + took / 2)
        if abs(ahead - self._ahead) > CLOSE + took:
            self._ahead = ahead

    async def keep_learning(self, ask: Callable[[], Any]) -> None:
        """Asks again and again."""
        while True:
            await asyncio.sleep(AGREED)
            with contextlib.suppress(Unclear, ApiError):  # then in a minute
                await self.learn(ask)


def seconds(text: str) -> float:
    """Reads the server's way of writing a time."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return msgspec.convert(f"{whole}Z", type=datetime).timestamp() + float(f"0.{fraction or 0}")
