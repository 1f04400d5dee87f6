"""How many runs a worker claims at once: its free places, and more ahead the shorter runs are."""

from typing import Final

AHEAD: Final = 0.1
"""How much work is claimed ahead: so many runs as would take so long, by those seen so far (seconds)."""
MOST_AHEAD: Final = 400


class Appetite:
    """Learns how long runs take, and says how many to claim."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._typical = 1.0

    def learn(self, took: float) -> None:
        """Takes note of how long a run took; longer ones count more, so that others get their share."""
        self._typical += (took - self._typical) / (4 if took > self._typical else 8)

    def room(self, running: int, queued: int) -> int:
        """Says how many runs to claim: many at once, or none."""
        ahead = AHEAD * self._places / max(self._typical, 1e-4)
        most = self._places + min(int(ahead), MOST_AHEAD)
        room = most - running - queued
        idle = not queued and running < self._places
        return room if idle or room > most // 2 else 0
