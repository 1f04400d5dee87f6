"""The life of a run as one table, and its row as the fold of its facts.

Every status change in the product goes through `MOVES`: the backends fold with it, a refused move is
the HTTP 409, and the diagram in the docs is generated from it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from math import floor, log2
from typing import Final, TypeVar

import msgspec

from tsuzuki import facts as f
from tsuzuki.errors import MoveRefused
from tsuzuki.spending import added

MOST_CLAIMS: Final = 20
"""A run that was claimed so often without one new outcome kills its workers, and is failed."""
MAX_CLAIMS_ALONE: Final = 3
"""Claims without an outcome after which a shared run is failed, counting those with no other run beside it."""
_SUSPICIOUS: Final = 2
"""After so many claims without an outcome a shared run is a suspect: workers execute it with no other run beside it."""

CLOCKS_APART: Final = 5.0
"""Clocks that differ by less count as the same (seconds)."""

_POISON: Final = "PoisonRun"

Candidate = TypeVar("Candidate")


class Status(StrEnum):
    """The states of a run."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def terminal(self) -> bool:
        """Tells whether the run has ended."""
        return self in TERMINAL


class RunUpdateResult(StrEnum):
    """What became of a conditional update; never a bare bool."""

    UPDATED = "updated"
    NOT_FOUND = "not_found"
    ALREADY_TERMINAL = "terminal"


WITH_FAILURES: Final = "COMPLETED_WITH_FAILURES"
"""The word by which lists filter completed runs with failed items; their status is COMPLETED."""

TERMINAL: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
ACTIVE: Final = frozenset(Status) - TERMINAL

MOVES: Final[Mapping[Status, Mapping[str, Status]]] = {
    Status.PENDING: {
        "Claimed": Status.RUNNING,
        "CancelAsked": Status.CANCELLING,
        "ResumeAsked": Status.PENDING,
        "RunFailed": Status.FAILED,
        "RunCancelled": Status.CANCELLED,
    },
    Status.RUNNING: {
        "Claimed": Status.RUNNING,
        "CancelAsked": Status.CANCELLING,
        "Released": Status.PENDING,
        "RunCompleted": Status.COMPLETED,
        "RunFailed": Status.FAILED,
        "RunCancelled": Status.CANCELLED,
    },
    Status.CANCELLING: {
        "Claimed": Status.CANCELLING,
        "CancelAsked": Status.CANCELLING,
        "CancelSeen": Status.CANCELLING,
        "RunCompleted": Status.COMPLETED,
        "RunFailed": Status.FAILED,
        "RunCancelled": Status.CANCELLED,
    },
    Status.COMPLETED: {"ResumeAsked": Status.PENDING},
    Status.FAILED: {"ResumeAsked": Status.PENDING},
    Status.CANCELLED: {"ResumeAsked": Status.PENDING},
}
"""From a status, by a fact, to a status. What is not here does not happen."""

MOVING: Final = frozenset(kind for moves in MOVES.values() for kind in moves)
_MOVERS: Final = frozenset(f.KINDS[kind] for kind in MOVING) | f.SINCE.keys()


def diagram() -> str:
    """Draws the table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", "    [*] --> PENDING: Submitted"]
    for status, moves in MOVES.items():
        targets: dict[Status, list[str]] = {}
        for kind, target in moves.items():
            targets.setdefault(target, []).append(kind)
        lines += [f"    {status} --> {target}: {', '.join(kinds)}" for target, kinds in targets.items()]
    return "\n".join(lines)


class Run(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The row of a run: what its submission fixed, and the fold of its facts."""

    id: str
    flow: str
    created_at: str
    number: int = 0
    params: msgspec.Raw = msgspec.Raw(b"{}")
    digest: str = ""
    tag: str = "default"
    tags: tuple[str, ...] = ()
    priority: int = 0
    key: str | None = None
    idempotency_key: str | None = None
    tenant: str = ""
    private: bool = False
    source: str = ""
    continues: str | None = None
    workflow: str = ""
    """The SHA-256 of the YAML text that the run brings as its flow; the text is in its first fact."""
    workflow_bytes: int = 0
    api_key: str = ""
    """The id of the API key that submitted it."""

    status: Status = Status.PENDING
    attempt: int = 1
    holder: str | None = None
    worker: str = ""
    """Who claimed it last; it stays when the run has ended."""
    not_before: float = 0.0
    wait: float = 0.0
    """How long it waits (seconds), where a `Later` said so; 0 where `not_before` is a moment that a person chose."""
    waiting_reason: str = ""
    """Why it waits until `not_before`, where a `Later` said so."""
    started_at: str | None = None
    finished_at: str | None = None
    updated_at: float = 0.0
    heartbeat_at: float | None = None
    position: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    steps: int = 0
    spent: tuple[f.Spent, ...] = ()
    """What it used that is paid for, added up by model."""
    barren: int = 0
    """Claims since the last outcome or release. From the third on only those count that were alone."""
    fingerprint: str = ""
    error: f.Problem | None = None
    result: msgspec.Raw | None = None
    blob: str = ""
    cancel_asked_at: float | None = None
    cancel_asked_by: str = ""
    cancel_reason: str = ""
    progress: msgspec.Raw = msgspec.Raw(b"[]")
    version: int = f.VERSION


def stamp(at: float) -> str:
    """Writes a Unix time as UTC ISO 8601 with seconds and `+00:00`."""
    return _second(floor(at))


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def moment(value: datetime, name: str) -> float:
    """Turns an aware datetime into Unix seconds; a naive one is refused by the parameter's name."""
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{name} must be timezone-aware, for example datetime.now(timezone.utc); got {value!r}")
    return value.timestamp()


def move(status: Status, kind: str) -> Status:
    """Looks up where a fact takes a run; refuses what the table does not have."""
    target = MOVES[status].get(kind)
    if target is None:
        raise MoveRefused(f"a {status} run cannot take {kind}")
    return target


def fold(run: Run, fact: f.Fact | f.Unknown) -> Run:
    """Gives the row after one more fact."""
    run = msgspec.structs.replace(run, position=run.position + 1)
    if isinstance(fact, f.Fact) and (since := f.SINCE.get(type(fact), 1)) > run.version:
        run = msgspec.structs.replace(run, version=since)
    kind, was = f.kind(fact), run.status
    if kind in MOVING:
        run = msgspec.structs.replace(run, status=move(run.status, kind))
    match fact:
        case f.Claimed():
            return _claimed(run, fact)
        case f.Released():
            return msgspec.structs.replace(
                run,
                holder=None,
                attempt=run.attempt + 1,
                not_before=fact.not_before,
                wait=fact.wait,
                waiting_reason=fact.reason if fact.not_before else "",
                barren=0,
            )
        case f.CancelAsked():
            return msgspec.structs.replace(
                run, cancel_asked_at=fact.at, cancel_asked_by=fact.by, cancel_reason=fact.reason
            )
        case f.ResumeAsked():
            return _woken(run) if was is Status.PENDING else _resumed(_woken(run), fact)
        case f.RunCompleted():
            return msgspec.structs.replace(_ended(run, fact), result=fact.result, blob=fact.blob, error=None)
        case f.RunFailed():
            return msgspec.structs.replace(_ended(run, fact), error=fact.error)
        case f.RunCancelled():
            return msgspec.structs.replace(_ended(run, fact), error=None)
        case f.Outcome():
            return counted(run, f.tally([fact]))
        case f.Unknown():
            return msgspec.structs.replace(run, version=f.VERSION + 1)
        case _:
            return run


_FIXED: Final = (
    *("id", "flow", "created_at", "number", "params", "digest", "tag", "tags", "priority", "key", "idempotency_key"),
    *("tenant", "private", "source", "continues", "workflow", "workflow_bytes", "api_key", "not_before"),
)
"""What the submission says of a run; of `private` and `not_before` the facts that change them have the last word."""


def as_submitted(run: Run) -> Run:
    """Gives a run as it was before its first fact."""
    return Run(**{name: getattr(run, name) for name in _FIXED})


def refold(run: Run, facts: Iterable[f.Fact | f.Unknown]) -> Run:
    """Gives the row that all facts of a run make; what is shown of its progress, and when it changed, stay."""
    return msgspec.structs.replace(fold_all(as_submitted(run), facts), progress=run.progress, updated_at=run.updated_at)


def fold_all(run: Run, facts: Iterable[f.Fact | f.Unknown]) -> Run:
    """Gives the row after many facts, in order."""
    for fact in facts:
        run = fold(run, fact)
    return run


def counted(run: Run, tally: f.Tally) -> Run:
    """Adds outcomes to the counters; a new outcome proves that the run makes progress."""
    return msgspec.structs.replace(
        run,
        done=run.done + tally.done,
        failed=run.failed + tally.failed,
        skipped=run.skipped + tally.skipped,
        steps=run.steps + tally.steps,
        spent=added((*run.spent, *tally.spent)) if tally.spent else run.spent,
        barren=0 if tally.outcomes else run.barren,
    )


def only_outcomes(facts: Sequence[f.Fact]) -> bool:
    """Tells whether no fact of a batch can change the status, or who may claim the run."""
    return _MOVERS.isdisjoint(map(type, facts))


def _claimed(run: Run, fact: f.Claimed) -> Run:
    return msgspec.structs.replace(
        _woken(run) if run.not_before else run,
        holder=fact.worker,
        worker=fact.worker,
        attempt=fact.attempt,
        barren=run.barren + (fact.alone or run.barren < _SUSPICIOUS),
        started_at=run.started_at or stamp(fact.at),
        heartbeat_at=fact.at,
        fingerprint=fact.fingerprint or run.fingerprint,
    )


def _woken(run: Run) -> Run:
    """Return the row of a run that waits for no time any more."""
    return msgspec.structs.replace(run, not_before=0.0, wait=0.0, waiting_reason="")


def _resumed(run: Run, fact: f.ResumeAsked) -> Run:
    return msgspec.structs.replace(
        run,
        attempt=run.attempt + 1,
        failed=0 if fact.failed else run.failed,
        private=run.private and not fact.share,
        error=None,
        result=None,
        blob="",
        finished_at=None,
        barren=0,
        cancel_asked_at=None,
        cancel_asked_by="",
        cancel_reason="",
    )


def _ended(run: Run, fact: f.Fact) -> Run:
    return msgspec.structs.replace(run, holder=None, finished_at=stamp(fact.at), progress=msgspec.Raw(b"[]"))


def last_heartbeat(run: Run) -> float:
    """Return when a run was last heard of: by its holder's heartbeat, or by its own last change when it has none."""
    return run.updated_at if run.holder is None or run.heartbeat_at is None else run.heartbeat_at


# What is appended when somebody claims, cancels or resumes: decided here, once, for every backend.


def claim_facts(
    run: Run,
    worker: str,
    at: float,
    fingerprint: str = "",
    *,
    wheels: Mapping[str, str] | None = None,
    most: int = MOST_CLAIMS,
    alone: bool = False,
) -> list[f.Fact]:
    """Says what a claim appends: `Claimed`, or the end of a run that only kills its workers.

    `alone` says that the worker executes no other run beside it. A wait that another clock dates is claimed and
    released at once, to begin again by the clock of the store.
    """
    attempt = run.attempt if run.holder is None else run.attempt + 1
    if run.barren >= _most_claims(run, most):
        message = (
            f"claimed {run.barren} times without one new outcome{_how_often_alone(run)}: it ends its workers. "
            "Look at its last log lines, mend the flow, then resume it"
        )
        return [f.RunFailed(at=at, attempt=attempt, error=f.Problem(_POISON, message), reason="max_claims")]
    claimed = f.Claimed(at=at, attempt=attempt, worker=worker, fingerprint=fingerprint, alone=alone)
    if wheels:
        claimed = msgspec.structs.replace(claimed, wheels=dict(wheels))
    if not is_misdated(run, at):
        return [claimed]
    until, reason = at + run.wait, run.waiting_reason
    return [claimed, f.Released(at=at, attempt=attempt, reason=reason, not_before=until, wait=run.wait)]


def _most_claims(run: Run, most: int) -> int:
    """Return how many claims without an outcome end a run; a private one endangers no other run."""
    return most if run.private else min(most, _SUSPICIOUS + MAX_CLAIMS_ALONE)


def _how_often_alone(run: Run) -> str:
    return f", {run.barren - _SUSPICIOUS} of them with no other run beside it" if executed_alone(run) else ""


def must_be_alone(run: Run, most: int = MOST_CLAIMS) -> bool:
    """Return whether a run may end its worker, so that workers execute no other run beside it.

    After the last allowed claim any worker may record its failure, and one that is being cancelled only has to end.
    """
    harmless = run.private or run.status is Status.CANCELLING
    return not harmless and _SUSPICIOUS <= run.barren < _most_claims(run, most)


def executed_alone(run: Run) -> bool:
    """Return whether the last claim of a run was alone, and it has recorded no outcome since."""
    return run.barren > _SUSPICIOUS


def holds_up(run: Run, at: float) -> bool:
    """Return whether busy workers claim nothing behind a run that must be alone, so that one of them becomes idle.

    They wait and go on in periods that double. So it gets its turn however long other runs take, and a worker that
    executes a run of hours is not kept from all other work for as long.
    """
    waited = at - (run.heartbeat_at or 0.0)
    return waited < 1 or floor(log2(waited)) % 2 == 0


def choose(
    candidates: Iterable[tuple[Candidate, Run | None]], at: float, *, alone: bool, most: int = MOST_CLAIMS
) -> list[Candidate]:
    """Choose what a worker claims of candidates in order: one run that must be alone, or several that need not be.

    Each candidate comes with its row, or None where it waits and was handed back or never claimed. `alone` says that
    the worker executes nothing: a busy one claims no run that must be alone.
    """
    chosen: list[Candidate] = []
    for candidate, run in candidates:
        if run is None or not must_be_alone(run, most):
            chosen.append(candidate)
        elif alone and not chosen:
            return [candidate]
        elif holds_up(run, at):
            break
    return chosen


def is_waiting(run: Run) -> bool:
    """Return whether a run waits for a time to come, or waited for one and was not claimed since."""
    return run.status is Status.PENDING and run.not_before > 0


def is_misdated(run: Run, at: float) -> bool:
    """Return whether a wait would be longer than its length: a clock was set back, or the holder's was ahead."""
    return is_waiting(run) and run.wait > 0 and run.not_before - run.wait > at + CLOCKS_APART


def poisoned(run: Run) -> bool:
    """Tells whether a run was ended because it only killed its workers; only people may let it go on."""
    return run.status is Status.FAILED and run.error is not None and run.error.type == _POISON


def claimable(run: Run, at: float, dead: frozenset[str], *, patient: bool = False) -> bool:
    """Tells whether a run may be claimed now: it waits, or its holder is dead.

    Who is patient leaves one that seems to kill its workers alone for a while, so that others get their turn.
    """
    if run.version > f.VERSION:
        return False
    if run.status is Status.PENDING:
        return run.not_before <= at or is_misdated(run, at)
    if patient and 0.0 <= at - (run.heartbeat_at or 0.0) < rest(run.barren):  # before it: the clock was set back
        return False
    return run.status in ACTIVE and run.holder in dead


def precedence(run: Run) -> tuple[int, int, int]:
    """Says in which order runs are claimed: what has lost its worker first, then by priority, then by age.

    It was under way, and would still be: that its worker died must not put it behind all that waits. One that seems to
    kill its workers has no such right.
    """
    return turn(run.barren) if run.holder is not None else 1, -run.priority, run.number


def turn(barren: int) -> int:
    """Says whether a run that has lost its worker comes first (0) or in its turn (1), after so many claims."""
    return int(barren >= _SUSPICIOUS)


def rest(barren: int) -> float:
    """Return how long a run waits after its worker died, after so many claims without an outcome (seconds).

    After the last claim it only has to be failed, at once.
    """
    alone = barren - _SUSPICIOUS
    return 2.0 ** (alone - 1) if 0 < alone < MAX_CLAIMS_ALONE else 0.0


def holder_facts(run: Run, facts: Sequence[f.Fact]) -> Sequence[f.Fact]:
    """Says what the holder's facts are by now: handing back a run that is being cancelled cancels it."""
    if run.status is not Status.CANCELLING or not any(isinstance(fact, f.Released) for fact in facts):
        return facts
    return [f.RunCancelled(at=x.at, attempt=x.attempt) if isinstance(x, f.Released) else x for x in facts]


def cancel_facts(run: Run, ask: f.CancelAsked, dead: frozenset[str]) -> list[f.Fact]:
    """Says what a cancel request appends; where nobody holds the run it is settled at once."""
    if run.status in TERMINAL:
        return []
    held = run.holder is not None and run.holder not in dead
    if held:
        return [] if run.status is Status.CANCELLING else [ask]
    return [ask, f.RunCancelled(at=ask.at, attempt=run.attempt)]


def resume_facts(run: Run, ask: f.ResumeAsked, dead: frozenset[str]) -> list[f.Fact]:
    """Says what a resume request appends; what cannot be resumed is refused with the reason.

    A private run that its process has left behind is cancelled first: then the shared workers may have it.
    """
    if run.status in ACTIVE and ask.share and run.private and (run.holder is None or run.holder in dead):
        cancel = f.CancelAsked(at=ask.at, attempt=run.attempt, by=ask.by, reason="its process is gone: workers go on")
        return [*cancel_facts(run, cancel, dead), ask]
    if is_waiting(run):  # it is only woken: what failed stays so, and tries that were made count
        return [msgspec.structs.replace(ask, failed=False)]
    if run.status in ACTIVE:
        raise MoveRefused(f"run {run.number} is {run.status}: it goes on by itself, there is nothing to resume")
    if run.status is Status.COMPLETED and not (run.failed and ask.failed):
        raise MoveRefused(f"run {run.number} is COMPLETED and no failed item is to be tried again: nothing to resume")
    return [ask]


def request_facts(run: Run, ask: f.Fact, dead: frozenset[str]) -> list[f.Fact]:
    """Says what a request of somebody who does not hold the run appends."""
    match ask:
        case f.CancelAsked():
            return cancel_facts(run, ask, dead)
        case f.ResumeAsked():
            return resume_facts(run, ask, dead)
        case _:
            raise MoveRefused(f"only the holder of a run may record {f.kind(ask)}")
