"""The commands that only look: list, get, logs, items, export."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import IO, Any, Final

import click
import msgspec

from tsuzuki.backends import Query, WorkerRecord
from tsuzuki.cli import render
from tsuzuki.cli.closely import show_closely
from tsuzuki.cli.cuts import Cut, cut_of
from tsuzuki.cli.overseeing import get_there, items_there, list_there, logs_there
from tsuzuki.cli.progress import step_line
from tsuzuki.cli.remote import here_or_over_http, reference
from tsuzuki.cli.store import Store, on_runs, store_options
from tsuzuki.errors import StoreUnavailable
from tsuzuki.facts import Claimed
from tsuzuki.holders import interrupted
from tsuzuki.lifecycle import Run, Status
from tsuzuki.overview import OUTCOMES
from tsuzuki.presence import process_of
from tsuzuki.runs import Runs
from tsuzuki.spending import usage

_LIST: Final = ("RUN", "FLOW", "STATUS", "DONE", "FAILED", "STARTED", "TOOK", "ID")
_ENDS: Final = ("done", "failed", "skipped")
_PAGE: Final = 200
_STATUSES: Final = (*Status, render.WITH_FAILURES, render.INTERRUPTED)


# ---------------------------------------------------------------------------------------------------------------- list


@click.command("list", short_help="Show runs.")
@click.option("--status", multiple=True, type=click.Choice(_STATUSES, case_sensitive=False), help="May be repeated.")
@click.option("--flow", metavar="NAME", help="Only runs of this flow.")
@click.option("--tag", help="Only runs for workers with this tag.")
@click.option("--label", help="Only runs that `--tags` gave this label.")
@click.option("--key", help="Only runs with this key.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="At most so many.")
@render.json_option
@here_or_over_http(list_there)
@store_options
def list_runs(
    store: Store,
    *,
    status: tuple[str, ...],
    flow: str | None,
    tag: str | None,
    label: str | None,
    key: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Show runs, the one that changed last first.

    \b
      tsuzuki list --status failed --flow crawl
      tsuzuki list --server http://127.0.0.1:8000 -o json
    """  # noqa: D301 - click reads \b as: keep these lines
    if store.missing:
        return _no_runs(store.absence, as_json=as_json)
    query = Query(flow=flow, tag=tag, label=label, key=key, limit=limit)
    return asyncio.run(_list(store, query, frozenset(status), as_json=as_json))


async def _list(store: Store, query: Query, words: frozenset[str], *, as_json: bool) -> int:
    async with store.open() as runs:
        gone = await runs.holders.gone()
        rows = await _fitting(runs, query, words)
        waited_for = await runs.holders.waited_for(rows)
        place = runs.backend.url  # never the address as it was given: that may hold a password
    if as_json:
        render.put([render.record(row, gone, waited_for) for row in rows])
        return 0
    if not rows:
        return _no_runs(f"none in {render.near(str(store.file)) if store.file else place} fit", as_json=False)
    waits = any(map(render.wait_of, rows))
    head = (*_LIST, render.WAITS) if waits else _LIST
    shown = [_listed(row, gone, waited_for) + ((render.wait_of(row),) if waits else ()) for row in rows]
    for line in render.table(head, shown, render.NUMBERS):
        click.echo(line)
    return 0


async def _fitting(runs: Runs, query: Query, words: frozenset[str]) -> list[Run]:
    whole = frozenset(status for status in Status if status in words)
    known = whole | ({Status.COMPLETED} if render.WITH_FAILURES in words else set())
    query = msgspec.structs.replace(query, status=tuple(known), failures=Status.COMPLETED in known - whole)
    if render.INTERRUPTED in words:
        return await runs.holders.with_interrupted(query)
    return [row async for row in pages(runs, query)]


async def pages(runs: Runs, query: Query) -> AsyncGenerator[Run]:
    """Gives the rows of a long listing page by page."""
    left = query.limit
    while left > 0:
        rows = await runs.list(msgspec.structs.replace(query, limit=min(left, _PAGE)))
        for row in rows:
            yield row
        if len(rows) < min(left, _PAGE):
            return
        left -= len(rows)
        query = msgspec.structs.replace(query, before=(rows[-1].updated_at, rows[-1].id))


def _no_runs(why: str, *, as_json: bool) -> int:
    if as_json:
        render.put([])
    else:
        click.echo(f"no runs: {why}", err=True)
    return 0


def _listed(row: Run, gone: frozenset[str], waited_for: frozenset[str]) -> tuple[str, ...]:
    return (
        f"{row.number}",
        row.flow,
        render.status_word(row, gone, waited_for),
        f"{row.done + row.skipped:,}",
        f"{row.failed:,}" if row.failed else "",
        render.local(row.started_at),
        render.took(row),
        row.id[:8],
    )


# ----------------------------------------------------------------------------------------------------------------- get


@click.command("get", short_help="Show one run: row, progress, error, result.")
@reference
@render.json_option
@here_or_over_http(get_there)
@on_runs
async def get_run(runs: Runs, reference: str, *, as_json: bool) -> int:
    """Show one run: its row, how far it is, what went wrong, and its result.

    \b
      tsuzuki get 1
    """  # noqa: D301 - click reads \b as: keep these lines
    row = await runs.get(reference)
    gone = await runs.holders.gone_from(row)
    data = await runs.result_data(row)
    cut = await cut_of(runs, row)
    waiter = await runs.holders.waiter(row)
    wheels = await _wheels(runs, row)
    if as_json:
        waited_for = frozenset({row.id} if waiter else ())
        told = {**render.record(row, gone, waited_for), "result": msgspec.Raw(data), "cut": cut, "wheels": wheels}
        render.put(told)
        return 0
    for name, text in _told(row, _status(row, gone, waiter), data, cut):
        if name == "items" and wheels:
            click.echo(f"{'wheels':<12}{', '.join(sorted(wheels))}")
        click.echo(render.harmless(f"{name:<12}{text}" if "\n" not in text else f"{name}\n{text}"))
    return 0


async def _wheels(runs: Runs, row: Run) -> dict[str, str]:
    """Reads which wheels the worker had that claimed a run last: near the beginning, unless it was claimed again."""
    if row.private or not row.attempt:  # the program itself runs it; nobody has claimed it
        return {}
    wheels: dict[str, str] = {}
    async for entry in runs.journal(row.id):
        if isinstance(entry.fact, Claimed):
            wheels = entry.fact.wheels
            if entry.fact.attempt == row.attempt:
                break
    return wheels


def _told(row: Run, status: str, data: bytes, cut: Cut | None) -> Iterator[tuple[str, str]]:
    yield "run", f"{row.number} ({row.id})"
    yield "flow", row.flow + (f" ({render.near(row.source)})" if row.source else "")
    yield "status", status
    if wait := render.wait_of(row):
        yield "waits", wait
    ways = f"`tsuzuki get {row.number} --json` or `tsuzuki export {row.number}`"
    yield "params", render.truncate(render.shown_json(bytes(row.params)), len(row.params), ways)
    key = row.key and render.shortened(row.key)
    for name, text in (("key", key), ("tags", ", ".join(row.tags)), ("continues", row.continues)):
        if text:
            yield name, text
    yield "created", render.local(row.created_at)
    if row.started_at:
        yield "started", f"{render.local(row.started_at)}, attempt {row.attempt}"
    if row.finished_at:
        yield "finished", f"{render.local(row.finished_at)}, after {render.took(row)}"
    yield "items", render.counts(row)
    yield from render.usage_lines(usage(row.spent))
    if row.cancel_asked_at is not None:
        why = f": {row.cancel_reason}" if row.cancel_reason else ""
        yield "cancel", f"asked at {render.local(row.cancel_asked_at)} by {row.cancel_asked_by or 'somebody'}{why}"
    if cut is not None:
        yield "cut off", f"{cut}"
    for step in msgspec.json.decode(bytes(row.progress)):
        yield "progress", step_line(step, None, bar=True)
    if row.error is not None:
        yield "error", render.users_part(row.error.traceback) or row.error.said
    if row.status is Status.COMPLETED:
        yield "result", render.truncate(render.result_text(data), len(data), ways)


def _status(row: Run, gone: frozenset[str], waiter: WorkerRecord | None) -> str:
    if waiter is not None:
        return f"{row.status}, waits in {process_of(waiter)}; `tsuzuki resume {row.number}` wakes it"
    if interrupted(row, gone):
        return f"{row.status}, interrupted: nobody executes it; `tsuzuki resume {row.number}` goes on"
    return render.status_text(row.status, row.failed) + (f" (executed by {row.holder})" if row.holder else "")


# ---------------------------------------------------------------------------------------------------------------- logs


@click.command()
@reference
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@render.json_option
@here_or_over_http(logs_there)
@on_runs
async def logs(runs: Runs, reference: str, *, follow: bool, as_json: bool) -> int:
    """Show what a run has logged.

    \b
      tsuzuki logs 1 --follow
    """  # noqa: D301 - click reads \b as: keep these lines
    row = await runs.get(reference)
    if follow and interrupted(row, await runs.holders.gone_from(row), await runs.holders.waited_for([row])):
        click.echo(f"nobody executes run {row.number} just now; waiting for somebody to resume it", err=True)
    async for line in runs.follow_log(row.id) if follow else runs.log(row.id):
        if as_json:
            render.put(line)
        else:
            click.echo(render.log_line(line))
    return 0


# --------------------------------------------------------------------------------------------------------------- items


@click.command(short_help="Show the items of a run.")
@reference
@click.option("--failed", is_flag=True, help="Only what failed and has not succeeded since.")
@click.option("--status", type=click.Choice(_ENDS), help="Only those that ended so; `failed` is --failed.")
@click.option("--step", metavar="NAME", help="Only those of this task.")
@click.option("--error", metavar="TEXT", help="Only those with this in their error.")
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@click.option("--key", metavar="KEY", help="The item with this key, whole: its inputs, output and error.")
@click.option("--position", type=click.IntRange(1), help="The same, by its position in the journal.")
@render.json_option
@here_or_over_http(items_there)
@on_runs
async def items(runs: Runs, reference: str, *, failed: bool, limit: int | None, as_json: bool, **wanted: Any) -> int:
    """Show the steps and items of a run: how each ended, after how many tries, and how long it took.

    With --key or --position it shows one of them whole. With --json it prints one object per line.

    \b
      tsuzuki items 1 --failed
      tsuzuki items 1 --step fetch --error timeout --limit 20
      tsuzuki items 1 --key https://example.com/17
    """  # noqa: D301 - click reads \b as: keep these lines
    row = await runs.get(reference)
    key, position = wanted.pop("key"), wanted.pop("position")
    if key is not None or position is not None:
        return await show_closely(runs, row, key=key, position=position, step=wanted["step"], as_json=as_json)
    failed = failed or wanted["status"] == "failed"
    found = _first(_that_fit(runs.items(row.id, failed=failed), **wanted), limit)
    if as_json:
        async for item in found:
            render.put({**item, "outcome": OUTCOMES.get(item["kind"], "failed")})
    elif not await _print_items(found):
        click.echo(f"run {row.number} of {row.flow} has no {'failed ' if failed else ''}items", err=True)
    return 0


async def _that_fit(
    found: AsyncIterator[dict[str, Any]], *, status: str | None, step: str | None, error: str | None
) -> AsyncIterator[dict[str, Any]]:
    async for item in found:
        ended = status is None or OUTCOMES.get(item["kind"], "failed") == status
        said = error is None or error.casefold() in item.get("error", "").casefold()
        if ended and said and step in (None, item["task"]):
            yield item


async def _first(found: AsyncIterator[dict[str, Any]], limit: int | None) -> AsyncIterator[dict[str, Any]]:
    count = 0
    async for item in found:
        yield item
        count += 1
        if count == limit:
            return


async def _print_items(found: AsyncIterator[dict[str, Any]]) -> int:
    """Prints a table a page at a time, so that a million items need no memory."""
    count, table = 0, render.Table(render.ITEMS, render.NUMBERS)
    async for page in _chunks(found):
        rows = list(map(_item, page))
        for line in ([] if count else [table.head(rows)]) + list(table.lines(rows)):
            click.echo(line)
        count += len(page)
    return count


async def _chunks(found: AsyncIterator[dict[str, Any]]) -> AsyncIterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    async for item in found:
        chunk.append(item)
        if len(chunk) == _PAGE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _item(item: dict[str, Any]) -> tuple[str, ...]:
    return (
        item["key"],
        item["task"],
        OUTCOMES.get(item["kind"], "failed"),
        f"{item['tries']}",
        render.duration(item["took"]),
        item.get("error", ""),
    )


# -------------------------------------------------------------------------------------------------------------- export


@click.command(short_help="Write a run as JSON lines.")
@click.argument("reference", metavar="RUN")
@click.option("--format", "form", type=click.Choice(["jsonl"]), default="jsonl", show_default=True)
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write here.")
@on_runs
async def export(runs: Runs, reference: str, *, form: str, output: Path | None) -> int:
    """Write a run with all its facts and results, one JSON object per line.

    \b
      tsuzuki export 1 -o run.jsonl
    """  # noqa: D301 - click reads \b as: keep these lines
    del form  # there is one so far
    row = await runs.get(reference)
    if output is None:
        await _write(runs, row, sys.stdout.buffer)
        return 0
    try:
        with output.open("wb") as file:
            count = await _write(runs, row, file)
    except OSError as error:
        raise StoreUnavailable(f"{output} cannot be written: {error.strerror or error}") from error
    click.echo(f"wrote {render.counted(count, 'line')} to {output}", err=True)
    return 0


async def _write(runs: Runs, row: Run, file: IO[bytes]) -> int:
    count = 0
    async for record in runs.export(row.id):
        file.write(msgspec.json.encode(record) + b"\n")
        count += 1
    file.flush()
    return count


COMMANDS: Final = (list_runs, get_run, logs, items, export)
