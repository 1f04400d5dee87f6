"""What a flow leaves under way, or cancels itself, when it ends: a clear end, and nothing that runs on."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from tests.acceptance.invariants import check_journal
from tsuzuki import Run, Runs, Status, Worker, flow, task
from tsuzuki.backends import Backend
from tsuzuki.errors import StoreUnavailable
from tsuzuki.flow import Flow
from tsuzuki.testing import FaultyBackend, MemoryBackend


async def ended(backend: Backend, flow: Flow[..., Any], seconds: float = 10) -> Run:
    run = await Runs(backend).submit(flow, private=True)
    async with Worker(backend, [flow], tags=()) as worker:
        row = await asyncio.wait_for(worker.carry_out(run.id), seconds)
    await check_journal(backend, run.id)
    return row


async def test_a_flow_that_fails_in_one_branch_leaves_no_other_branch_running() -> None:
    stopped: list[str] = []

    @task
    async def fail() -> None:
        raise ValueError("no")

    @task
    async def wait(number: int) -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.append(f"wait {number}")
        return number

    @flow
    async def failing() -> None:
        await asyncio.gather(wait(1), wait.map([2, 3]), fail())

    row = await ended(MemoryBackend(), failing)
    assert row.status is Status.FAILED
    assert sorted(stopped) == ["wait 1", "wait 2", "wait 3"]


async def test_what_another_branch_finishes_while_the_flow_fails_is_kept() -> None:
    go = threading.Event()

    @task
    async def fail() -> None:
        asyncio.get_running_loop().call_later(0.05, go.set)
        raise ValueError("no")

    @task
    def finish(number: int) -> int:
        go.wait()
        return number

    @flow
    async def failing() -> None:
        await asyncio.gather(finish.map([1, 2]), fail())

    row = await ended(MemoryBackend(), failing)
    assert (row.status, row.done) == (Status.FAILED, 2)


async def test_a_flow_that_cancels_itself_fails_instead_of_starting_over_for_ever() -> None:
    @flow
    async def giving_up() -> None:
        inner = asyncio.create_task(asyncio.sleep(3600))
        inner.cancel()
        await inner

    row = await ended(MemoryBackend(), giving_up)
    assert row.status is Status.FAILED
    assert row.error is not None
    assert row.error.type == "CancelledError"


async def test_a_task_that_cancels_itself_fails_its_run() -> None:
    @task
    async def giving_up() -> None:
        raise asyncio.CancelledError

    @flow
    async def outer() -> None:
        await giving_up()

    row = await ended(MemoryBackend(), outer)
    assert row.status is Status.FAILED


async def test_a_worker_that_cannot_begin_leaves_nothing_behind() -> None:
    handlers = list(logging.getLogger().handlers)
    worker = Worker(FaultyBackend(MemoryBackend(), fail="beat", times=10))
    with pytest.raises(StoreUnavailable):
        async with worker:
            pass
    assert logging.getLogger().handlers == handlers
