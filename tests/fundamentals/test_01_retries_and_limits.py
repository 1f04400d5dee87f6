"""What a task says of its calls: how often they are tried, how long they may take, how many at once."""

import asyncio
import threading
import time

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import GiveUp, Retry, Runs, Status, flow, task
from tsuzuki.errors import BadUsage, StepFailure


async def test_retries_are_made_and_counted(run: RunFlow) -> None:
    tries = []

    @task(retry=Retry(attempts=3, backoff=0.001))
    async def flaky() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("try again")
        return len(tries)

    @flow
    async def patient() -> int:
        return await flaky()

    assert (await run(patient)).result == 3


async def test_only_the_chosen_exceptions_are_retried(run: RunFlow) -> None:
    tries = []

    @task(retry=Retry(attempts=5, backoff=0.001, on=(ConnectionError,)))
    async def flaky() -> int:
        tries.append(1)
        raise ValueError("no use")

    @flow
    async def impatient() -> int:
        return await flaky()

    ended = await run(impatient)
    assert (ended.status, len(tries)) == (Status.FAILED, 1)


async def test_give_up_ends_the_retries_at_once(run: RunFlow) -> None:
    tries = []

    @task(retry=Retry(attempts=5, backoff=0.001))
    async def hopeless() -> int:
        tries.append(1)
        raise GiveUp("the page is gone")

    @flow
    async def impatient() -> int:
        return await hopeless()

    ended = await run(impatient)
    assert len(tries) == 1
    assert ended.error is not None
    assert "the page is gone" in ended.error.message


async def test_a_failure_looks_the_same_the_first_time_and_on_replay(run: RunFlow) -> None:
    seen: list[str] = []
    first = True

    @task
    async def fail() -> int:
        raise ZeroDivisionError("oh")

    @flow
    async def careful() -> int:
        try:
            await fail()
        except StepFailure as failure:
            seen.append(f"{failure} {failure.error_type} {failure.tries}")
        if first:
            raise RuntimeError("crash")
        return 1

    assert (await run(careful)).status is Status.FAILED
    first = False
    assert (await run(careful)).status is Status.COMPLETED
    assert seen[0] == seen[1] == "fail failed: ZeroDivisionError: oh ZeroDivisionError 1"


async def test_a_timeout_interrupts_an_async_task(run: RunFlow) -> None:
    @task(timeout=0.05, retry=Retry(attempts=2, backoff=0.001))
    async def slow() -> int:
        await asyncio.sleep(60)
        return 1

    @flow
    async def impatient() -> int:
        return await slow()

    ended = await run(impatient)
    assert ended.error is not None
    assert "slow failed after 2 tries: TimeoutError: timed out after 0.05 s" in ended.error.message


async def test_a_rate_spaces_the_calls(run: RunFlow) -> None:
    times = []

    @task(rate="50/s")
    async def ask(x: int) -> float:
        times.append(asyncio.get_running_loop().time())
        return times[-1]

    @flow
    async def asking() -> int:
        return len(await ask.map(range(5), concurrency=5))

    assert (await run(asking)).result == 5
    assert times[-1] - times[0] >= 0.075


async def test_a_concurrency_limit_holds_across_maps(run: RunFlow) -> None:
    now = most = 0

    @task(concurrency=2)
    async def ask(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return x

    @flow
    async def asking() -> int:
        both = await asyncio.gather(ask.map(range(10)), ask.map(range(10, 20)))
        return sum(len(part) for part in both)

    assert (await run(asking)).result == 20
    assert most == 2


async def test_a_shared_limit_holds_for_the_whole_backend(run: RunFlow) -> None:
    now = most = 0

    @task(limit="gitlab", concurrency=2, rate="500/s")
    async def ask(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return x

    @flow
    async def asking(start: int) -> int:
        return len(await ask.map(range(start, start + 6)))

    both = await asyncio.gather(run(asking, start=0), run(asking, start=10))
    assert [ended.result for ended in both] == [6, 6]
    assert most <= 2


@pytest.mark.parametrize("rate", ["", "fast", "0/s", "-1/s", "3/week"])
def test_a_rate_that_makes_no_sense_is_refused(rate: str) -> None:
    with pytest.raises(BadUsage, match="rate"):
        task(rate=rate)(lambda: 1)


async def test_a_sync_call_that_timed_out_keeps_its_place_until_it_really_ends(runs: Runs, run: RunFlow) -> None:
    release = threading.Event()
    inside: list[int] = []

    @task(concurrency=1, timeout=0.5)
    def stuck(x: int) -> int:
        inside.append(x)
        if x == 0:
            release.wait()
        return x

    @flow
    async def waiting() -> int:
        pages = await stuck.map(range(2), concurrency=2, on_error="collect")
        return len(pages.failed)

    going = asyncio.ensure_future(run(waiting))
    while not (rows := await runs.list()) or rows[0].failed == 0:
        await asyncio.sleep(0.01)
    assert inside == [0], "the first call has timed out, and its thread still runs"
    release.set()
    assert (await going).result == 1
    assert inside == [0, 1]


async def test_what_an_async_task_returns_after_its_time_is_refused(run: RunFlow) -> None:
    @task(timeout=0.05)
    async def deaf() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return 1

    @flow
    async def waiting() -> int:
        return await deaf()

    error = (await run(waiting)).error
    assert error is not None
    assert "it returned later all the same, which is refused" in error.message


async def test_an_async_task_that_blocks_the_loop_past_its_time_has_timed_out(run: RunFlow) -> None:
    @task(timeout=0.02)
    async def blocking() -> int:
        time.sleep(0.05)
        return 1

    @flow
    async def waiting() -> int:
        return await blocking()

    error = (await run(waiting)).error
    assert error is not None
    assert "timed out after 0.02 s" in error.message
    assert "it blocks the event loop" in error.message


async def test_a_shared_place_is_handed_on_and_never_taken_twice(runs: Runs, run: RunFlow) -> None:
    now = most = 0

    @task(limit="one", concurrency=1)
    async def alone(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return x

    @flow
    async def queueing(start: int) -> int:
        return len(await alone.map(range(start, start + 20), concurrency=10))

    both = await asyncio.gather(run(queueing, start=0), run(queueing, start=100))
    assert [ended.result for ended in both] == [20, 20]
    assert most == 1
    assert await runs.backend.enter("one", places=1, worker="somebody else")
