"""What the commands share: the desk of whoever sits at this machine, options, and how tables are printed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from tsuzuki import Runs
from tsuzuki.apps import terminal
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.apps.terminal import submitting
from tsuzuki.cli.store import Store

Result = TypeVar("Result")
_NUMBERS: Final = frozenset(
    {"commits", "additions", "deletions", "changes", "missing_stats", "new", "total", "ok", "failed", "pending"}
)


def desk_of(runs: Runs, worker: str = "") -> Desk:
    """Gives the desk of whoever sits at this machine; what it starts is carried out by this worker in this process."""
    return Desk(runs, submitting(runs, worker), here=True)


def on_desk(store: Store, work: Callable[[Desk], Awaitable[Result]]) -> Result:
    """Lets a function work at the desk."""

    async def working() -> Result:
        async with store.open() as runs:
            return await work(desk_of(runs))

    return asyncio.run(working())


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], nothing: str) -> None:
    """Prints a table, or says that there is nothing to print."""
    terminal.print_table(head, rows, nothing, _NUMBERS)
