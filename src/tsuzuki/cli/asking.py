"""The command that asks something of whoever executes a run: cancel."""

import asyncio
import contextlib
from dataclasses import asdict
from typing import Final

import click

from tsuzuki import llm
from tsuzuki.cli import render
from tsuzuki.cli.cuts import Cancelled, Cut
from tsuzuki.cli.overseeing import cancel_there
from tsuzuki.cli.remote import here_or_over_http, reference
from tsuzuki.cli.store import on_runs
from tsuzuki.facts import RunCancelled
from tsuzuki.lifecycle import Run, RunUpdateResult, Status
from tsuzuki.runs import Runs


@click.command(short_help="Ask for a run to stop.")
@reference
@click.option("--reason", default="", help="Why; it is kept with the run.")
@click.option("--wait", is_flag=True, help="Wait until the run has ended, and tell what the cancel cut off.")
@render.json_option
@click.option("--timeout-sec", type=click.FloatRange(0), help="Wait no longer than so many seconds.")
@here_or_over_http(cancel_there)
@on_runs
async def cancel(
    runs: Runs, reference: str, *, reason: str, wait: bool, timeout_sec: float | None, as_json: bool
) -> int:
    """Ask for a run to stop; what has finished is kept, and `tsuzuki resume` can go on with it.

    It says whether the run is CANCELLED, or CANCELLING because somebody still executes it. Where the run
    had ended in another way already, or --wait waited in vain, the exit code is 1. Where it waited for a batch of
    language models, the provider is asked to end that.

    \b
      tsuzuki cancel 3 --reason "too dear" --wait
    """  # noqa: D301 - click reads \b as: keep these lines
    answer, row = await runs.cancel(reference, reason=reason, by="cli")
    cut = None
    late = answer is RunUpdateResult.ALREADY_TERMINAL
    at_once = not late and row.status is Status.CANCELLED
    ended = await llm.end_batches(runs, row, log=False) if at_once else []
    if wait and row.status is Status.CANCELLING:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_sec):
                cut = await _settled(runs, row)
        row = await runs.get(row.id)
    in_vain = (timeout_sec or 0.0) if wait and row.status is Status.CANCELLING else None
    told = Cancelled(f"run {row.number} of {row.flow}", row.status, render.counts(row), cut, late, in_vain)
    if as_json:
        shown = {"run_id": row.id, "number": row.number, "status": row.status, "had_ended": late}
        shown |= {"timed_out": in_vain is not None, "cut": None if cut is None else asdict(cut)}
        render.put({**shown, "batches": [asdict(batch) for batch in ended]})
    else:
        click.echo(f"{told}")
        for batch in ended:
            click.echo(f"{batch}", err=bool(batch.error))
    return told.exit_code


async def _settled(runs: Runs, row: Run) -> Cut | None:
    """Waits for the end of a run; gives what the cancel cut off, unless the run ended in another way."""
    cut = None
    async for entry in runs.follow(row.id, after=row.position):
        if isinstance(entry.fact, RunCancelled):
            cut = Cut.of(entry.fact)
    return cut


COMMANDS: Final = (cancel,)
