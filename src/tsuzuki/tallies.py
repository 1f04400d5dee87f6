"""What a process counts of its work for those who measure: claims, retries, how long runs and steps took.

Counts only grow. A worker tells them with its heartbeats, so that they are known without a look into any journal.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tsuzuki import facts as f

SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 43_200.0)
"""Up to how long something took, for each count of a histogram of times; the last count is of what took longer."""
SIZES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Up to how many were put together, for each count of a histogram of sizes; the last count is of what was larger."""
_ENDINGS: Final = (f.RunCompleted, f.RunFailed, f.RunCancelled)


class Histogram(msgspec.Struct, array_like=True):
    """How often values fell between bounds, and their sum."""

    counts: list[int]
    total: float = 0.0

    def add(self, value: float, bounds: Sequence[float]) -> None:
        """Counts a value."""
        self.counts[bisect_left(bounds, value)] += 1
        self.total += value

    def grow(self, after: "Histogram", before: "Histogram | None") -> None:
        """Adds what another one has grown by; one with other bounds, of another version, is left out."""
        known = Histogram([0] * len(after.counts)) if before is None else before
        if len(after.counts) == len(self.counts) == len(known.counts):
            self.counts = [a + max(b - c, 0) for a, b, c in zip(self.counts, after.counts, known.counts, strict=True)]
            self.total += max(after.total - known.total, 0.0)

    def __bool__(self) -> bool:
        return any(self.counts)


def times() -> Histogram:
    """Gives an empty histogram of times (seconds)."""
    return Histogram([0] * (len(SECONDS) + 1))


def sizes() -> Histogram:
    """Gives an empty histogram of sizes."""
    return Histogram([0] * (len(SIZES) + 1))


class Tallies(msgspec.Struct, omit_defaults=True):
    """What has been counted so far."""

    claims: int = 0
    retries: int = 0
    runs: Histogram = msgspec.field(default_factory=times)
    steps: Histogram = msgspec.field(default_factory=times)
    writes: Histogram = msgspec.field(default_factory=sizes)

    def wrote(self, facts: Iterable[f.Fact]) -> None:
        """Counts the steps and items among facts that are written; what was carried over took no time here."""
        for fact in facts:
            if isinstance(fact, f.Outcome) and type(fact) is not f.ItemSkipped:
                self.steps.add(fact.took, SECONDS)
                if fact.tries > 1:
                    self.retries += fact.tries - 1

    def ended(self, fact: f.Fact | None, took: float) -> None:
        """Counts a run that has ended here; one that was handed back has not."""
        if isinstance(fact, _ENDINGS):
            self.runs.add(took, SECONDS)

    def grow(self, after: "Tallies", before: "Tallies | None") -> None:
        """Adds what somebody's counts have grown by since they were last seen."""
        known = before or Tallies()
        self.claims += max(after.claims - known.claims, 0)
        self.retries += max(after.retries - known.retries, 0)
        for name in ("runs", "steps", "writes"):
            getattr(self, name).grow(getattr(after, name), getattr(known, name))


class Odometer:
    """The counts of all workers together, which never go back: what a worker that is gone has counted stays."""

    def __init__(self) -> None:
        self.total = Tallies()
        self._seen: dict[str, Tallies] = {}

    def look(self, told: Iterable[tuple[str, Tallies]]) -> Tallies:
        """Takes note of what each life of a worker tells now; gives the total."""
        now = dict(told)
        for life, tallies in now.items():
            self.total.grow(tallies, self._seen.get(life))
        self._seen = now
        return self.total
