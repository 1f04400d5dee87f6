"""The commands that carry a run out in this process: run and resume."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import click
import msgspec

from tsuzuki.backends import WorkerRecord
from tsuzuki.cli.cuts import Cut, cut_of
from tsuzuki.cli.here import SOME_FAILED
from tsuzuki.cli.loading import load_flow, load_flows
from tsuzuki.cli.overseeing import resume_there
from tsuzuki.cli.params import read_params, words_of
from tsuzuki.cli.progress import Progress
from tsuzuki.cli.remote import here_or_over_http, reference
from tsuzuki.cli.render import counts, harmless, put, put_result, took, usage_lines, users_part
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import BadUsage
from tsuzuki.flow import Flow
from tsuzuki.leaving import run_to_the_end
from tsuzuki.lifecycle import Run, Status
from tsuzuki.presence import process_of
from tsuzuki.runs import Runs, plain
from tsuzuki.script import EndedRun, StartOptions, carry_on, checked, run_here
from tsuzuki.spending import usage

_SHOWN: Final = ("flow", "done", "failed", "skipped", "steps", "attempt", "created_at", "started_at", "finished_at")

CarryOut = Callable[[Runs, Progress], Awaitable[EndedRun[Any]]]


def how_to_show(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say how a run carried out here is shown."""
    quiet = click.option("--quiet", "-q", is_flag=True, help="No progress.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object; prints go to stderr.")
    return quiet(as_json(command))


@click.command(short_help="Run a flow here.")
@click.argument("target", metavar="FILE.py[:FLOW]")
@click.option(
    "-p", "--param", "given", multiple=True, metavar="NAME=VALUE", help="A param; JSON or text. @FILE reads many."
)
@click.option("--params", "file", metavar="FILE|-", help="A file (or stdin) with one JSON object of params.")
@click.option("--fresh", is_flag=True, help="Start anew, even where an earlier run could go on.")
@click.option("--continues", metavar="RUN", help="Start a new run that skips the items which RUN has done.")
@click.option("--idempotency-key", metavar="KEY", help="Give the first run with this key instead of a second one.")
@click.option("--tags", "tags", multiple=True, metavar="LABEL", help="A label for the run; may be repeated.")
@how_to_show
@store_options
def run(
    store: Store,
    target: str,
    given: tuple[str, ...],
    file: str | None,
    *,
    fresh: bool,
    continues: str | None,
    idempotency_key: str | None,
    tags: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a flow here, and show its progress and its result.

    FILE.py:FLOW, package.module:FLOW, or only FILE.py where it holds one flow. Started again with the same
    params, it goes on with the last run that was interrupted, failed or was cancelled.

    \b
      tsuzuki run crawl.py:crawl -p site=example -p pages=500
      tsuzuki run crawl.py --params params.json --json
    """  # noqa: D301 - click reads \b as: keep these lines
    labels = tuple(words_of(tags))
    options = StartOptions(fresh=fresh, continues=continues, idempotency_key=idempotency_key, tags=labels)
    with _prints(as_json):
        flow = load_flow(target)
    params = read_params(flow, given, file)

    async def start(runs: Runs, progress: Progress) -> EndedRun[Any]:
        return await run_here(runs, flow, params, options, watcher=progress)

    return _exit_code(_carried_out(store, start, quiet=quiet, as_json=as_json))


@click.command(short_help="Let a run go on.")
@reference
@click.option("--keep-failed", is_flag=True, help="Do not try again what has failed.")
@click.option("--flow", "target", metavar="FILE.py:FLOW", help="Where the flow is now, if it has moved.")
@how_to_show
@here_or_over_http(resume_there)
@store_options
def resume(store: Store, reference: str, *, keep_failed: bool, target: str | None, quiet: bool, as_json: bool) -> int:
    """Let a run go on that failed, was cancelled or interrupted, that waits, or whose items failed in part.

    What has succeeded is never done again. A run that `tsuzuki run` or `flow.run()` started goes on here; one
    of the shared workers is only asked to. A run that waits for a time is woken, in the process that waits with it.

    \b
      tsuzuki resume 3
      tsuzuki resume 3 --flow moved/crawl.py:crawl
    """  # noqa: D301 - click reads \b as: keep these lines
    row, waiter = asyncio.run(_found(store, reference))
    if waiter is not None:
        return asyncio.run(_woken(store, row, waiter, as_json=as_json))
    if not row.private:
        return asyncio.run(_asked(store, row, target, keep_failed=keep_failed, as_json=as_json))
    with _prints(as_json):
        flow = _flow_of(row, target)

    async def go_on(runs: Runs, progress: Progress) -> EndedRun[Any]:
        after = await runs.resume(row.id, failed=not keep_failed, by="cli")
        return await carry_on(runs, flow, after, watcher=progress)

    return _exit_code(_carried_out(store, go_on, quiet=quiet, as_json=as_json))


async def _found(store: Store, reference: str) -> tuple[Run, WorkerRecord | None]:
    """Find a run, and the process that waits with it."""
    async with store.open_existing() as runs:
        row = await runs.get(reference)
        return row, await runs.holders.waiter(row)


async def _woken(store: Store, row: Run, waiter: WorkerRecord, *, as_json: bool) -> int:
    """Wake a run in the process that waits with it."""
    async with store.open_existing() as runs:
        after = await runs.resume(row.id, by="cli")
    if as_json:
        put({"run_id": after.id, "number": after.number, "status": after.status})
    else:
        click.echo(f"run {row.number} of {row.flow} was woken: it continues in {process_of(waiter)}")
    return 0


async def _asked(store: Store, row: Run, target: str | None, *, keep_failed: bool, as_json: bool) -> int:
    """Asks the shared workers to go on with a run."""
    if target is not None:
        raise BadUsage(f"run {row.number} belongs to the shared workers, which know their flows: leave --flow out")
    async with store.open_existing() as runs:
        after = await runs.resume(row.id, failed=not keep_failed, by="cli")
    if as_json:
        put({"run_id": after.id, "number": after.number, "status": after.status})
    else:
        click.echo(f"run {after.number} of {after.flow} is {after.status}: a worker for {after.tag!r} goes on with it")
    return 0


def _flow_of(row: Run, target: str | None) -> Flow[..., Any]:
    where = target or row.source
    if not where and (offered := _offered(row.flow)) is not None:
        return offered
    if not where:
        raise BadUsage(f"where the flow of run {row.number} is was not recorded; say --flow FILE.py:{row.flow}")
    flow = _loaded(row, where, recorded=target is None)
    if flow.name != row.flow:
        raise BadUsage(f"run {row.number} is one of flow {row.flow!r}, but {where} is {flow.name!r}; say --flow")
    return flow


def _offered(name: str) -> Flow[..., Any] | None:
    """Finds a flow that an installed application or package brings: whose command started it recorded no file."""
    return next((flow for flow in load_flows((), tolerant=True).flows if flow.name == name), None)


def _loaded(row: Run, where: str, *, recorded: bool) -> Flow[..., Any]:
    """Loads a flow; where it was recorded to be, it may be no more."""
    try:
        return load_flow(where)
    except BadUsage as error:
        if not recorded:
            raise
        raise BadUsage(f"{error}; if it has moved since, say --flow FILE.py:{row.flow}") from error


def _prints(as_json: bool) -> contextlib.AbstractContextManager[Any]:
    """Keeps what the user's code prints out of the JSON on stdout."""
    return contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()


async def _carried_out(store: Store, carry_out: CarryOut, *, quiet: bool, as_json: bool) -> EndedRun[Any]:
    """Carries a run out with its progress shown, and tells how it ended."""
    async with store.open() as runs:
        async with Progress(runs, quiet=quiet) as progress:
            with _prints(as_json):
                ended = await carry_out(runs, progress)
        await _tell(runs, ended.row, progress, as_json=as_json)
    return ended


def _exit_code(work: Coroutine[Any, Any, EndedRun[Any]]) -> int:
    """Gives the exit code of a run carried out here; raises for one that did not complete.

    Only when the loop has ended: an interrupted run is a KeyboardInterrupt too, which would tear the loop apart.
    """
    ended = checked(run_to_the_end(work))
    return SOME_FAILED if ended.row.failed else 0


async def _tell(runs: Runs, row: Run, progress: Progress, *, as_json: bool) -> None:
    data = await runs.result_data(row)
    cut = await cut_of(runs, row)
    if row.status is Status.COMPLETED:
        told = "" if not row.failed else f"; `tsuzuki items {row.number} --failed` shows what failed"
        lasted = "" if progress.continued else f" in {took(row)}"
        progress.say(f"run {row.number} of {row.flow} is {row.status}{lasted}: {counts(row)}{told}")
    if cut is not None:
        progress.say(f"run {row.number} of {row.flow} is {row.status}: {cut} ({counts(row)})")
    for name, text in usage_lines(usage(row.spent)):
        progress.say(f"{name:<6}{text}")
    if row.error is not None and row.error.traceback:
        click.echo(harmless(users_part(row.error.traceback)), err=True)
    if as_json:
        put(_object(row, data, cut, continued=progress.continued))
    else:
        put_result(data, completed=row.status is Status.COMPLETED)


def _object(row: Run, data: bytes, cut: Cut | None, *, continued: bool) -> dict[str, Any]:
    """Gives what --json prints of a run that was carried out here."""
    fields = plain(row)
    return {
        "run_id": row.id,
        "number": row.number,
        "status": row.status,
        "result": msgspec.Raw(data),
        "error": fields["error"],
        **{name: fields[name] for name in _SHOWN},
        "usage": usage(row.spent),
        "continued": continued,
        "cut": cut,
    }


COMMANDS: Final = (run, resume)
