"""Files of this process that are opened by the first who needs them, and closed by the last."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from tsuzuki import settings
from tsuzuki.llm.queue.jobs import FILE, JobQueue


class Opened(Protocol):
    """What is opened and closed."""

    async def __aenter__(self) -> Any: ...
    async def close(self) -> None: ...


Thing = TypeVar("Thing", bound=Opened)


@dataclass(slots=True)
class _Open(Generic[Thing]):
    thing: Thing
    users: int = 0
    ready: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: bool = False


class Sharing(Generic[Thing]):
    """A file in the data directory, shared by all in an event loop who use it at the same time."""

    def __init__(self, file: str, make: Callable[[Path], Thing]) -> None:
        self._file, self._make = file, make
        self._closing: set[asyncio.Future[None]] = set()
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _Open[Thing]]] = WeakKeyDictionary()

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Thing]:
        """Gives it, opened."""
        path = (settings.data_dir() / self._file).absolute()
        here = self._open.setdefault(asyncio.get_running_loop(), {})
        if path not in here:
            here[path] = _Open(self._make(path))
        found = here[path]
        found.users += 1
        try:
            async with found.ready:
                if not found.opened:
                    await found.thing.__aenter__()
                    found.opened = True
            yield found.thing
        finally:
            found.users -= 1
            if not found.users:
                here.pop(path, None)
                if found.opened:
                    await self._closed(found.thing)

    async def _closed(self, thing: Thing) -> None:
        """Closes it to the end, also for somebody who is cancelled meanwhile: its thread would stay for ever."""
        closing = asyncio.ensure_future(thing.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)


shared_queue: Final[Sharing[JobQueue]] = Sharing(FILE, JobQueue)
"""The queue of this process."""
