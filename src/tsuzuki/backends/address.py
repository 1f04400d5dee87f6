"""Opens the store that an address names."""

from pathlib import Path

from tsuzuki import extras, settings
from tsuzuki.backends import Backend
from tsuzuki.clock import Clock
from tsuzuki.errors import BadUsage
from tsuzuki.redact import redact


async def open_backend(url: str, *, clock: Clock | None = None, timeout: float | None = None) -> Backend:
    """Opens a store: `sqlite:PATH`, a path that ends in .db, `nats://HOST:PORT`, or `memory:`.

    `timeout` says how long a server is waited for where the address does not say it (seconds).
    """
    if url.partition(":")[0] == "memory":
        from tsuzuki.backends.memory import MemoryBackend  # noqa: PLC0415 - a program uses one of the stores

        return MemoryBackend(clock=clock)
    if is_nats(url):
        return await _open_nats(url, clock, {} if timeout is None else {"timeout": str(timeout)})
    if (path := file_of(url)) is not None:
        from tsuzuki.backends.sqlite import SqliteBackend  # noqa: PLC0415 - as above

        return await SqliteBackend.open(path, clock=clock)
    raise BadUsage(f"{redact(url)!r} is no address of a store; use sqlite:PATH/tsuzuki.db, nats://HOST:4222 or memory:")


async def _open_nats(url: str, clock: Clock | None, more: dict[str, str]) -> Backend:
    try:
        from tsuzuki.backends.nats import NatsBackend  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise extras.missing(error) or error from error
    return await NatsBackend.open(url, clock=clock, defaults=settings.nats_credentials() | more)


def is_nats(url: str) -> bool:
    """Tells whether a store is on NATS."""
    return url.partition(":")[0] in ("nats", "tls")


def file_of(url: str) -> Path | None:
    """Gives the file of a store that is one."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest:
        return Path(rest.removeprefix("//"))
    return Path(url) if url.endswith(".db") else None
