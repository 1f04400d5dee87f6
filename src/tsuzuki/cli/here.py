"""For commands of applications: carries runs out in this process, with their progress shown on stderr."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from tsuzuki.cli.progress import Progress
from tsuzuki.cli.store import Store
from tsuzuki.flow import Flow
from tsuzuki.leaving import run_to_the_end
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs
from tsuzuki.script import EndedRun, carry_on, checked, run_here

__all__ = ["Progress", "go_on_here", "start_here", "with_progress"]

Result = TypeVar("Result")


def with_progress(store: Store, work: Callable[[Runs, Progress], Awaitable[Result]], *, quiet: bool = False) -> Result:
    """Opens the store, made when it is not there, and lets a function work on its runs while people see how far."""

    async def working() -> Result:
        async with store.open() as runs, Progress(runs, quiet=quiet) as progress:
            return await work(runs, progress)

    result: Result = run_to_the_end(working())
    return result


async def start_here(
    runs: Runs, flow: Flow[..., Any], params: Mapping[str, Any], progress: Progress | None = None
) -> EndedRun[Any]:
    """Starts a run here, or goes on with the last one like it that did not end well; raises if it does not complete."""
    return checked(await run_here(runs, flow, params, watcher=progress))


async def go_on_here(
    runs: Runs, flow: Flow[..., Any], row: Run, progress: Progress | None = None, *, continued: bool = True
) -> EndedRun[Any]:
    """Carries out a run that was accepted before; raises where it does not complete."""
    return checked(await carry_on(runs, flow, row, continued=continued, watcher=progress))
