"""The first Ctrl-C begins nothing more, and lets what is under way end: it is recorded, and not done again."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from tsuzuki import Retry, Run, Runs, Status, Worker, current, flow, task
from tsuzuki.context import FRAME
from tsuzuki.flow import Flow
from tsuzuki.testing.stopwatch import Stopwatch

LONG = 60.0


async def interrupted(
    runs: Runs, what: Flow[..., Any], reached: Callable[[], Awaitable[object]], let_go: Callable[[], object], **how: Any
) -> Run:
    """Interrupts a run when it is reached, and lets go of what is under way; gives the run as it was left."""
    async with Worker(runs.backend, [what], grace=how.get("grace", LONG)) as worker:
        row = await runs.submit(what, private=True)
        work = asyncio.create_task(worker.carry_out(row.id))
        async with asyncio.timeout(LONG):
            await reached()
            worker.interrupt(at_once=False)
            await asyncio.sleep(0.3)  # nothing may begin, which cannot be waited for
            let_go()
            return await work


async def gone_on(runs: Runs, what: Flow[..., Any], row: Run) -> Run:
    async with Worker(runs.backend, [what]) as worker, asyncio.timeout(LONG):
        return await worker.carry_out(row.id)


async def test_items_under_way_end_and_no_other_begins(runs: Runs) -> None:
    calls, held, gate = list[int](), asyncio.Event(), asyncio.Event()

    @task
    async def step(x: int) -> int:
        calls.append(x)
        if x >= 4:
            if len(calls) == 7:
                held.set()
            await gate.wait()
        return x

    @flow
    async def mapping() -> list[int]:
        return await step.map(range(20), concurrency=3)

    left = await interrupted(runs, mapping, held.wait, gate.set)
    assert (left.status, left.done, sorted(calls)) == (Status.PENDING, 7, list(range(7)))
    assert (await gone_on(runs, mapping, left)).status is Status.COMPLETED
    assert sorted(calls) == list(range(20)), "none was done twice"


async def test_an_item_may_make_the_calls_that_it_needs_to_end_and_a_map_inside_begins_no_further_item(
    runs: Runs,
) -> None:
    calls, held, gate = list[str](), asyncio.Event(), asyncio.Event()

    @task
    async def last(x: int) -> int:
        calls.append(f"last {x}")
        return x

    @task
    async def piece(x: int) -> int:
        calls.append(f"piece {x}")
        held.set()
        await gate.wait()
        return x

    @task
    async def pieces() -> int:
        return sum(await piece.map(range(9), concurrency=2))

    @task
    async def step(x: int) -> int:
        await gate.wait()
        return await last.step(x)

    @flow
    async def mapping() -> int:
        found = await asyncio.gather(pieces.step(), step.map([1, 2], concurrency=2))
        return found[0] + sum(found[1])

    with Stopwatch() as since:
        left = await interrupted(runs, mapping, held.wait, gate.set)
        assert since.fair < LONG / 2, "it is known that nothing is under way any more"
    assert left.status is Status.PENDING
    assert sorted(calls) == ["last 1", "last 2", "piece 0", "piece 1"]
    assert (await gone_on(runs, mapping, left)).status is Status.COMPLETED
    assert sorted(calls) == ["last 1", "last 2", *(f"piece {x}" for x in range(9))]


async def test_a_sync_flow_ends_what_it_has_begun(runs: Runs) -> None:
    calls, held, gate = list[int](), threading.Event(), threading.Event()

    @task
    def step(x: int) -> int:
        calls.append(x)
        held.set()
        gate.wait(LONG)
        return x

    @flow
    def three() -> int:
        return step(1) + step(2) + step(3)

    left = await interrupted(runs, three, lambda: asyncio.to_thread(held.wait), gate.set)
    assert (left.status, left.steps, calls) == (Status.PENDING, 1, [1])
    assert (await gone_on(runs, three, left)).status is Status.COMPLETED
    assert calls == [1, 2, 3]


async def test_a_run_whose_last_call_ends_meanwhile_is_completed(runs: Runs) -> None:
    held, gate = asyncio.Event(), asyncio.Event()

    @task
    async def step(x: int) -> int:
        held.set()
        await gate.wait()
        return x

    @flow
    async def mapping() -> list[int]:
        return await step.map([0])

    assert (await interrupted(runs, mapping, held.wait, gate.set)).status is Status.COMPLETED


async def test_what_does_not_end_is_cut_off_after_the_grace_period_and_done_again(runs: Runs) -> None:
    calls, held = list[int](), asyncio.Event()

    @task
    async def step(x: int) -> int:
        calls.append(x)
        if len(calls) == 2:
            held.set()
            await asyncio.Event().wait()
        return x

    @flow
    async def mapping() -> list[int]:
        return await step.map(range(3), concurrency=1)

    left = await interrupted(runs, mapping, held.wait, lambda: None, grace=0.2)
    assert (left.status, left.done) == (Status.PENDING, 1)
    assert (await gone_on(runs, mapping, left)).status is Status.COMPLETED
    assert calls == [0, 1, 1, 2]


async def test_who_looks_whether_it_is_to_stop_is_told_at_once(runs: Runs) -> None:
    held = threading.Event()

    @task
    def step(x: int) -> int:
        if current().attempt > 1:
            return x
        held.set()
        while not current().cancelled:
            threading.Event().wait(0.01)
        raise asyncio.CancelledError

    @flow
    async def mapping() -> list[int]:
        return [await step.step(0), *await step.map([1, 2])]

    left = await interrupted(runs, mapping, lambda: asyncio.to_thread(held.wait), lambda: None)
    assert (left.status, left.error) == (Status.PENDING, None)
    assert (await gone_on(runs, mapping, left)).status is Status.COMPLETED


async def test_no_further_try_is_made(runs: Runs) -> None:
    calls, held = list[int](), asyncio.Event()

    @task(retry=Retry(attempts=5, backoff=0.1))
    async def step(x: int) -> int:
        calls.append(x)
        held.set()
        if current().attempt == 1:
            raise ConnectionError("not now")
        return x

    @flow
    async def mapping() -> list[int]:
        return await step.map([1])

    left = await interrupted(runs, mapping, held.wait, lambda: None)
    assert (left.status, left.failed, len(calls)) == (Status.PENDING, 0, 1)
    assert (await gone_on(runs, mapping, left)).status is Status.COMPLETED


async def test_a_call_that_only_waits_for_a_time_to_come_is_not_waited_for(runs: Runs) -> None:
    calls, held = list[int](), asyncio.Event()

    @task
    async def patient(x: int) -> int:
        calls.append(x)
        if current().attempt == 1:
            with FRAME.get().resting():  # as one does whom a provider has asked to come back in an hour
                held.set()
                await asyncio.Event().wait()
        return x

    @task
    async def step(x: int) -> int:
        return await patient.step(x)

    @flow
    async def mapping() -> list[int]:
        return await step.map([1, 2], concurrency=2)

    with Stopwatch() as since:
        left = await interrupted(runs, mapping, held.wait, lambda: None)
        assert since.fair < LONG / 2
    assert (left.status, left.failed) == (Status.PENDING, 0)
    assert (await gone_on(runs, mapping, left)).status is Status.COMPLETED


async def test_a_worker_that_stops_records_what_it_has_begun_and_begins_nothing_that_it_could_not(runs: Runs) -> None:
    calls = list[int]()

    @task
    async def step(x: int) -> int:
        calls.append(x)
        await asyncio.sleep(0.01)
        return x

    @flow
    async def long() -> int:
        return len(await step.map(range(100_000), concurrency=3))

    async with Worker(runs.backend, [long], grace=2.0) as worker, asyncio.timeout(LONG):
        row = await runs.submit(long)
        work = asyncio.create_task(worker.run())
        while len(calls) < 9:
            await asyncio.sleep(0.01)
        worker.stop()
        await work
    left = await runs.get(row.id)
    assert (left.status, left.done) == (Status.PENDING, len(calls)), "each call that was begun is recorded"
