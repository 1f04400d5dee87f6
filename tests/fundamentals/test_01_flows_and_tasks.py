"""Flows call tasks; each call is a step whose result is recorded once."""

import asyncio
import threading
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Runs, Status, current, flow, task
from tsuzuki.errors import BadParams


async def test_a_flow_returns_what_its_function_returns(run: RunFlow) -> None:
    @task
    async def double(x: int) -> int:
        return 2 * x

    @flow
    async def arithmetic(x: int) -> int:
        return await double(x) + await double(x + 1)

    ended = await run(arithmetic, x=3)
    assert (ended.status, ended.result) == (Status.COMPLETED, 14)


async def test_plain_functions_work_as_well(run: RunFlow) -> None:
    threads = set()

    @task
    def double(x: int) -> int:
        threads.add(threading.current_thread())
        return 2 * x

    @task
    async def triple(x: int) -> int:
        return 3 * x

    @flow
    def arithmetic(x: int) -> Any:
        return double(x) + triple(x)  # type: ignore[operator] # a sync flow blocks on async tasks too

    assert (await run(arithmetic, x=3)).result == 15
    assert threading.main_thread() not in threads


async def test_an_async_flow_awaits_sync_tasks_too(run: RunFlow) -> None:
    @task
    def double(x: int) -> int:
        return 2 * x

    @flow
    async def arithmetic(x: int) -> Any:
        return await double(x)  # type: ignore[misc] # typed as what it returns outside async code

    assert (await run(arithmetic, x=3)).result == 6


async def test_outside_a_run_a_task_is_its_function() -> None:
    @task
    def double(x: int) -> int:
        return 2 * x

    @flow
    async def arithmetic(xs: list[int]) -> Any:
        return [await double(1), *(await double.map(xs))]  # type: ignore[misc] # see above

    @flow
    def plainly(x: int) -> int:
        current().log.info("nobody listens")
        return double(x) + int(sum(double.map([1, 2])))

    assert await arithmetic([2, 3]) == [2, 4, 6]
    assert plainly(1) == 8
    assert await asyncio.to_thread(double, 4) == 8


async def test_params_are_checked_before_a_run_is_accepted(runs: Runs, run: RunFlow) -> None:
    @flow
    async def crawl(site: str, depth: int = 2) -> int:
        return depth

    with pytest.raises(BadParams, match="depth") as refused:
        await run(crawl, site="a", depth="deep")
    assert refused.value.problems[0]["loc"] == ["depth"]
    with pytest.raises(BadParams, match="colour"):
        await run(crawl, site="a", colour="red")
    assert await runs.list() == []
    assert (await run(crawl, site="a", depth="3")).result == 3


async def test_steps_inside_steps_are_recorded(run: RunFlow) -> None:
    calls: list[str] = []
    broken = True

    @task
    def inner(x: int) -> int:
        calls.append(f"inner {x}")
        return x + 1

    @task
    def outer(x: int) -> int:
        value = inner(x) + inner(x + 1)
        calls.append("outer")
        if broken:
            raise RuntimeError("not yet")
        return value

    @flow
    def nested() -> int:
        return outer(1)

    assert (await run(nested)).status is Status.FAILED
    broken = False
    assert (await run(nested)).result == 5
    assert calls == ["inner 1", "inner 2", "outer", "outer"]


async def test_two_tasks_of_one_name_are_refused(run: RunFlow) -> None:
    def make(value: int) -> Any:
        @task(name="same")
        async def same() -> int:
            return value

        return same

    one, other = make(1), make(2)

    @flow
    async def confused() -> int:
        return int(await one()) + int(await other())

    ended = await run(confused)
    assert ended.error is not None
    assert "two tasks of this run are called 'same'" in ended.error.message


async def test_artifacts_are_kept_beside_the_result(runs: Runs, run: RunFlow) -> None:
    @task
    async def report() -> int:
        await current().artifacts.save("report.txt", "all is well")
        return 1

    @flow
    async def reporting() -> int:
        return await report()

    ended = await run(reporting)
    [done] = [e.fact async for e in runs.journal(ended.id) if type(e.fact).__name__ == "StepDone"]
    [artifact] = done.artifacts  # type: ignore[union-attr] # it is a StepDone
    assert artifact.name == "report.txt"
    assert await runs.backend.get_blob(ended.id, artifact.blob) == b"all is well"


@pytest.mark.parametrize("where", ["flow", "async task", "sync task"])
async def test_what_a_cancellation_from_inside_says_is_kept(run: RunFlow, where: str) -> None:
    @task
    async def leave() -> None:
        raise asyncio.CancelledError("the quota is used up")

    @task
    def leave_a_thread() -> None:
        raise asyncio.CancelledError("the quota is used up")

    @flow
    async def leaving() -> None:
        if where == "async task":
            await leave()
        if where == "sync task":
            await leave_a_thread()  # type: ignore[misc] # typed as what it returns outside async code
        raise asyncio.CancelledError("the quota is used up")

    ended = await run(leaving)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert "ancelled" in ended.error.message
    assert "the quota is used up" in ended.error.message


async def test_steps_inside_steps_may_go_deep(run: RunFlow) -> None:
    broken = True
    calls = 0

    @task
    async def down(depth: int) -> int:
        nonlocal calls
        calls += 1
        return 0 if depth == 0 else 1 + await down(depth - 1)

    @flow
    async def deep() -> int:
        found = await down(400)
        if broken:
            raise ValueError("not yet")
        return found

    assert (await run(deep)).status is Status.FAILED
    broken = False
    assert (await run(deep)).result == 400
    assert calls == 401


class Collector:
    """Somebody puts tasks into classes, too."""

    @task
    def method(self, number: int) -> int:
        return number

    @staticmethod
    @task
    def apart(number: int) -> int:
        return number


async def test_a_method_as_a_task_is_refused_in_words(run: RunFlow) -> None:
    @flow
    def collecting(method: bool) -> int:
        return Collector().method(1) if method else Collector().apart(2)  # type: ignore[arg-type,call-arg] # its fault

    assert (await run(collecting, method=False)).result == 2
    error = (await run(collecting, method=True)).error
    assert error is not None
    assert "task method is a method of Collector, which no task can be" in error.message
