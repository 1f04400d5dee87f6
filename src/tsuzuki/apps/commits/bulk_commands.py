"""The commands about bulk runs: bulk, retry, cancel, status, history."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import click

from tsuzuki import Run, Runs
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.desk import Desk, Started
from tsuzuki.apps.commits.terminal import desk_of, on_desk, print_table
from tsuzuki.apps.terminal import quiet_option
from tsuzuki.cli.here import SOME_FAILED, Progress, begin_here, with_progress
from tsuzuki.cli.render import counted, json_option, local, put
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import RunHeld


def politeness(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say how gently a bulk run asks."""
    pause = click.option("--pause", default=0.1, show_default=True, type=click.FloatRange(0, 60), help="Before each.")
    lanes = click.option("--concurrency", default=1, show_default=True, type=click.IntRange(1, 64), help="At a time.")
    return pause(lanes(command))


@click.command()
@click.option("--fresh", is_flag=True, help="Start anew, even where a cancelled bulk run could go on.")
@politeness
@quiet_option
@json_option
@store_options
def bulk(store: Store, *, fresh: bool, pause: float, concurrency: int, quiet: bool, as_json: bool) -> int:
    """Go on with every branch that was collected once; one that was cancelled or crashed on the way goes on itself."""

    async def start(desk: Desk) -> Started:
        return await desk.start(pause=pause, concurrency=concurrency, fresh=fresh)

    run_id = with_progress(store, _carrying_out(start), quiet=quiet or as_json)
    return _show(store, run_id, as_json=as_json)


@click.command()
@click.argument("run_id", required=False, default="")
@politeness
@quiet_option
@json_option
@store_options
def retry(store: Store, run_id: str, *, pause: float, concurrency: int, quiet: bool, as_json: bool) -> int:
    """Collect exactly those targets again that failed in a bulk run (the last one unless RUN_ID is given)."""

    async def start(desk: Desk) -> Started:
        return await desk.retry(run_id, pause=pause, concurrency=concurrency)

    return _show(store, with_progress(store, _carrying_out(start), quiet=quiet or as_json), as_json=as_json)


def _carrying_out(start: Callable[[Desk], Awaitable[Started]]) -> Callable[[Runs, Progress], Awaitable[str]]:
    """Makes work of a start: it is carried out here, to its end, and its id is given."""

    async def work(runs: Runs, progress: Progress) -> str:
        found = ""

        async def begin(worker: str) -> tuple[Run, bool]:
            nonlocal found
            started = await start(desk_of(runs, worker))
            found = started.run_id
            return await runs.get(found), started.resumed

        try:
            await begin_here(runs, flows.bulk, begin, progress)
        except RunHeld:  # a run of the shared workers that goes on: one of them was quicker
            progress.say("a worker goes on with it: waiting for its end")
            await runs.wait(found)
        return found

    return work


@click.command()
@click.argument("run_id", required=False, default="")
@json_option
@store_options
def status(store: Store, run_id: str, *, as_json: bool) -> int:
    """Show how a bulk run stands, target by target (the last one unless RUN_ID is given)."""
    return _show(store, run_id, as_json=as_json)


@click.command()
@store_options
def cancel(store: Store) -> None:
    """Cancel the bulk run that is running; what was collected stays, `bulk` goes on with the rest."""
    stands = on_desk(store, lambda desk: desk.cancel())
    if stands is not None:
        word = "cancelled" if stands.summary.run_status == "cancelled" else "being cancelled"
        click.echo(f"{word}: {stands.summary.pending_count} targets are pending; `tsuzuki commits bulk` goes on")


def _show(store: Store, run_id: str, *, as_json: bool) -> int:
    """Shows a bulk run; gives the exit code that fits how it went."""

    async def work(desk: Desk) -> tuple[Any, list[Any], bool]:
        stands = await desk.standing(run_id)
        if stands is None:
            return None, [], False
        return stands, desk.bulk_runs.results(stands.summary.run_id), await desk.left(stands)

    stands, results, left = on_desk(store, work)
    if stands is None:
        click.echo("no bulk run yet: tsuzuki commits bulk", err=True)
        return 0
    if as_json:
        put({**asdict(stands.summary), "error": stands.error, "results": [asdict(result) for result in results]})
    else:
        rows = [
            (r.project_name, r.branch_name, r.status, _or_dash(r.new_commits_count), r.error_message or "")
            for r in results
        ]
        print_table(("project", "branch", "status", "new", "error"), rows, "no targets")
        s = stands.summary
        counts = f"{s.success_count} succeeded, {s.failed_count} failed, {s.pending_count} pending"
        word = "interrupted" if left and s.run_status == "running" else s.run_status
        click.echo(f"{s.run_id} {word}: {counts} of {s.total_targets}", err=True)
        click.echo(f"error: {stands.error}", err=True) if stands.error else None
        click.echo("tsuzuki commits retry collects what failed", err=True) if s.failed_count else None
        click.echo("tsuzuki commits bulk goes on with what is pending", err=True) if left else None
    return SOME_FAILED if stands.summary.failed_count else 0


def _or_dash(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


@click.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="How many.")
@click.option(
    "--forget", type=click.FloatRange(0), metavar="DAYS", help="Remove bulk runs that ended longer ago first."
)
@json_option
@store_options
def history(store: Store, limit: int, forget: float | None, *, as_json: bool) -> None:
    """List bulk runs, the newest first; they are kept for ever unless --forget removes old ones. Commits stay."""

    async def work(desk: Desk) -> list[Any]:
        await desk.reconcile()
        if forget is not None:
            click.echo(f"{counted(desk.bulk_runs.forget(forget), 'bulk run')} removed", err=True)
        return desk.bulk_runs.history(limit)

    found = on_desk(store, work)
    if as_json:
        return put([asdict(summary) for summary in found])
    rows = [
        (s.run_id, local(s.started_at_utc), s.run_status, str(s.total_targets), str(s.success_count),
         str(s.failed_count), str(s.pending_count))
        for s in found
    ]  # fmt: skip
    head = ("run", "started", "status", "total", "ok", "failed", "pending")
    return print_table(head, rows, "no bulk run yet: tsuzuki commits bulk")
