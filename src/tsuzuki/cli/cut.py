"""What a cancel cut off, as the last fact of a cancelled run counts it."""

from dataclasses import dataclass
from typing import Final, Self

from tsuzuki.facts import RunCancelled
from tsuzuki.lifecycle import Run, Status
from tsuzuki.runs import Runs

_LAST: Final = 3
"""The fact is the last of its run; a few are read, so that nothing hangs on that."""


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
