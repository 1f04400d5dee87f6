"""`tsuzuki notes …`: import an export, go on with it, look at what came of it, try again what failed."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tsuzuki.apps.notes import looking, sources
from tsuzuki.apps.notes.addresses import from_here_on, opened
from tsuzuki.apps.notes.chunking import SIZE
from tsuzuki.apps.notes.desk import SMALLEST_CHUNK, STRATEGIES, Desk, reached
from tsuzuki.apps.notes.named import Named, a_number
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.refusals import NEW_EXPORT, said_once
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.standing import Standing
from tsuzuki.apps.notes.terminal import (
    carried_out,
    elsewhere_options,
    exit_code,
    folder_option,
    found,
    limit_option,
    on_desk,
    plainly,
    refuse_nowhere,
    skipped_lines,
)
from tsuzuki.apps.notes.wanted import Asked, Started, previewed
from tsuzuki.apps.terminal import quiet_option
from tsuzuki.cli.narrow import broken, width_of
from tsuzuki.cli.params import agreed_to_remove
from tsuzuki.cli.render import counted, json_option, local, one_line, put, table
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import BadUsage
from tsuzuki.llm import Address

_NUMBERS = frozenset({"success", "failed", "skipped", "pending", "total"})
_MOST_SHOWN = 50
_MOST_DAYS = 36_500
_WIDE_ENOUGH = 80
"""A narrower terminal has no room for a table with reasons."""


@click.group(short_help="Make notes of chat exports.")
def notes() -> None:
    """Make Markdown notes of ChatGPT and Claude exports, over a night, with interruptions; nothing is paid for twice.

    \b
      tsuzuki notes import export.zip --out vault      make notes of it
      tsuzuki notes resume                             go on with the newest session
      tsuzuki notes status                             how it stands, what failed and why
    """  # noqa: D301 - click reads \b as: keep these lines


@notes.command("import")
@plainly
@click.argument("export", type=Named())
@click.option("--out", "vault", required=True, type=Named(file_okay=False), help="The vault.")
@click.option("--provider", default="auto", show_default=True, help=f"Whose export: {', '.join(sources.PROVIDERS)}.")
@click.option("--llm", default="", metavar="NAME", help="Who makes the notes [default: TSUZUKI_LLM_PROVIDER].")
@click.option("--base-url", default="", help="Where that is.")
@click.option("--model", default="", help="Which model.")
@click.option(
    "--strategy",
    default="sync",
    show_default=True,
    type=click.Choice(STRATEGIES),
    help="Directly, or in batches: cheaper, within a day.",
)
@click.option("--translate", default="", metavar="LANG", help="Translate summaries, for example into ja.")
@click.option("--chunk/--no-chunk", default=False, help="Cut long conversations, or pass over them (exit code 6).")
@click.option("--chunk-size", default=SIZE, show_default=True, type=click.IntRange(SMALLEST_CHUNK), help="Characters.")
@click.option("--concurrency", default=0, type=click.IntRange(0, 256), help="How many are asked about at once.")
@click.option(
    "--failure-threshold",
    default=None,
    type=click.FloatRange(0, 100),
    callback=a_number,
    metavar="PERCENT",
    help="Stop when more than so many percent have failed.",
)
@click.option("--again", is_flag=True, help="Make notes again that are unchanged, and ones that were deleted.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@limit_option
@folder_option
@quiet_option
@json_option
@store_options
def import_(
    store: Store, *, limit: int, session_dir: Path | None, dry_run: bool, quiet: bool, as_json: bool, **asked: Any
) -> int:
    """Make notes of EXPORT: a ZIP, a folder or a file of ChatGPT or Claude, Markdown, text or JSONL.

    \b
      tsuzuki notes import export.zip --out ~/vault
      tsuzuki notes import export.zip --out ~/vault --llm ollama --model qwen3:8b --chunk
    """  # noqa: D301 - click reads \b as: keep these lines
    wanted = Asked(**asked)
    if dry_run:
        return _preview(wanted, limit, as_json=as_json)

    async def start(desk: Desk) -> Started:
        return await desk.start(wanted, limit=limit, session_dir=session_dir)

    return carried_out(store, start, quiet=quiet, as_json=as_json)


def _preview(asked: Asked, limit: int, *, as_json: bool) -> int:
    told = previewed(asked, limit, paid=_asks_a_model(asked))
    if as_json:
        put(asdict(told))
        return 0
    chunks = f", {told.chunks} of them chunks" if told.chunks else ""
    click.echo(f"{told.provider}: {counted(told.items, 'note')} of {told.characters:,} characters{chunks}")
    if told.made < told.items:
        click.echo(f"  {told.made} of the {told.items} would be made now (--limit), the rest with resume")
    for reason, number in sorted(told.skipped.items()):
        click.echo(f"  {number} passed over: {reason}")
    if told.unreadable:
        click.echo(f"  {told.unreadable} cannot be read")
    return 0


def _asks_a_model(asked: Asked) -> bool:
    """Tells whether a model would be asked; refuses one that could not be, as the import would. Nobody is asked yet."""
    provider = opened(Address(asked.llm, asked.base_url, asked.model))
    asyncio.run(provider.close())
    return provider.name != "offline"


@notes.command()
@plainly
@click.argument("session_id", metavar="[SESSION]", required=False, default="")
@elsewhere_options
@click.option("--chunk", is_flag=True, help="Cut long conversations that were passed over.")
@limit_option
@folder_option
@quiet_option
@json_option
@store_options
def resume(
    store: Store, session_id: str, *, vault: Path | None, session_dir: Path | None, limit: int, quiet: bool,
    as_json: bool, chunk: bool, **model: str,
) -> int:  # fmt: skip
    """Go on with SESSION (the newest unless given): what is done is passed over, what failed is tried again."""

    refuse_nowhere(store, session_id, session_dir)

    async def start(desk: Desk) -> Started:
        session = found(desk, session_id, session_dir).checked(writing=True)
        return await desk.resume(session, limit=limit, chunk=chunk, vault=vault, address=await _asked(session, model))

    return carried_out(store, start, quiet=quiet, as_json=as_json)


async def _asked(session: Session, model: dict[str, str]) -> dict[str, Any] | None:
    """Gives who is asked from here on, where somebody else is named."""
    if not any(model.values()):
        return None
    return await reached(from_here_on(session.options, model["llm"], model["base_url"], model["model"]))


@notes.command()
@plainly
@click.argument("session_id", metavar="[SESSION]", required=False, default="")
@elsewhere_options
@click.option("--item", default="", metavar="ITEM", help="Make the note of this one again, by its id or title.")
@limit_option
@folder_option
@quiet_option
@json_option
@store_options
def retry(
    store: Store, session_id: str, *, vault: Path | None, session_dir: Path | None, limit: int, quiet: bool,
    as_json: bool, item: str, **model: str,
) -> int:  # fmt: skip
    """Try exactly those conversations of SESSION again that failed; with another model, where one is named."""

    refuse_nowhere(store, session_id, session_dir)

    async def start(desk: Desk) -> Started:
        session = found(desk, session_id, session_dir).checked(writing=True)
        return await desk.retry(session, limit=limit, item=item, vault=vault, address=await _asked(session, model))

    return carried_out(store, start, quiet=quiet, as_json=as_json)


@notes.command()
@plainly
@click.argument("session_id", metavar="[SESSION]", required=False, default="")
@click.option("--all", "every", is_flag=True, help="All sessions.")
@folder_option
@json_option
@store_options
def status(store: Store, session_id: str, *, every: bool, session_dir: Path | None, as_json: bool) -> int:
    """Show how SESSION stands (the newest unless given), what failed and why."""

    async def one(desk: Desk) -> tuple[Standing, list[looking.Failed], list[dict[str, Any]]]:
        session = found(desk, session_id, session_dir)
        return await desk.standing(session), looking.failed_items(session), looking.passed_over(session)

    async def all_of(desk: Desk) -> list[Standing]:
        return await desk.every()

    if every:
        return _list(on_desk(store, all_of), as_json=as_json)
    stands, failed, skipped = on_desk(store, one)
    if as_json:
        put({**asdict(stands), "failed": [asdict(each) for each in failed], "skipped": skipped})
    else:
        _show(stands, failed)
        _show_skipped(stands, skipped)
    figures = PhaseStatistics(stands.success_count, stands.error_count, stands.skipped_count, stands.total_count)
    return exit_code(figures, figures.ended(passed_over=stands.skipped_count), stands.skipped_reasons)


def _list(sessions: list[Standing], *, as_json: bool) -> int:
    if as_json:
        put([asdict(stands) for stands in sessions])
        return 0
    rows = [
        (s.session_id, _made(s), s.source, s.status, str(s.total_count), str(s.success_count),
         str(s.error_count), str(s.skipped_count), str(s.pending_count))
        for s in sessions
    ]  # fmt: skip
    head = ("session", "created", "source", "status", "total", "success", "failed", "skipped", "pending")
    if not rows:
        click.echo("no session yet: tsuzuki notes import EXPORT --out VAULT", err=True)
        return 0
    lines = list(table(head, rows, _NUMBERS))
    if lines[0].endswith("…"):
        lines = [line for s in sessions for line in _in_few_columns(s)]
    for line in lines:
        click.echo(line)
    return 0


def _in_few_columns(stands: Standing) -> Iterator[str]:
    """Gives a session as several short lines: a table of it does not fit."""
    yield f"{stands.session_id}  {stands.status}"
    yield broken(f"  {stands.source}, {_made(stands)}", sys.stdout, 4)
    yield broken(f"  {_counts(stands)}", sys.stdout, 4)


def _counts(stands: Standing) -> str:
    if stands.active and stands.status == PhaseStatus.IN_PROGRESS and not stands.total_count:
        return "the export is being read"
    return (
        f"{stands.success_count} success, {stands.error_count} failed, {stands.skipped_count} skipped, "
        f"{stands.pending_count} pending of {stands.total_count}"
    )


def _made(stands: Standing) -> str:
    return local(stands.created_at) if stands.created_at else "broken"


def _moment(text: str) -> str:
    """Gives a moment of the log, which anybody may have edited, as people here read it."""
    try:
        return local(text)
    except ValueError:
        return text


def _show(stands: Standing, failed: list[looking.Failed]) -> None:
    cost = "" if stands.cost is None else f", ${stands.cost:.4f}"
    click.echo(broken(f"session   {stands.session_id}  {stands.status}{cost}", sys.stdout, 10))
    click.echo(broken(f"source    {stands.source} ({stands.provider})", sys.stdout, 10))
    click.echo(f"vault     {stands.vault}")
    click.echo(broken(f"notes     {_counts(stands)}", sys.stdout, 10))
    for batch in stands.owed_batches:
        text = f"batch     {batch} is not collected yet: `tsuzuki notes resume` does"
        click.echo(broken(text, sys.stdout, 10))
    if stands.error:
        click.echo(broken(f"error     {said_once(stands.error)}", sys.stdout, 10))
    if stands.export_unreadable:
        click.echo(broken(f"          {NEW_EXPORT}", sys.stdout, 10))
    for line in _failures(failed[:_MOST_SHOWN]):
        click.echo(line)
    if len(failed) > _MOST_SHOWN:
        click.echo(f"and {len(failed) - _MOST_SHOWN} more: --json shows all", err=True)


def _failures(failed: list[looking.Failed]) -> Iterator[str]:
    """Gives what failed as a table; where that leaves no room for the reasons, one below the other."""
    rows = [(each.item_id, each.title, each.stage, said_once(each.error_message)) for each in failed]
    if rows and (not sys.stdout.isatty() or width_of(sys.stdout) >= _WIDE_ENOUGH):
        yield from table(("item", "title", "stage", "error"), rows)
        return
    for item_id, title, stage, error in rows:
        yield broken(f"{one_line(item_id)}  {stage}  {one_line(title)}", sys.stdout)
        yield broken(f"  {one_line(error)}", sys.stdout)


def _show_skipped(stands: Standing, skipped: list[dict[str, Any]]) -> None:
    rows = [(each["item_id"], each["title"], each["reason"]) for each in skipped[:_MOST_SHOWN]]
    for line in table(("item", "title", "skipped"), rows) if rows else ():
        click.echo(line)
    if len(skipped) > _MOST_SHOWN:
        click.echo(f"and {len(skipped) - _MOST_SHOWN} more: --json shows all", err=True)
    for line in skipped_lines(stands):
        click.echo(broken(line, sys.stderr), err=True)


@notes.command()
@plainly
@click.argument("item")
@click.option("--session", "session_id", default="", help="Of this session [default: the newest].")
@folder_option
@json_option
@store_options
def trace(store: Store, item: str, session_id: str, *, session_dir: Path | None, as_json: bool) -> int:
    """Show all that happened to one conversation, by its id, the beginning of its id, or its title."""

    async def work(desk: Desk) -> dict[str, Any]:
        return looking.traced(found(desk, session_id, session_dir), item)

    told = on_desk(store, work)
    if as_json:
        put(told)
        return 0
    click.echo(broken(f"{told['item_id']}  {told['title']}", sys.stdout))
    if told["reason"]:
        click.echo(f"{told['status']}: {told['reason']}")
    for record in told["records"]:
        more = record.get("error_message") or record.get("skipped_reason") or ""
        where = f"{record['stage']}/{record.get('step', '')}"
        piece = f"{record['item_id']}  " if record["item_id"] != told["item_id"] else ""
        took, at = f"{record.get('timing_ms', 0)!s:>6} ms", str(record.get("timestamp", ""))
        line = f"{_moment(at)}  {where:<28} {record['status']:<8} {took}  {piece}{more}"
        click.echo(broken(line.rstrip(), sys.stdout))
    if told["output_path"]:
        click.echo(f"note      {told['output_path']}")
    return 0


def _owed(session: Session) -> str:
    """Warns of answers that are paid for, and that nobody could collect any more without the session."""
    with suppress(BadUsage, OSError):  # what is broken may be removed as well
        if batches := looking.owed_batches(session):
            return f"  not collected yet: {', '.join(batches)} (`tsuzuki notes resume {session.session_id}` does)"
    return ""


@notes.command()
@plainly
@click.option(
    "--days",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0, _MOST_DAYS),
    callback=a_number,
    help="Older than so many days.",
)
@click.option("--dry-run", is_flag=True, help="Only say which.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_options
def clean(store: Store, days: float, *, dry_run: bool, yes: bool) -> int:
    """Remove sessions that are older; notes in the vault stay."""

    async def work(desk: Desk) -> tuple[Desk, list[Session]]:
        return desk, await desk.removable(days)

    desk, old = on_desk(store, work)
    for session in old:
        click.echo(f"{session.session_id}  {session.folder}{_owed(session)}")
    if not old:
        click.echo("no session is that old", err=True)
    elif not dry_run:
        if not yes and not agreed_to_remove(counted(len(old), "session")):
            return 1
        for session in old:
            desk.sessions.remove(session)
        click.echo(f"{counted(len(old), 'session')} removed", err=True)
    return 0
