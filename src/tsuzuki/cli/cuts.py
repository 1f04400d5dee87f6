"""What became of a cancel, in the same words for runs of the store and of a gateway: what it cut off, or not yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from tsuzuki.cli import render
from tsuzuki.facts import RunCancelled
from tsuzuki.lifecycle import TERMINAL, Run, Status
from tsuzuki.runs import Runs

_LAST: Final = 3
"""How many facts are read at the end of a cancelled run: the last one counts what was cut off."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What a cancelled run cut off."""

    never_started: int
    finished_anyway: int
    interrupted: int

    @classmethod
    def of(cls, fact: RunCancelled) -> Self:
        """Gives what a fact counts."""
        return cls(fact.never_started, fact.finished_anyway, fact.interrupted)

    @classmethod
    def there(cls, snapshot: Mapping[str, Any]) -> Self | None:
        """Gives what a gateway tells of a run; None of a run that is not cancelled."""
        return None if snapshot.get("cut") is None else cls(**snapshot["cut"])

    def __str__(self) -> str:
        if not (self.never_started or self.finished_anyway or self.interrupted):
            return "nothing was counted"  # nobody executed the run, or whoever did had stopped already
        return (
            f"{self.never_started:,} never started, {self.finished_anyway:,} finished anyway, "
            f"{self.interrupted:,} interrupted"
        )


async def cut_of(runs: Runs, row: Run) -> Cut | None:
    """Reads from the end of the journal what the cancel of a run cut off; gives None of a run that is not cancelled."""
    if row.status is not Status.CANCELLED:
        return None
    entries = await runs.backend.read(row.id, after=max(row.position - _LAST, 0), limit=_LAST)
    cuts = [Cut.of(entry.fact) for entry in entries if isinstance(entry.fact, RunCancelled)]
    return cuts[-1] if cuts else None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A run after somebody asked for it to be cancelled, and perhaps waited."""

    name: str
    status: Status
    counts: str
    cut: Cut | None
    late: bool
    """Whether it had ended before it was asked."""
    waited: float | None = None
    """For how long it was waited for in vain (seconds)."""

    @property
    def exit_code(self) -> int:
        """0 where it is cancelled, or will be and nobody waited for that."""
        return 0 if self.status is Status.CANCELLED or (self.status not in TERMINAL and self.waited is None) else 1

    def __str__(self) -> str:
        if self.late:
            return f"{self.name} had ended already: {self.status}"
        if self.status in TERMINAL and self.status is not Status.CANCELLED:
            return f"{self.name} ended before it saw the request: {self.status}"
        if self.status is Status.CANCELLED:
            return f"{self.name} is CANCELLED: {self.cut or 'nobody was executing it'} ({self.counts})"
        if self.waited is not None:
            still = f"{self.name} is still {self.status} after {render.duration(self.waited)}"
            return (
                f"{still}: the request stands, but whoever executes it has not stopped yet; cancel it again to wait on"
            )
        return f"{self.name} is CANCELLING: requested, and whoever executes it will stop; --wait waits for that"
