"""A flow cancels its own calls, as asyncio code does; functions on threads come to their end, and count."""

import asyncio
import threading
import time

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import flow, task

called: list[int] = []


@task
def slow(n: int) -> int:
    called.append(n)
    time.sleep(0.05)
    return n


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    called.clear()


async def test_a_timeout_ends_a_loop_over_sync_steps(run: RunFlow) -> None:
    @flow
    async def timed() -> str:
        try:
            async with asyncio.timeout(0.08):
                for n in range(20):
                    await slow(n)  # type: ignore[misc] # in an async flow every call is awaited
        except TimeoutError:
            return "timed out"
        return "never"

    ended = await run(timed)
    assert ended.result == "timed out"
    assert len(called) < 10
    assert ended.row.steps == len(called), "what came to its end is recorded"


async def test_wait_for_gives_up_a_sync_step_once_it_has_ended(run: RunFlow) -> None:
    loop, over = asyncio.get_running_loop(), threading.Event()

    @task
    def held() -> bool:
        loop.call_soon_threadsafe(loop.call_later, 0.05, over.set)  # later than what it is waited for
        return over.wait()

    @flow
    async def impatient() -> str:
        try:
            return str(await asyncio.wait_for(held.step(), 0.01))
        except TimeoutError:
            return "timed out"

    assert (await run(impatient)).result == "timed out"


async def test_a_branch_that_is_cancelled_calls_no_more(run: RunFlow) -> None:
    @flow
    async def branching() -> str:
        async def loop() -> None:
            for n in range(50):
                await slow(n)  # type: ignore[misc] # in an async flow every call is awaited

        branch = asyncio.create_task(loop())
        await asyncio.sleep(0.08)
        branch.cancel()
        await asyncio.wait([branch])
        return "cancelled" if branch.cancelled() else "went on"

    assert (await run(branching)).result == "cancelled"
    assert len(called) < 20


async def test_a_map_of_sync_calls_under_a_timeout_starts_no_more_items(run: RunFlow) -> None:
    @flow
    async def mapped() -> str:
        try:
            async with asyncio.timeout(0.08):
                await slow.map(range(60), concurrency=2)
        except TimeoutError:
            return "timed out"
        return "never"

    ended = await run(mapped)
    assert ended.result == "timed out"
    assert len(called) < 30
    assert ended.row.done == len(called)
