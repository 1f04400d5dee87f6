"""The commands that start and end NATS servers: up, join, service, controller, leave, down."""

import functools
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from tsuzuki import settings
from tsuzuki.cli.render import ourselves
from tsuzuki.cli.store import debug_option
from tsuzuki.errors import BadUsage
from tsuzuki.servers import process, unit
from tsuzuki.servers.configuration import Identity, Told
from tsuzuki.servers.place import PID_FILE, Place

_PORT: Final = click.IntRange(1, 65535)
_AUTH: Final = click.Choice(("password", "settings", "none"))
_SYNC: Final = click.Choice(("always", "lazy"))
_FILE: Final = click.Path(exists=True, dir_okay=False, resolve_path=True)
_SIZE: Final = re.compile(r"(\d+) ?([KMGT]?)i?B?", re.IGNORECASE)
_ROUTE_TLS: Final = ("--cluster-tls-cert", "--cluster-tls-key", "--cluster-tls-ca")
_ENOUGH: Final = 3
"""From so many servers on a cluster stands losses, and a store should be kept on three of them."""


class _Size(click.ParamType[int]):
    """A number of bytes, with or without a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value))
        if not match:
            self.fail(f"{value!r} is no size; use a number of bytes, or one with KB, MB, GB or TB", param, ctx)
        return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


SIZE: Final = _Size()


def _place(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Place:
    del ctx, parameter
    return Place(value or settings.data_dir() / "nats")


PLACE: Final = click.option(
    "--dir",
    "place",
    type=click.Path(path_type=Path, file_okay=False),
    callback=_place,
    help="The folder of the server on this machine [default: nats in the data directory].",
)


def _server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what a server is told; what is not said is as it was at the last start."""

    @click.option("--host", "--listen-host", help="The address it listens on [default: 127.0.0.1].")
    @click.option("--port", "--client-port", type=_PORT, help="For clients [default: 4222].")
    @click.option("--http-port", type=_PORT, help="For those who look at it from this machine [default: 8222].")
    @click.option("--cluster-port", type=_PORT, help="For the other servers of its cluster [default: 6222].")
    @click.option("--name", help="Its name in the cluster [default: its address].")
    @click.option("--settings", "more", type=click.File(), help="More settings for the server, kept in its folder.")
    @click.option("--auth", type=_AUTH, help="Who decides who may connect [default: as before, or as is set].")
    @click.option("--sync", type=_SYNC, help="Sync every write, or now and then [default: always; in clusters lazy].")
    @click.option("--max-file-store", type=SIZE, help="How much of the disk its streams may take, such as 50GB.")
    @click.option("--max-memory-store", type=SIZE, help="How much memory streams in memory may take.")
    @click.option("--cluster-tls-cert", type=_FILE, help="Encrypt between servers: the certificate of this one.")
    @click.option("--cluster-tls-key", type=_FILE, help="Its key.")
    @click.option("--cluster-tls-ca", type=_FILE, help="The authority that has signed the certificates of all of them.")
    @click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(1), help="How long it may take.")
    @click.option("--allow-unauthenticated", is_flag=True, help="Let other machines in without a password.")
    @PLACE
    @debug_option
    @functools.wraps(command)
    def with_options(**given: Any) -> Any:
        return command(**given)

    return with_options


@click.command(short_help="Start a NATS server on this machine.")
@click.option("--cluster", metavar="NAME", help="Make it the first server of a cluster.")
@_server_options
def up(*, cluster: str | None, **given: Any) -> int:
    """Start a NATS server with JetStream on this machine, apart from this terminal, and wait until it is ready.

    \b
      tsuzuki nats up
      tsuzuki nats up --cluster team --host 10.0.0.1
    """  # noqa: D301 - click reads \b as: keep these lines
    return _started({"cluster": cluster}, **given)


@click.command(short_help="Start a server that joins a cluster.")
@click.argument("others", metavar="HOST[:PORT] ...", nargs=-1, required=True)
@click.option("--cluster", metavar="NAME", required=True, help="The name of the cluster.")
@_server_options
def join(*, others: tuple[str, ...], cluster: str, **given: Any) -> int:
    """Start a NATS server on this machine that joins the cluster of others, and wait until they agree.

    Name more than one where there are more: it finds the cluster again also when one of them is gone for good.

    \b
      tsuzuki nats join 10.0.0.1 --cluster team --host 10.0.0.2
    """  # noqa: D301 - click reads \b as: keep these lines
    routes = tuple(host if ":" in host.rpartition("]")[2] else f"{host}:{Told().cluster_port}" for host in others)
    return _started({"cluster": cluster, "routes": routes}, **given)


def _started(
    said: dict[str, Any],
    *,
    place: Place,
    more: Any,
    auth: str | None,
    timeout: float,
    allow_unauthenticated: bool,
    **given: Any,
) -> int:
    before = place.told()
    told = replace(before or Told(), **{name: value for name, value in {**said, **given}.items() if value is not None})
    text = more.read() if more else None
    if (pid := process.running(place)) is not None:
        known = before or told
        if told != known or auth not in (None, known.auth) or text not in (None, place.settings()):
            raise BadUsage(
                f"{known.called} runs already, otherwise than you say; end it first: tsuzuki nats down --confirm"
            )
        click.echo(f"{known.called} runs already: {known.url} (process {pid}, {place.folder})")
        return 0
    decided, identity = place.authentication(auth, _identity())
    told = replace(told, auth=decided or ("none" if allow_unauthenticated else ""))
    _refuse_halves(told)
    if told.public and (not told.auth or (told.auth == "settings" and told.cluster and not identity.user)):
        raise BadUsage(
            f"on {told.host} other machines can reach it: set TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD here and "
            "where it is used, or say --allow-unauthenticated"
        )
    process.refuse_taken(told)
    place.furnish(told, identity, text)
    pid = process.start(place, told, timeout)
    click.echo(f"{told.called} is up: {told.url} (process {pid}, {place.folder})")
    for line in next_steps(told, place):
        click.echo(line)
    return 0


def _refuse_halves(told: Told) -> None:
    """Refuse what works only together with something that was not said."""
    if told.route_tls and not (len(told.route_tls) == len(_ROUTE_TLS) and told.cluster):
        raise BadUsage(f"routes of a cluster are encrypted with all of {', '.join(_ROUTE_TLS)} and --cluster; say all")


def next_steps(told: Told, place: Place) -> list[str]:
    """Says what to do with a server that has been started."""
    command, there = ourselves(), f" --dir {shlex.quote(str(place.folder))}"
    stop = f"  stop       {command} nats down --confirm{there}"
    size = int((process.monitor(told, "jsz").get("meta_cluster") or {}).get("cluster_size") or 0)
    if told.cluster and size < _ENOUGH:
        route = told.reached if told.cluster_port == Told().cluster_port else f"{told.reached}:{told.cluster_port}"
        wait = (
            f"  next       on another machine: {command} nats join {route} --cluster {told.cluster} --host ITS-ADDRESS"
        )
        return [
            wait,
            "             (a cluster works from its second server on, and stands losses from its third)",
            stop,
        ]
    return [
        f"  use        {command} up --backend {shlex.quote(_address(told, size))}",
        f"  look       {command} nats status{there}",
        stop,
    ]


def _address(told: Told, size: int) -> str:
    """Gives the address to use: of a cluster all servers, where this one knows an address of each; three copies."""
    if not told.cluster:
        return told.url
    known = sorted(process.monitor(told, "varz").get("connect_urls") or ())
    return f"nats://{','.join(known)}?replicas=3" if len(known) == size else f"{told.url}?replicas=3"


def _identity() -> Identity:
    return Identity.of(settings.nats_credentials())


@click.command(short_help="Write a systemd unit for the server of this machine.")
@click.option("--output", "-o", metavar="FILE", help="Where to [default: tsuzuki-nats.service in --dir]; - is stdout.")
@click.option("--user", default="", help="The user that it runs as.")
@PLACE
@debug_option
def service(*, output: str | None, user: str, place: Place) -> int:
    """Write a systemd unit that starts the server of this machine, and starts it again when it dies.

    \b
      tsuzuki nats service --user nats
    """  # noqa: D301 - click reads \b as: keep these lines
    text = unit.written(place, user)
    if output == "-":
        click.echo(text, nl=False)
        return 0
    file = Path(output) if output else place.folder / "tsuzuki-nats.service"
    file.write_text(text, encoding="utf-8")
    click.echo(f"wrote {file}; to use it:")
    if process.running(place) is not None:  # otherwise the unit finds its ports taken, again and again
        click.echo(f"  {ourselves()} nats down --confirm --dir {shlex.quote(str(place.folder))}")
    for line in unit.handover(place, user) if user else ():
        click.echo(line)
    click.echo(f"  sudo cp {shlex.quote(str(file))} /etc/systemd/system/{file.name}")
    click.echo(f"  sudo systemctl daemon-reload && sudo systemctl enable --now {file.name}")
    return 0


@click.group(short_help="The controller, which takes out servers that leave.")
def controller() -> None:
    """Somebody who stays in a cluster, and takes out servers that leave.

    \b
      tsuzuki nats controller start
    """  # noqa: D301 - click reads \b as: keep these lines


@controller.command(short_help="Answer servers that want to leave.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address it listens on.")
@click.option("--port", default=8223, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--allow-unauthenticated", is_flag=True, help="Let other machines ask without a password.")
@PLACE
@debug_option
def start(*, host: str, port: int, allow_unauthenticated: bool, place: Place) -> int:
    """Answer servers that want to leave the cluster, beside a server that stays, until Ctrl-C.

    \b
      tsuzuki nats controller start --host 10.0.0.1
    """  # noqa: D301 - click reads \b as: keep these lines
    from tsuzuki.servers.controller import Controller  # noqa: PLC0415 - an optional extra

    identity = _identity()
    if not identity.user:
        identity = place.identity()
    if Told(host=host).public and not identity.user and not allow_unauthenticated:
        raise BadUsage(
            f"on {host} other machines can reach it: set TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD here and there, "
            "or say --allow-unauthenticated"
        )
    Controller(place, identity).serve(host, port, lambda text: click.echo(text, err=True))
    return 0


@click.command(short_help="Take the server of this machine out of its cluster.")
@click.option("--controller", "url", metavar="URL", help="The controller: http://HOST:8223.")
@click.option("--name", help="Another server than that of this machine.")
@click.option("--confirm", is_flag=True, help="Really do it.")
@click.option("--stop-anyway", is_flag=True, help="Succeed also where the controller cannot be reached.")
@PLACE
@debug_option
def leave(*, url: str | None, name: str | None, confirm: bool, stop_anyway: bool, place: Place) -> int:
    """Take the server of this machine out of its cluster for good; its streams go to the others.

    It asks the controller, and does not end the server: `tsuzuki nats down --confirm` does, afterwards.

    \b
      tsuzuki nats leave --controller http://10.0.0.1:8223 --confirm
    """  # noqa: D301 - click reads \b as: keep these lines
    from tsuzuki.servers.controller import Unreachable, ask_to_leave  # noqa: PLC0415 - an optional extra

    server = name or place.expected().called
    if not url:
        raise BadUsage("it needs --controller http://HOST:PORT: start one with `tsuzuki nats controller start`")
    if not confirm:
        raise BadUsage(f"this takes {server} out of its cluster for good; say --confirm")
    try:
        told = ask_to_leave(url, server, _identity() if _identity().user else place.identity())
    except Unreachable as error:
        if not stop_anyway:
            raise
        click.echo(f"warning: {error}; {server} is still of the cluster, and was not ended", err=True)
        return 0
    click.echo(f"{server} has left; there are: {', '.join(told['servers'])}")
    click.echo(f"  next       {ourselves()} nats down --confirm --dir {shlex.quote(str(place.folder))}")
    return 0


@click.command(short_help="End the server of this machine.")
@click.option("--confirm", is_flag=True, help="Really do it.")
@click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(1), help="How long it may take.")
@PLACE
@debug_option
def down(*, confirm: bool, timeout: float, place: Place) -> int:
    """End the server of this machine in order, by its pid file; what it has stored stays.

    \b
      tsuzuki nats down --confirm
    """  # noqa: D301 - click reads \b as: keep these lines
    if not place.pid_file.exists() and Path(PID_FILE).exists():
        place = Place(Path())
    if not confirm:
        raise BadUsage(f"this ends the server of {place.folder}, and whoever uses it waits for it; say --confirm")
    pid = process.end(place, timeout)
    click.echo(f"process {pid} has ended; its files stay in {place.folder}")
    return 0


STARTING: Final = (up, join)
ENDING: Final = (service, controller, leave, down)
