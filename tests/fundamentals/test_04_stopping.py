"""Cancel is honest; `Later` hands a run back; what was finished is kept."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Later, Retry, Run, Runs, Status, Worker, current, flow, task
from tsuzuki.facts import RunCancelled
from tsuzuki.flow import Flow
from tsuzuki.lifecycle import RunUpdateResult
from tsuzuki.testing import FakeClock, run_flow
from tsuzuki.testing.stopwatch import Stopwatch


@asynccontextmanager
async def working(runs: Runs, *flows: Flow[..., Any], grace: float = 5.0) -> AsyncIterator[Worker]:
    async with Worker(runs.backend, flows, grace=grace) as worker:
        loop = asyncio.create_task(worker.run())
        yield worker
        worker.stop()
        await loop


async def ending(runs: Runs, row: Run) -> RunCancelled:
    [fact] = [e.fact async for e in runs.journal(row.id) if isinstance(e.fact, RunCancelled)]
    return fact


async def test_an_async_task_is_cancelled_within_a_second(runs: Runs) -> None:
    started = asyncio.Event()
    cleaned = []

    @task
    async def slow(x: int) -> int:
        if x < 2:
            return x
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(x)
        return x

    @flow
    async def waiting() -> int:
        return len(await slow.map(range(10), concurrency=3))

    async with working(runs, waiting):
        row = await runs.submit(waiting)
        await started.wait()
        with Stopwatch() as since:
            answer, asked = await runs.cancel(row.id, reason="enough", by="ann")
            assert (answer, asked.status, asked.cancel_reason) == (RunUpdateResult.UPDATED, Status.CANCELLING, "enough")
            row = await runs.wait(row.id)
            assert since.fair < 1.5
    assert (row.status, row.done, row.error) == (Status.CANCELLED, 2, None)
    counts = await ending(runs, row)
    assert counts.finished_anyway == 0
    assert counts.interrupted == len(cleaned) > 0
    assert counts.never_started == 10 - 2 - len(cleaned)


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_waits_for_its_next_try_or_for_its_turn_is_counted_too(runs: Runs, is_async: bool) -> None:
    """Every item is counted once: done, never started, or interrupted."""
    tried: set[int] = set()
    go = threading.Event()

    @task(retry=Retry(attempts=5, backoff=60.0))
    async def shaky(x: int) -> int:
        if x % 2 == 0:
            tried.add(x)
            raise OSError("not now")
        return x

    @task(retry=Retry(attempts=5, backoff=60.0))
    def shaky_and_slow(x: int) -> int:
        tried.add(x)
        go.wait()
        raise OSError("not now")

    @task(concurrency=1)
    async def one_by_one(x: int) -> None:
        tried.add(x)
        await asyncio.sleep(60)

    @flow
    async def waiting() -> None:
        first = shaky if is_async else shaky_and_slow
        await asyncio.gather(first.map(range(6), concurrency=4), one_by_one.map(range(100, 110), concurrency=4))

    async with working(runs, waiting):
        row = await runs.submit(waiting)
        while len(tried) < 4:
            await asyncio.sleep(0.01)
        await runs.cancel(row.id)
        while (await runs.get(row.id)).status is Status.RUNNING:
            await asyncio.sleep(0.01)
        go.set()
        row = await runs.wait(row.id)
    cut = await ending(runs, row)
    assert row.done + cut.never_started + cut.interrupted == 16
    assert cut.interrupted == len(tried)


async def test_a_cancelled_run_keeps_its_finished_items_and_can_go_on(runs: Runs, run: RunFlow) -> None:
    calls: list[int] = []
    reached = asyncio.Event()
    stop = True

    @task
    async def item(x: int) -> int:
        calls.append(x)
        if x == 5 and stop:
            reached.set()
            await asyncio.sleep(60)
        return x

    @flow
    async def mapping() -> int:
        return sum(await item.map(range(10), concurrency=1))

    going = asyncio.ensure_future(run(mapping))
    await reached.wait()
    [row] = await runs.list()
    await runs.cancel(row.number)
    assert (await going).status is Status.CANCELLED
    stop = False
    assert (await run(mapping)).result == 45
    assert calls == [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9]


async def test_a_sync_task_sees_the_request_and_its_result_is_recorded(runs: Runs) -> None:
    started, calls = threading.Event(), []

    @task
    def patient(x: int) -> str:
        calls.append(x)
        started.set()
        while not current().cancelled:
            threading.Event().wait(0.005)
        return "stopped in order"

    @flow
    def waiting() -> int:
        return len(patient.map(range(5), concurrency=2))

    async with working(runs, waiting):
        row = await runs.submit(waiting)
        await asyncio.to_thread(started.wait)
        await runs.cancel(row.id)
        row = await runs.wait(row.id)
    counts = await ending(runs, row)
    assert (row.status, row.done) == (Status.CANCELLED, len(calls))
    assert counts.finished_anyway == len(calls)
    assert counts.never_started == 5 - len(calls)


async def test_a_sync_task_that_never_returns_is_given_up_after_the_grace_period(runs: Runs) -> None:
    started, release = threading.Event(), threading.Event()

    @task
    def stuck() -> int:
        started.set()
        release.wait()
        return 1

    @flow
    def waiting() -> int:
        return stuck()

    async with working(runs, waiting, grace=0.2):
        row = await runs.submit(waiting)
        await asyncio.to_thread(started.wait)
        await runs.cancel(row.id)
        row = await runs.wait(row.id)
        release.set()
    assert row.status is Status.CANCELLED
    assert (await ending(runs, row)).interrupted == 1
    lines = [line.text async for line in runs.log(row.id)]
    assert "stuck still runs, 0.2 s after it was to stop" in lines[0]
    assert not [line for line in lines if line.startswith("waiting")], "the flow only waited for it"


async def test_work_that_completed_wins_over_a_late_cancel(runs: Runs) -> None:
    started = asyncio.Event()

    @flow
    async def stubborn() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done anyway"
        return "never"

    async with working(runs, stubborn):
        row = await runs.submit(stubborn)
        await started.wait()
        await runs.cancel(row.id)
        row = await runs.wait(row.id)
    assert row.status is Status.COMPLETED
    assert await runs.result(row.id) == "done anyway"
    assert (await runs.cancel(row.id))[0] is RunUpdateResult.ALREADY_TERMINAL


async def test_a_run_that_nobody_executes_is_cancelled_at_once(runs: Runs) -> None:
    row = await runs.submit("somewhere_else", {"x": 1})
    answer, row = await runs.cancel(row.id)
    assert (answer, row.status) == (RunUpdateResult.UPDATED, Status.CANCELLED)


async def test_later_waits_without_counting_as_a_try() -> None:
    clock = FakeClock(autoadvance=True)
    calls: list[float] = []

    @task
    async def busy(x: int) -> int:
        calls.append(clock.now())
        if len(calls) < 4:
            raise Later(3600)
        return x

    @flow
    async def patient() -> int:
        return await busy(1)

    run = await run_flow(patient, clock=clock)
    assert (run.status, run.result, len(calls)) == (Status.COMPLETED, 1, 4)
    assert calls[-1] - calls[0] >= 3 * 3600
    assert [type(fact).__name__ for fact in run.facts].count("Released") == 3


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_later_in_a_task_that_another_task_called_releases_the_run(runs: Runs, kind: str) -> None:
    @task
    async def look(level: int) -> int:
        raise Later(3600, f"level {level} is not ready yet")

    @task
    async def descend(level: int) -> int:
        if level == 0:
            return await look(0)
        return sum(await descend.map([level - 1])) if level % 2 else await descend(level - 1)

    @task
    def look_sync(level: int) -> int:
        raise Later(3600, f"level {level} is not ready yet")

    @task
    def descend_sync(level: int) -> int:
        if level == 0:
            return look_sync(0)
        return sum(descend_sync.map([level - 1])) if level % 2 else descend_sync(level - 1)

    @flow
    async def nested() -> int:
        return await descend(2)

    @flow
    def nested_sync() -> int:
        return descend_sync(2)

    chosen: Flow[..., Any] = nested if kind == "async" else nested_sync
    async with working(runs, chosen):
        row = await runs.submit(chosen)
        async with asyncio.timeout(30):
            while (row := await runs.get(row.id)).status is not Status.PENDING or not row.not_before:
                await asyncio.sleep(0.02)
        assert row.holder is None
        await runs.cancel(row.id)


async def test_a_run_that_waits_says_why_and_is_woken_by_a_resume(runs: Runs) -> None:
    ready, failed = False, 0

    @task(retry=Retry(attempts=3, backoff=0.0))
    async def look() -> str:
        nonlocal failed
        if ready:
            failed += 1
            raise ConnectionError("away")
        if failed < 1:
            failed += 1
            raise ConnectionError("away")
        raise Later(3600, "no answer to token=ghp_abcdefghijklmnopqrstuvwxyz0123456789 yet")

    @flow
    async def patient() -> str:
        return await look()

    async with working(runs, patient):
        row = await runs.submit(patient)
        async with asyncio.timeout(30):
            while not (row := await runs.backend.get(row.id) or row).waiting_reason:
                await asyncio.sleep(0.02)
        assert row.waiting_reason.startswith("no answer to ")
        assert "ghp_" not in row.waiting_reason
        assert 3500 < row.wait <= 3600
        ready = True
        await runs.resume(row.id)
        assert (await asyncio.wait_for(runs.wait(row.id), 30)).status is Status.FAILED
    assert failed == 3, "it was woken, not given all tries again"


async def test_later_in_a_nested_task_waits_in_place_while_another_branch_works() -> None:
    clock = FakeClock(autoadvance=True)
    working, asked = asyncio.Event(), 0

    @task
    async def look() -> int:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise Later(2)
        working.set()
        return 1

    @task
    async def outer() -> int:
        return await look()

    @task
    async def work() -> int:
        await working.wait()
        return 2

    @flow
    async def both() -> int:
        return sum(await asyncio.gather(outer(), work()))

    run = await run_flow(both, clock=clock)
    assert (run.status, run.result, asked) == (Status.COMPLETED, 3, 3)
    assert "Released" not in [type(fact).__name__ for fact in run.facts]


async def test_a_call_that_waits_a_moment_for_its_next_try_is_not_put_off_by_a_long_later() -> None:
    tries, tried = 0, asyncio.Event()

    @task
    async def look() -> int:
        if tries < 2:
            raise Later(3600)
        return 1

    @task(retry=Retry(attempts=2, backoff=0.9, jitter=0.0))
    async def shaky() -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ConnectionError("away")
        tried.set()
        return 2

    @flow
    async def both() -> int:
        return sum(await asyncio.gather(look(), shaky()))

    running = asyncio.create_task(run_flow(both))
    try:
        await asyncio.wait_for(tried.wait(), 10)  # and not after an hour
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_later_lets_the_other_items_go_on() -> None:
    clock = FakeClock(autoadvance=True)
    done: list[int] = []

    @task
    async def item(x: int) -> int:
        if x == 0 and len(done) < 9:
            raise Later(60)
        done.append(x)
        return x

    @flow
    async def mapping() -> int:
        return sum(await item.map(range(10), concurrency=2))

    run = await run_flow(mapping, clock=clock)
    assert run.result == 45
    assert done[-1] == 0
    assert sorted(done) == list(range(10))


async def test_a_flow_may_say_later_itself() -> None:
    clock = FakeClock(autoadvance=True)
    tries: list[float] = []

    @flow
    async def patient() -> int:
        tries.append(clock.now())
        if len(tries) < 3:
            raise Later(100)
        return len(tries)

    run = await run_flow(patient, clock=clock)
    assert (run.result, run.row.attempt) == (3, 3)
    assert tries[2] - tries[0] >= 200


async def test_every_call_that_swallows_its_cancellation_counts_as_interrupted(runs: Runs) -> None:
    started: set[int] = set()
    over = asyncio.Event()

    @task
    async def heedless(x: int) -> int:
        started.add(x)
        while not over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await over.wait()
        return x

    @flow
    async def waiting() -> int:
        return len(await heedless.map(range(5), concurrency=8))

    async with working(runs, waiting, grace=0.2):
        row = await runs.submit(waiting)
        while len(started) < 5:
            await asyncio.sleep(0.01)
        await runs.cancel(row.id)
        row = await runs.wait(row.id)
        over.set()
    assert row.status is Status.CANCELLED
    cut = await ending(runs, row)
    assert (cut.never_started, cut.finished_anyway, cut.interrupted) == (0, 0, 5)


@pytest.mark.parametrize("how", ["call", "map", "stream"])
async def test_a_flow_that_swallows_every_refusal_is_given_up_after_the_grace_period(runs: Runs, how: str) -> None:
    started = asyncio.Event()
    over = False

    @task
    async def small(x: int) -> int:
        started.set()
        return x

    async def asked(x: int) -> None:
        if how == "call":
            await small(x)
        elif how == "map":
            await small.map([x])
        else:
            async for _ in small.stream([x]):
                pass

    @flow
    async def heedless() -> None:
        for x in range(100_000):  # no end, but for a loop that never turns
            with contextlib.suppress(asyncio.CancelledError):
                await asked(x)
            if over:
                return

    async with working(runs, heedless, grace=0.2):
        row = await runs.submit(heedless)
        await started.wait()
        await runs.cancel(row.id)
        row = await runs.wait(row.id)
        over = True
    assert row.status is Status.CANCELLED
    assert (await ending(runs, row)).interrupted == 1


async def test_a_worker_that_stops_hands_its_runs_back(runs: Runs) -> None:
    started = asyncio.Event()
    hold = True

    @task
    async def slow() -> int:
        started.set()
        if hold:
            await asyncio.sleep(60)
        return 7

    @flow
    async def waiting() -> int:
        return await slow()

    async with working(runs, waiting, grace=0.1):
        row = await runs.submit(waiting)
        await started.wait()
    row = await runs.get(row.id)
    assert (row.status, row.holder, row.attempt) == (Status.PENDING, None, 2)
    hold = False
    async with working(runs, waiting):
        row = await runs.wait(row.id)
    assert await runs.result(row.id) == 7


@pytest.mark.parametrize(
    "seconds",
    [-1, float("nan"), float("inf"), "x", "5", b"5", True, None, 1e300, 10**400, pytest.param(10**5000, id="huge")],
)
def test_later_needs_a_time_that_comes(seconds: Any) -> None:
    with pytest.raises(ValueError, match="Later needs a number of seconds"):
        Later(seconds)
