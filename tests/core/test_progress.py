"""How far a step is, and how long the rest will take."""

import asyncio

import msgspec
import pytest

from tsuzuki import Runs, Worker, current, flow, task
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.runlog import StepProgress


@task
async def told(number: int) -> int:
    current().progress(number, 10, f"step {number}")
    if number == 2:
        raise ValueError("no such number")
    return number


async def test_what_has_ended_tells_no_progress_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of a million items that tell of themselves would otherwise be a row of a million entries."""
    monkeypatch.setattr("tsuzuki.held.FLUSH", 0.01)
    over, leave = asyncio.Event(), asyncio.Event()

    @flow
    async def telling() -> None:
        current().progress(1, 2, "the flow itself")
        await told.map(range(5), concurrency=2, on_error="collect")
        await told(7)
        over.set()
        await leave.wait()

    runs = Runs(MemoryBackend())
    async with Worker(runs.backend, [telling]) as worker:
        loop = asyncio.create_task(worker.run())
        row = await runs.submit(telling)
        await over.wait()
        async with asyncio.timeout(60):
            while [one.get("text") for one in msgspec.json.decode((await runs.get(row.id)).progress)] != [
                "the flow itself"
            ]:
                await asyncio.sleep(0.01)
        leave.set()
        await runs.wait(row.id)
        worker.stop()
        await loop


def test_the_estimate_comes_from_items_that_took_time_not_from_those_the_journal_had() -> None:
    fresh = StepProgress("s", "translate", total=200, done=20, seconds=10.0, timed=20, lanes=4)
    assert fresh.shown()["eta"] == 22.5
    resumed = StepProgress("s", "translate", total=200, done=120, seconds=10.0, timed=20, lanes=4)
    assert resumed.shown()["eta"] == 10.0
    assert "eta" not in StepProgress("s", "translate", total=200, done=100).shown()
    assert not {"seconds", "timed", "lanes"} & fresh.shown().keys()


def test_code_that_tells_its_own_progress_has_an_estimate_too_without_what_the_journal_had() -> None:
    told = StepProgress("/", "flow")
    for second in range(4):
        told.tell(second, 10, f"step {second}", at=100.0 + 2 * second, replayed=0)
    assert (told.shown()["done"], told.shown()["eta"]) == (3, 14.0)
    again = StepProgress("/", "flow")
    for step in range(50):
        again.tell(step, 60, "", at=500.0 + step / 1000, replayed=step)
    assert "eta" not in again.shown(), "it only passed by what had been done"
    again.tell(52, 60, "", at=506.049, replayed=49)
    assert again.shown()["eta"] == 16.0
    again.tell(0, 60, "", at=510.0, replayed=49)
    assert "eta" not in StepProgress("/", "flow", total=60).shown()
    assert (again.seconds, again.timed) == (0.0, 0), "it began anew"
    assert "first" not in again.shown()
