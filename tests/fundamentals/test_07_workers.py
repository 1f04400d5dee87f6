"""Who works on the runs: each worker tells what it is doing, and people may hide the ones they have seen enough of."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest

from tsuzuki import Runs, Status, Worker, flow
from tsuzuki.backends import WorkerRecord, WorkerState
from tsuzuki.errors import Conflict
from tsuzuki.presence import state_of


async def seen(runs: Runs, condition: Callable[[WorkerRecord], bool]) -> WorkerRecord:
    """Waits until the only worker shows what is expected of it."""
    async with asyncio.timeout(60):
        while True:
            (record,) = await runs.backend.workers()
            if condition(record):
                return record
            await asyncio.sleep(0.02)


async def test_a_worker_shows_what_it_is_doing_from_its_start_to_its_end(runs: Runs) -> None:
    go = asyncio.Event()

    @flow
    async def waits(fail: bool) -> int:
        await go.wait()
        if fail:
            raise RuntimeError("no")
        return 1

    name = f"w-{uuid4()}"
    async with Worker(runs.backend, [waits], name=name, tags=("default", "gpu")) as worker:
        (fresh,) = await runs.backend.workers()
        assert (fresh.state, fresh.current_run_id, fresh.last_run_status) == (WorkerState.IDLE, None, None)
        assert (fresh.id, fresh.tags, fresh.flows, fresh.hidden) == (name, ("default", "gpu"), ("waits",), False)
        assert fresh.instance_id
        working = asyncio.create_task(worker.run())
        for fail, status in ((False, Status.COMPLETED), (True, Status.FAILED)):
            go.clear()
            run = await runs.submit(waits, {"fail": fail})
            busy = await seen(runs, lambda record: record.state == WorkerState.RUNNING)
            assert busy.current_run_id == run.id
            go.set()
            idle = await seen(runs, lambda record: record.state == WorkerState.IDLE)
            assert (idle.current_run_id, idle.last_run_status) == (None, status)
        worker.stop()
        await working
    (stopped,) = await runs.backend.workers()
    assert (stopped.state, stopped.last_run_status) == (WorkerState.STOPPED_GRACEFUL, Status.FAILED)
    assert stopped.stopped_at is not None
    assert stopped.stop_reason


async def test_others_are_told_of_a_run_when_it_begins_and_when_it_ends(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with the next heartbeat or look, which are an hour away."""
    for name in ("TSUZUKI_WORKER_HEARTBEAT_INTERVAL_SEC", "TSUZUKI_RUN_HEARTBEAT_INTERVAL_SEC"):
        monkeypatch.setenv(name, "3600")
    monkeypatch.setattr("tsuzuki.worker.LOOK", 3600.0)
    go = asyncio.Event()

    @flow
    async def waits() -> int:
        await go.wait()
        return 1

    async with Worker(runs.backend, [waits], lease=36_000) as worker:
        working = asyncio.create_task(worker.run())
        run = await runs.submit(waits, tenant="ours")
        busy = await seen(runs, lambda record: record.state == WorkerState.RUNNING)
        assert (busy.current_run_id, busy.current_tenant) == (run.id, "ours")
        go.set()
        idle = await seen(runs, lambda record: record.last_run_id is not None)
        assert (idle.state, idle.current_run_id) == (WorkerState.IDLE, None)
        assert (idle.last_run_id, idle.last_tenant, idle.last_run_status) == (run.id, "ours", Status.COMPLETED)
        worker.stop()
        await working


async def test_a_hidden_worker_stays_hidden_when_it_is_started_again(runs: Runs) -> None:
    lives, name = set(), f"w-{uuid4()}"
    async with Worker(runs.backend, name=name, lease=0.3):
        assert await runs.backend.hide(name, True)
        first = await seen(runs, lambda record: record.hidden)
        await seen(runs, lambda record: record.beats > first.beats + 1)
        lives.add(first.instance_id)
    async with Worker(runs.backend, name=name, lease=0.3):
        again = await seen(runs, lambda record: record.beats > first.beats + 4)
        assert again.hidden
        lives.add(again.instance_id)
    assert len(lives) == 2


@pytest.mark.parametrize(
    ("told", "silent", "shown"),
    [
        (WorkerState.RUNNING, 19, WorkerState.RUNNING),
        (WorkerState.IDLE, 19, WorkerState.IDLE),
        (WorkerState.RUNNING, 21, WorkerState.DISCONNECTED),
        (WorkerState.IDLE, 21, WorkerState.DISCONNECTED),
        (WorkerState.STOPPED_GRACEFUL, 1_000_000, WorkerState.STOPPED_GRACEFUL),
    ],
)
def test_who_is_silent_for_too_long_is_disconnected_unless_it_left_in_order(
    told: WorkerState, silent: float, shown: WorkerState
) -> None:
    record = WorkerRecord(id="w1", state=told.value, heartbeat_at=1000.0)
    assert state_of(record, 1000.0 + silent, 20.0) is shown


async def test_a_worker_takes_the_runs_of_the_default_tag(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_DEFAULT_TAG", "lab")

    @flow
    async def one() -> int:
        return 1

    rows = [await runs.submit(one), await runs.submit("one")]
    assert {row.tag for row in rows} == {"lab"}
    assert (await runs.submit("one", tag="default")).tag == "default"  # who names a tag gets it
    async with Worker(runs.backend, [one]) as worker:
        working = asyncio.create_task(worker.run())
        assert {(await runs.wait(row.id)).status for row in rows} == {Status.COMPLETED}
        worker.stop()
        await working


async def test_a_worker_goes_on_with_what_its_name_held_before_it_was_killed(runs: Runs) -> None:
    @flow
    async def known() -> int:
        return 1

    name = f"w-{uuid4()}"
    rows = [await runs.submit(known), await runs.submit("forgotten"), await runs.submit(known)]
    claims = await runs.backend.claim(name, tags=["default"], limit=3)  # and here it is killed
    assert len(claims) == 3
    async with Worker(runs.backend, [known], name=name) as worker:
        working = asyncio.create_task(worker.run())
        statuses = [(await asyncio.wait_for(runs.wait(row.id), 20)).status for row in rows]
        assert statuses == [Status.COMPLETED, Status.FAILED, Status.COMPLETED]
        forgotten = await runs.get(rows[1].id)
        assert forgotten.error is not None
        assert forgotten.error.type == "FlowNotFound"
        worker.stop()
        await working


async def test_two_workers_of_one_store_cannot_have_the_same_name(runs: Runs) -> None:
    name = f"{'長い名前' * 30} {uuid4()}/1"
    async with Worker(runs.backend, name=name):
        with pytest.raises(Conflict, match="its own name"):
            await Worker(runs.backend, name=name).__aenter__()


async def test_what_was_claimed_ahead_is_handed_back_when_runs_take_longer_than_those_before(runs: Runs) -> None:
    stuck, executed = asyncio.Event(), []

    @flow
    async def short(number: int) -> None:
        executed.append(number)

    @flow
    async def long() -> None:
        await stuck.wait()

    async with Worker(runs.backend, [short, long], concurrency=2, name=f"w-{uuid4()}") as worker:
        for number in range(50):  # so that it learns to claim ahead
            await runs.submit(short, {"number": number})
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(60):
            while len(executed) < 50:
                await asyncio.sleep(0.01)
            for _ in range(2):
                await runs.submit(long, {})
            for number in range(50, 60):
                await runs.submit(short, {"number": number})
            async with Worker(runs.backend, [short], name=f"w-{uuid4()}") as other:
                helping = asyncio.create_task(other.run())
                while len(executed) < 60:
                    await asyncio.sleep(0.01)
                other.stop()
                await helping
        assert sorted(executed) == list(range(60))
        stuck.set()
        worker.stop()
        await working
