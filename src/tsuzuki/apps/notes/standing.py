"""How a session stands, as commands, routes and pages tell it."""

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from tsuzuki import Run, Status
from tsuzuki.apps.notes import looking
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.sessions import Session


@dataclass(frozen=True, slots=True)
class Standing:
    """How a session stands."""

    __pydantic_config__: ClassVar[dict[str, Any]] = looking.DESCRIBED

    session_id: str
    """The id of the session: the moment when it was made."""
    created_at: str
    """When it was made (UTC, ISO 8601)."""
    provider: str
    """Whose export it is: `chatgpt`, `claude`, `jsonl` or `markdown`."""
    source: str
    """The name of the export."""
    vault: str
    """The path of the folder into which the notes go; empty with API keys: the notes are downloaded."""
    status: str
    """How it stands: `PENDING`, `IN_PROGRESS`, `COMPLETED`, `PARTIAL`, `FAILED` or `CRASHED`."""
    success_count: int
    """How many items are done."""
    error_count: int
    """How many have failed and were not done since."""
    skipped_count: int
    """How many are passed over; `skipped_reasons` tells why."""
    total_count: int
    """How many items the export has."""
    pending_count: int
    """How many nobody has come to yet."""
    retryable_count: int
    """How many of those that failed can be tried again; the others cannot be read from the export."""
    run_id: str | None
    """The id of its last run; null where none is known."""
    run_number: int | None
    """The number of that run; null where none is known."""
    error: str | None
    """What the work on it failed of; null where it did not fail."""
    cost: float | None
    """What it has cost, failures included (US dollars); null where no price is known."""
    active: bool
    """Whether its last run has not ended."""
    owed_batches: list[str]
    """The ids of batches whose answers are to be collected: `resume` does; `unclear` is one that may exist."""
    export_unreadable: bool = False
    """Whether it crashed of the export, which cannot be read: to go on changes nothing, a new export does."""
    skipped_reasons: dict[str, int] = field(default_factory=dict)
    """How many items were passed over for each reason: `too_large`, `unchanged`, `deleted`, `empty`, `repeated`,
    `own_note`."""


def broken(session: Session, error: str) -> Standing:
    """Gives what can be said of a session whose files make no sense."""
    name, nothing = session.folder.name, PhaseStatistics()
    return Standing(
        session_id=name, created_at="", provider="", source=name, vault="", status=PhaseStatus.CRASHED.value,
        **asdict(nothing), pending_count=0, retryable_count=0, run_id=None, run_number=None, error=error, cost=None,
        active=False, owed_batches=[],
    )  # fmt: skip


def status_of(
    state: dict[str, Any], counts: PhaseStatistics, last: Run | None, *, active: bool, held: bool
) -> PhaseStatus:
    """Says how a phase stands: what the engine knows of its run counts most, then what is written down."""
    written = PhaseStatus(state["status"])
    if held:  # somebody with another database
        return PhaseStatus.IN_PROGRESS
    if active:
        return PhaseStatus.IN_PROGRESS if last is not None and last.started_at else PhaseStatus.PENDING
    if last is not None and last.status is Status.FAILED:
        return PhaseStatus.CRASHED
    if written is PhaseStatus.IN_PROGRESS:  # whoever worked on it was killed
        return PhaseStatus.PARTIAL
    if written in (PhaseStatus.PENDING, PhaseStatus.CRASHED):
        return written
    if written is PhaseStatus.PARTIAL and not counts.total_count:  # it was stopped before it had read the export
        return written
    return counts.ended(passed_over=counts.skipped_count)
