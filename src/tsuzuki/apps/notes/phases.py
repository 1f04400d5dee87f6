"""Phases, stages and their statistics, in the words of the requirement."""

from dataclasses import dataclass
from enum import StrEnum

from tsuzuki.apps.notes.completed import CompletedItemsCache
from tsuzuki.apps.notes.items import StageType


class PhaseStatus(StrEnum):
    """How a phase stands."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CRASHED = "CRASHED"


@dataclass(slots=True)
class PhaseStatistics:
    """What became of the items of a phase: done now, failed, passed over, and how many there are."""

    success_count: int = 0
    error_count: int = 0
    skipped_count: int = 0
    total_count: int = 0

    @property
    def pending_count(self) -> int:
        """How many nobody has come to yet: left by a limit, a cancel or an interruption."""
        return max(self.total_count - self.success_count - self.error_count - self.skipped_count, 0)

    @property
    def status(self) -> PhaseStatus:
        """How a phase with these figures has ended, where all that was skipped had succeeded before."""
        return self.ended(passed_over=0)

    def ended(self, *, passed_over: int) -> PhaseStatus:
        """Says how a phase with these figures has ended; what a stage itself has passed over is no success."""
        succeeded = self.success_count + self.skipped_count - passed_over
        if self.error_count and not succeeded and not self.pending_count:
            return PhaseStatus.FAILED
        if self.error_count or self.pending_count:
            return PhaseStatus.PARTIAL
        return PhaseStatus.COMPLETED

    def __str__(self) -> str:
        skipped = f", {self.skipped_count} skipped" if self.skipped_count else ""
        return f"{self.success_count} success, {self.error_count} failed{skipped}"


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a session; there is one, `import`."""

    session_id: str
    name: str = "import"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a phase."""

    type: StageType


@dataclass(slots=True)
class StageContext:
    """What a stage works with; without a cache nothing is passed over."""

    phase: Phase
    stage: Stage
    debug_mode: bool = False
    limit: int | None = None
    chunk: bool = False
    completed_cache: CompletedItemsCache | None = None

    def passes_over(self, item_id: str) -> bool:
        """Whether the stage has done the item before."""
        return self.completed_cache is not None and self.completed_cache.is_completed(item_id)

    def chosen(self, item_ids: list[str]) -> list[str]:
        """Gives the items to work on: those not done, and of them as many as the limit allows."""
        undone = [item_id for item_id in item_ids if not self.passes_over(item_id)]
        return undone if self.limit is None else undone[: self.limit]
