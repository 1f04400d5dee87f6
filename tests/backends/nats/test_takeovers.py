"""A worker that dies while its store comes and goes: whoever is left goes on with its runs."""

import asyncio
from collections import Counter

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status, Worker, flow
from tsuzuki.backends import WorkerRecord
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.errors import StoreError


class Looks:
    """Counts how often a worker could look who lives, and how often it could not."""

    def __init__(self, store: NatsBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        inner = store.workers

        async def workers(*, holding: bool = False) -> list[WorkerRecord]:
            try:
                found = await inner(holding=holding)
            except StoreError:
                self.counts["blind"] += 1
                raise
            self.counts["seen"] += holding
            return found

        monkeypatch.setattr(store, "workers", workers)

    async def more(self, what: str, times: int = 1) -> None:
        """Waits until it was so some more times."""
        wanted = self.counts[what] + times

        async def there() -> bool:
            return self.counts[what] >= wanted

        await until(there)


async def test_a_survivor_that_is_blind_again_and_again_takes_the_runs_of_the_dead_over(
    own_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never sees the store for a whole lease at a time; what it does see adds up."""

    begun = asyncio.Event()

    @flow
    async def ours() -> str:
        begun.set()
        return "done"

    other = await opened(own_server.url)
    run = await Runs(other).submit(ours, {})
    await other.beat(WorkerRecord(id="dead", host="another"))
    assert await other.claim("dead", tags=["default"])
    await other.close()
    store = await opened(own_server.url, timeout=0.5)
    looks = Looks(store, monkeypatch)
    async with asyncio.timeout(60), Worker(store, [ours], lease=3.0) as worker:
        working = asyncio.create_task(worker.run())
        while not begun.is_set():
            await looks.more("seen", 2)
            await asyncio.to_thread(own_server.kill)
            await looks.more("blind")
            await asyncio.to_thread(own_server.start)
        assert (await Runs(store).wait(run.id)).status is Status.COMPLETED
        worker.stop()
        await working
