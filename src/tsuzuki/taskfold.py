"""What the tasks of a run are doing: a fold of its facts by the task's name, as small as the number of names.

A task that was called several times has one state: FAILED if any call failed, else RUNNING while any is under way,
else SUCCEEDED. `ResumeAsked` that tries failures again forgets them, a new claim forgets what was under way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.strip import Strip

MOST_OUTPUT: Final = 262_144
"""Recorded values of all tasks together are kept up to so many bytes; beyond, none is."""


class TaskState(StrEnum):
    """The states of a task in a run."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(slots=True)
class MapCalls:
    """The items of one map so far, and how many there are where that is known."""

    total: int | None
    settled: int = 0
    failed: int = 0

    @property
    def open(self) -> bool:
        """Whether items are left, as far as the journal tells."""
        return self.total is None or self.settled + self.failed < self.total


@dataclass(slots=True)
class TaskCalls:
    """The calls of one task so far; its maps by their step."""

    maps: dict[str, MapCalls] = field(default_factory=dict)
    under_way: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    seconds: float = 0.0
    error: str | None = None
    traceback: str | None = None
    inputs: msgspec.Raw | None = None
    """What its last call was given."""
    output: msgspec.Raw | None = None
    blob: str = ""
    """Where its last value is kept, until that has been read: a large one is not in the journal."""
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    strip: Strip | None = None
    """When its items ended; only a map has one."""

    def begin(self, at: float) -> None:
        """Notes when the first call began."""
        self.started_at = at if self.started_at is None else min(self.started_at, at)

    @property
    def open(self) -> bool:
        """Whether a call or a map is under way, as far as the journal tells."""
        return self.under_way > 0 or any(mapped.open for mapped in self.maps.values())


class TaskFold:
    """The tasks of one run up to a position; `feed` it the facts that follow."""

    def __init__(self, nodes: Sequence[str] = ()) -> None:
        self.position = 0
        self.worker: str | None = None
        self.wheels: dict[str, str] = {}
        """The digests of the wheels that its worker had."""
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.workflow = ""
        self.inputs: Mapping[str, Any] = {}
        """What the text of a YAML flow says of the inputs of its tasks, by the task's name."""
        self.cut: dict[str, int] | None = None
        """What the cancel of a cancelled run cut off."""
        self.retried_from = 0
        """Failures before this position are tried again, or have been."""
        self._nodes = tuple(nodes)
        self._tasks: dict[str, TaskCalls] = {}
        self._open: dict[tuple[str, str], str] = {}
        self._maps: dict[str, f.StepStarted] = {}
        self._ended: type[f.Fact] | None = None
        self._bytes = 0

    @property
    def weight(self) -> int:
        """About how many bytes it keeps."""
        return 1000 + self._bytes + 500 * (2 * len(self._tasks) + len(self._maps) + len(self._open))

    def list_nodes(self, nodes: Sequence[str], inputs: Mapping[str, Any] | None = None) -> None:
        """Names the tasks of a graph, which are shown before they begin, and what is said of their inputs."""
        self._nodes, self.inputs = tuple(nodes), inputs or {}

    def maps(self) -> dict[str, f.StepStarted]:
        """Gives how the maps began, by their step."""
        return dict(self._maps)

    def feed(self, position: int, fact: f.Fact | f.Unknown) -> None:
        """Takes the next fact."""
        self.position = position
        match fact:
            case f.StepStarted():
                self._begin(fact)
            case f.Outcome():
                self._conclude(fact)
            case f.Submitted():
                self.workflow = fact.workflow
            case f.Claimed():
                self.worker, self.wheels = fact.worker, fact.wheels
                self.started_at = fact.at if self.started_at is None else self.started_at
                self._interrupt()
            case f.Released():
                self._interrupt()
            case f.ResumeAsked():
                self._resume(fact)
            case f.RunCompleted() | f.RunFailed() | f.RunCancelled():
                self._ended, self.ended_at = type(fact), fact.at
                self.cut = _cut(fact) if isinstance(fact, f.RunCancelled) else None

    def _task(self, name: str) -> TaskCalls:
        return self._tasks.setdefault(name, TaskCalls())

    def _begin(self, fact: f.StepStarted) -> None:
        task = self._task(fact.name)
        task.begin(fact.at)
        if fact.map:
            self._maps[fact.step] = fact
            task.maps.setdefault(fact.step, MapCalls(fact.total)).total = fact.total
        elif self._open.setdefault((fact.step, fact.key), fact.name) == fact.name:
            task.under_way += 1

    def _conclude(self, fact: f.Outcome) -> None:
        name = fact.name or f.name_of(self._maps.get(fact.step))
        task = self._task(name)
        if self._open.pop((fact.step, fact.key), None) is not None:
            task.under_way -= 1
        if (mapped := task.maps.get(fact.step)) is not None:
            task.strip = task.strip or Strip()
            task.strip.add(fact.at, failed=isinstance(fact, f.ItemFailed))
            mapped.failed += isinstance(fact, f.ItemFailed)
            mapped.settled += not isinstance(fact, f.ItemFailed)
        task.begin(fact.at - fact.took)
        task.ended_at = fact.at
        task.seconds += fact.took
        if isinstance(fact, f.StepDone | f.StepFailed):
            self._give(task, fact)
        match fact:
            case f.StepFailed() | f.ItemFailed():
                task.failed += 1
                task.error = fact.error.said
                task.traceback = fact.error.traceback or None
            case f.ItemSkipped():
                task.skipped += 1
            case f.StepDone() | f.ItemDone():
                task.done += 1
                self._keep(task, fact)

    def _keep(self, task: TaskCalls, fact: f.StepDone | f.ItemDone) -> None:
        if fact.artifacts and self._bytes <= MOST_OUTPUT:
            task.artifacts += [{"name": a.name, "blob": a.blob, "size": a.size} for a in fact.artifacts]
            self._bytes += 200 * len(fact.artifacts)
        if isinstance(fact, f.StepDone) and self._bytes <= MOST_OUTPUT:
            task.blob = fact.blob
            self._put(task, bytes(fact.result))

    def _give(self, task: TaskCalls, fact: f.Outcome) -> None:
        kept = None if fact.inputs == f.NOT_KEPT else msgspec.Raw(bytes(fact.inputs))
        self._bytes += len(kept or b"") - len(task.inputs or b"")
        task.inputs = kept

    def _put(self, task: TaskCalls, value: bytes) -> None:
        self._bytes += len(value) - (len(task.output) if task.output is not None else 0)
        task.output = msgspec.Raw(value) if self._bytes <= MOST_OUTPUT else None

    def blobs(self) -> dict[str, str]:
        """Gives where the large values of tasks are kept that have not been read yet, by the task's name."""
        return {} if self.too_large else {name: task.blob for name, task in self._tasks.items() if task.blob}

    def put_output(self, name: str, blob: str, value: bytes) -> None:
        """Takes a large value that was read, unless there is a newer one by now."""
        task = self._tasks[name]
        if task.blob == blob:
            task.blob = ""
            self._put(task, value)

    def _interrupt(self) -> None:
        """Forgets what was under way: whoever claims the run begins it again."""
        for name in self._open.values():
            self._tasks[name].under_way -= 1
        self._open.clear()

    def _resume(self, fact: f.ResumeAsked) -> None:
        self._ended, self.ended_at, self.cut = None, None, None
        self._interrupt()
        self.retried_from = self.position if fact.failed else self.retried_from
        for task in self._tasks.values() if fact.failed else ():
            for mapped in task.maps.values():
                mapped.failed = 0
            task.failed, task.error, task.traceback = 0, None, None

    # What people see

    def states(self) -> dict[str, str]:
        """Gives the state of every task by its name, in the order in which they began."""
        if self.started_at is None:
            return {}
        never = TaskState.CANCELLED if self._ended is f.RunCancelled else TaskState.PENDING
        states = dict.fromkeys(self._nodes, never.value)
        return states | {name: self._state(task).value for name, task in self._tasks.items()}

    def _state(self, task: TaskCalls) -> TaskState:
        if task.failed:
            return TaskState.FAILED
        finished = bool(task.done or task.skipped or task.maps)
        if not task.open:
            return TaskState.SUCCEEDED if finished else self._unfinished()
        if self._ended is None:
            return TaskState.RUNNING
        return TaskState.SUCCEEDED if self._ended is f.RunCompleted else TaskState.CANCELLED

    def _unfinished(self) -> TaskState:
        """Tells of a task that began and has no outcome: it waits for the next claim, or the run has ended."""
        return TaskState.PENDING if self._ended is None else TaskState.CANCELLED

    @property
    def too_large(self) -> bool:
        """Whether recorded values were dropped because they are too many."""
        return self._bytes > MOST_OUTPUT

    def records(self) -> dict[str, dict[str, Any]]:
        """Gives what is recorded of every task by its name."""
        states = self.states()
        waiting = TaskCalls()
        return {name: _record(state, self._tasks.get(name, waiting)) for name, state in states.items()}


def _cut(fact: f.RunCancelled) -> dict[str, int]:
    names = ("never_started", "finished_anyway", "interrupted")
    return {name: getattr(fact, name) for name in names}


def _record(state: str, task: TaskCalls) -> dict[str, Any]:
    over = state in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED)
    ended = task.ended_at if over else None
    totals = [mapped.total for mapped in task.maps.values() if mapped.total is not None]
    beside = task.done + task.failed + task.skipped - sum(one.settled + one.failed for one in task.maps.values())
    return {
        "state": state,
        "started_at": task.started_at,
        "ended_at": ended,
        "duration_ms": None
        if ended is None or task.started_at is None
        else round(max(ended - task.started_at, 0.0) * 1000, 3),
        "error": task.error,
        "traceback": task.traceback,
        "inputs": task.inputs,
        "output": task.output,
        "artifacts": task.artifacts,
        "done": task.done,
        "failed": task.failed,
        "skipped": task.skipped,
        "total": sum(totals) + max(beside, 0) + task.under_way if task.maps and len(totals) == len(task.maps) else None,
        "busy_ms": round(task.seconds * 1000, 3),
        "strip": None if task.strip is None else task.strip.shown(),
    }
