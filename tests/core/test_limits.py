"""Places of a shared limit: whoever gives up on one does not keep it."""

import asyncio
from typing import Any

from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.flow import Task
from tsuzuki.limits import Limits
from tsuzuki.testing import FaultyBackend


async def _fetch() -> None: ...


fetch: Task[..., Any] = Task(_fetch, limit="gitlab", concurrency=1)
"""There is one place for it."""


async def test_a_place_that_was_handed_to_a_call_that_gives_up_is_given_back() -> None:
    store = MemoryBackend()
    limits = Limits(store, store.clock, "worker", frozenset)
    await limits.enter(fetch)
    waiting = asyncio.create_task(limits.enter(fetch))
    await asyncio.sleep(0)
    while not limits._shared["gitlab"].waiting:  # noqa: SLF001 - the moment in which the race is lost
        await asyncio.sleep(0)
    waiting.cancel()  # a run that is stopped cancels all its lanes, and then the one that has the place leaves
    await limits.leave(fetch)
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    async with asyncio.timeout(60):
        await limits.enter(fetch)


async def test_a_place_that_the_store_gives_to_a_call_that_gave_up_is_given_back() -> None:
    inner, asked, may = MemoryBackend(), asyncio.Event(), asyncio.Event()

    class SlowToAnswer(FaultyBackend):
        async def enter(self, limit: str, **asks: Any) -> bool:
            taken = await inner.enter(limit, **asks)
            asked.set()
            await may.wait()
            return taken

    store = SlowToAnswer(inner, fail="claim")
    limits = Limits(store, inner.clock, "worker", frozenset)
    giving_up = asyncio.create_task(limits.enter(fetch))
    await asked.wait()
    giving_up.cancel()
    await asyncio.wait({giving_up}, timeout=0.01)
    may.set()
    await asyncio.gather(giving_up, return_exceptions=True)
    async with asyncio.timeout(60):
        while not await inner.enter("gitlab", places=1, worker="another"):
            await asyncio.sleep(0.01)
