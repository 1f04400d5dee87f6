"""The queue of this process: opened by the first who needs it, closed by the last."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from tsuzuki import settings
from tsuzuki.llm.queue.jobs import FILE, JobQueue


@dataclass(slots=True)
class _Open:
    queue: JobQueue
    users: int = 0
    ready: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: bool = False


_OPEN: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _Open]]] = WeakKeyDictionary()


@asynccontextmanager
async def shared_queue() -> AsyncIterator[JobQueue]:
    """Gives the queue in the data directory, shared by all who ask for it at the same time."""
    path = (settings.data_dir() / FILE).resolve()
    here = _OPEN.setdefault(asyncio.get_running_loop(), {})
    found = here.setdefault(path, _Open(JobQueue(path)))
    found.users += 1
    try:
        async with found.ready:
            if not found.opened:
                await found.queue.__aenter__()
                found.opened = True
        yield found.queue
    finally:
        found.users -= 1
        if not found.users:
            here.pop(path, None)
            if found.opened:
                await found.queue.close()
