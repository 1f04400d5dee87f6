"""What the commands share: the desk of whoever sits at this machine, options, runs carried out here, exit codes."""

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from tsuzuki import Run, Runs
from tsuzuki.apps.notes import flows, looking
from tsuzuki.apps.notes.completed import telling_once
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.items import TOO_LARGE
from tsuzuki.apps.notes.named import Named
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.refusals import NEW_EXPORT, Crashed, NoInput, SessionNotFound, said_once
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.apps.notes.shelf import DELETED
from tsuzuki.apps.notes.standing import Standing
from tsuzuki.apps.notes.wanted import Ended, Started
from tsuzuki.apps.terminal import submitting
from tsuzuki.cli.here import SOME_FAILED, Progress, begin_here, with_progress
from tsuzuki.cli.narrow import broken
from tsuzuki.cli.render import put
from tsuzuki.cli.store import DEBUG, Store
from tsuzuki.errors import RunFailure, RunHeld, RunInterrupted, RunStopped, StoreError, TsuzukiError

Result = TypeVar("Result")

limit_option = click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Make at most N notes [default: all].",
    callback=lambda _, __, value: value or 0,  # the flow takes 0 for all; who says 0 means none, and would pay for all
)
folder_option = click.option("--session-dir", type=Named(file_okay=False), help="The folder of the session.")


def elsewhere_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that lead a session to another vault or model."""
    for option in (
        click.option("--model", default="", help="Which model."),
        click.option("--base-url", default="", help="Where that is."),
        click.option("--llm", default="", metavar="NAME", help="Another provider from here on."),
        click.option("--out", "vault", type=Named(file_okay=False), help="Another vault from here on."),
    ):
        command = option(command)
    return command


def plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Tells that there is no such session or input in the very words that scripts look for; of a bad line once."""

    @functools.wraps(command)
    def told(*args: Any, **options: Any) -> Any:
        if click.get_current_context().meta.get(DEBUG):
            click.echo("warning: --debug is deprecated here: it only shows the traceback of an error", err=True)
        try:
            with telling_once():
                return command(*args, **options)
        except (SessionNotFound, NoInput) as error:
            click.echo(str(error), err=True)
            return error.exit_code

    return told


def desk_of(runs: Runs, worker: str = "") -> Desk:
    """Gives the desk of whoever sits at this machine; what it starts is carried out by this worker in this process."""
    return Desk(runs, submitting(runs, worker), here=True)


def on_desk(store: Store, work: Callable[[Desk], Awaitable[Result]]) -> Result:
    """Lets a function look at what is there; who only looks makes no store."""

    async def working() -> Result:
        async with Runs.open("memory:") if store.missing else store.open() as runs:
            return await work(desk_of(runs))

    return asyncio.run(working())


def found(desk: Desk, session_id: str, folder: Path | None = None) -> Session:
    """Finds the session that is meant: by its folder, by its id, or the newest."""
    if folder is not None:
        return desk.sessions.adopt(folder)
    return (desk.sessions.find(session_id) if session_id else desk.sessions.latest()).checked()


def refuse_nowhere(store: Store, session_id: str, folder: Path | None) -> None:
    """Refuses to go on with a session where there can be none, before a store is made for that."""
    if folder is not None and not folder.is_dir():
        raise SessionNotFound(str(folder))
    if folder is None and store.missing and not (sessions := Sessions()).root.exists():
        raise SessionNotFound(session_id) if session_id else sessions.none_yet()


def carried_out(store: Store, start: Callable[[Desk], Awaitable[Started]], *, quiet: bool, as_json: bool) -> int:
    """Carries out what `start` begins, to its end, and tells how it went; gives the exit code."""
    session_id = ""

    async def work(runs: Runs, progress: Progress) -> Ended | None:
        run_id = ""

        async def begin(worker: str) -> tuple[Run, bool]:
            nonlocal run_id, session_id
            started = await start(desk_of(runs, worker))
            run_id, session_id = started.run.id, started.session_id
            progress.say(f"session {session_id}")
            if started.unfinished:  # said also to whoever wants no progress: it is about money
                text = (
                    f"session {started.unfinished} has begun with this export: Ctrl-C, and "
                    f"`tsuzuki notes resume {started.unfinished}`, go on with that one and pay for nothing twice"
                )
                click.echo(broken(text, sys.stderr), err=True)
            return await runs.get(run_id), started.resumed

        try:
            await begin_here(runs, flows.import_notes, begin, progress)
        except RunHeld:  # a run of the shared workers that goes on: one of them was quicker
            progress.say("a worker goes on with it: waiting for its end")
            await runs.wait(run_id)
        return await desk_of(runs).ended(run_id)

    try:
        ended = with_progress(store, work, quiet=quiet or as_json)
    except RunFailure as failure:
        stands = _stopped(store, session_id, as_json=as_json)
        helps = NEW_EXPORT if stands is not None and stands.export_unreadable else _again(store, session_id)
        raise Crashed(f"{said_once((stands and stands.error) or str(failure))} ({helps})") from failure
    except (RunStopped, RunInterrupted) as stopped:
        _stopped(store, session_id, as_json=as_json)
        word = "cancelled" if isinstance(stopped, RunStopped) else "interrupted"
        click.echo(broken(f"{word}: what has finished is kept; {_again(store, session_id)}", sys.stderr), err=True)
        return stopped.exit_code
    except StoreError:  # the disk is full, the vault has gone
        _stopped(store, session_id, as_json=as_json)
        raise
    return _told(store, session_id, ended, as_json=as_json)


def _again(store: Store, session_id: str) -> str:
    return f"`tsuzuki notes resume {session_id}` goes on{' (--data-dir as here)' if store.flags else ''}"


def _stopped(store: Store, session_id: str, *, as_json: bool) -> Standing | None:
    """Says what a command has done that was stopped; nothing where it had not begun, or its files are out of reach."""
    if session_id:
        with suppress(TsuzukiError, OSError):  # what stopped it is to be told
            stands, counts = _stands(store, session_id)
            _put_line(stands, counts, as_json=as_json)
            return stands
    return None


def _stands(store: Store, session_id: str) -> tuple[Standing, PhaseStatistics]:
    """Gives how a session stands, and what was done since somebody asked to work on it."""

    async def stand(desk: Desk) -> tuple[Standing, PhaseStatistics]:
        session = desk.sessions.find(session_id)
        return await desk.standing(session), looking.done_since(session)

    return on_desk(store, stand)


def _put_line(stands: Standing, counts: PhaseStatistics, *, as_json: bool) -> None:
    if as_json:
        put({**asdict(stands), "line": str(counts)})
    else:
        click.echo(str(counts))


def _told(store: Store, session_id: str, ended: Ended | None, *, as_json: bool) -> int:
    stands, so_far = _stands(store, session_id)
    counts = so_far if ended is None else ended.counts
    _put_line(stands, counts, as_json=as_json)
    if not as_json:
        for line in _lines_after(store, stands, counts):
            click.echo(line, err=True)
    return 0 if ended is None else exit_code(ended.counts, ended.status, stands.skipped_reasons)


def _lines_after(store: Store, stands: Standing, counts: PhaseStatistics) -> Iterator[str]:
    cost = "" if stands.cost is None else f", ${stands.cost:.4f}"
    wrote = "notes are in" if counts.success_count else "nothing new was written into"
    yield f"session {stands.session_id}: {stands.status}, {wrote} {stands.vault}{cost}"
    for line in skipped_lines(stands):
        yield broken(line, sys.stderr)
    if counts.error_count:
        retry = ", tsuzuki notes retry tries again what failed" if stands.retryable_count else ""
        yield broken(f"tsuzuki notes status tells why{retry}", sys.stderr)
    if left := stands.pending_count:
        left_over = "1 is left" if left == 1 else f"{left} are left"
        yield broken(f"{left_over}: {_again(store, stands.session_id)}", sys.stderr)


def skipped_lines(stands: Standing) -> Iterator[str]:
    """Yield why conversations were passed over, and what helps."""
    reasons = stands.skipped_reasons
    if reasons:
        yield f"skipped: {', '.join(f'{number} {reason}' for reason, number in reasons.items())}"
    if number := reasons.get(TOO_LARGE):
        are = "1 conversation is" if number == 1 else f"{number} conversations are"
        yield f"{are} too long for a note: `tsuzuki notes resume {stands.session_id} --chunk` cuts them"
    if reasons.get(DELETED):
        yield f"deleted notes stay away: `tsuzuki notes retry {stands.session_id} --item ITEM` makes one again"


def exit_code(counts: PhaseStatistics, status: PhaseStatus, reasons: Mapping[str, int]) -> int:
    """Gives the exit code that fits how it went; a conversation that is too long got no note, as if it had failed."""
    if not counts.error_count:
        return SOME_FAILED if reasons.get(TOO_LARGE) else 0
    return RunFailure.exit_code if status is PhaseStatus.FAILED else SOME_FAILED
