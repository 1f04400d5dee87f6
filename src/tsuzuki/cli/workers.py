"""The command that shows who works on a store: workers."""

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from tsuzuki.backends import WorkerState
from tsuzuki.cli import render
from tsuzuki.cli.overseeing import workers_there
from tsuzuki.cli.remote import here_or_over_http
from tsuzuki.cli.store import on_runs
from tsuzuki.crew import Crew, SeenWorker
from tsuzuki.runs import Runs

_HEAD: Final = ("WORKER", "STATE", "RUN", "SEEN", "TAGS", "FLOWS")
_ID: Final = 8
"""How much of the id of a run is shown, as by `tsuzuki list`."""


def _scoped(command: Callable[..., int]) -> Callable[..., int]:
    """Makes --scope all the same as --all."""

    @functools.wraps(command)
    def scoped(*, scope: str, everyone: bool, **options: Any) -> int:
        return command(everyone=everyone or scope == "all", **options)

    return scoped


@click.command(short_help="Show who works on the runs.")
@click.option("--all", "everyone", is_flag=True, help="Also those that left, and those that fell silent.")
@click.option("--scope", type=click.Choice(["active", "all"]), default="active", help="all: the same as --all.")
@click.option("--state", type=click.Choice(list(WorkerState), case_sensitive=False), help="All in this state.")
@click.option("--hidden", "--include-hidden", "hidden", is_flag=True, help="Also those that are hidden.")
@click.option("--limit", type=click.IntRange(1, 500), help="At most so many.")
@click.option("--hide", multiple=True, metavar="ID", help="Show a worker no more; may be repeated.")
@click.option("--unhide", multiple=True, metavar="ID", help="Show a worker again; may be repeated.")
@render.json_option
@_scoped
@here_or_over_http(workers_there)
@on_runs
async def workers(
    runs: Runs,
    *,
    everyone: bool,
    state: str | None,
    hidden: bool,
    limit: int | None,
    hide: tuple[str, ...],
    unhide: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show the workers that live, the last seen first.

    One that has not left in order and is silent is DISCONNECTED: it was killed, it hangs, or its network is cut.

    \b
      tsuzuki workers
      tsuzuki workers --all --state disconnected
      tsuzuki workers --hide old-worker
    """  # noqa: D301 - click reads \b as: keep these lines
    crew = Crew(runs)
    for worker, unseen in (*((name, True) for name in hide), *((name, False) for name in unhide)):
        await crew.hide(worker, hidden=unseen)
        if not as_json:
            click.echo(f"worker {worker} is {'hidden' if unseen else 'shown'}")
    if (hide or unhide) and not as_json:
        return 0
    seen = await crew.list(everyone=everyone, state=state, hidden=hidden, limit=limit)
    if as_json:
        render.put([worker.plain() for worker in seen])
        return 0
    if not seen:
        click.echo("no workers; --all shows those that left, too", err=True)
    for line in render.table(_HEAD, map(_row, seen)) if seen else ():
        click.echo(line)
    return 0


def _row(worker: SeenWorker) -> tuple[str, ...]:
    record = worker.record
    failing = (record.wheel_sync or {}).get("last_result") == "error"
    said = {"hidden": record.hidden, "wheel sync fails": failing}
    return (
        record.id,
        ", ".join([worker.state.value, *(words for words, true in said.items() if true)]),
        (record.current_run_id or "")[:_ID],
        render.local(record.heartbeat_at),
        ", ".join(record.tags),
        ", ".join(record.flows),
    )


COMMANDS: Final = (workers,)
