"""A map calls a task for each item, so many at once, and records each by its key."""

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, cast

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Retry, Runs, Status, current, flow, task
from tsuzuki.errors import BadUsage
from tsuzuki.results import Collected, Counts, Failure


@task
async def square(x: int) -> int:
    await asyncio.sleep(0)
    return x * x


@task
def cube(x: int) -> int:
    return x * x * x


@task
async def picky(x: int) -> int:
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x


async def test_results_come_in_input_order(run: RunFlow) -> None:
    @task
    async def backwards(x: int) -> int:
        await asyncio.sleep((10 - x) / 1000)
        return x

    @flow
    async def mapping() -> list[int]:
        return await backwards.map(range(10), concurrency=10)

    assert (await run(mapping)).result == list(range(10))


async def test_lists_generators_and_async_generators_are_mapped_over(run: RunFlow) -> None:
    async def numbers() -> AsyncIterator[int]:
        for x in range(5):
            await asyncio.sleep(0)
            yield x

    @flow
    async def mapping() -> Any:
        return [
            await square.map([1, 2]),
            await square.map(x for x in (3, 4)),
            await square.map(numbers(), concurrency=2),
            await cube.map(iter([5])),
        ]

    assert (await run(mapping)).result == [[1, 4], [9, 16], [0, 1, 4, 9, 16], [125]]


async def test_a_sync_flow_may_map_over_a_generator_that_calls_tasks(run: RunFlow) -> None:
    @flow
    def mapping() -> Any:
        def inputs() -> Iterator[int]:
            for x in range(40):
                yield cube(x)

        return [sum(cube.map(inputs(), concurrency=3)), list(cube.stream(iter([2, 3])))]

    assert (await run(mapping)).result == [sum(x**9 for x in range(40)), [8, 27]]


async def test_an_error_of_the_input_fails_the_flow(run: RunFlow) -> None:
    def inputs() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    @flow
    async def mapping() -> Any:
        return await square.map(inputs())

    @flow
    def mapping_too() -> Any:
        return cube.map(inputs())

    for broken in (mapping, mapping_too):
        error = (await run(broken)).error
        assert error is not None
        assert (error.type, error.message) == ("OSError", "the disk is gone")


async def test_no_more_run_at_once_than_asked_for(run: RunFlow) -> None:
    now = most = 0

    @task
    async def count(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(now, most)
        await asyncio.sleep(0.001)
        now -= 1
        return x

    @flow
    async def mapping() -> int:
        return len(await count.map(range(50), concurrency=7))

    assert (await run(mapping)).result == 50
    assert most == 7


async def test_an_item_is_its_own_key_or_has_one(runs: Runs, run: RunFlow) -> None:
    @task
    async def name(person: dict[str, str]) -> str:
        return person["name"]

    @flow
    async def naming(people: list[dict[str, str]]) -> list[str]:
        return await name.map(people, key=lambda person: person["id"])

    @flow
    async def careless(people: list[dict[str, str]]) -> list[str]:
        return await name.map(people)

    ended = await run(naming, people=[{"id": "a", "name": "Ann"}, {"id": "b", "name": "Bo"}])
    assert ended.result == ["Ann", "Bo"]
    assert [item["key"] async for item in runs.items(ended.id)] == ["a", "b"]
    error = (await run(careless, people=[{"id": "a"}])).error
    assert error is not None
    assert "give map a key" in error.message


async def test_a_duplicate_key_is_an_error_or_skipped(run: RunFlow) -> None:
    calls = []

    @task
    async def note(x: str) -> str:
        calls.append(x)
        return x

    @flow
    async def strict() -> list[str]:
        return await note.map(["a", "b", "a"], concurrency=1)

    @flow
    async def lenient() -> list[str]:
        return await note.map(["a", "b", "a"], duplicates="skip")

    error = (await run(strict)).error
    assert error is not None
    assert "two items have the key 'a'" in error.message
    assert calls == ["a", "b"]
    assert (await run(lenient)).result == ["a", "b"]


async def test_the_first_failure_fails_the_map_after_the_others_have_settled(runs: Runs, run: RunFlow) -> None:
    @flow
    async def mapping() -> list[int]:
        return await picky.map([0, 2, 4, 1, 6, 8, 10, 12], concurrency=2)

    ended = await run(mapping)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert "picky[1] failed: ValueError: 1 is odd" in ended.error.message
    assert ended.row.done < 7


async def test_failures_are_collected_beside_the_successes(run: RunFlow) -> None:
    seen: list[Collected[int]] = []

    @flow
    async def mapping() -> dict[str, int]:
        pages = await picky.map([0, 1, 2, 3], on_error="collect")
        seen.append(pages)
        return {"ok": len(pages.succeeded), "failed": len(pages.failed)}

    ended = await run(mapping)
    assert (ended.status, ended.result, ended.failed) == (Status.COMPLETED, {"ok": 2, "failed": 2}, 2)
    [pages] = seen
    assert pages.succeeded == [0, 2]
    assert pages[1] == Failure("1", "1 is odd", "ValueError", 1)
    assert [failure.key for failure in pages.failed] == ["1", "3"]
    assert len(pages) == 4


async def test_results_need_not_be_kept(run: RunFlow) -> None:
    seen: list[Counts] = []

    @flow
    async def mapping() -> int:
        seen.append(await picky.map(range(100), keep_results=False, on_error="collect"))
        return seen[-1].total

    assert (await run(mapping)).result == 100
    assert seen == [Counts(50, 50)]


async def test_results_can_be_streamed_in_order(run: RunFlow) -> None:
    @flow
    async def streaming() -> list[int]:
        return [result async for result in square.stream(range(300), concurrency=20)]

    assert (await run(streaming)).result == [x * x for x in range(300)]


async def test_results_can_be_streamed_as_they_come_past_one_that_takes_long(run: RunFlow) -> None:
    last, calls = asyncio.Event(), list[int]()

    @task
    async def slow_first(x: int) -> int:
        calls.append(x)
        if x == 0:
            await last.wait()
        return x

    @flow
    async def streaming() -> list[int]:
        found = []
        async for result in slow_first.stream(range(300), concurrency=4, ordered=False):
            found.append(result)
            if len(found) == 299:
                last.set()
        return found

    result = (await run(streaming)).result
    assert (result[-1], sorted(result), len(calls)) == (0, list(range(300)), 300)


async def test_a_failure_ends_an_unordered_stream_as_it_ends_an_ordered_one(run: RunFlow) -> None:
    @task
    async def picky(x: int) -> int:
        if x == 3:
            raise ValueError("3 is too much")
        return x

    @flow
    async def streaming() -> list[int]:
        return [result async for result in picky.stream(range(8), concurrency=2, ordered=False)]

    @flow
    async def collecting() -> list[str]:
        return [str(each) async for each in picky.stream(range(8), on_error="collect", ordered=False)]

    assert (await run(streaming)).status == "FAILED"
    assert len((await run(collecting)).result) == 8


@pytest.mark.parametrize("ordered", [True, False])
async def test_a_stream_does_not_run_far_ahead_of_its_reader(run: RunFlow, ordered: bool) -> None:
    started = 0

    @task
    async def start(x: int) -> int:
        nonlocal started
        started += 1
        return x

    @flow
    async def reading() -> int:
        async for _ in start.stream(range(10_000), concurrency=4, ordered=ordered):
            await asyncio.sleep(0.01)
            break
        return started

    assert (await run(reading)).result < 200


async def test_a_stream_that_its_reader_has_left_complains_of_nothing(
    run: RunFlow, caplog: pytest.LogCaptureFixture
) -> None:
    failed = asyncio.Event()

    @task
    async def fail_later(x: int) -> int:
        if x:
            failed.set()
            raise ValueError(f"{x} is too much")
        return x

    @flow
    async def leaving() -> int:
        async with aclosing(cast("AsyncGenerator[int, None]", fail_later.stream(range(2), concurrency=1))) as numbers:
            async for number in numbers:
                await failed.wait()
                while any(each.get_name() == "tsuzuki-stream" for each in asyncio.all_tasks()):
                    await asyncio.sleep(0)
                return number
        return -1

    assert (await run(leaving)).result == 0
    gc.collect()  # that is when asyncio tells of errors which nobody has looked at
    assert "never retrieved" not in caplog.text


async def test_maps_inside_maps_and_shared_arguments(run: RunFlow) -> None:
    @task
    async def times(x: int, factor: int) -> int:
        return x * factor

    @task
    async def row(y: int) -> list[int]:
        return await times.map(range(3), factor=y)

    @flow
    async def table() -> list[list[int]]:
        return await row.map(range(1, 4))

    assert (await run(table)).result == [[0, 1, 2], [0, 2, 4], [0, 3, 6]]


async def test_an_empty_input_gives_an_empty_list(run: RunFlow) -> None:
    @flow
    async def mapping() -> Any:
        return [await square.map([]), await square.map(iter(list[int]()))]

    assert (await run(mapping)).result == [[], []]


async def test_items_are_retried_by_themselves(run: RunFlow) -> None:
    tries: dict[int, int] = {}

    @task(retry=Retry(attempts=3, backoff=0.001))
    async def flaky(x: int) -> int:
        tries[x] = tries.get(x, 0) + 1
        if tries[x] <= x:
            raise ConnectionError
        return x

    @flow
    async def mapping() -> Any:
        pages = await flaky.map(range(4), on_error="collect")
        return [[f.key, f.attempts] for f in pages.failed]

    assert (await run(mapping)).result == [["3", 3]]
    assert tries == {0: 1, 1: 2, 2: 3, 3: 3}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"on_error": "ignore"}, "on_error"),
        ({"duplicates": "twice"}, "duplicates"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadUsage, match=told):
        cube.map([1], **options)
    with pytest.raises(BadUsage, match="needs a list"):
        cube.map("a text is not a list of items")


async def test_the_outcomes_of_a_map_can_be_returned_as_they_are(run: RunFlow) -> None:
    @flow
    async def mapping() -> Any:
        return await picky.map([1, 2], on_error="collect")

    failure = {"key": "1", "error": "1 is odd", "error_type": "ValueError", "attempts": 1}
    assert (await run(mapping)).result == [failure, 2]


async def test_an_item_that_raises_cancelled_error_is_a_failed_item(run: RunFlow) -> None:
    @task
    async def waits_for_a_cancelled_task(x: int) -> int:
        if x % 3 == 0:
            other = asyncio.create_task(asyncio.sleep(60))
            other.cancel()
            await other
        return x

    @task
    def raises(x: int) -> int:
        if x % 3 == 0:
            raise asyncio.CancelledError
        return x

    @flow
    async def mapping() -> Any:
        first = await waits_for_a_cancelled_task.map(range(10), concurrency=2, on_error="collect")
        second = await raises.map(range(10), concurrency=2, on_error="collect")
        return [[failure.key for failure in part.failed] + part.succeeded for part in (first, second)]

    assert (await run(mapping)).result == [["0", "3", "6", "9", 1, 2, 4, 5, 7, 8]] * 2


async def test_keys_that_utf8_cannot_say_are_spelled_out(runs: Runs, run: RunFlow) -> None:
    @task
    async def look(name: str) -> int:
        current().log.info("looking at %s", name)
        return len(name)

    @flow
    async def looking() -> list[int]:
        return await look.map(["plain", "odd \udcff", "日本語"])

    ended = await run(looking)
    assert ended.result == [5, 5, 3]
    assert {item["key"] async for item in runs.items(ended.id)} == {"plain", "odd \\udcff", "日本語"}
    assert "looking at odd \\udcff" in [line.text async for line in runs.log(ended.id)]


@pytest.mark.parametrize("waits", [True, False])
async def test_an_item_that_cancels_its_own_asyncio_task_is_one_item(run: RunFlow, waits: bool) -> None:
    @task
    async def foolish(x: int) -> int:
        lane = asyncio.current_task()
        if x == 1 and lane is not None:
            lane.cancel()
            if waits:
                await asyncio.sleep(0)
        return x

    @flow
    async def mapping() -> list[list[Any]]:
        found = await foolish.map(range(4), concurrency=1, on_error="collect")
        return [found.succeeded, [(failed.key, failed.error) for failed in found.failed]]

    ended = await run(mapping)
    assert ended.status is Status.COMPLETED
    succeeded, failed = ended.result
    assert succeeded == ([0, 2, 3] if waits else [0, 1, 2, 3])
    assert failed == ([["1", "foolish raised CancelledError, though nobody had cancelled it"]] if waits else [])


@pytest.mark.parametrize(
    "error", [GeneratorExit(), BaseExceptionGroup("both", [GeneratorExit(), ValueError("odd")])], ids=repr
)
@pytest.mark.parametrize("sync", [False, True])
async def test_what_no_except_clause_would_catch_is_the_failure_of_its_item(
    run: RunFlow, error: BaseException, sync: bool
) -> None:
    def odd(x: int) -> int:
        if x % 2:
            raise error
        return x

    async def odd_async(x: int) -> int:
        return odd(x)

    @flow
    async def mapping() -> list[Any]:
        made = task(odd) if sync else task(odd_async)
        found = await made.map(range(4), on_error="collect")
        return [found.succeeded, [(failed.key, failed.error) for failed in found.failed]]

    ended = await run(mapping)
    assert ended.status is Status.COMPLETED
    succeeded, failed = ended.result
    assert succeeded == [0, 2]
    assert [key for key, _ in failed] == ["1", "3"]
    assert all(f"raised {type(error).__name__}" in told for _, told in failed)


async def test_a_flow_that_raises_what_no_except_clause_would_catch_has_failed(run: RunFlow) -> None:
    @flow
    async def leaving() -> int:
        raise GeneratorExit

    ended = await run(leaving)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert "leaving raised GeneratorExit" in ended.error.message
