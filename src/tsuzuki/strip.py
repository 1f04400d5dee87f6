"""When the calls of a task ended, as a strip of a fixed number of bins: the picture of a map, however many its items.

A bin that lies beyond the last makes every two bins one, of twice the width: so a strip of a second and one of a week
are equally small, and one call costs one addition.
"""

from typing import Any, Final

BINS: Final = 96
FINEST: Final = 0.05
"""The width of a bin at first (seconds)."""


class Strip:
    """How many calls ended well and badly, bin by bin."""

    __slots__ = ("_done", "_failed", "_start", "_width")

    def __init__(self) -> None:
        self._start: float | None = None
        self._width = FINEST
        self._done = [0] * BINS
        self._failed = [0] * BINS

    def add(self, at: float, *, failed: bool) -> None:
        """Counts a call that ended at a time; one before the first belongs to the first bin."""
        if self._start is None:
            self._start = at
        place = max(int((at - self._start) / self._width), 0)
        while place >= BINS:
            self._done, self._failed = _halved(self._done), _halved(self._failed)
            self._width *= 2
            place = int((at - self._start) / self._width)
        (self._failed if failed else self._done)[place] += 1

    def shown(self) -> dict[str, Any] | None:
        """Gives the bins up to the last that has something; None: there is nothing."""
        if self._start is None:
            return None
        last = max(place for place in range(BINS) if self._done[place] or self._failed[place])
        return {
            "start": self._start,
            "width": self._width,
            "done": self._done[: last + 1],
            "failed": self._failed[: last + 1],
        }


def _halved(bins: list[int]) -> list[int]:
    merged = [left + right for left, right in zip(bins[::2], bins[1::2], strict=True)]
    return merged + [0] * (BINS - len(merged))
