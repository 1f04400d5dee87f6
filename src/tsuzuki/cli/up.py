"""The command that starts everything on one machine: gateway, workers, and a NATS server where it is wanted."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import click
from msgspec.structs import replace

from tsuzuki import settings
from tsuzuki.cli.params import words_of
from tsuzuki.cli.render import counted, ourselves
from tsuzuki.cli.store import Store, served_store_options, strict_option
from tsuzuki.cli.wheel_sync import Wheels, wheel_options
from tsuzuki.cli.worker import checked_tags
from tsuzuki.clock import SystemClock
from tsuzuki.errors import BadUsage, StoreUnavailable
from tsuzuki.holders import Holders
from tsuzuki.interrupts import hears_of_a_lost_terminal
from tsuzuki.lifecycle import Run
from tsuzuki.listening import bound, refuse_open_door
from tsuzuki.processes import Child, Program, tsuzuki
from tsuzuki.servers.binary import program
from tsuzuki.servers.configuration import Identity, Told
from tsuzuki.servers.fullness import Fullness
from tsuzuki.servers.place import Place
from tsuzuki.servers.process import refuse_differences

PATIENCE: Final = 60.0
"""How long the parts may take to answer for the first time (seconds)."""
HURRY: Final = 0.2
"""How often the parts are told again to end, once nobody wants to wait for them (seconds)."""
SAMPLE: Final = "tsuzuki.sample"
PORT: Final = click.IntRange(0, 65535)
CLOCK: Final = SystemClock()
LOOK: Final = 1.0
"""How often the log of NATS is looked at (seconds)."""
SHOWN: Final = 3
"""So many runs of a worker that died are named."""
ANEW: Final = 5.0
"""How long a NATS server that is started anew is left alone (seconds)."""


def say(text: str) -> None:
    """Tells people; stdout is for the log of the parts."""
    click.echo(text, err=True)


@click.command(short_help="Start gateway and workers, and keep them alive.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address the gateway listens on.")
@click.option("--port", default=8000, show_default=True, type=PORT, help="0: any free one.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(0), help="So many worker processes.")
@click.option("--concurrency", default=10, show_default=True, type=click.IntRange(1), help="Runs at a time in each.")
@click.option(
    "--tags",
    multiple=True,
    metavar="TAG,TAG",
    callback=checked_tags,
    help="Take runs of these tags [default: default].",
)
@click.option("--flows", multiple=True, metavar="FILE.py|PACKAGE", help="Where the flows are [default: a sample].")
@click.option("--flow-resolver", metavar="MODULE:FUNCTION", help="A function that gives a flow by name, or a KeyError.")
@click.option("--allow-callables", multiple=True, metavar="GLOB", help="Modules that YAML flows may call: 'mypkg.*'.")
@click.option("--expose-env", multiple=True, metavar="NAME", help="Variables that YAML flows may read with $env.NAME.")
@click.option("--dashboard-lang", type=click.Choice(["auto", "ja", "en"]), help="The language of the page.")
@click.option("--allow-unauthenticated", is_flag=True, help="Listen to the network although no API key is asked for.")
@click.option(
    "--with-nats", "--with-nats-bootstrap", is_flag=True, help="Start a NATS server too, and keep runs in it."
)
@click.option("--nats-listen-host", default="127.0.0.1", show_default=True, help="The address that server listens on.")
@click.option(
    "--nats-port", "--nats-client-port", default=4222, show_default=True, type=PORT, help="Its port; 0: free."
)
@click.option(
    "--nats-http-port", default=0, show_default=True, type=PORT, help="Where it tells of itself; 0: any free."
)
@wheel_options
@strict_option
@served_store_options
def up(store: Store, **options: Any) -> int:
    """Start the gateway and workers on this machine, and keep them alive until Ctrl-C or SIGTERM.

    A worker that dies is started again. The log of all parts goes to stdout: JSON lines, or text on a terminal.

    \b
      tsuzuki up
      tsuzuki up --workers 4 --flows crawl.py --flows mypkg.flows --port 9000
      tsuzuki up --with-nats
    """  # noqa: D301 - click reads \b as: keep these lines
    with_nats = options.pop("with_nats")
    ports = (
        options.pop("nats_port") or _free_port("127.0.0.1"),
        options.pop("nats_http_port") or _free_port("127.0.0.1"),
    )
    told = Told(host=options.pop("nats_listen_host"), port=ports[0], http_port=ports[1])
    return asyncio.run(_up(Parts(store, **options), told if with_nats else None))


@dataclass(slots=True)
class Parts:
    """What is to be started."""

    store: Store
    host: str
    port: int
    workers: int
    concurrency: int
    tags: tuple[str, ...]
    flows: tuple[str, ...]
    flow_resolver: str | None
    allow_callables: tuple[str, ...]
    expose_env: tuple[str, ...]
    dashboard_lang: str | None
    allow_unauthenticated: bool
    wheels: Wheels
    children: list[Child] = field(default_factory=list)
    refused: bool = False

    @property
    def server(self) -> str:
        """The address to open."""
        shown = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - it is only shown
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    def gateway(self) -> Program:
        """Gives the command of the gateway."""
        arguments = ["serve", "--host", self.host, "--port", f"{self.port}", *self.store.flags]
        arguments += ["--dashboard-lang", self.dashboard_lang] if self.dashboard_lang else []
        arguments += ["--allow-unauthenticated"] if self.allow_unauthenticated else []
        return tsuzuki("the gateway", *arguments, log_format=_log_format())

    def worker(self, number: int) -> Program:
        """Gives the command of a worker."""
        arguments = ["worker", *self.store.flags, "--concurrency", f"{self.concurrency}"]
        flows = self.flows or (() if self.flow_resolver else (SAMPLE,))
        for name, values in (
            ("--tags", self.tags),
            ("--flows", flows),
            ("--allow-callables", self.allow_callables),
            ("--expose-env", self.expose_env),
        ):
            for value in words_of(values):
                arguments += [name, value]
        arguments += ["--flow-resolver", self.flow_resolver] if self.flow_resolver else []
        arguments += self.wheels.flags
        return tsuzuki(f"worker {number}", *arguments, log_format=_log_format())


def _log_format() -> str:
    """Chooses lines for people where their terminal shows the log, unless somebody has chosen."""
    return "text" if sys.stdout.isatty() and not settings.is_set("TSUZUKI_LOG_FORMAT") else ""


async def _up(parts: Parts, nats: Told | None) -> int:
    stopping = asyncio.Event()
    _heed_signals(parts, stopping)
    refuse_open_door(parts.host, auth=settings.gateway().get("auth", False), allowed=parts.allow_unauthenticated)
    parts.port = parts.port or _free_port(parts.host)
    async with _server(parts, nats) as place:
        if place and await _answers(parts.store.url.removeprefix("nats://"), b"", b"INFO", stopping):
            await asyncio.to_thread(refuse_differences, place, place.expected())
        bound(parts.host, parts.port).close()  # in one line, instead of starting a gateway again and again
        _make_children(parts, stopping)
        async with _kept(parts.children):
            address = parts.server.removeprefix("http://")
            question = f"GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
            if await _answers(address, question, b"200", stopping):
                _tell(parts)
            await stopping.wait()
            if not parts.refused:
                grace = f"{settings.grace_period():g} s"
                say(f"stopping: what is under way has {grace} to finish, then it is handed back; again ends it at once")
    return 1 if parts.refused else 0


def _heed_signals(parts: Parts, stopping: asyncio.Event) -> None:
    """Lets the first SIGTERM or Ctrl-C stop everything in order, and the second at once."""
    loop = asyncio.get_running_loop()

    def hurry() -> None:
        for child in parts.children:
            child.signal(signal.SIGTERM)
        loop.call_later(HURRY, hurry)  # a worker may not have heard the first one yet

    def stop() -> None:
        if stopping.is_set():  # told again: nobody waits for what is under way
            hurry()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if hears_of_a_lost_terminal():
        loop.add_signal_handler(signal.SIGHUP, stopping.set)


def _make_children(parts: Parts, stopping: asyncio.Event) -> None:
    """Makes the gateway and the workers; one that cannot work as it was told to ends all of it."""

    def refused() -> None:
        parts.refused = True
        stopping.set()

    left = partial(_left, parts.store)
    workers = [parts.worker(number) for number in range(1, parts.workers + 1)]
    parts.children = [Child(parts.gateway(), say, CLOCK.monotonic, refused)]
    parts.children += [Child(worker, say, CLOCK.monotonic, refused, left) for worker in workers]


@asynccontextmanager
async def _server(parts: Parts, told: Told | None) -> AsyncIterator[Place | None]:
    """Keeps the NATS server alive meanwhile, where one is wanted, and able to write."""
    if told is None:
        yield None
        return
    place = _furnished(parts, told)
    command = [program(), "--config", str(place.config)]
    child = Child(Program("nats-server", command, ours=False), say, CLOCK.monotonic)
    async with _kept([child]):
        watch = asyncio.create_task(_kept_writing(child, Fullness(place), place))
        try:
            yield place
        finally:
            watch.cancel()


async def _kept_writing(child: Child, fullness: Fullness, place: Place) -> None:
    """Starts a server anew that met a full disk, once there is room: by itself it would never write again."""
    while True:
        await asyncio.sleep(LOOK)
        before, helps = fullness.refuses, fullness.look()
        if fullness.refuses and not before:
            say(f"nats-server cannot write ({place.log} says why); free some space, and everything goes on by itself")
        if helps:
            say("there is room for nats-server to write: it is started anew, without that it would go on refusing")
            child.signal(signal.SIGTERM)
            await asyncio.sleep(ANEW)
            fullness.begin_anew()


@asynccontextmanager
async def _kept(children: list[Child]) -> AsyncIterator[None]:
    """Keeps programs alive meanwhile, and ends them all at the end."""
    keepers = [asyncio.create_task(child.keep()) for child in children]
    try:
        yield
    finally:
        await asyncio.gather(*(child.end(settings.grace_period()) for child in children))
        await asyncio.gather(*keepers)


async def _left(store: Store, process: int) -> str:
    """Says which runs a process held when it died: one of them may be why."""
    async with store.open(LOOK) as runs:
        left = await Holders(runs.backend).left_by(process)
    if not left:
        return ""
    shown = ", ".join(f"run {run.number} of {run.flow} ({run.id}){_barren(run)}" for run in left[:SHOWN])
    return f"held {shown}{f' and {len(left) - SHOWN} more' if len(left) > SHOWN else ''}: others go on with that"


def _barren(run: Run) -> str:
    """Adds that a run was claimed again and again and came no further: then it is perhaps what ends the workers."""
    return f", claimed {run.barren} times without a new outcome" if run.barren > 1 else ""


async def _answers(place: str, question: bytes, wanted: bytes, stopping: asyncio.Event) -> bool:
    """Waits until somebody answers at host:port; False where it was told to stop before."""
    host, _, port = place.rpartition(":")
    patience = CLOCK.monotonic() + PATIENCE
    while not stopping.is_set():
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.write(question)
                said = await reader.read(64)
                writer.close()
            if wanted in said:
                return True
        if CLOCK.monotonic() > patience:
            raise StoreUnavailable(f"nothing answers at {place} after {PATIENCE:g} s; the lines above say why")
        await asyncio.sleep(0.05)
    return False


def _tell(parts: Parts) -> None:
    known = ", ".join(parts.flows) or parts.flow_resolver or "the sample"
    command, there = ourselves(), "" if parts.server == settings.server() else f" --server {parts.server}"
    many = counted(parts.workers, "worker")
    say(f"Tsuzuki is up: {parts.server}  ({many}, flows of {known}, store {parts.store.shown})")
    say(f"  open       {parts.server}")
    if parts.flows or parts.flow_resolver:
        say(f"  flows      {command} flows{there}")
    else:
        say(f"  submit     {command} submit sample --param sentences=200 --watch{there}")
    if there:
        say(f"  find it    export TSUZUKI_SERVER={parts.server}  (in other terminals; or say --server)")
    say("  stop       Ctrl-C; what is under way goes on with the next start")


def _furnished(parts: Parts, told: Told) -> Place:
    """Makes the folder of the NATS server, in the data directory; the parts then speak to it."""
    place = Place((parts.store.file or settings.data_dir() / "tsuzuki.db").parent / "nats")
    given = Identity.of(settings.nats_credentials())
    auth, identity = place.authentication(None, given)
    if auth == "password" and identity != given:
        raise BadUsage(
            f"the server in {place.folder} asks for a user and a password: set TSUZUKI_NATS_USER and "
            "TSUZUKI_NATS_PASSWORD, or drop them with `tsuzuki nats up --auth none`"
        )
    before = place.told() or told
    told = replace(before, host=told.host, port=told.port, http_port=told.http_port, cluster="", routes=(), auth=auth)
    if told.public and not told.auth and not parts.allow_unauthenticated:
        raise BadUsage(f"on {told.host} other machines reach NATS: set TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD")
    bound(told.host, told.port, "--nats-port", host_option="--nats-listen-host").close()
    bound("127.0.0.1", told.http_port, "--nats-http-port").close()
    place.furnish(told, identity)
    parts.store = Store(told.url, ("--data-dir", str(settings.data_dir()), "--backend", told.url))
    return place


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


COMMANDS: Final = (up,)
