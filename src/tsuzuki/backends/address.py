"""Opens the store that an address names."""

from tsuzuki.backends import Backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import BadUsage


async def open_backend(url: str, *, clock: Clock | None = None) -> Backend:
    """Opens a store: `sqlite:PATH`, a path that ends in .db, or `memory:`."""
    clock = clock or SystemClock()
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        return MemoryBackend(clock=clock)
    if scheme == "sqlite" and rest:
        return await SqliteBackend.open(rest.removeprefix("//"), clock=clock)
    if url.endswith(".db"):
        return await SqliteBackend.open(url, clock=clock)
    raise BadUsage(f"{url!r} is no address of a store; use sqlite:PATH/tsuzuki.db or memory:")
