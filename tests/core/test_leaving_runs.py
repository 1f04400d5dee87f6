"""How runs leave a worker: stopped by a fault of the store, at the end of the grace period, failed; on a real store."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tsuzuki import Runs, Status, Worker, flow, stumbles, task
from tsuzuki import facts as f
from tsuzuki.errors import MoveRefused
from tsuzuki.logs import JsonLines
from tsuzuki.script import run_here
from tsuzuki.testing import FaultyBackend
from tsuzuki.testing.stopwatch import Stopwatch

Records = pytest.LogCaptureFixture


@pytest.fixture
async def runs(tmp_path: Path) -> AsyncIterator[Runs]:
    async with Runs.open(f"sqlite:{tmp_path / 'store.db'}") as opened:
        yield opened


@task
async def paid(calls: list[int]) -> int:
    calls.append(1)
    return len(calls)


async def test_a_run_that_the_store_refuses_goes_on_under_its_claim_after_pauses_that_grow(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, caplog: Records
) -> None:
    monkeypatch.setattr(stumbles, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr("tsuzuki.worker.LOOK", 0.05)
    calls: list[int] = []

    @flow
    async def pays() -> int:
        return await paid.keyed("once")(calls)

    run = await runs.submit(pays)
    faulty = FaultyBackend(runs.backend, fail="append", at=1, times=4)
    async with Worker(faulty, [pays]) as worker:
        working = asyncio.create_task(worker.run())
        row = await runs.wait(run.id)
        worker.stop()
        await working
    assert row.status is Status.COMPLETED
    assert 2 <= len(calls) <= 5, "each fault costs what was under way, once"
    claims = [entry for entry in await runs.backend.read(run.id) if isinstance(entry.fact, f.Claimed)]
    assert len(claims) == 1, "a fault of the store is nothing that the run has done"
    told = [record.getMessage() for record in caplog.records]
    assert [any(f"goes on in {pause} s" in text for text in told) for pause in ("0.1", "0.2")] == [True, True], told


async def test_nothing_is_paid_for_again_while_the_store_takes_no_writes(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, caplog: Records
) -> None:
    monkeypatch.setattr(stumbles, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(stumbles, "LOOK_AGAIN", 0.02)
    monkeypatch.setattr("tsuzuki.worker.LOOK", 0.02)
    calls: list[int] = []

    @flow
    async def pays() -> int:
        return await paid.keyed("once")(calls)

    run = await runs.submit(pays)
    full = FaultyBackend(runs.backend, fail="put_record", at=2, times=9)  # the first publishes the flow
    async with Worker(FaultyBackend(full, fail="append", at=1, times=1), [pays]) as worker:
        working = asyncio.create_task(worker.run())
        row = await runs.wait(run.id)
        worker.stop()
        await working
    assert (row.status, len(calls)) == (Status.COMPLETED, 2)
    assert full.calls["put_record"] >= 11
    assert [record.levelname for record in caplog.records if "waits until the store takes writes" in record.message]
    assert await runs.backend.records("probe") == []


async def test_a_run_that_waits_after_a_fault_can_be_cancelled(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.worker.LOOK", 0.05)
    stopped = asyncio.Event()

    @flow
    async def pays() -> int:
        stopped.set()
        return await paid.keyed("once")([])

    run = await runs.submit(pays)
    monkeypatch.setattr(stumbles, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(stumbles, "LONGEST_PAUSE", 3600.0)
    async with Worker(FaultyBackend(runs.backend, fail="append"), [pays]) as worker:
        working = asyncio.create_task(worker.run())
        await stopped.wait()
        await runs.cancel(run.id)
        assert (await runs.wait(run.id)).status is Status.CANCELLED
        worker.stop()
        await working


async def test_what_cannot_be_interrupted_is_handed_back_when_the_grace_period_is_over(runs: Runs) -> None:
    began, released = threading.Event(), threading.Event()

    @task
    def stubborn() -> None:
        began.set()
        released.wait(20)

    @flow
    async def waits() -> None:
        await stubborn()  # type: ignore[misc] # in an async flow every call is awaited

    run = await runs.submit(waits)
    grace = 2.0
    async with Worker(runs.backend, [waits], grace=grace) as worker:
        working = asyncio.create_task(worker.run())
        await asyncio.to_thread(began.wait, 20)
        with Stopwatch() as since:
            at = time.monotonic()
            worker.stop()
            await working
            took = time.monotonic() - at
    released.set()
    assert grace <= took < 2 * grace + since.lost, took  # the period itself is what is promised
    assert (await runs.get(run.id)).status is Status.PENDING


async def test_a_cancel_that_a_task_does_not_heed_is_told_with_its_error_id(runs: Runs, caplog: Records) -> None:
    began, released = threading.Event(), threading.Event()

    @task
    def stubborn() -> None:
        began.set()
        released.wait(20)

    @flow
    async def waits() -> None:
        await stubborn()  # type: ignore[misc] # in an async flow every call is awaited

    run = await runs.submit(waits)
    async with Worker(runs.backend, [waits], grace=0.2) as worker:
        working = asyncio.create_task(worker.run())
        await asyncio.to_thread(began.wait, 20)
        await runs.cancel(run.id)
        assert (await runs.wait(run.id)).status is Status.CANCELLED
        worker.stop()
        await working
    released.set()
    assert "ERR-TSUZUKI-0021" in [getattr(record, "err_id", "") for record in caplog.records]


async def test_a_failed_run_is_told_with_what_its_own_code_raised(runs: Runs, caplog: Records) -> None:
    @task
    async def boom() -> None:
        raise RuntimeError("the disk of the customer is full")

    @flow
    async def fails() -> None:
        await boom()

    run = await runs.submit(fails)
    async with Worker(runs.backend, [fails]) as worker:
        working = asyncio.create_task(worker.run())
        assert (await runs.wait(run.id)).status is Status.FAILED
        worker.stop()
        await working
    [record] = [record for record in caplog.records if "is FAILED" in record.msg]
    line = JsonLines("tsuzuki-server:worker").format(record)
    assert '"err_id": "ERR-TSUZUKI-0007"' in line
    assert '"exc_type": "RuntimeError"' in line
    assert f'"exc_origin": "{__file__}:' in line


async def test_a_run_of_a_script_is_left_to_the_workers_where_one_of_them_knows_its_flow(runs: Runs) -> None:
    @flow(name="scripted")
    async def scripted(fail: bool) -> str:
        if fail and (await runs.list())[0].attempt == 1:
            raise RuntimeError("not yet")
        return "done"

    @flow
    async def other() -> None: ...

    ended = await run_here(runs, scripted, {"fail": True})
    assert ended.status is Status.FAILED
    with pytest.raises(MoveRefused, match=r"no worker for 'default' knows scripted.*tsuzuki resume 1"):
        await runs.resume(ended.row.id, share=True)
    async with Worker(runs.backend, [other]) as worker:
        with pytest.raises(MoveRefused, match="no worker"):
            await runs.resume(ended.row.id, share=True)
    async with Worker(runs.backend, [scripted]) as worker:
        working = asyncio.create_task(worker.run())
        await runs.resume(ended.row.id, share=True)
        assert (await runs.wait(ended.row.id)).status is Status.COMPLETED
        worker.stop()
        await working
