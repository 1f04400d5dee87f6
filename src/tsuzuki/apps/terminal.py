"""What the commands of all applications share: who carries out what they start, options, and how tables are printed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import click

from tsuzuki import Run, Runs
from tsuzuki.cli.render import table

quiet_option: Final = click.option("--quiet", "-q", is_flag=True, help="No progress.")


def submitting(runs: Runs, worker: str) -> Callable[..., Awaitable[Run]]:
    """Gives what a desk starts runs by whose caller carries them out itself, as this worker in this process."""

    async def submit(flow: Any, params: dict[str, Any], **options: Any) -> Run:
        return await runs.submit(flow, params, private=True, claimed_by=worker, **options)

    return submit


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], nothing: str, numbers: frozenset[str]) -> None:
    """Prints a table, or says that there is nothing to print; `numbers` are the columns that have some in them."""
    if not rows:
        click.echo(nothing, err=True)
        return
    for line in table(head, rows, numbers):
        click.echo(line)
