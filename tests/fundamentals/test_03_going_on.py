"""Kill it at any moment and start it again: what had finished is never done again."""

import asyncio
import random
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Runs, Status, flow, task
from tsuzuki.errors import MoveRefused
from tsuzuki.script import StartOptions, carry_on, run_here
from tsuzuki.testing import Crash, FaultyBackend


async def test_a_failed_run_goes_on_where_it_was(runs: Runs, run: RunFlow) -> None:
    calls: list[int] = []
    broken = True

    @task
    async def step(x: int) -> int:
        calls.append(x)
        if x == 3 and broken:
            raise RuntimeError("a bug")
        return x

    @flow
    async def counting() -> int:
        return sum([await step(x) for x in range(5)])

    first = await run(counting)
    assert first.status is Status.FAILED
    broken = False
    second = await run(counting)
    assert (second.id, second.row.attempt, second.result) == (first.id, 2, 10)
    assert calls == [0, 1, 2, 3, 3, 4]


async def test_only_failed_items_are_tried_again(runs: Runs, run: RunFlow) -> None:
    calls: list[int] = []
    broken = True

    @task
    async def item(x: int) -> int:
        calls.append(x)
        if broken and x % 10 == 3:
            raise ValueError("not now")
        return x

    @flow
    async def mapping() -> int:
        return len((await item.map(range(30), on_error="collect")).failed)

    first = await run(mapping)
    assert (first.status, first.result, first.failed) == (Status.COMPLETED, 3, 3)
    broken = False
    calls.clear()
    row = await runs.resume(first.id)
    assert (row.status, row.failed, row.attempt) == (Status.PENDING, 0, 2)
    again = await carry_on(runs, mapping, row)
    assert (again.result, again.failed, sorted(calls)) == (0, 0, [3, 13, 23])
    with pytest.raises(MoveRefused, match="no failed item"):
        await runs.resume(first.id)


async def test_failures_can_be_kept(runs: Runs, run: RunFlow) -> None:
    calls: list[int] = []
    broken = True

    @task
    async def item(x: int) -> int:
        calls.append(x)
        if x == 1:
            raise ValueError("no")
        return x

    @flow
    async def mapping() -> int:
        failed = (await item.map(range(3), on_error="collect")).failed
        if broken:
            raise RuntimeError("later")
        return len(failed)

    first = await run(mapping)
    broken = False
    again = await carry_on(runs, mapping, await runs.resume(first.id, failed=False))
    assert (again.result, calls.count(1)) == (1, 1)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 12))
async def test_a_crash_at_any_write_repeats_no_acknowledged_call(runs: Runs, at: int, after: bool) -> None:
    calls: list[int] = []

    @task
    async def item(x: int) -> int:
        calls.append(x)
        return x

    @flow
    async def mapping() -> int:
        head = [await item(100), await item(101)]
        return sum(await item.map(range(6), concurrency=1)) + sum(head)

    crashing = Runs(FaultyBackend(runs.backend, fail="append", at=at, after=after, crash=True))
    try:
        ended = await run_here(crashing, mapping, {})
    except Crash:
        acknowledged = [x async for x in recorded(runs)]
        [row] = await runs.list()
        if row.status is Status.COMPLETED:  # it died right after the end: there is nothing to go on with
            assert await runs.result(row.id) == 216
            return
        ended = await run_here(runs, mapping, {})
        assert not [x for x in acknowledged if calls.count(x) > 1]
    assert ended.result == 216
    positions = [entry.position async for entry in runs.journal(ended.id)]
    assert positions == list(range(1, len(positions) + 1))


async def recorded(runs: Runs) -> Any:
    [row] = await runs.list()
    async for entry in runs.journal(row.id):
        if type(entry.fact).__name__ in ("ItemDone", "StepDone"):
            yield await runs.value(row.id, entry.fact)  # type: ignore[arg-type] # it is a fact


async def test_a_changed_flow_is_noticed_and_goes_on(runs: Runs, run: RunFlow) -> None:
    calls: list[str] = []

    @task
    async def work(x: int) -> int:
        calls.append(f"work {x}")
        return x

    @task
    async def prepare() -> int:
        calls.append("prepare")
        return 1

    @flow(name="changing")
    async def before() -> int:
        await work(1)
        await work(2)
        raise RuntimeError("a bug")

    @flow(name="changing")
    async def afterwards() -> int:
        two = await work(2)
        one = await work(1)
        return one + two + await prepare()

    await run(before)
    ended = await run(afterwards)
    assert ended.result == 4
    assert calls == ["work 1", "work 2", "prepare"]
    assert [line async for line in runs.log(ended.id) if "flow changing has changed" in line.text]


async def test_pipelines_replay_rightly_whatever_the_order(run: RunFlow) -> None:
    calls: list[str] = []
    crash = True
    rng = random.Random(7)

    @task
    async def split(document: str) -> int:
        await asyncio.sleep(rng.random() / 500)
        calls.append(f"split {document}")
        return 3

    @task
    async def translate(chunk: dict[str, Any]) -> str:
        await asyncio.sleep(rng.random() / 500)
        calls.append(f"{chunk['of']}{chunk['number']}")
        return f"{chunk['of']}{chunk['number']}"

    async def pipeline(document: str) -> str:
        count = await split(document)
        chunks = [{"of": document, "number": n} for n in range(count)]
        return "".join(await translate.map(chunks, key=lambda chunk: chunk["number"]))

    @flow
    async def translating() -> list[str]:
        texts = await asyncio.gather(*(pipeline(document) for document in "abcdef"))
        if crash:
            raise RuntimeError("crash")
        return texts

    await run(translating)
    done = list(calls)
    crash = False
    ended = await run(translating)
    assert ended.result == [f"{d}0{d}1{d}2" for d in "abcdef"]
    assert calls == done


async def test_a_later_run_continues_an_earlier_one(runs: Runs, run: RunFlow) -> None:
    calls: list[str] = []

    @task
    async def fetch(url: str) -> str:
        calls.append(url)
        if url == "bad" and calls.count("bad") == 1:
            raise OSError("no")
        return url.upper()

    @flow
    async def crawl(urls: list[str]) -> Any:
        return (await fetch.map(urls, on_error="collect")).succeeded

    first = await run(crawl, urls=["a", "bad", "b"])
    second = await run(crawl, urls=["new", "b", "bad", "a"], options=StartOptions(continues=first.id))
    assert second.result == ["NEW", "B", "BAD", "A"]
    assert calls == ["a", "bad", "b", "new", "bad"]
    assert second.row.skipped == 2
    await runs.backend.purge([first.id])
    assert [item["kind"] async for item in runs.items(second.id)].count("ItemSkipped") == 2


async def test_equal_calls_are_told_apart(run: RunFlow) -> None:
    count = 0
    crash = True

    @task
    async def roll() -> int:
        nonlocal count
        count += 1
        return count

    @flow
    async def rolling() -> list[int]:
        rolled = [await roll(), await roll(), await roll.keyed("lucky")(), await roll()]
        if crash:
            raise RuntimeError("crash")
        return rolled

    await run(rolling)
    crash = False
    assert (await run(rolling)).result == [1, 2, 3, 4]


async def test_a_recorded_value_that_no_longer_fits_fails_by_name(run: RunFlow) -> None:
    @task(name="load")
    async def load() -> Any:
        return "text"

    @task(name="load")
    async def load_number() -> int:
        return 1

    @flow(name="loading")
    async def before() -> int:
        await load()
        raise RuntimeError("crash")

    @flow(name="loading")
    async def after() -> int:
        return await load_number()

    await run(before)
    error = (await run(after)).error
    assert error is not None
    assert "the recorded result of load no longer fits" in error.message


async def test_large_results_are_read_back(run: RunFlow) -> None:
    crash = True

    @task
    async def big() -> str:
        return "x" * 1_000_000

    @task
    async def big_item(x: int) -> str:
        return str(x) * 600_000

    @flow
    async def growing() -> list[int]:
        sizes = [len(await big()), *[len(text) for text in await big_item.map(range(3))]]
        if crash:
            raise RuntimeError("crash")
        return sizes

    await run(growing)
    crash = False
    assert (await run(growing)).result == [1_000_000, 600_000, 600_000, 600_000]
