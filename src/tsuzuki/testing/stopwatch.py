"""How long something took, with and without what a busy machine took from everybody."""

import threading
from typing import Final, Self

from tsuzuki.clock import SystemClock

TICK: Final = 0.01
"""How often it is looked whether this process still gets its turn (seconds)."""


class Stopwatch:
    """Measures how long its block takes: in real seconds, and in those in which this process got its turn.

    A promise of a second is not about a machine whose processors others have. A thread asks for a turn every few
    milliseconds; by as much as it comes late, those who are waited for are late too. That is for what is waited for,
    and not for what this very process computes.
    """

    def __init__(self) -> None:
        self._now = SystemClock().monotonic
        self._over = threading.Event()
        self._ticking = threading.Thread(target=self._tick, name="stopwatch", daemon=True)
        self._ended: float | None = None
        self.lost = 0.0

    def __enter__(self) -> Self:
        self._began = self._now()
        self._ticking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = self._now()
        self._over.set()
        self._ticking.join()

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return (self._now() if self._ended is None else self._ended) - self._began

    @property
    def fair(self) -> float:
        """The same without what others took."""
        return self.seconds - self.lost

    def _tick(self) -> None:
        at = self._now()
        while not self._over.wait(TICK):
            now = self._now()
            self.lost += max(0.0, now - at - 2 * TICK)
            at = now
