"""Kill it at any moment and start it again: what had finished is never done again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Run, Runs, Status, Worker, flow, task
from tsuzuki.backends import Backend
from tsuzuki.errors import MoveRefused
from tsuzuki.holders import Holders
from tsuzuki.presence import is_gone
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


async def test_a_completed_run_is_started_anew(run: RunFlow) -> None:
    @flow
    async def nothing() -> int:
        return 1

    first, second = await run(nothing), await run(nothing)
    assert first.number < second.number


async def test_fresh_starts_anew(run: RunFlow) -> None:
    @flow
    async def failing() -> int:
        raise RuntimeError("always")

    first = await run(failing)
    second = await run(failing, options=StartOptions(fresh=True))
    third = await run(failing)
    assert first.id != second.id == third.id


async def test_other_params_are_another_run(run: RunFlow) -> None:
    @flow
    async def failing(x: int, y: int = 1) -> int:
        raise RuntimeError("always")

    first, second = await run(failing, x=1), await run(failing, x=2)
    assert first.id != second.id
    assert (await run(failing, y=1, x=1)).id == first.id


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


class Raced(Runs):
    """Runs where another process is quicker to go on with a run: just before, or just after it may be taken."""

    def __init__(self, runs: Runs, other: Callable[[str], Awaitable[None]], *, before: bool) -> None:
        super().__init__(runs.backend)
        self._other = other
        self._before = before

    async def resume(self, reference: str | int, *, failed: bool = True, by: str = "", share: bool = False) -> Run:
        row = await super().resume(reference, failed=failed, by=by, share=share)
        await self._other(row.id)
        return await super().resume(reference, failed=failed, by=by, share=share) if self._before else row


@pytest.mark.parametrize("before", [True, False])
async def test_a_start_that_comes_too_late_to_go_on_with_a_run_is_one_of_its_own(runs: Runs, before: bool) -> None:
    calls = 0
    going_on, gate = asyncio.Event(), asyncio.Event()

    @flow
    async def failing_once() -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("no")
        if calls == 2:
            going_on.set()
            await gate.wait()
        return calls

    assert (await run_here(runs, failing_once, {}, signals=False)).status is Status.FAILED
    async with Worker(runs.backend, [failing_once], tags=()) as worker:
        working = set()

        async def other(run_id: str) -> None:
            working.add(asyncio.create_task(worker.carry_out(run_id)))
            await going_on.wait()

        ended = await run_here(Raced(runs, other, before=before), failing_once, {}, signals=False)
        assert (ended.number, ended.result) == (2, 3)
        gate.set()
        [row] = await asyncio.gather(*working)
        assert (row.number, row.status) == (1, Status.COMPLETED)


class Interleaved(Holders):
    """Holders of whom one ends its run, and leaves, while a start looks whether he lives."""

    def __init__(self, backend: Backend, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(backend)
        self._meanwhile = meanwhile

    async def gone(self) -> frozenset[str]:
        holders = await self._backend.workers(holding=True)
        await self._meanwhile()
        return frozenset(record.id for record in holders if is_gone(record, one_machine=True))


async def test_a_start_beside_the_end_of_the_run_before_is_a_new_run(runs: Runs) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    @flow
    async def gated() -> int:
        begun.set()
        await gate.wait()
        return 1

    first = asyncio.create_task(run_here(runs, gated, {}, signals=False))
    await begun.wait()

    async def end_it() -> None:
        gate.set()
        await asyncio.wait({first})

    raced = Runs(runs.backend)
    raced.holders = Interleaved(runs.backend, end_it)
    ended = await run_here(raced, gated, {}, signals=False)
    assert (ended.number, ended.status) == (2, Status.COMPLETED)
    assert (await first).number == 1


class Killed(BaseException):
    """The process is gone."""


async def test_a_run_whose_process_died_as_soon_as_it_was_made_goes_on_at_once(runs: Runs) -> None:
    @flow(key="only")
    async def short() -> int:
        return 1

    made = []

    class Dying(Runs):
        async def submit(self, *args: Any, **kwargs: Any) -> Run:
            made.append(await super().submit(*args, **kwargs))
            raise Killed

    with pytest.raises(Killed):
        await run_here(Dying(runs.backend), short, {}, signals=False)
    assert (made[0].status, made[0].private) == (Status.RUNNING, True)
    ended = await run_here(runs, short, {}, signals=False)
    assert (ended.id, ended.status) == (made[0].id, Status.COMPLETED)
