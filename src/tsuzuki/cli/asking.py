"""The command that asks something of whoever executes a run: cancel; and what a cancel cut off."""

import asyncio
import contextlib
from dataclasses import asdict, dataclass
from typing import Final, Self

import click

from tsuzuki import llm
from tsuzuki.cli import render
from tsuzuki.cli.overseeing import cancel_there
from tsuzuki.cli.remote import here_or_over_http, reference
from tsuzuki.cli.store import on_runs
from tsuzuki.facts import RunCancelled
from tsuzuki.lifecycle import Run, RunUpdateResult, Status
from tsuzuki.runs import Runs

_LAST: Final = 3
"""How many facts are read at the end of a cancelled run: the last one counts what was cut off."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What a cancelled run cut off."""

    never_started: int
    finished_anyway: int
    interrupted: int

    @classmethod
    def of(cls, fact: RunCancelled) -> Self:
        """Gives what a fact counts."""
        return cls(fact.never_started, fact.finished_anyway, fact.interrupted)

    def __str__(self) -> str:
        if not (self.never_started or self.finished_anyway or self.interrupted):
            return "nothing was counted"  # nobody executed the run, or whoever did had stopped already
        return (
            f"{self.never_started:,} never started, {self.finished_anyway:,} finished anyway, "
            f"{self.interrupted:,} interrupted"
        )


async def cut_of(runs: Runs, row: Run) -> Cut | None:
    """Reads from the end of the journal what the cancel of a run cut off; gives None of a run that is not cancelled."""
    if row.status is not Status.CANCELLED:
        return None
    entries = await runs.backend.read(row.id, after=max(row.position - _LAST, 0), limit=_LAST)
    cuts = [Cut.of(entry.fact) for entry in entries if isinstance(entry.fact, RunCancelled)]
    return cuts[-1] if cuts else None


@click.command(short_help="Ask for a run to stop.")
@reference
@click.option("--reason", default="", help="Why; it is kept with the run.")
@click.option("--wait", is_flag=True, help="Wait until the run has ended, and tell what the cancel cut off.")
@click.option("--json", "as_json", is_flag=True, help="JSON for programs instead of text.")
@click.option("--timeout-sec", type=click.FloatRange(0), help="Wait no longer than so many seconds.")
@here_or_over_http(cancel_there)
@on_runs
async def cancel(
    runs: Runs, reference: str, *, reason: str, wait: bool, timeout_sec: float | None, as_json: bool
) -> int:
    """Ask for a run to stop; what has finished is kept, and `tsuzuki resume` can go on with it.

    It says whether the run is CANCELLED, or CANCELLING because somebody still executes it. Where the run
    had ended in another way already, the exit code is 1. Where it waited for a batch of language models, the
    provider is asked to end that.

    \b
      tsuzuki cancel 3 --reason "too dear" --wait
    """  # noqa: D301 - click reads \b as: keep these lines
    answer, row = await runs.cancel(reference, reason=reason, by="cli")
    cut = None
    late = answer is RunUpdateResult.ALREADY_TERMINAL
    at_once = not late and row.status is Status.CANCELLED
    ended = await llm.end_batches(runs, row) if at_once else []
    if wait and row.status is Status.CANCELLING:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_sec):
                cut = await _settled(runs, row)
        row = await runs.get(row.id)
    if as_json:
        told = {"run_id": row.id, "number": row.number, "status": row.status, "had_ended": late}
        batches = [asdict(batch) for batch in ended]
        render.put({**told, "cut": None if cut is None else asdict(cut), "batches": batches})
    else:
        click.echo(_told(row, cut, late=late))
        for batch in ended:
            click.echo(f"{batch}", err=bool(batch.error))
    return 0 if row.status in (Status.CANCELLED, Status.CANCELLING) else 1


async def _settled(runs: Runs, row: Run) -> Cut | None:
    """Waits for the end of a run; gives what the cancel cut off, unless the run ended in another way."""
    cut = None
    async for entry in runs.follow(row.id, after=row.position):
        if isinstance(entry.fact, RunCancelled):
            cut = Cut.of(entry.fact)
    return cut


def _told(row: Run, cut: Cut | None, *, late: bool) -> str:
    name = f"run {row.number} of {row.flow}"
    if late:
        return f"{name} had ended already: {row.status}"
    if row.status is Status.CANCELLING:
        return f"{name} is CANCELLING: requested, and whoever executes it will stop; --wait waits for that"
    if row.status is not Status.CANCELLED:
        return f"{name} ended before it saw the request: {row.status}"
    return f"{name} is CANCELLED: {cut or 'nobody was executing it'} ({render.counts(row)})"


COMMANDS: Final = (cancel,)
