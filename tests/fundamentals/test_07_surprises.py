"""What would surprise people later is said at once: changed arguments, poison, interrupts in their own code."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Retry, Runs, Status, Worker, current, flow, task
from tsuzuki.errors import RunFailure
from tsuzuki.lifecycle import MOST_CLAIMS
from tsuzuki.script import StartOptions


async def test_a_task_that_changes_its_arguments_is_told_of(runs: Runs, run: RunFlow) -> None:
    @task
    def sort(rows: list[int], *, seen: dict[str, int] | None = None) -> int:
        rows.sort()
        return len(rows)

    @task
    async def count(rows: list[int]) -> int:
        return len(sorted(rows))

    @flow
    async def changing() -> list[int]:
        rows = [3, 1, 2]
        await count(rows)
        await sort.step(rows, seen={})
        await sort.step([5, 4])
        return rows

    ended = await run(changing)
    assert ended.status is Status.COMPLETED
    [line] = [line async for line in runs.log(ended.id)]
    assert (line.level, line.name) == ("warning", "sort")
    assert "arguments of sort changed while it ran" in line.text
    assert "return what you change" in line.text


class Moody:
    """A model that can be encoded once."""

    def __init__(self) -> None:
        self.asked = 0

    def model_dump(self) -> int:
        self.asked += 1
        if self.asked > 1:
            raise RuntimeError("not again")
        return 1


async def test_an_argument_that_cannot_be_looked_at_again_fails_nothing(run: RunFlow) -> None:
    @task
    async def take(moody: Any) -> int:
        return 7

    @flow
    async def taking() -> int:
        return int(await take(Moody()))

    assert (await run(taking)).result == 7


async def test_a_poisoned_run_is_not_started_again_by_itself(runs: Runs, run: RunFlow) -> None:
    @flow
    async def harmless() -> int:
        return 7

    row = await runs.submit(harmless, private=True)
    for _ in range(MOST_CLAIMS):  # each holder dies without one outcome
        assert await runs.backend.claim("w", run_id=row.id, dead=frozenset({"w"}), alone=True)
    [] = await runs.backend.claim("w", run_id=row.id, dead=frozenset({"w"}))
    assert (await runs.get(row.id)).status is Status.FAILED
    with pytest.raises(RunFailure, match=f"(?s)run {row.number} .*PoisonRun.*tsuzuki resume {row.number}.*--fresh"):
        await run(harmless)
    fresh = await run(harmless, options=StartOptions(fresh=True))
    assert (fresh.result, fresh.number) == (7, row.number + 1)
    assert (await runs.resume(row.id)).status is Status.PENDING, "people may let it go on"


async def test_a_keyboard_interrupt_in_a_worker_fails_its_step_and_nobody_elses(runs: Runs) -> None:
    @task(retry=Retry(attempts=2, backoff=0.001))
    def rude() -> int:
        raise KeyboardInterrupt

    @flow
    def interrupted() -> int:
        return rude()

    @flow
    async def polite() -> int:
        return 7

    async with Worker(runs.backend, [interrupted, polite]) as worker:
        working = asyncio.create_task(worker.run())
        first = await runs.submit(interrupted)
        assert (await asyncio.wait_for(runs.wait(first.id), 60)).status is Status.FAILED
        second = await runs.submit(polite)
        assert (await asyncio.wait_for(runs.wait(second.id), 60)).status is Status.COMPLETED
        worker.stop()
        await working
    error = (await runs.get(first.id)).error
    assert error is not None
    assert "rude raised KeyboardInterrupt" in error.message


async def test_a_task_on_a_thread_that_knows_no_run_is_told_of_once(
    run: RunFlow, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"fetch_{uuid.uuid4().hex}"

    @task(name=name)
    def fetch(number: int) -> int:
        return number

    @flow
    def pooled() -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(fetch, range(3)))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(fetch, 1).result() == 1  # no run is under way: nobody takes it for a step
    assert caplog.messages == []
    ended = await run(pooled)
    assert (ended.result, ended.row.steps) == ([0, 1, 2], 0)
    [told] = caplog.messages
    assert f"{name} was called on a thread that belongs to no run" in told
    assert f"{name}.map(…)" in told


async def test_threads_that_take_the_run_along_make_steps(run: RunFlow) -> None:
    @task
    def fetch(number: int) -> int:
        return number

    @flow
    def pooled() -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(copy_context().run, fetch, number) for number in range(3)]
            return [call.result() for call in calls]

    @flow
    async def beside() -> list[int]:
        def some() -> list[int]:
            current().artifacts.save("some.txt", "some")
            return [fetch(5), *fetch.map([6, 7])]

        return [await asyncio.to_thread(fetch, 4), *(await asyncio.to_thread(some))]

    ended = await run(pooled)
    assert (ended.result, ended.row.steps) == ([0, 1, 2], 3)
    ended = await run(beside)
    assert (ended.result, ended.row.steps, ended.done) == ([4, 5, 6, 7], 2, 2)
