"""Whoever waits for a run goes on looking while its store is away, on every store."""

import asyncio
from pathlib import Path

import pytest

from tsuzuki import Run, Runs, Status
from tsuzuki.backends.address import open_backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.errors import NotAStore, RunNotFound, StoreClosed, StoreUnavailable
from tsuzuki.testing import FaultyBackend
from tsuzuki.testing import builders as b


@pytest.mark.parametrize("verb", ["get", "read", "read_log", "changed"])
async def test_those_who_wait_and_follow_look_again(verb: str) -> None:
    store = MemoryBackend()
    claim = await b.claimed(store)
    runs = Runs(FaultyBackend(store, fail=verb, times=3))

    async def followed() -> list[int]:
        return [entry.position async for entry in runs.follow(claim.run.id)]

    async def lines() -> list[str]:
        return [line.text async for line in runs.follow_log(claim.run.id)]

    waiting = asyncio.gather(runs.wait(claim.run.id), followed(), lines())
    await asyncio.sleep(0.05)
    await store.append(claim, [b.ending(Status.COMPLETED)])
    row, positions, _ = await asyncio.wait_for(waiting, 20)
    assert (row.status, positions) == (Status.COMPLETED, [1, 2, 3])


async def test_an_outage_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryBackend()
    run = await b.ended(store, Status.COMPLETED)
    await Runs(FaultyBackend(store, fail="get", times=3)).wait(run.id)
    assert [record.message for record in caplog.records] == ["waiting for the store: get was told to fail by a test"]


@pytest.mark.parametrize("error", [NotAStore("no store"), StoreClosed("closed")])
async def test_what_does_not_come_back_is_not_waited_for(error: Exception) -> None:
    store = MemoryBackend()
    run = await b.submitted(store)
    with pytest.raises(type(error)):
        await Runs(FaultyBackend(store, fail="get", error=error)).wait(run.id)
    with pytest.raises(RunNotFound):
        await Runs(store).wait("77")


async def test_those_who_ask_only_once_are_told_at_once() -> None:
    store = MemoryBackend()
    run = await b.submitted(store)
    with pytest.raises(StoreUnavailable):
        await Runs(FaultyBackend(store, fail="get")).get(run.id)


async def test_a_file_that_was_closed_is_not_waited_for(tmp_path: Path) -> None:
    store = await open_backend(f"sqlite:///{tmp_path / 'a.db'}")
    run = await b.submitted(store)
    waiting = asyncio.create_task(Runs(store).wait(run.id))
    await asyncio.sleep(0.05)
    await store.close()
    with pytest.raises(StoreClosed, match="was closed"):
        await asyncio.wait_for(waiting, 20)


async def test_what_passes_is_asked_again_by_who_cancels_and_nothing_else() -> None:
    store = MemoryBackend()
    run = await b.submitted(store)
    looks = 0

    class Electing(MemoryBackend):
        """Has no answer yet."""

        passing = True

        async def get(self, run_id: str) -> Run | None:
            nonlocal looks
            looks += 1
            if looks > 2:
                return await store.get(run_id)
            error = StoreUnavailable("no leader yet")
            error.passing = self.passing
            raise error

    electing = Electing()
    electing.ask = store.ask  # type: ignore[method-assign]  # what is asked is asked of the store
    _, row = await Runs(electing).cancel(run.id)
    assert (row.status, looks) == (Status.CANCELLED, 3)
    looks, electing.passing = 0, False
    with pytest.raises(StoreUnavailable):
        await Runs(electing).cancel(run.id)
    assert looks == 1
