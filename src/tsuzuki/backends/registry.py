"""What a store knows of workers, what they say they are doing, and whom it forgets."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from tsuzuki.lifecycle import Run
from tsuzuki.tallies import Tallies


class WorkerState(StrEnum):
    """What a worker is doing; DISCONNECTED is never stored, but seen by who looks (`presence.state_of`)."""

    RUNNING = "RUNNING"
    IDLE = "IDLE"
    STOPPED_GRACEFUL = "STOPPED_GRACEFUL"
    DISCONNECTED = "DISCONNECTED"


STOPPED: Final = WorkerState.STOPPED_GRACEFUL.value
"""The state of a worker that has left in order."""


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the store knows of a worker; `presence` is the lock file it holds while it lives on `host`.

    `instance_id` tells two lives of a worker with the same name apart. `hidden` is for those who look: it belongs to
    the store, and no heartbeat changes it.
    """

    id: str
    host: str = ""
    presence: str = ""
    tags: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    heartbeat_at: float = 0.0
    started_at: float = 0.0
    state: str = WorkerState.RUNNING.value
    beats: int = 0
    instance_id: str = ""
    current_run_id: str | None = None
    current_tenant: str = ""
    """The tenant of its current run."""
    last_run_id: str | None = None
    last_tenant: str = ""
    """The tenant of its last run."""
    last_run_status: str | None = None
    last_run_started_at: float | None = None
    last_run_finished_at: float | None = None
    stopped_at: float | None = None
    stop_reason: str | None = None
    hidden: bool = False
    marks: tuple[str, ...] = ()
    """By which what it has published of each of `flows` is known, in their order."""
    resolves: bool = False
    """Whether it finds flows by a resolver too, so that it may take a run of any name."""
    workflows: bool = False
    """Whether it executes runs that bring their workflow."""
    tasks: tuple[str, ...] = ()
    """The names of the registered tasks that a workflow may call without naming their module."""
    wheel_sync: dict[str, Any] | None = None
    """What it tells of its wheels, where it installs any."""
    version: str = ""
    """Which Tsuzuki it is; empty: one that did not say it yet."""
    tallies: Tallies | None = None
    """What it has counted of its work in this life."""

    def takes(self, run: Run) -> bool:
        """Tells whether it takes a shared run: of a tag it serves and a flow it knows, or may find by its resolver."""
        if run.tag not in self.tags:
            return False
        return self.workflows if run.workflow else self.resolves or run.flow in self.flows

    def may_learn(self, since: float) -> bool:
        """Tells whether wheels may still bring it flows for what was asked since: it has not looked again yet."""
        return self.wheel_sync is not None and (self.wheel_sync.get("last_attempt_at") or 0.0) <= since

    def mark(self, flow: str) -> str:
        """Tells by which mark what it has published of a flow is known; empty: it has published nothing of it."""
        return dict(zip(self.flows, self.marks, strict=False)).get(flow, "")

    @property
    def stopped(self) -> bool:
        """Whether it left in order: what it held is free."""
        return self.state == STOPPED


PUBLISHED: Final = "flow"
"""The kind of the records in which workers publish their flows."""
WORKERS_SEEN_FOR: Final = 24 * 3600.0
"""How long a worker that holds nothing is remembered after its last heartbeat (seconds)."""
MOST_WORKERS: Final = 1000
"""Beyond so many records, workers that have left in order are forgotten earlier."""


def forgettable(records: Sequence[WorkerRecord], holders: Collection[str], now: float) -> list[str]:
    """Names the workers that a store forgets when a new one comes: every start of a script is one.

    Those that hold nothing and were silent for a day; beyond 1,000 also those that have left in order, the oldest
    first. The last heartbeat of anybody counts as now where it is earlier: after a clock has jumped by a day, all who
    live would seem silent.
    """
    now = min(now, max((record.heartbeat_at for record in records), default=now))
    idle = sorted((r for r in records if r.id not in holders), key=lambda r: (r.heartbeat_at, r.id))
    silent = [r.id for r in idle if now - r.heartbeat_at > WORKERS_SEEN_FOR]
    left = [r.id for r in idle if r.stopped and now - r.heartbeat_at <= WORKERS_SEEN_FOR]
    return silent + left[: max(len(records) - len(silent) - MOST_WORKERS, 0)]
