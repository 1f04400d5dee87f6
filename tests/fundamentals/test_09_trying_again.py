"""A task that is tried again finds what it had done: steps and items that succeeded inside it are not done again."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Later, Retry, Runs, Status, Worker, flow, task


@pytest.mark.parametrize("why", ["it raised", "it was late", "it comes back later"])
@pytest.mark.parametrize("parent", ["a step", "an item"])
async def test_what_a_task_had_done_is_not_done_again_when_it_is_tried_again(
    run: RunFlow, why: str, parent: str
) -> None:
    paid, tried = [], 0

    @task
    async def pay(what: str) -> int:
        paid.append(what)
        return len(paid)

    late = why == "it was late"  # where the machine is slow, it may be late more often

    @task(retry=Retry(attempts=20 if late else 3, backoff=0.0), timeout=1.0 if late else None)
    async def order(what: str) -> list[int]:
        nonlocal tried
        tried += 1
        receipts = [await pay(what), *await pay.map([f"{what}-{part}" for part in range(2)], concurrency=1)]
        receipts.append(await pay(what))
        if tried < 3:
            if why == "it raised":
                raise ConnectionError("the mail server is away")
            if why == "it comes back later":
                raise Later(0.01)
            await asyncio.sleep(20)
        return receipts

    @flow
    async def shop() -> list[int]:
        return await order("a") if parent == "a step" else (await order.map(["a"]))[0]

    ended = await run(shop)
    assert ended.result == [1, 2, 3, 4]
    assert paid == ["a", "a-0", "a-1", "a"]
    assert tried >= 3 if late else tried == 3


async def test_what_failed_is_done_again_when_the_task_that_called_it_is_tried_again(run: RunFlow) -> None:
    calls: list[str] = []

    @task
    async def shaky(what: str) -> str:
        calls.append(what)
        if calls.count(what) < 3:
            raise ConnectionError(what)
        return what

    @task
    async def steady(what: str) -> str:
        calls.append(what)
        return what

    @task
    async def within(what: str) -> str:
        await steady(f"before {what}")
        return await shaky(what)

    @task(retry=Retry(attempts=3, backoff=0.0))
    async def order() -> list[str]:
        some = await shaky.map(["x", "y"], on_error="collect")
        return [await within("z"), *some.succeeded]

    @flow
    async def shop() -> list[str]:
        return await order()

    ended = await run(shop)
    assert ended.result == ["z", "x", "y"]
    assert sorted(calls) == ["before z", "x", "x", "x", "y", "y", "y", "z", "z", "z"]


async def test_a_sync_task_finds_what_it_had_done_too(run: RunFlow) -> None:
    paid: list[int] = []
    tried = 0

    @task
    def pay(number: int) -> int:
        paid.append(number)
        return number

    @task(retry=Retry(attempts=3, backoff=0.0))
    def order() -> int:
        nonlocal tried
        tried += 1
        total = pay(1) + sum(pay.map([2, 3]))
        if tried < 3:
            raise ConnectionError("the mail server is away")
        return total

    @flow
    def shop() -> int:
        return order()

    ended = await run(shop)
    assert ended.result == 6
    assert sorted(paid) == [1, 2, 3]


async def test_a_run_that_goes_on_elsewhere_finds_what_two_tries_had_done(runs: Runs) -> None:
    paid: list[str] = []
    stuck, reached = asyncio.Event(), asyncio.Event()

    @task
    async def pay(what: str) -> str:
        paid.append(what)
        if what == "second" and paid.count(what) == 1:
            raise ConnectionError(what)
        return what

    @task(retry=Retry(attempts=2, backoff=0.0))
    async def order() -> list[str]:
        done = [await pay("first"), await pay("second")]
        reached.set()
        await stuck.wait()
        return [*done, await pay("third")]

    @flow
    async def shop() -> list[str]:
        return await order()

    started = await runs.submit(shop, {})
    for stop in (True, False):
        async with Worker(runs.backend, [shop], name=f"w-{uuid4()}", grace=0.1) as worker:
            working = asyncio.create_task(worker.run())
            async with asyncio.timeout(60):
                await reached.wait()
                if not stop:
                    stuck.set()
                    while (await runs.get(started.id)).status is not Status.COMPLETED:
                        await asyncio.sleep(0.01)
            worker.interrupt()
            await working
    assert await runs.result(started.id) == ["first", "second", "third"]
    assert paid == ["first", "second", "second", "third"]


async def test_branches_that_begin_with_maps_over_streams_are_told_to_have_names(runs: Runs, run: RunFlow) -> None:
    @task
    async def double(number: int) -> int:
        return 2 * number

    async def numbers(first: int) -> AsyncIterator[int]:
        for number in (first, first + 1):
            yield number

    async def branch(first: int, name: str = "") -> list[int]:
        await asyncio.sleep(0)
        return await double.map(numbers(first), name=name)

    @flow
    async def unnamed() -> list[list[int]]:
        return list(await asyncio.gather(branch(0), branch(10)))

    @flow
    async def named() -> list[list[int]]:
        return list(await asyncio.gather(branch(0, "low"), branch(10, "high")))

    for one, told in ((unnamed, 1), (named, 0)):
        ended = await run(one)
        assert ended.result == [[0, 2], [20, 22]]
        lines = [line.text async for line in runs.log(ended.row.id)]
        assert len([line for line in lines if "double.map(…, name=…)" in line]) == told


@pytest.mark.parametrize("parent", ["a step", "an item"])
async def test_tries_made_before_a_run_was_released_count_after_it(run: RunFlow, parent: str) -> None:
    plan = ["fail", "fail", "wait", "fail", "fail", "fail"]
    failed = 0

    @task(retry=Retry(attempts=4, backoff=0.0))
    async def fetch(what: str) -> str:
        nonlocal failed
        if plan.pop(0) == "wait":
            raise Later(1.2)
        failed += 1
        raise ConnectionError(what)

    @flow
    async def crawl() -> str:
        return await fetch("a") if parent == "a step" else (await fetch.map(["a"]))[0]

    ended = await run(crawl)
    assert (ended.status, ended.row.attempt) == (Status.FAILED, 2), "the run was released once"
    assert failed == 4
    assert "failed after 4 tries" in str(ended.error)
    failed = 0
    plan[:] = ["fail"] * 9
    ended = await run(crawl)
    assert (ended.status, failed) == (Status.FAILED, 4), "a failed run that a person resumes has all its tries again"


async def test_what_a_task_called_is_called_again_in_the_try_that_follows_a_release(run: RunFlow) -> None:
    calls: list[str] = []

    @task(retry=Retry(attempts=2, backoff=0.0))
    async def inner() -> str:
        calls.append("inner")
        raise ConnectionError("away")

    @task(retry=Retry(attempts=3, backoff=0.0))
    async def outer() -> str:
        calls.append("outer")
        if calls.count("outer") == 2:
            raise Later(1.2)
        return await inner()

    @flow
    async def crawl() -> str:
        return await outer()

    ended = await run(crawl)
    assert (ended.status, ended.row.attempt) == (Status.FAILED, 2)
    assert calls == ["outer", "inner", "inner", "outer", *["outer", "inner", "inner"] * 2]
