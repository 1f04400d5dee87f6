"""A call that async code does not await fails what made it: nothing is lost in silence."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tsuzuki import Runs, Status, current, flow, task
from tsuzuki.errors import NotAwaited
from tsuzuki.flow import Flow
from tsuzuki.script import EndedRun, run_here
from tsuzuki.testing import MemoryBackend

RunFlow = Callable[[Flow[..., Any]], Awaitable[EndedRun[Any]]]
called: list[str] = []


@pytest.fixture
def runs() -> Runs:
    called.clear()
    return Runs(MemoryBackend())


@pytest.fixture
def run(runs: Runs) -> RunFlow:
    async def run(flow: Flow[..., Any]) -> EndedRun[Any]:
        return await run_here(runs, flow, {}, signals=False)

    return run


@task
async def fetch(url: str) -> int:
    called.append(url)
    return len(url)


@task
def parse(page: str) -> int:
    called.append(page)
    return len(page)


async def failed(run: RunFlow, tried: Any) -> str:
    ended = await run(tried)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    return f"{ended.error.type}: {ended.error.message}"


@pytest.mark.parametrize("kind", ["async", "sync", "keyed", "map", "flow", "artifact"])
async def test_a_call_that_is_not_awaited_fails_the_run_and_names_the_task(run: RunFlow, kind: str) -> None:
    @flow
    async def inner() -> int:
        return await fetch("a")

    @flow
    async def forgetful() -> int:
        match kind:
            case "async":
                fetch("a")  # type: ignore[unused-coroutine] # the mistake
            case "sync":
                parse("a")
            case "keyed":
                fetch.keyed("k")("a")  # type: ignore[unused-coroutine] # the mistake
            case "map":
                fetch.map(["a"])  # type: ignore[unused-coroutine] # the mistake
            case "flow":
                inner()  # type: ignore[unused-coroutine] # the mistake
            case "artifact":
                current().artifacts.save("a.txt", "a")
        return await fetch("other")

    name = {"sync": "parse", "map": "fetch.map", "flow": "inner", "artifact": "artifacts.save"}.get(kind, "fetch")
    told = f"{name}(…) was called but not awaited, and did nothing. Write `await {name}(…)`."
    assert await failed(run, forgetful) == f"NotAwaited: {told}"
    assert called == ["other"]


async def test_a_result_that_was_not_awaited_is_named_where_it_is_used(run: RunFlow) -> None:
    @flow
    async def adding() -> int:
        return parse("a") + 1

    @flow
    async def looking() -> int:
        return fetch("a").real  # type: ignore[attr-defined, no-any-return] # the mistake

    @flow
    async def returning() -> Any:
        return [fetch("a")]

    for tried, name in ((adding, "parse"), (looking, "fetch"), (returning, "fetch")):
        told = await failed(run, tried)
        assert told.startswith(f"NotAwaited: {name}(…) was called but not awaited, and")
        assert told.endswith(f"Write `await {name}(…)`.")
    assert "(TypeError: unsupported operand type(s) for +: 'coroutine' and 'int')" in await failed(run, adding)


async def test_a_task_and_an_item_fail_for_what_they_did_not_await_and_are_not_tried_again(run: RunFlow) -> None:
    tries: list[str] = []

    @task(retry=3)
    async def outer(url: str) -> int:
        tries.append(url)
        fetch(url)  # type: ignore[unused-coroutine] # the mistake
        return 1

    @flow
    async def in_a_task() -> int:
        return await outer("a")

    @flow
    async def in_an_item() -> list[str]:
        return [failure.error_type for failure in (await outer.map(["b"], on_error="collect")).failed]

    assert "outer failed: NotAwaited: fetch(…) was called but not awaited" in await failed(run, in_a_task)
    assert (await run(in_an_item)).result == ["NotAwaited"]
    assert tries == ["a", "b"]
    assert called == []


async def test_calls_may_be_kept_and_awaited_in_any_way_asyncio_knows(run: RunFlow) -> None:
    @flow
    async def patient() -> list[int]:
        kept = [fetch("a"), parse.step("bb")]
        gathered = await asyncio.gather(*kept)
        [mapped] = await asyncio.gather(fetch.map(["ccc"]))
        made = asyncio.create_task(fetch("dddd"))
        async with asyncio.TaskGroup() as group:
            grouped = group.create_task(parse.step("eeeee"))
        waited = await asyncio.wait_for(fetch("ffffff"), 60)
        first, *_ = await asyncio.wait([asyncio.ensure_future(fetch("ggggggg"))])
        shielded = await asyncio.shield(fetch("hhhhhhhh"))
        done = [task.result() for task in first]
        return [*gathered, *mapped, await made, grouped.result(), waited, *done, shielded]

    assert (await run(patient)).result == list(range(1, 9))


async def test_a_task_that_never_starts_before_the_flow_ends_fails_the_run_and_is_cancelled(run: RunFlow) -> None:
    started: list[asyncio.Task[int]] = []

    @flow
    async def hasty() -> int:
        started.append(asyncio.create_task(fetch("a")))
        return 1

    assert "fetch(…) was called but not awaited" in await failed(run, hasty)
    await asyncio.wait(started)
    assert started[0].cancelled()
    assert called == []


async def test_a_call_that_the_flow_gives_up_on_purpose_is_no_mistake(run: RunFlow) -> None:
    @flow
    async def choosy() -> str:
        fetch("closed").close()
        cancelled = asyncio.create_task(fetch("cancelled"))
        cancelled.cancel()
        await asyncio.wait([cancelled])
        try:
            await asyncio.wait_for(parse.step("too late"), 0)
        except TimeoutError:
            return "given up"
        return "in time"

    assert (await run(choosy)).result == "given up"
    assert called == []


async def test_a_call_cannot_be_awaited_twice(run: RunFlow) -> None:
    @flow
    async def twice() -> int:
        call = fetch("a")
        return await call + await call

    assert "cannot reuse already awaited coroutine" in await failed(run, twice)
    assert called == ["a"]


async def test_an_error_of_the_flow_itself_wins(run: RunFlow) -> None:
    @flow
    async def failing() -> int:
        fetch("a")  # type: ignore[unused-coroutine] # the mistake
        raise KeyError("mine")

    assert await failed(run, failing) == "KeyError: 'mine'"


async def test_a_cancelled_run_stays_cancelled_whatever_was_not_awaited(runs: Runs, run: RunFlow) -> None:
    @flow
    async def cancelled() -> int:
        fetch("a")  # type: ignore[unused-coroutine] # the mistake
        await runs.cancel(current().run_id)
        await asyncio.sleep(60)
        return 1

    ended = await run(cancelled)
    assert ended.status is Status.CANCELLED
    assert called == []


def test_the_error_is_found_by_its_id() -> None:
    assert NotAwaited.error_id == "ERR-TSUZUKI-0109"
