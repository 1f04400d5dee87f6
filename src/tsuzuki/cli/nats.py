"""The commands about NATS servers: those that look, and the group of all."""

import asyncio
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tsuzuki import settings
from tsuzuki.backends import Check, amount
from tsuzuki.cli import copying, render, servers
from tsuzuki.cli.keeping import tell
from tsuzuki.cli.servers import PLACE
from tsuzuki.cli.store import debug_option
from tsuzuki.errors import BadUsage, StoreError
from tsuzuki.servers import process
from tsuzuki.servers.place import Place

if TYPE_CHECKING:
    from tsuzuki.servers.looking import SeenServer, SeenStream

BACKEND: Final = click.option(
    "--backend", "--nats-url", metavar="URL", help="The store [default: the server in --dir]."
)


def _address(backend: str | None, place: Place) -> str:
    """Finds the store that is meant: as said, as set, or on the server of this machine."""
    if backend:
        return backend
    said = settings.backend_url()
    if said.partition(":")[0] in ("nats", "tls"):
        return said
    return place.expected().url


@click.command(short_help="Show servers, leaders, lag, stream sizes.")
@BACKEND
@PLACE
@render.json_option
@debug_option
def status(*, backend: str | None, place: Place, as_json: bool) -> int:
    """Show the servers of a store: who leads, who is behind and by how much, and what the streams hold.

    \b
      tsuzuki nats status
      tsuzuki nats status --backend nats://10.0.0.1:4222
    """  # noqa: D301 - click reads \b as: keep these lines
    from tsuzuki.servers import examining, looking  # noqa: PLC0415 - an optional extra

    try:
        seen = asyncio.run(looking.look(_address(backend, place), place.told()))
    except StoreError:
        for check in examining.lost(place.told()):
            click.echo(f"{check.text}; {check.do}", err=True)
        raise
    if as_json:
        render.put(seen)
        return 0
    _table(("SERVER", "ROLE", "STATE", "LAG", "SILENT"), [_server(each) for each in seen.servers])
    click.echo("")
    head = ("STREAM", "LEADER", "REPLICAS", "LAG", "MESSAGES", "SIZE")
    _table(head, [_stream(each) for each in seen.streams])
    return 0


def _server(each: "SeenServer") -> tuple[str, ...]:
    silent = "" if each.silent is None else f"{each.silent:g}s"
    return each.name, "leader" if each.leads else "", each.state, str(each.lag), silent


def _stream(each: "SeenStream") -> tuple[str, ...]:
    whole = f"{len(each.servers) - len(each.behind)}/{each.replicas}"
    lag = max((server.lag for server in each.servers), default=0)
    return each.name, each.leader or "none", whole, str(lag), f"{each.messages:,}", amount(each.bytes)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    for line in render.table(head, rows, frozenset({"LAG", "SILENT", "MESSAGES", "SIZE"})):
        click.echo(line)


@click.command(short_help="Say what is wrong with the servers, and what to do.")
@BACKEND
@PLACE
@render.json_option
@debug_option
def doctor(*, backend: str | None, place: Place, as_json: bool) -> int:
    """Say what is wrong with the servers of a store and what to do. The exit code is 1 if something is not ok.

    \b
      tsuzuki nats doctor
    """  # noqa: D301 - click reads \b as: keep these lines
    from tsuzuki.servers import examining, looking  # noqa: PLC0415 - an optional extra

    checks = examining.here(place)
    try:
        see = partial(looking.look, _address(backend, place), place.told())
        checks += examining.examined(asyncio.run(looking.settled(see)))
    except (StoreError, BadUsage) as error:
        lost = examining.lost(place.told())
        do = "see below" if lost else _remedy(place)
        checks += [Check("store", ok=False, text=f"{error} [{error.error_id}]", do=do), *lost]
    return tell(checks, as_json=as_json)


def _remedy(place: Place) -> str:
    """Says what to do about a store that cannot be looked at."""
    if process.running(place) is None:
        return f"start the servers: tsuzuki nats up --dir {shlex.quote(str(place.folder))}"
    return "see to what it says; TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD say who you are"


@click.command("backup", short_help="Copy every stream of a store, while it is in use.")
@click.argument("folder", type=copying.FOLDER)
@BACKEND
@PLACE
@render.json_option
@debug_option
def backup(*, folder: Path, backend: str | None, place: Place, as_json: bool) -> int:
    """Copy every stream, bucket and object store of a store into a new folder, through the JetStream API.

    \b
      tsuzuki nats backup backups/monday --backend nats://10.0.0.1:4222
    """  # noqa: D301 - click reads \b as: keep these lines
    return copying.backed_up(_address(backend, place), folder, as_json=as_json)


@click.command("restore", short_help="Bring a store back into servers that have none.")
@click.argument("folder", type=copying.FOLDER)
@BACKEND
@PLACE
@render.json_option
@debug_option
def restore(*, folder: Path, backend: str | None, place: Place, as_json: bool) -> int:
    """Make every stream of a backup; servers that have one of them are left as they are, and it is said.

    \b
      tsuzuki nats restore backups/monday --backend "nats://10.0.0.1:4222?replicas=3"
    """  # noqa: D301 - click reads \b as: keep these lines
    return copying.restored(_address(backend, place), folder, as_json=as_json)


@click.group("nats", short_help="Run NATS servers: up, join, status, doctor, backup, restore, leave, down.")
def group() -> None:
    """Run the NATS servers of a store: start, join, look, back up, take out, end.

    \b
      tsuzuki nats up
      tsuzuki nats status
    """  # noqa: D301 - click reads \b as: keep these lines


for _command in (*servers.STARTING, status, doctor, backup, restore, *servers.ENDING):
    group.add_command(_command)

COMMANDS: Final = (group,)
