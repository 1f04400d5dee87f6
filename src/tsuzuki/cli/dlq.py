"""The commands for dead letters of a gateway: dlq list, show, replay, drop."""

from typing import TYPE_CHECKING, Any, Final

import click

from tsuzuki.cli import render
from tsuzuki.cli.remote import output_option, over_http, server_options_before, show

if TYPE_CHECKING:
    from tsuzuki.client import Client

_HEAD: Final = ("LETTER", "AT", "REASON", "FLOW", "RUN ID", "ERROR")


@click.group(short_help="Look after the runs that failed.")
@server_options_before
def dlq() -> None:
    """Look after dead letters: the runs that failed, kept until somebody has seen to them.

    \b
      tsuzuki dlq list
      tsuzuki dlq replay LETTER
    """  # noqa: D301 - click reads \b as: keep these lines


@dlq.command("list")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="At most so many.")
@output_option("table", "json", "jsonl")
@over_http
def list_letters(client: "Client", *, limit: int, output: str) -> int:
    """List dead letters, the newest first.

    \b
      tsuzuki dlq list -o jsonl
    """  # noqa: D301 - click reads \b as: keep these lines
    return show(client.list_letters(limit=limit), output, _HEAD, _row, "there are no dead letters")


def _row(letter: Any) -> tuple[str, ...]:
    at = render.local(letter["timestamp"])
    return letter["id"], at, letter["reason"], letter["flow_name"], letter["run_id"], letter["error"] or ""


@dlq.command("show")
@click.argument("letter")
@over_http
def show_letter(client: "Client", *, letter: str) -> int:
    """Show one dead letter as JSON.

    \b
      tsuzuki dlq show LETTER
    """  # noqa: D301 - click reads \b as: keep these lines
    render.put(client.get_letter(letter))
    return 0


@dlq.command()
@click.argument("letter")
@over_http
def replay(client: "Client", *, letter: str) -> int:
    """Resume the run of a dead letter: what had finished is not done again.

    \b
      tsuzuki dlq replay LETTER
    """  # noqa: D301 - click reads \b as: keep these lines
    run = client.replay_letter(letter)
    click.echo(f"run {run['run_id']} is {run['status']}: a worker goes on with it")
    return 0


@dlq.command()
@click.argument("letter")
@over_http
def drop(client: "Client", *, letter: str) -> int:
    """Drop a dead letter; its run stays as it is.

    \b
      tsuzuki dlq drop LETTER
    """  # noqa: D301 - click reads \b as: keep these lines
    client.drop_letter(letter)
    click.echo(f"dead letter {letter} is dropped")
    return 0


COMMANDS: Final = (dlq,)
