"""The work queue when servers die under it: every run is executed once, whatever the queue has forgotten."""

import asyncio
from collections import Counter

import pytest

from tests.backends.nats.conftest import Open, wait_only
from tests.backends.nats.test_faults import until
from tests.nats_cluster import Cluster
from tests.nats_server import NatsServer
from tests.tcp_proxy import Proxy
from tsuzuki import Runs, Status, Worker, flow, held, task
from tsuzuki.backends.nats import NatsBackend


class Counted:
    """A flow that takes a moment, and how often it was called for each number."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()

        @flow
        async def counted(n: int) -> int:
            self.calls[n] += 1
            await asyncio.sleep(0.02)
            return n

        self.flow = counted


async def completed(store: NatsBackend, count: int) -> bool:
    return await store.counts() == {"COMPLETED": count}


async def test_runs_go_on_when_the_leader_of_the_queue_is_killed(cluster: Cluster, opened: Open) -> None:
    store, counted = await opened(cluster.url, prefix="tickets"), Counted()
    runs = Runs(store)
    async with Worker(store, [counted.flow]) as worker:
        working = asyncio.create_task(worker.run())
        for n in range(30):
            await runs.submit(counted.flow, {"n": n})
        cluster.nodes[await cluster.leader("tickets-work")].kill()
        submitted = 30
        while submitted < 60:

            async def submit(n: int = submitted) -> bool:
                await runs.submit(counted.flow, {"n": n}, idempotency_key=str(n))
                return True

            await until(submit, 60)
            submitted += 1
        await until(lambda: completed(store, 60), 60)
        worker.stop()
        await working
    assert counted.calls == Counter(range(60)), "each run was executed once"


async def test_runs_that_wait_are_executed_after_the_server_was_killed(own_server: NatsServer, opened: Open) -> None:
    store, counted = await opened(own_server.url), Counted()
    runs = Runs(store)
    async with Worker(store, [counted.flow], concurrency=2) as worker:
        for n in range(100):
            await runs.submit(counted.flow, {"n": n})
        working = asyncio.create_task(worker.run())

        async def half() -> bool:
            return len(counted.calls) > 40

        await until(half)
        own_server.kill()
        await asyncio.sleep(0.5)
        own_server.start()
        await until(lambda: completed(store, 100), 60)
        worker.stop()
        await working
    assert counted.calls == Counter(range(100))


async def test_runs_of_a_worker_that_was_cut_off_beyond_the_ack_wait_are_executed_once(
    own_server: NatsServer, opened: Open
) -> None:
    """Their tickets come back while they are under way; their holder lives, hence nobody else may have them."""
    counted, patient = Counted(), {"ack_wait": 1.0, "ack_progress": 0.3}
    other = await opened(own_server.url, **patient)
    async with Proxy(own_server.port) as way:
        store = await opened(way.url, **patient)
        async with Worker(store, [counted.flow], concurrency=5) as worker, Worker(other, [counted.flow]) as second:
            working = [asyncio.create_task(worker.run())]
            for n in range(100):
                await Runs(other).submit(counted.flow, {"n": n})

            async def begun() -> bool:
                return len(counted.calls) > 20

            await until(begun)
            wait_only(store, 1)
            await way.cut()
            working.append(asyncio.create_task(second.run()))
            await asyncio.sleep(3)
            await way.mend()
            await until(lambda: completed(other, 100), 60)
            for each in (worker, second):
                each.stop()
            await asyncio.gather(*working)
        await store.close()
    assert counted.calls == Counter(range(100))


@pytest.mark.parametrize("size", [1, 400_000])
async def test_a_worker_that_is_stopped_while_the_server_is_away_leaves_and_another_goes_on(
    own_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(held, "WRITING", 0.5)
    one, under_way, away = await opened(own_server.url), asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    @task
    async def first() -> str:
        calls.append("first")
        return "kept"

    @task
    async def second() -> str:
        calls.append("second")
        under_way.set()
        await away.wait()
        return "x" * size

    @flow
    async def both() -> int:
        await first()
        return len(await second())

    run = await Runs(one).submit(both, {})
    async with asyncio.timeout(60), Worker(one, [both], grace=0.2) as worker:
        working = asyncio.create_task(worker.run())
        await under_way.wait()
        wait_only(one, 0.5)
        own_server.kill()
        away.set()
        worker.stop()
        await working
    await one.close()
    own_server.start()
    two = await opened(own_server.url)
    async with Worker(two, [both]) as worker:
        working = asyncio.create_task(worker.run())
        assert (await Runs(two).wait(run.id)).status is Status.COMPLETED
        worker.stop()
        await working
    assert calls == ["first", "second", "second"]
