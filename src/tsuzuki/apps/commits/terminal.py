"""What the commands share: the desk of whoever sits at this machine, options, and how tables are printed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import click

from tsuzuki import Run, Runs
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.cli.render import table
from tsuzuki.cli.store import Store

Result = TypeVar("Result")
SOME_FAILED: Final = 6
_NUMBERS: Final = frozenset(
    {"commits", "additions", "deletions", "changes", "missing_stats", "new", "total", "ok", "failed", "pending"}
)

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress.")


def desk_of(runs: Runs, worker: str = "") -> Desk:
    """Gives the desk of whoever sits at this machine; what it starts is carried out by this worker in this process."""

    async def submit(flow: Any, params: dict[str, Any]) -> Run:
        return await runs.submit(flow, params, private=True, claimed_by=worker)

    return Desk(runs, submit, here=True)


def on_desk(store: Store, work: Callable[[Desk], Awaitable[Result]]) -> Result:
    """Lets a function work at the desk."""

    async def working() -> Result:
        async with store.open() as runs:
            return await work(desk_of(runs))

    return asyncio.run(working())


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], nothing: str) -> None:
    """Prints a table, or says that there is nothing to print."""
    if not rows:
        click.echo(nothing, err=True)
        return
    for line in table(head, rows, _NUMBERS):
        click.echo(line)
