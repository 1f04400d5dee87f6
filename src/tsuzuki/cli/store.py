"""Which store a command speaks to: the options for it, and how it is opened."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from tsuzuki import settings
from tsuzuki.defaults import SETTINGS
from tsuzuki.errors import BadUsage, StoreUnavailable
from tsuzuki.redact import redact
from tsuzuki.runs import Runs

DEBUG: Final = "tsuzuki.debug"
ARGUMENTS: Final = "tsuzuki.arguments"
"""Where a context keeps the command line as it was written."""
SERVER: Final = "tsuzuki.server"
API_KEY: Final = "tsuzuki.api-key"
"""Where a context keeps the gateway that was named before the command, and the key for it."""
DEFAULT_FOLDER: Final = Path(str(SETTINGS["TSUZUKI_DATA_DIR"].default))
QUIET: Final = "tsuzuki.quiet"
"""Where a context keeps that -q was given before the command."""


@dataclass(frozen=True, slots=True)
class Store:
    """The store that the options name; nothing is opened yet."""

    url: str
    flags: tuple[str, ...] = ()
    """The options that said so: with them another process finds the same."""

    @property
    def file(self) -> Path | None:
        """The file of the store, where it is one."""
        scheme, _, rest = self.url.partition(":")
        if scheme == "sqlite":
            return Path(rest.removeprefix("//")).expanduser()
        return Path(self.url).expanduser() if self.url.endswith(".db") else None

    @property
    def shown(self) -> str:
        """The address for people; it tells no secret."""
        return redact(self.url)

    @property
    def is_default(self) -> bool:
        """Whether it is the store that a command uses where nothing is set."""
        return self.url == f"sqlite:{DEFAULT_FOLDER / 'tsuzuki.db'}"

    @property
    def missing(self) -> bool:
        """Whether there is no store yet."""
        return self.file is not None and not self.file.exists()

    def open(self, timeout: float | None = None) -> AbstractAsyncContextManager[Runs]:
        """Opens the store; it is made when it is not there. `timeout` is for its server (seconds)."""
        return Runs.open(self.url, timeout=timeout)

    def open_existing(self) -> AbstractAsyncContextManager[Runs]:
        """Opens the store, and refuses to make one only to look into it."""
        if self.missing:
            raise StoreUnavailable(self.absence)
        return self.open()

    @property
    def absence(self) -> str:
        """Says that there is no store, and what to do."""
        return f"there is no store at {self.file}; `tsuzuki run` makes one, --data-dir names another folder"


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option that shows tracebacks."""
    tell = "Show the traceback of an error."
    return click.option("--debug", is_flag=True, expose_value=False, callback=_debug, help=tell)(command)


def announce(target: str) -> None:
    """Say in one line on stderr which store or gateway a command uses, unless -q was given."""
    ctx = click.get_current_context()
    if not (ctx.params.get("quiet") or ctx.meta.get(QUIET)):
        click.echo(f"using {target}", err=True)


def refuse_gateway(*, named: bool, naming: str = "--data-dir DIR or --backend URL") -> None:
    """Refuse a command that works only on a store where a gateway is set.

    A store that was named on the command line wins over TSUZUKI_SERVER. Without this, such a command would work on
    the store of the current folder while all others show the runs of the gateway.
    """
    ctx = click.get_current_context()
    works = f"`{ctx.command_path}` works on a store and not on a gateway"
    if server := ctx.meta.get(SERVER):
        raise BadUsage(f"{works}; leave --server {server} out")
    if not named and settings.server_is_set():
        raise BadUsage(
            f"{works}, and TSUZUKI_SERVER names the gateway {settings.server()}; unset TSUZUKI_SERVER, "
            f"or name the store with {naming}"
        )


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the store, and hand it to the command as `store`."""
    return _with_store(command, serves=False)


def served_store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options to a command that serves a store: TSUZUKI_SERVER is not for it, and it names its store."""
    return _with_store(command, serves=True)


def _with_store(command: Callable[..., Any], *, serves: bool) -> Callable[..., Any]:
    @click.option("--data-dir", metavar="DIR", help="Where runs are kept [default: TSUZUKI_DATA_DIR or .tsuzuki].")
    @click.option(
        "--backend", "--nats-url", metavar="URL", help="The store by its address, for example sqlite:runs.db."
    )
    @debug_option
    @functools.wraps(command)
    def opened(data_dir: str | None, backend: str | None, **options: Any) -> Any:
        refuse_gateway(named=serves or bool(data_dir or backend))
        said = (("--data-dir", data_dir), ("--backend", backend))
        flags = tuple(word for name, value in said if value for word in (name, value))
        with settings.flagged(TSUZUKI_DATA_DIR=data_dir, TSUZUKI_BACKEND=backend):
            store = Store(settings.backend_url(backend, data_dir), flags)
            if not serves and not store.is_default:
                announce(f"store {store.shown}")
            return command(store=store, **options)

    return opened


def strict_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option that makes a setting which makes no sense an error."""
    return click.option(
        "--strict-config",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_strict,
        help="Refuse settings that make no sense, instead of going on with their defaults.",
    )(command)


def on_runs(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
    """Makes an async function over the runs of an existing store a command."""

    @store_options
    @functools.wraps(command)
    def run(store: Store, **options: Any) -> int:
        async def work() -> int:
            async with store.open_existing() as runs:
                return await command(runs, **options)

        return asyncio.run(work())

    return run


def _debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    del parameter
    ctx.meta[DEBUG] = value


def _strict(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    del ctx, parameter
    if value:
        settings.check()
