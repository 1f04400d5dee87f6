"""Who works on a store: its workers, what each of them is doing, and which are to be shown."""

from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from tsuzuki import settings
from tsuzuki.backends import WorkerRecord, WorkerState
from tsuzuki.errors import BadUsage, WorkerNotFound
from tsuzuki.lifecycle import stamp
from tsuzuki.presence import is_gone, state_of
from tsuzuki.runs import Runs

ALIVE: Final = (WorkerState.RUNNING, WorkerState.IDLE)
MOST: Final = 500
QUIET: Final = 3.0
"""Who was silent for so long may have lost the run that it was executing (seconds)."""


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A worker, and what it is doing by the clock of who looks."""

    record: WorkerRecord
    state: WorkerState

    def plain(self) -> dict[str, Any]:
        """Gives it as plain JSON types, for programs."""
        record = self.record
        return {
            "worker_id": record.id,
            "instance_id": record.instance_id,
            "state": self.state.value,
            "hidden": record.hidden,
            "last_seen_at": stamp(record.heartbeat_at),
            "started_at": stamp(record.started_at),
            "tags": list(record.tags),
            "flows": list(record.flows),
            "current_run_id": record.current_run_id,
            "last_run_status": record.last_run_status,
            "stopped_at": None if record.stopped_at is None else stamp(record.stopped_at),
            "stop_reason": record.stop_reason,
            "wheel_sync": record.wheel_sync,
        }


class Crew:
    """The workers of a store, the living and those that are gone."""

    def __init__(self, runs: Runs) -> None:
        self._runs, self._backend = runs, runs.backend

    async def list(
        self,
        *,
        everyone: bool = False,
        state: WorkerState | str | None = None,
        hidden: bool = False,
        limit: int | None = MOST,
    ) -> list[SeenWorker]:
        """Lists the workers that live, the last seen first; or everyone, or all in one state, and the hidden ones too.

        One that has not left in order is DISCONNECTED when it has been silent for
        TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC, or at once where this machine knows that its process has ended.
        """
        wanted = (checked_state(state),) if state else tuple(WorkerState) if everyone else ALIVE
        now, silent = self._runs.now(), settings.worker_disconnect_timeout()
        seen = [SeenWorker(record, _state(record, now, silent)) for record in await self._backend.workers()]
        fitting = [worker for worker in seen if worker.state in wanted and (hidden or not worker.record.hidden)]
        shown = sorted(fitting, key=lambda worker: -worker.record.heartbeat_at)[:limit]
        return [
            worker if now - worker.record.heartbeat_at < QUIET else await self._without_lost(worker) for worker in shown
        ]

    async def _without_lost(self, worker: SeenWorker) -> SeenWorker:
        """Leaves out the run that a worker which fell silent was executing, once it holds it no more."""
        current = worker.record.current_run_id
        row = None if current is None else await self._backend.get(current)
        if current is None or (row is not None and row.holder == worker.record.id):
            return worker
        return SeenWorker(replace(worker.record, current_run_id=None), worker.state)

    async def hide(self, worker: str, *, hidden: bool = True) -> None:
        """Sets whether a worker is shown; nothing else about it changes, and its heartbeats keep it so."""
        if not await self._backend.hide(worker, hidden):
            raise WorkerNotFound(f"worker not found: {worker!r}; `tsuzuki workers --all --hidden` shows them")


def _state(record: WorkerRecord, now: float, silent: float) -> WorkerState:
    state = state_of(record, now, silent)
    # Only what this machine can see for itself: a record of another host may be that of a worker that lives there.
    return WorkerState.DISCONNECTED if state in ALIVE and is_gone(record, one_machine=False) else state


def checked_state(text: str) -> WorkerState:
    """Reads a state by its name, whatever its case."""
    try:
        return WorkerState(text.strip().upper())
    except ValueError:
        raise BadUsage(f"workers are {', '.join(WorkerState)}, not {text!r}") from None
