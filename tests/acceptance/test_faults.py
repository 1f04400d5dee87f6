"""What users' code and clocks can do wrong: each has a clear outcome, and nothing acknowledged is lost."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.invariants import check_journal
from tests.acceptance.processes import eventually, until
from tsuzuki import Later, Runs, Status, Worker, flow, task
from tsuzuki.errors import BadUsage, StepFailure
from tsuzuki.script import EndedRun, run_here
from tsuzuki.testing import FakeClock, FaultyBackend, MemoryBackend
from tsuzuki.testing.clock import ShiftedClock


@pytest.fixture
async def runs(tmp_path: Path) -> AsyncIterator[Runs]:
    async with Runs.open(data_dir=str(tmp_path)) as opened:
        yield opened


async def failure_of(runs: Runs, flow: Any, **params: Any) -> str:
    """Runs a flow that fails; gives its error."""
    ended = await run_here(runs, flow, params)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    await check_journal(runs.backend, ended.id)
    return f"{ended.error.type}: {ended.error.message}"


async def test_a_result_of_100_megabytes_is_kept_and_read_back(runs: Runs) -> None:
    size = 100_000_000
    made = 0

    @task
    def enormous() -> str:
        nonlocal made
        made += 1
        return "x" * size

    @flow
    async def large() -> str:
        return await enormous()  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow

    ended: EndedRun[str] = await run_here(runs, large, {})
    assert (len(ended.result), ended.result[0], ended.result[-1]) == (size, "x", "x")
    assert len(await runs.result(ended.id)) == size
    assert made == 1


async def test_an_exception_whose_str_raises_fails_its_run_by_its_type(runs: Runs) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @task
    def speechless() -> None:
        raise Mute

    @flow
    async def silent() -> None:
        await speechless()  # type: ignore[misc] # a sync task, awaited in an async flow

    @flow
    async def silent_itself() -> None:
        raise Mute

    assert "speechless failed: Mute: <Mute; its str() raised RuntimeError>" in await failure_of(runs, silent)
    assert await failure_of(runs, silent_itself) == "Mute: <Mute; its str() raised RuntimeError>"


async def test_a_result_that_is_not_json_fails_by_the_name_of_its_step(runs: Runs) -> None:
    @task
    def odd() -> object:
        return threading.Lock()

    @flow
    async def strange() -> None:
        await odd()  # type: ignore[misc] # a sync task, awaited in an async flow

    @flow
    async def strange_itself() -> object:
        return threading.Lock()

    told = await failure_of(runs, strange)
    assert "odd failed: NotJSON" in told
    assert "lock" in told
    assert "flow strange_itself" in await failure_of(runs, strange_itself)


async def test_a_task_name_used_twice_is_refused_with_both_places(runs: Runs) -> None:
    @task(name="same")
    def one() -> int:
        return 1

    @task(name="same")
    def another() -> int:
        return 2

    @flow
    async def confused() -> int:
        return await one() + await another()  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow

    told = await failure_of(runs, confused)
    assert told.startswith("NameTaken: two tasks of this run are called 'same'")
    assert told.count(Path(__file__).name) == 2


async def test_two_flows_of_one_name_are_refused_by_a_worker(runs: Runs) -> None:
    @flow(name="same")
    def one() -> None: ...

    @flow(name="same")
    def another() -> None: ...

    with pytest.raises(BadUsage, match="two flows are called 'same'"):
        Worker(runs.backend, [one, another])


async def test_a_sync_task_that_never_returns_times_out_keeps_its_thread_and_is_refused_late(runs: Runs) -> None:
    let_go = threading.Event()
    begun: list[int] = []

    @task(timeout=1.5)
    def hang(number: int) -> str:
        begun.append(number)
        let_go.wait()
        return "too late"

    @flow
    async def hanging() -> list[Any]:
        hung = await hang.map(range(70), concurrency=70, on_error="collect")
        more = await hang.map([70], on_error="collect", name="more")
        return [[failure.error for failure in (*hung.failed, *more.failed)], len(hung.succeeded)]

    try:
        ended = await run_here(runs, hanging, {})
        errors, succeeded = ended.result
        assert succeeded == 0
        assert errors == ["timed out after 1.5 s"] * 71
        assert len(begun) == 70, "the last one never had a thread: all were still busy"
    finally:
        let_go.set()
    assert ended.row.failed == 71
    await check_journal(runs.backend, ended.id)


async def test_a_late_result_is_refused_and_told(runs: Runs) -> None:
    let_go = threading.Event()
    over = threading.Event()

    @task(timeout=1.0)
    def hang() -> str:
        let_go.wait()
        over.set()
        return "too late"

    @task
    def wait_for_it() -> None:
        let_go.set()
        over.wait()

    @flow
    async def late() -> str:
        try:
            return await hang()  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow
        except StepFailure as error:
            await wait_for_it()  # type: ignore[misc] # a sync task, awaited in an async flow
            return str(error)

    ended = await run_here(runs, late, {})
    assert ended.result == "hang failed: TimeoutError: timed out after 1 s"
    lines = [line.text async for line in runs.log(ended.id)]
    assert "hang ended after it had been given up; its result is refused" in lines


@pytest.mark.parametrize("where", ["a worker", "a script"])
@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_released_run_waits_no_longer_because_the_wall_clock_was_set(
    tmp_path: Path, where: str, jump: float
) -> None:
    clock, asked = ShiftedClock(), list[float]()

    @task
    async def look() -> str:
        asked.append(clock.elapsed())
        if len(asked) == 1:
            raise Later(1.5)
        return "ready"

    @flow
    async def patient() -> str:
        return await look()

    async with Runs.open(data_dir=str(tmp_path), clock=clock) as runs:
        async with Worker(runs.backend, [patient], clock=clock) as worker:
            working = asyncio.create_task(
                run_here(runs, patient, {}, clock=clock) if where == "a script" else worker.run()
            )
            if where == "a worker":
                await runs.submit(patient)
            await eventually(lambda: _waits(runs), "the run waits")
            clock.jump(jump)
            row = await asyncio.wait_for(runs.wait(1), 30)  # and not the hour that was lost
            worker.stop()
            await working
        assert (row.status, len(asked)) == (Status.COMPLETED, 2)


async def _waits(runs: Runs) -> bool:
    return any(row.not_before for row in await runs.list())


async def test_a_run_that_was_released_by_a_clock_that_is_ahead_waits_for_its_length_only(tmp_path: Path) -> None:
    ahead, clock, asked = ShiftedClock(), ShiftedClock(), 0
    ahead.jump(3600)

    @task
    async def look() -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise Later(1.2)
        return "ready"

    @flow
    async def patient() -> str:
        return await look()

    async with Runs.open(data_dir=str(tmp_path), clock=ahead) as runs:
        await runs.submit(patient)
        async with Worker(runs.backend, [patient], clock=ahead) as first:
            await first.run_once()
    async with Runs.open(data_dir=str(tmp_path), clock=clock) as runs:
        assert (await runs.get(1)).not_before > clock.now() + 3600
        async with Worker(runs.backend, [patient], clock=clock) as second:
            working = asyncio.create_task(second.run())
            row = await asyncio.wait_for(runs.wait(1), 30)
            second.stop()
            await working
        assert (row.status, asked) == (Status.COMPLETED, 2)


async def test_a_clock_that_is_set_back_in_the_middle_of_a_long_wait_does_not_make_it_longer() -> None:
    clock, asked = FakeClock(), 0
    backend = MemoryBackend(clock=clock)
    runs = Runs(backend, clock=clock)

    @task
    async def look() -> str:
        nonlocal asked
        asked += 1
        raise Later(7200)

    @flow
    async def patient() -> str:
        return await look()

    await runs.submit(patient)
    async with Worker(backend, [patient], clock=clock) as worker:
        working = asyncio.create_task(worker.run())
        await eventually(lambda: _waits(runs), "the run waits")
        clock.advance(6600)
        clock.jump(-3600)
        for _ in range(400):
            clock.advance(1)  # its looks at the clock are paced by it
            await asyncio.sleep(0.005)
            if asked > 1:
                break
        worker.stop()
        await working
    assert asked > 1, "it was asked again, and not after an hour and ten minutes"


async def test_a_wall_clock_that_jumps_back_an_hour_delays_nothing(tmp_path: Path) -> None:
    clock = ShiftedClock()
    tried: list[int] = []

    @task
    async def later(number: int) -> int:
        tried.append(number)
        if len(tried) == 1:
            raise Later(0.3)
        return number

    @task
    async def jump(number: int) -> int:
        await until(lambda: tried, "the other one waits")
        clock.jump(-3600)
        return number

    @flow
    async def jumping() -> int:
        return sum(await asyncio.gather(later(1), jump(2))) + await jump(3)

    async with Runs.open(data_dir=str(tmp_path), clock=clock) as runs:
        ended = await asyncio.wait_for(run_here(runs, jumping, {}, clock=clock), 60)  # and not the hour that was lost
        assert ended.result == 6
        assert ended.row.attempt == 1
        first = ended.row.updated_at
        await check_journal(runs.backend, ended.id)
        second = (await run_here(runs, jumping, {}, clock=clock)).row.updated_at
        assert second > first, "updated_at goes on although the clock went back"


async def test_a_machine_that_slept_for_eight_hours_keeps_its_runs(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    backend = MemoryBackend(clock)
    watched = FaultyBackend(backend, fail="append", at=1_000_000)
    runs = Runs(backend, clock=clock)
    awake, begun = asyncio.Event(), asyncio.Event()

    @flow
    async def overnight() -> str:
        begun.set()
        await awake.wait()
        return "good morning"

    run = await runs.submit(overnight)
    async with (
        Worker(backend, [overnight], clock=clock, lease=3.0) as holder,
        Worker(watched, [overnight], clock=clock, lease=3.0) as other,
    ):
        first = asyncio.create_task(holder.run())
        await asyncio.wait_for(begun.wait(), 60)
        second = asyncio.create_task(other.run())
        await _look_around(clock, watched)
        with caplog.at_level(logging.WARNING, logger="tsuzuki.worker"):
            clock.sleep_machine(8 * 3600)
            await _look_around(clock, watched)
            assert (await runs.get(run.id)).attempt == 1
            await until(lambda: "this machine slept for 28800 s" in caplog.text, "somebody notices that it slept")
        awake.set()
        while not (row := await runs.get(run.id)).status.terminal:
            await asyncio.sleep(0.01)
        assert (row.status, row.attempt) == (Status.COMPLETED, 1)
        for worker in (holder, other):
            worker.stop()
        await asyncio.wait_for(asyncio.gather(first, second), 60)


async def _look_around(clock: FakeClock, watched: FaultyBackend) -> None:
    """Lets two seconds pass and waits until the other worker has looked for the dead once more."""
    before = watched.calls["workers"]
    clock.advance(2)
    await until(lambda: watched.calls["workers"] > before, "the other worker looks for the dead")


@pytest.mark.parametrize("after", [False, True], ids=["the write fails", "the acknowledgement is lost"])
async def test_a_worker_goes_on_with_its_run_when_the_store_works_again(after: bool) -> None:
    inner = MemoryBackend()
    backend = FaultyBackend(inner, fail="append", at=2, after=after)
    made: list[int] = []

    @task
    async def count(number: int) -> int:
        made.append(number)
        return number

    @flow
    async def counting() -> int:
        return sum([await count(number) for number in range(5)])

    runs = Runs(inner)
    run = await runs.submit(counting)
    async with Worker(backend, [counting]) as worker:
        work = asyncio.create_task(worker.run())
        try:
            row = await asyncio.wait_for(runs.wait(run.id), 60)
        finally:
            worker.stop()
            await work
    assert (row.status, await runs.result(run.id)) == (Status.COMPLETED, 10)
    assert len(made) == (5 if after else 6)
    await check_journal(inner, run.id)


async def test_a_worker_still_sees_a_cancel_after_the_store_could_not_be_read() -> None:
    inner = MemoryBackend()
    backend = FaultyBackend(inner, fail="work", at=1, times=3)

    @flow
    async def endless() -> None:
        await asyncio.Event().wait()

    runs = Runs(inner)
    run = await runs.submit(endless)
    async with Worker(backend, [endless]) as worker:
        work = asyncio.create_task(worker.run())
        await until(lambda: backend.calls["work"] > 3, "the store can be read again")
        await runs.cancel(run.id)
        row = await asyncio.wait_for(runs.wait(run.id), 60)
        worker.stop()
        await work
    assert row.status is Status.CANCELLED
