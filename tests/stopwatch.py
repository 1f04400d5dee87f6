"""How long something took, without what a busy machine took from everybody: a promise of a second is not about that."""

import threading
import time
from types import TracebackType
from typing import Self

TICK = 0.01
"""How often it is looked whether this process still gets its turn (seconds)."""


class Stopwatch:
    """Runs while it is entered; stands still while this process has to wait for its turn.

    A thread asks for a turn every few milliseconds. By as much as it comes late, others are late too. It is for what
    is waited for, and not for what is computed in this very process.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._over = threading.Event()
        self._ticking = threading.Thread(target=self._tick, name="stopwatch", daemon=True)
        self.lost = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._ticking.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._ticking.join()

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._began - self.lost

    def _tick(self) -> None:
        at = time.monotonic()
        while not self._over.wait(TICK):
            now = time.monotonic()
            self.lost += max(0.0, now - at - 2 * TICK)
            at = now
