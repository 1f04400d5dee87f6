"""For commands of applications: carries runs out in this process, with their progress shown on stderr."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from tsuzuki.cli.progress import Progress
from tsuzuki.cli.store import Store
from tsuzuki.flow import Flow
from tsuzuki.leaving import run_to_the_end
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs
from tsuzuki.script import EndedRun, begun_here, checked, run_here

__all__ = ["SOME_FAILED", "Progress", "begin_here", "start_here", "with_progress"]

SOME_FAILED: Final = 6
"""The exit code of a run that completed, though some of its items failed."""
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


async def begin_here(
    runs: Runs,
    flow: Flow[..., Any],
    begin: Callable[[str], Awaitable[tuple[Run, bool]]],
    progress: Progress | None = None,
) -> EndedRun[Any]:
    """Carries out a run that `begin` gives, with whether it goes on; raises where it does not complete.

    `begin` is told the worker that will do it: `Runs.submit(…, private=True, claimed_by=worker)`.
    """
    return checked(await begun_here(runs, flow, begin, watcher=progress))
