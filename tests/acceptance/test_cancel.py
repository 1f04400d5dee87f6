"""Cancel is honest: what could be stopped is stopped, what finished is kept, and the counts say which is which."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.acceptance.flows import catalog
from tests.acceptance.invariants import calls_in, check_journal
from tests.acceptance.processes import Child, started, until
from tsuzuki import Run, Runs, Status, Worker, flow, task
from tsuzuki import facts as f
from tsuzuki.lifecycle import RunUpdateResult
from tsuzuki.testing import MemoryBackend, builders
from tsuzuki.testing.stopwatch import Stopwatch


@contextlib.asynccontextmanager
async def under_way(
    folder: Path, flow: Any, params: dict[str, Any], calls: int, *, grace: float = 30.0
) -> AsyncIterator[tuple[Runs, Run, Child]]:
    """Gives a run that a worker process executes, once it has made so many calls."""
    async with Runs.open(data_dir=str(folder / ".tsuzuki")) as runs:
        run = await runs.submit(flow, params)
        with started("work", "--grace", grace, folder=folder) as worker:
            await until(lambda: len(calls_in(folder)) >= calls, "the calls are under way")
            yield runs, run, worker


async def cancelled(runs: Runs, run: Run, within: float) -> tuple[Run, f.RunCancelled]:
    with Stopwatch() as since:
        answer, _ = await runs.cancel(run.id, reason="a test", by="tester")
        assert answer is RunUpdateResult.UPDATED
        row = await asyncio.wait_for(runs.wait(run.id), 60)
        assert since.fair < within
    assert row.status is Status.CANCELLED, row.error
    await check_journal(runs.backend, run.id)
    kinds = await builders.kinds(runs.backend, run.id)
    assert kinds.index("CancelAsked") < kinds.index("CancelSeen") < kinds.index("RunCancelled")
    last = (await builders.journal(runs.backend, run.id))[-1].fact
    assert isinstance(last, f.RunCancelled)
    return row, last


async def test_async_tasks_end_within_a_second_and_the_counts_add_up(tmp_path: Path) -> None:
    async with under_way(tmp_path, catalog.patient, {"items": 20}, calls=8) as (runs, run, _):
        row, end = await cancelled(runs, run, within=1.0)
        assert (row.done, end.interrupted, end.finished_anyway, end.never_started) == (3, 5, 0, 12)


async def test_sync_tasks_that_look_see_the_request_and_what_they_return_is_kept(tmp_path: Path) -> None:
    async with under_way(tmp_path, catalog.watchful, {"items": 10}, calls=4) as (runs, run, _):
        row, end = await cancelled(runs, run, within=1.0)
        assert (row.done, end.interrupted, end.finished_anyway, end.never_started) == (4, 0, 4, 6)
        values = [
            await runs.value(run.id, e.fact)
            for e in await builders.journal(runs.backend, run.id)
            if isinstance(e.fact, f.ItemDone)
        ]
        assert sorted(values) == [f"{number} saw it" for number in range(4)]


async def test_what_ends_within_the_grace_period_is_kept_and_what_ends_later_is_refused_and_told(
    tmp_path: Path,
) -> None:
    async with under_way(tmp_path, catalog.stubborn, {"items": 3}, calls=3, grace=1.5) as (runs, run, worker):
        await runs.cancel(run.id)
        while "CancelSeen" not in await builders.kinds(runs.backend, run.id):
            await asyncio.sleep(0.01)
        for number in (0, 1):
            (tmp_path / f"go-{number}").touch()
        row = await asyncio.wait_for(runs.wait(run.id), 60)
        last = (await builders.journal(runs.backend, run.id))[-1].fact
        assert isinstance(last, f.RunCancelled)
        assert (row.done, last.finished_anyway, last.interrupted, last.never_started) == (2, 2, 1, 0)
        (tmp_path / "go-2").touch()
        still, ended = await asyncio.wait_for(refusal(runs, run.id), 60)
        assert still.startswith("deaf[2] still runs, 1.5 s after it was to stop, and is not waited for any more")
        assert ended == "deaf[2] ended after it had been given up; its result is refused"
        assert (await runs.get(run.id)).done == 2
        await check_journal(runs.backend, run.id)
        assert worker.running()


async def refusal(runs: Runs, run_id: str) -> list[str]:
    while True:
        lines = [line.text async for line in runs.log(run_id) if "refused" in line.text]
        if len(lines) > 1:
            return lines
        await asyncio.sleep(0.01)


async def test_a_cancelled_run_goes_on_where_it_was_when_it_is_resumed(tmp_path: Path) -> None:
    async with under_way(tmp_path, catalog.watchful, {"items": 6}, calls=4) as (runs, run, _):
        await cancelled(runs, run, within=1.0)
        await runs.resume(run.id)
        await until(lambda: len(calls_in(tmp_path)) == 6, "the other two are called")
        _, end = await cancelled_again(runs, run)
        assert (end.finished_anyway, end.interrupted, end.never_started) == (2, 0, 0)
        assert sorted(call for _, call in calls_in(tmp_path)) == [f"attentive {number}" for number in range(6)]


async def cancelled_again(runs: Runs, run: Run) -> tuple[Run, f.RunCancelled]:
    await runs.cancel(run.id)
    row = await asyncio.wait_for(runs.wait(run.id), 60)
    last = (await builders.journal(runs.backend, run.id))[-1].fact
    assert isinstance(last, f.RunCancelled), last
    return row, last


async def test_a_flow_that_returns_in_spite_of_a_request_is_completed_and_a_later_one_changes_nothing(
    tmp_path: Path,
) -> None:
    async with under_way(tmp_path, catalog.hasty, {}, calls=1) as (runs, run, _):
        await runs.cancel(run.id)
        (tmp_path / "go").touch()
        row = await asyncio.wait_for(runs.wait(run.id), 60)
        assert row.status is Status.COMPLETED
        assert await runs.result(run.id) == "returned whatever was asked"
        answer, row = await runs.cancel(run.id)
        assert (answer, row.status) == (RunUpdateResult.ALREADY_TERMINAL, Status.COMPLETED)
        await check_journal(runs.backend, run.id)


async def test_a_sync_task_that_never_returns_is_given_up_after_the_grace_period(tmp_path: Path) -> None:
    async with under_way(tmp_path, catalog.stubborn, {"items": 1}, calls=1, grace=0.3) as (runs, run, _):
        row, end = await cancelled(runs, run, within=3.0)
        assert (row.done, end.interrupted) == (0, 1)


async def test_a_run_that_nobody_holds_is_cancelled_at_once(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        run = await runs.submit(catalog.hasty)
        assert (await runs.cancel(run.id))[1].status is Status.CANCELLED


async def test_the_run_of_a_killed_worker_is_cancelled_at_once(tmp_path: Path) -> None:
    async with under_way(tmp_path, catalog.hasty, {}, calls=1) as (runs, run, worker):
        worker.kill()
        assert (await runs.cancel(run.id))[1].status is Status.CANCELLED
        await check_journal(runs.backend, run.id)


@task
async def double(number: int) -> int:
    await asyncio.sleep(random.uniform(0, 0.002))
    return number * 2


@task
def square(number: int) -> int:
    time.sleep(random.uniform(0, 0.002))
    return number**2


@flow
async def mixed(items: int) -> int:
    doubled, squared = await asyncio.gather(
        double.map(range(items), concurrency=7), square.map(range(items), concurrency=5)
    )
    return sum(doubled) + sum(squared)


async def test_at_whatever_moment_a_run_is_cancelled_its_counts_add_up_to_its_items() -> None:
    await asyncio.gather(*(cancelled_after(random.randrange(1, 110)) for _ in range(20)))


async def cancelled_after(done: int) -> None:
    backend = MemoryBackend()
    runs = Runs(backend)
    run = await runs.submit(mixed, {"items": 60}, private=True)
    async with Worker(backend, [mixed], tags=()) as worker:
        work = asyncio.create_task(worker.carry_out(run.id))
        while (row := await runs.get(run.id)).done < done and not row.status.terminal:
            await asyncio.sleep(0)
        await runs.cancel(run.id)
        row = await asyncio.wait_for(work, 60)
    await check_journal(backend, run.id)
    end = (await builders.journal(backend, run.id))[-1].fact
    if row.status is Status.COMPLETED:
        assert row.done == 120
        return
    assert isinstance(end, f.RunCancelled)
    assert row.done + end.never_started + end.interrupted == 120, (row.done, end)
    assert end.finished_anyway <= row.done
