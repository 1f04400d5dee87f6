"""A fault of ours does not leave a worker blind."""

import asyncio

import pytest

from tsuzuki import Runs, Status, Worker, flow
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.testing import FaultyBackend

TOLD = "a fault of ours has stopped the loop tsuzuki-watch; it begins anew"


async def test_a_worker_sees_requests_also_after_a_fault_of_ours_in_its_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tsuzuki.worker.LOOK", 0.05)
    monkeypatch.setattr("tsuzuki.loops.PAUSE", 0.01)

    @flow
    async def endless() -> None:
        await asyncio.Event().wait()

    inner = MemoryBackend()
    store = FaultyBackend(inner, fail="search", at=1, error=RuntimeError("a fault of ours"))
    runs = Runs(inner)
    async with Worker(store, [endless]) as worker:
        loop = asyncio.create_task(worker.run())
        row = await runs.submit(endless)
        async with asyncio.timeout(60):
            while TOLD not in caplog.messages:
                await asyncio.sleep(0.01)
            await runs.cancel(row.id)
            assert (await runs.wait(row.id)).status is Status.CANCELLED
        worker.stop()
        await loop
