"""How fast a process may ask: requests and tokens a minute, shared by everybody in it who asks the same provider."""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from tsuzuki.clock import Clock

MINUTE: Final = 60.0


@dataclass(slots=True)
class Pace:
    """A minute that slides: so many requests and tokens fit into it."""

    requests: int | None = None
    tokens: int | None = None
    _taken: deque[tuple[float, int]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def turn(self, clock: Clock, weight: int) -> None:
        """Waits until a request of so many tokens fits in, and takes its place."""
        while (wait := self.wait(clock.monotonic(), weight)) > 0:
            await clock.sleep(wait)

    def used(self, more: int) -> None:
        """Takes note that a request used more tokens than was thought, or less."""
        if self.tokens is not None and more:
            with self._lock:
                if self._taken:
                    at, weight = self._taken[-1]
                    self._taken[-1] = (at, max(0, weight + more))

    def wait(self, now: float, weight: int) -> float:
        """Takes a place where there is room, and gives 0; else gives how long to wait before asking again."""
        if self.requests is None and self.tokens is None:
            return 0.0
        with self._lock:
            while self._taken and self._taken[0][0] <= now - MINUTE:
                self._taken.popleft()
            if self._fits(weight):
                self._taken.append((now, weight))
                return 0.0
            return max(0.01, self._taken[0][0] + MINUTE - now)

    def _fits(self, weight: int) -> bool:
        """Tells whether there is room; a request that is larger than a whole minute goes alone."""
        if not self._taken:
            return True
        if self.requests is not None and len(self._taken) >= self.requests:
            return False
        return self.tokens is None or sum(each for _, each in self._taken) + weight <= self.tokens


_PACES: Final[dict[tuple[str, str], Pace]] = {}


def pace_of(provider: str, base_url: str, requests: int | None, tokens: int | None) -> Pace:
    """Gives the pace that everybody in this process keeps with a provider."""
    pace = _PACES.setdefault((provider, base_url), Pace())
    pace.requests, pace.tokens = requests, tokens
    return pace
