"""The commands for wheels of a gateway: wheels list, upload, download, delete, history; and their older names."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tsuzuki.backends import amount
from tsuzuki.cli import render
from tsuzuki.cli.params import words_of
from tsuzuki.cli.remote import output_option, over_http, server_options_before, show

if TYPE_CHECKING:
    from tsuzuki.client import Client

_HEAD: Final = ("WHEEL", "TAGS", "SIZE", "CAME", "SHA256")
_HISTORY: Final = ("AT", "WHAT", "WHEEL", "TAGS", "BY", "FROM")
_SHORT: Final = 12


@click.group(short_help="Look after the wheels that workers install.", invoke_without_command=True)
@server_options_before
@click.pass_context
def wheels(ctx: click.Context) -> None:
    """Look after the wheels that workers install before their runs; alone it lists them.

    \b
      tsuzuki wheels upload dist/crawling-1.2.0-py3-none-any.whl --tags gpu
      tsuzuki wheels list
    """  # noqa: D301 - click reads \b as: keep these lines
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_wheels)


@wheels.command("list")
@output_option("table", "json", "jsonl")
@over_http
def list_wheels(client: "Client", *, output: str) -> int:
    """List the wheels.

    \b
      tsuzuki wheels list -o json
    """  # noqa: D301 - click reads \b as: keep these lines
    return show(client.list_wheels(), output, _HEAD, _row, "there are no wheels")


def _row(wheel: Any) -> tuple[str, ...]:
    size = amount(wheel["size_bytes"])
    came = render.local(wheel["modified"])
    return wheel["name"], ",".join(wheel["tags"]), size, came, wheel["sha256_hex"][:_SHORT]


def _upload(client: "Client", *, file: str, tags: tuple[str, ...], replace: bool) -> int:
    kept = client.upload_wheel(Path(file).name, Path(file), replace, words_of(tags))
    to = f"workers tagged {' or '.join(kept['tags'])}" if kept["tags"] else "all workers"
    click.echo(f"{kept['name']} is uploaded: {to} that sync wheels install it before their next run", err=True)
    render.put(kept)
    return 0


_FILE: Final = click.Path(exists=True, dir_okay=False)
_TAGS: Final = click.option("--tags", multiple=True, metavar="TAG,TAG", help="Only for workers with one of these tags.")
_REPLACE: Final = click.option(
    "--replace/--no-replace", default=True, help="Kept in the history; a version has to be higher all the same."
)


@wheels.command("upload")
@click.argument("file", type=_FILE)
@_TAGS
@_REPLACE
@over_http
def upload(client: "Client", **options: Any) -> int:
    """Upload a wheel of a higher version than any of its package.

    \b
      tsuzuki wheels upload dist/crawling-1.2.0-py3-none-any.whl --tags gpu
    """  # noqa: D301 - click reads \b as: keep these lines
    return _upload(client, **options)


@click.command("wheel-upload", short_help="As `wheels upload`.")
@click.option("--wheel-file", "file", required=True, type=_FILE, help="The wheel.")
@_TAGS
@_REPLACE
@over_http
def wheel_upload(client: "Client", **options: Any) -> int:
    """Upload a wheel of a higher version than any of its package.

    \b
      tsuzuki wheel-upload --wheel-file dist/crawling-1.2.0-py3-none-any.whl --tags gpu
    """  # noqa: D301 - click reads \b as: keep these lines
    return _upload(client, **options)


@wheels.command("download")
@click.argument("wheel_name", metavar="WHEEL")
@click.option("--to", metavar="FILE", help="Where to put it [default: under its name, here].")
@over_http
def download(client: "Client", *, wheel_name: str, to: str | None) -> int:
    """Download a wheel.

    \b
      tsuzuki wheels download crawling-1.2.0-py3-none-any.whl
    """  # noqa: D301 - click reads \b as: keep these lines
    target = Path(to or Path(wheel_name).name)
    client.download_wheel(wheel_name, target)
    click.echo(f"{target}: {target.stat().st_size} bytes", err=True)
    return 0


def _delete(client: "Client", *, wheel_name: str) -> int:
    client.delete_wheel(wheel_name)
    click.echo(f"{wheel_name} is deleted: workers forget it before their next run")
    return 0


@wheels.command("delete")
@click.argument("wheel_name", metavar="WHEEL")
@over_http
def delete(client: "Client", *, wheel_name: str) -> int:
    """Delete a wheel.

    \b
      tsuzuki wheels delete crawling-1.2.0-py3-none-any.whl
    """  # noqa: D301 - click reads \b as: keep these lines
    return _delete(client, wheel_name=wheel_name)


@click.command("wheel-delete", short_help="As `wheels delete`.")
@click.argument("given", metavar="[WHEEL]", required=False)
@click.option("--wheel-name", metavar="WHEEL", help="The wheel.")
@over_http
def wheel_delete(client: "Client", *, given: str | None, wheel_name: str | None) -> int:
    """Delete a wheel.

    \b
      tsuzuki wheel-delete --wheel-name crawling-1.2.0-py3-none-any.whl
    """  # noqa: D301 - click reads \b as: keep these lines
    name = wheel_name or given
    if not name:
        raise click.UsageError("say which wheel")
    return _delete(client, wheel_name=name)


def _history(client: "Client", *, limit: int, wheel_name: str | None, action: str | None, output: str) -> int:
    events = client.list_wheel_history(limit, wheel_name, action)
    return show(events, output, _HISTORY, _event, "nothing happened to wheels")


def _event(event: Any) -> tuple[str, ...]:
    at, tags = render.local(event["occurred_at"]), ",".join(event["tags"])
    by = event["actor"]["tenant_id"] or ""
    return at, event["action"], event["wheel_name"], tags, by, event["source"]["remote_addr"] or ""


_LIMIT: Final = click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 500), help="At most.")
_NAME: Final = click.option("--wheel-name", metavar="WHEEL", help="Of this wheel alone.")
_ACTION: Final = click.option("--action", type=click.Choice(["upload", "delete"]), help="Of this kind alone.")


@wheels.command("history")
@_LIMIT
@_NAME
@_ACTION
@output_option("table", "json", "jsonl")
@over_http
def history(client: "Client", **options: Any) -> int:
    """Show which wheels came and went, and by whom.

    \b
      tsuzuki wheels history --action upload
    """  # noqa: D301 - click reads \b as: keep these lines
    return _history(client, **options)


@click.command("wheel-history", short_help="As `wheels history`.")
@_LIMIT
@_NAME
@_ACTION
@output_option("table", "json", "jsonl")
@over_http
def wheel_history(client: "Client", **options: Any) -> int:
    """Show which wheels came and went, and by whom.

    \b
      tsuzuki wheel-history --limit 20
    """  # noqa: D301 - click reads \b as: keep these lines
    return _history(client, **options)


COMMANDS: Final = (wheels, wheel_upload, wheel_history, wheel_delete)
