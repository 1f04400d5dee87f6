"""Runs a whole flow inside a test."""

from dataclasses import dataclass
from typing import Any

from tsuzuki import facts as f
from tsuzuki.backends import Backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.facts import Problem
from tsuzuki.flow import Flow
from tsuzuki.lifecycle import Run, Status
from tsuzuki.results import Failure
from tsuzuki.runs import Runs
from tsuzuki.script import EndedRun, run_here


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run as a test wants to look at it."""

    row: Run
    result: Any
    failed: list[Failure]
    facts: list[f.Fact | f.Unknown]
    log: list[str]

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.row.id

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.row.status

    @property
    def error(self) -> Problem | None:
        """What went wrong, if something did."""
        return self.row.error


async def run_flow(
    flow: Flow[..., Any], *, backend: Backend | None = None, clock: Clock | None = None, **params: Any
) -> FinishedRun:
    """Runs a flow on a store in memory (or yours) and gives the finished run, whatever its status.

    With the same store a second time, it goes on with what the first one left, as a script does. A `Crash` of a
    `FaultyBackend` is raised as itself.
    """
    clock = clock or SystemClock()
    runs = Runs(backend or MemoryBackend(clock=clock), clock=clock)
    return await _looked_at(runs, await run_here(runs, flow, params, clock=clock, signals=False))


async def _looked_at(runs: Runs, ended: EndedRun[Any]) -> FinishedRun:
    facts = [entry.fact async for entry in runs.journal(ended.id)]
    latest = {(x.step, x.key): x for x in facts if isinstance(x, f.Outcome)}
    failed = [
        Failure(x.key, x.error.message, x.error.type, x.tries) for x in latest.values() if isinstance(x, f.ItemFailed)
    ]
    log = [line.text async for line in runs.log(ended.id)]
    return FinishedRun(ended.row, ended.result, failed, facts, log)
