"""What tests of workers on NATS look at: who holds a run, what was called, and how it ended."""

import contextlib
from collections import Counter
from pathlib import Path

from tests.acceptance.flows.catalog import GATE
from tests.acceptance.invariants import calls_in, check_journal, check_nothing_acknowledged_was_called_again
from tests.acceptance.processes import Child, eventually, started, until
from tsuzuki import Run, Runs, Status
from tsuzuki import facts as f
from tsuzuki.errors import StoreError
from tsuzuki.testing import builders


def working(
    url: str, folder: Path, *options: object, inside: tuple[str, ...] = ()
) -> contextlib.AbstractContextManager[Child]:
    """Starts a worker on a store."""
    return started("work", "--backend", url, *options, folder=folder, inside=inside)


async def ready(*workers: Child) -> list[str]:
    """Waits until workers say their ids."""
    for worker in workers:
        await worker.speaks()
        assert worker.running(), worker.complained
    return [worker.said.splitlines()[0].strip('"') for worker in workers]


def made(folder: Path, task: str) -> Counter[str]:
    """Counts the calls of a task by their keys."""
    names = [call.partition(" ") for _, call in calls_in(folder)]
    return Counter(key for name, _, key in names if name == task)


async def at_the_gate(folder: Path) -> None:
    """Waits until the run of `walk` has done what comes before its gate and called the four items behind it."""
    await until(lambda: len(made(folder, "step")) == GATE + 4, "the run is at its gate")


async def claims(runs: Runs, run: Run) -> list[str]:
    """Gives who claimed a run, in order."""
    facts = [entry.fact for entry in await builders.journal(runs.backend, run.id)]
    return [fact.worker for fact in facts if isinstance(fact, f.Claimed)]


async def taken_over(runs: Runs, run: Run, by: str) -> float:
    """Waits until a worker holds a run; gives how long it took."""

    async def held() -> bool:
        return (await runs.get(run.id)).holder == by

    return await eventually(held, f"{by} holds the run")


async def ended(runs: Runs, run: Run, within: float = 60.0) -> Run:
    """Waits for the end of a run, also while its server is away."""
    row = run

    async def over() -> bool:
        nonlocal row
        with contextlib.suppress(StoreError):
            row = await runs.get(run.id)
        return row.status.terminal

    await eventually(over, "the run has ended", within)
    return row


async def check_walked(runs: Runs, run: Run, folder: Path, items: int) -> Run:
    """A run of `walk` has ended well, each item is recorded once, and none was called again after it was."""
    row = await ended(runs, run)
    assert (row.status, row.error) == (Status.COMPLETED, None)
    assert await runs.result(run.id) == list(range(items))
    successes = await check_journal(runs.backend, run.id)
    recorded = [(f"step {s.key}", s) for s in successes if s.key]
    assert sorted(int(s.key) for _, s in recorded) == list(range(items))
    check_nothing_acknowledged_was_called_again(calls_in(folder), recorded)
    kinds = await builders.kinds(runs.backend, run.id)
    assert kinds.count("RunCompleted") == 1
    assert kinds[-1] == "RunCompleted"
    return row
