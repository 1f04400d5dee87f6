"""Runs that a fault of the store has stopped here: they are still ours, and go on after pauses that grow.

They go on under the same claim. To claim them anew would count against them, as if they had killed their worker.
"""

from typing import Final

from tsuzuki.backends import Claim

FIRST_PAUSE: Final = 2.0
"""How long a run waits after the first fault (seconds); twice as long after each one that follows."""
LONGEST_PAUSE: Final = 300.0
"""A run may do paid work before it meets the fault again, so it does not try often."""

LOOK_AGAIN: Final = 5.0
"""How often a store that takes no writes is tried, before any run goes on (seconds)."""


class Stumbles:
    """What waits here to be tried again."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Claim, float]] = {}
        self._pauses: dict[str, float] = {}

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._waiting

    def note(self, claim: Claim, now: float) -> float:
        """Takes note of a run that was stopped; gives for how long (seconds)."""
        run_id = claim.run.id
        pause = self._pauses[run_id] = min(self._pauses.get(run_id, FIRST_PAUSE / 2) * 2, LONGEST_PAUSE)
        self._waiting[run_id] = claim, now + pause
        return pause

    def postpone(self, claim: Claim, now: float) -> None:
        """Lets a run wait a while longer: the store does not take writes yet."""
        self._waiting[claim.run.id] = claim, now + LOOK_AGAIN

    def forget(self, run_id: str) -> None:
        """Forgets a run that has ended or left."""
        self._pauses.pop(run_id, None)
        self._waiting.pop(run_id, None)

    def hurry(self, run_id: str) -> None:
        """Lets a run go on with the next look: somebody asked to cancel it."""
        claim, _ = self._waiting[run_id]
        self._waiting[run_id] = claim, 0.0

    def due(self, now: float) -> list[Claim]:
        """Gives those whose pause is over, and does not wait for them any more."""
        due = [claim for claim, at in self._waiting.values() if at <= now]
        for claim in due:
            del self._waiting[claim.run.id]
        return due

    def ours(self) -> set[tuple[str, int]]:
        """Names what waits here, and under which attempt."""
        return {(run_id, claim.attempt) for run_id, (claim, _) in self._waiting.items()}
