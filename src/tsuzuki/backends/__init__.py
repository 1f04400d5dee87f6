"""The port: what the engine asks of a store, in a few wide verbs, and the values that cross it.

Rules live above it (`lifecycle`, `runner`) or beside it as pure functions that every adapter calls; an
adapter stores, fences, orders and wakes. A behaviour that is not in `tsuzuki.testing.BackendContract`
does not exist.
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from tsuzuki.backends.registry import STOPPED as STOPPED
from tsuzuki.backends.registry import WorkerRecord as WorkerRecord
from tsuzuki.backends.registry import WorkerState as WorkerState
from tsuzuki.backends.registry import forgettable as forgettable
from tsuzuki.backends.shelf import Wheels as Wheels
from tsuzuki.clock import Clock
from tsuzuki.errors import ClaimLost, KeyHeld
from tsuzuki.facts import Claimed, Fact, RunFailed, Unknown
from tsuzuki.lifecycle import Run, RunUpdateResult, Status
from tsuzuki.tallies import Histogram

_KILO: Final = 1024
ALWAYS: Final = float("inf")
NO_FINGERPRINTS: Final[Mapping[str, str]] = MappingProxyType({})
API_KEYS: Final = "key"
"""The kind of the records that grant rights. A store with users keeps them where only administrators write."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A fact at its position in the journal of a run."""

    position: int
    fact: Fact | Unknown


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An outcome or a failed try without its value: what the replay index is built from."""

    position: int
    kind: str
    step: str
    key: str


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a run's log: lossy, capped, never read by replay.

    `position` is the journal position it was written after, so that watchers can merge the two streams.
    """

    at: float
    text: str
    level: str = "info"
    step: str = ""
    name: str = ""
    key: str = ""
    logger: str = ""
    position: int = 0
    number: int = 0


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A worker's lease on a run; its attempt is the fencing number, `was` the fingerprint of the claim before."""

    run: Run
    worker: str
    attempt: int
    was: str = ""


class Holding(msgspec.Struct, frozen=True):
    """A run that a worker holds, as the store sees it: its attempt, and whether a cancel was asked."""

    run_id: str
    attempt: int
    cancelling: bool


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A run that failed, kept for those who look after the system; the store gives it its id."""

    id: str = ""
    run_id: str
    number: int
    flow: str
    tag: str
    reason: str
    error: str
    at: float
    tags: tuple[str, ...] = ()
    worker: str = ""
    attempt: int = 1
    tenant: str = ""
    subject: str = ""
    """Where the run was queued."""


def dead_letter(run: Run, fact: RunFailed) -> DeadLetter:
    """Writes the dead letter of a run that failed."""
    return DeadLetter(
        run_id=run.id,
        number=run.number,
        flow=run.flow,
        tag=run.tag,
        reason=fact.reason,
        error=fact.error.message,
        at=fact.at,
        tags=run.tags,
        worker=fact.worker or run.holder or "",
        attempt=fact.attempt,
        tenant=run.tenant,
        subject=f"work.{run.tag}",
    )


def claim_lost(claim: Claim) -> ClaimLost:
    """Says that a claim is over."""
    return ClaimLost(
        f"attempt {claim.attempt} of run {claim.run.number} by {claim.worker} is over: "
        "the run ended, was handed back or was claimed again; stop working on it"
    )


def key_held(key: str | None, number: int, status: str, run_id: str) -> KeyHeld:
    """Says which active run holds a key."""
    return KeyHeld(f"the key {key!r} is held by run {number}, which is {status}: wait for it, or cancel it", run_id)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list; unset fields do not filter. Newest `updated_at` first, the id breaks ties."""

    status: tuple[Status, ...] = ()
    flow: str | None = None
    tag: str | None = None
    label: str | None = None
    key: str | None = None
    tenant: str | None = None
    private: bool | None = None
    digest: str | None = None
    number: int | None = None
    id_prefix: str | None = None
    workflow: str | None = None
    text: str | None = None
    """Words in the id, the flow's name or the message of the error, whatever their case."""
    holder: str | None = None
    spent: bool | None = None
    """Whether they have spent something on models."""
    failures: bool = False
    """Of completed runs, only those with failed items."""
    finished_before: str | None = None
    updated_after: float | None = None
    before: tuple[float, str] | None = None
    limit: int = 50
    params: bool = True
    """Whether rows come with their params. Without, these are `{}`: a page of huge ones need not fit into memory."""


class Check(msgspec.Struct, frozen=True):
    """One finding of `doctor`: whether it is as it should be, and where it is not, what to do."""

    name: str
    ok: bool
    text: str
    do: str = ""


def amount(size: float) -> str:
    """Says how much room something takes: 512 bytes, 3 KB, 1.5 GB."""
    for unit in ("bytes", "KB", "MB"):
        if size < _KILO:
            return f"{size:.0f} {unit}"
        size /= _KILO
    return f"{size:.1f} GB"


class Backend(Protocol):
    """Where runs, journals, logs, workers and blobs live. Every method may raise `StoreError`."""

    @property
    def url(self) -> str:
        """The address that opens this store again."""
        ...

    @property
    def one_machine(self) -> bool:
        """Whether all who use the store are on one machine: what was alive before its last boot is dead."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock that all who use the store agree on: times of runs are read and written by it."""
        ...

    @property
    def writes(self) -> Histogram:
        """How much went together into each write of this process: what callers wrote at the same time, or facts."""
        ...

    @property
    def wheels(self) -> Wheels:
        """The wheels that workers install."""
        ...

    # The journal

    def append(self, claim: Claim, facts: Sequence[Fact], *, alone: bool = False) -> Awaitable[int]:
        """Appends facts of the holder, all or none, and folds them into the row; gives the last position.

        `alone` says that nothing else of the run is about to be written, so that waiting for company is of no use.

        Acknowledged means kept. A claim that is not the current one is refused with `ClaimLost`. An outcome
        whose (step, key, attempt) is there already is left as it was: the first write wins.
        """
        ...

    async def read(self, run_id: str, *, after: int = 0, limit: int = 2000) -> list[Entry]:
        """Reads facts in order of position, those after `after`."""
        ...

    async def outcomes(self, run_id: str, *, after: int = 0, limit: int = 5000) -> list[Mark]:
        """Reads, in order and without their values, outcomes, failed tries and the `ResumeAsked` that retry failures.

        A `ResumeAsked(failed=False)` is left out: it changes nothing for replay.
        """
        ...

    async def fetch(self, run_id: str, positions: Sequence[int]) -> list[Entry]:
        """Reads the facts at these positions, in any order."""
        ...

    async def changed(self, run_id: str, position: int, timeout: float) -> None:
        """Waits until the run may have moved past `position` or its log may have grown, or the time is up."""
        ...

    # The log

    async def log(self, run_id: str, lines: Sequence[Line], progress: bytes | None = None) -> None:
        """Adds log lines (the oldest beyond the cap go) and sets the progress of the row; not fenced, not replayed."""
        ...

    async def read_log(self, run_id: str, *, after: int = 0, limit: int = 1000) -> list[Line]:
        """Reads log lines in order of number, those after `after`."""
        ...

    # The queue

    async def submit(self, run: Run, fact: Fact, *, claimed: Claimed | None = None) -> Run:
        """Accepts a run with its first fact; gives the stored row, with its number.

        With `claimed` its submitter has it from the first moment on: both facts are written, or none. A run with the
        same tenant and idempotency key is given back instead. A key that an active run of the tenant holds is refused
        with `KeyHeld`, naming that run.
        """
        ...

    async def claim(
        self,
        worker: str,
        *,
        tags: Sequence[str] = (),
        limit: int = 1,
        flows: Collection[str] | None = None,
        workflows: bool = True,
        dead: frozenset[str] = frozenset(),
        run_id: str | None = None,
        fingerprints: Mapping[str, str] = NO_FINGERPRINTS,
        wheels: Mapping[str, str] = NO_FINGERPRINTS,
        alone: bool = False,
    ) -> list[Claim]:
        """Claims runs whose holder is dead, and those that wait by priority, then age (`lifecycle.precedence`).

        By tag it gives shared runs only: of `flows` where those are named, and with `workflows` those that bring their
        own workflow, whatever their flow is called; by id it also gives a private one.
        What `lifecycle.claim_facts` ends instead of claiming is not given. `fingerprints` tells, by flow, what the
        worker's code is, and `wheels` the digests of those it has installed. `alone` says that the worker executes
        nothing: only then is it given a run that must be alone, and no other with it (`lifecycle.choose`).
        """
        ...

    async def ask(
        self, run_id: str, fact: Fact, *, dead: frozenset[str] = frozenset()
    ) -> tuple[RunUpdateResult, Run | None]:
        """Appends the request of somebody who does not hold the run (cancel, resume), as `lifecycle` decides."""
        ...

    async def work(self, timeout: float) -> None:
        """Waits until there may be new work or new requests, or the time is up."""
        ...

    # Workers

    async def beat(self, worker: WorkerRecord) -> list[Holding]:
        """Records that a worker lives, and tells it what it holds; whether it is hidden stays as it was.

        A new worker lets those that are `forgettable` be forgotten.
        """
        ...

    async def workers(self, *, holding: bool = False) -> list[WorkerRecord]:
        """Lists the workers, the last seen first; with `holding` only those that hold a run or a place of a limit."""
        ...

    async def hide(self, worker_id: str, hidden: bool) -> bool:
        """Sets whether a worker is to be shown; heartbeats and restarts keep it. False: there is no such worker."""
        ...

    # The index

    async def get(self, run_id: str) -> Run | None:
        """Gives the row of a run."""
        ...

    async def search(self, query: Query) -> list[Run]:
        """Lists rows."""
        ...

    async def counts(
        self,
        *,
        flow: str | None = None,
        tag: str | None = None,
        tenant: str | None = None,
        updated_after: float = 0.0,
        updated_by: float = ALWAYS,
    ) -> dict[str, int]:
        """Counts the runs by status: of a flow, tag or tenant, and those that changed after one time and by another."""
        ...

    async def waiting_since(self) -> float | None:
        """Tells since when the shared run that waits longest could have been claimed; None: none can be yet."""
        ...

    async def dead_letters(self, *, limit: int = 100, before: str | None = None) -> list[DeadLetter]:
        """Lists dead letters, the newest first; with `before` those older than that one."""
        ...

    async def count_letters(self) -> int:
        """Counts the dead letters."""
        ...

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        """Gives a dead letter by its id."""
        ...

    async def drop_letter(self, letter: str) -> bool:
        """Removes a dead letter; False: there was none."""
        ...

    # Records: small named JSON documents of the whole store, for those above the engine

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        """Keeps a document under its kind and name; the last one written counts."""
        ...

    async def record(self, kind: str, name: str) -> bytes | None:
        """Reads a document."""
        ...

    async def records(self, kind: str) -> list[tuple[str, bytes]]:
        """Reads all documents of a kind, by name."""
        ...

    async def drop_record(self, kind: str, name: str) -> bool:
        """Removes a document; False: there was none."""
        ...

    # Blobs

    async def put_blob(self, run_id: str, data: bytes) -> str:
        """Keeps a large value under its run, durably, before the fact that refers to it; gives its reference."""
        ...

    async def get_blob(self, run_id: str, blob: str) -> bytes:
        """Reads a blob."""
        ...

    # Shared limits

    async def take(self, limit: str, *, interval: float, burst: int = 1) -> float:
        """Takes the next turn of a rate that the whole backend shares; gives how long to wait for it."""
        ...

    async def enter(self, limit: str, *, places: int, worker: str, dead: frozenset[str] = frozenset()) -> bool:
        """Takes one of the places that the whole backend shares, if one is free (those of the dead are)."""
        ...

    async def leave(self, limit: str, *, worker: str) -> None:
        """Gives a place back."""
        ...

    # The store itself

    async def rebuild(self, run_id: str) -> Run | None:
        """Folds the journal of a run anew and writes the row; gives it."""
        ...

    async def purge(self, run_ids: Sequence[str]) -> int:
        """Removes ended runs with their journals, logs and blobs; gives how many."""
        ...

    async def compact(self) -> Check:
        """Gives the space of what was removed back; tells what came of it."""
        ...

    async def examine(self) -> list[Check]:
        """Examines the store, for `doctor`; sweeps what a crash left behind."""
        ...

    async def close(self) -> None:
        """Writes what waits, and leaves."""
        ...
