"""What may go wrong with a NATS server and the way to it, and what it does to runs: nothing."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tests.backends.nats.conftest import Open, wait_only
from tests.nats_server import NatsServer, free_port
from tests.tcp_proxy import Proxy
from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki import facts as f
from tsuzuki.backends import Backend
from tsuzuki.backends.address import open_backend
from tsuzuki.errors import ClaimLost, StoreError, StoreUnavailable
from tsuzuki.script import run_here
from tsuzuki.testing import builders as b
from tsuzuki.testing.stopwatch import Stopwatch


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 30) -> None:
    """Waits until something is so; where there is no store just now, that is not so either."""
    with Stopwatch() as since:
        while since.fair < seconds:
            with contextlib.suppress(StoreError):
                if await condition():
                    return
            await asyncio.sleep(0.02)
    raise TimeoutError(f"it did not come to that within {seconds:g} s")


async def recorded(store: Backend, run_id: str) -> Counter[str]:
    """Counts the outcomes by key; positions must have no gap."""
    entries = await b.journal(store, run_id)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    return Counter(entry.fact.key for entry in entries if isinstance(entry.fact, f.Outcome) and entry.fact.key)


class Calls:
    """Counts how often a task was called for each item, and lets a test act in the midst of them."""

    def __init__(self) -> None:
        self.seen: Counter[int] = Counter()
        self.half = asyncio.Event()


def slow_map(calls: Calls, items: int = 60):  # type: ignore[no-untyped-def]
    @task
    async def work(n: int) -> int:
        calls.seen[n] += 1
        if len(calls.seen) > items // 3:
            calls.half.set()
        await asyncio.sleep(0.05)
        return n

    @flow
    async def mapped() -> int:
        return len((await work.map(range(items), concurrency=4, on_error="collect")).succeeded)

    return mapped


async def test_a_flow_goes_on_when_the_server_is_killed_and_started_again(own_server: NatsServer, opened: Open) -> None:
    store, calls = await opened(own_server.url), Calls()
    running = asyncio.create_task(run_here(Runs(store), slow_map(calls), {}))
    await calls.half.wait()
    own_server.kill()
    await asyncio.sleep(0.5)
    own_server.start()
    ended = await running
    assert (ended.status, ended.result) == (Status.COMPLETED, 60)
    assert set(calls.seen.values()) == {1}, "no item was called twice"
    assert set((await recorded(store, ended.id)).values()) == {1}
    again = await opened(own_server.url)
    assert (await b.row(again, ended.id)).done == 60


async def test_a_flow_goes_on_after_an_outage_of_seconds(own_server: NatsServer, opened: Open) -> None:
    async with Proxy(own_server.port) as way:
        store, calls = await opened(way.url), Calls()
        running = asyncio.create_task(run_here(Runs(store), slow_map(calls), {}))
        await calls.half.wait()
        await way.cut()
        await asyncio.sleep(5)
        await way.mend()
        ended = await running
        assert (ended.status, ended.result) == (Status.COMPLETED, 60)
        assert set(calls.seen.values()) == {1}
        assert set((await recorded(store, ended.id)).values()) == {1}
        await store.close()


async def test_a_lost_acknowledgement_does_not_write_twice(own_server: NatsServer, opened: Open) -> None:
    async with Proxy(own_server.port) as way:
        store = await opened(way.url)
        claim = await b.claimed(store)
        wait_only(store, 0.5)
        for n in range(5):
            way.deaf = True  # the server gets it, and its answer is lost
            append = asyncio.ensure_future(store.append(claim, [b.item(str(n))]))
            await asyncio.sleep(0.1)
            await way.cut()
            await way.mend()
            assert await append == n + 3
        assert await recorded(store, claim.run.id) == {str(n): 1 for n in range(5)}
        await store.close()


async def test_a_lost_acknowledgement_and_a_request_in_between(own_server: NatsServer, opened: Open) -> None:
    other = await opened(own_server.url)
    async with Proxy(own_server.port) as way:
        store = await opened(way.url)
        claim = await b.claimed(store)
        wait_only(store, 0.5)
        way.deaf = True
        append = asyncio.ensure_future(store.append(claim, [b.item("a")]))
        await until(lambda: _reached(other, claim.run.id, 3))
        await other.ask(claim.run.id, b.cancel())
        await way.cut()
        await way.mend()
        await append
        assert await b.kinds(other, claim.run.id) == ["Submitted", "Claimed", "ItemDone", "CancelAsked"]
        await store.append(claim, [b.ending(Status.CANCELLED)])
        await store.close()


async def _reached(store: Backend, run_id: str, position: int) -> bool:
    row = await store.get(run_id)
    return row is not None and row.position >= position


async def test_a_claim_whose_acknowledgement_was_lost_is_given_later(own_server: NatsServer, opened: Open) -> None:
    other = await opened(own_server.url)
    run = await b.submitted(other)
    async with Proxy(own_server.port) as way:
        store = await opened(way.url)
        await until(lambda: _listed(store, 1))
        way.deaf = True
        wait_only(store, 0.3)
        with pytest.raises(StoreUnavailable):
            await store.claim("worker", tags=("default",))
        wait_only(store, 5)
        assert (await b.row(other, run.id)).holder == "worker"
        await way.cut()
        await way.mend()
        claims: list[str] = []

        async def claimed() -> bool:
            claims.extend(claim.run.id for claim in await store.claim("worker", tags=("default",)))
            return bool(claims)

        await until(claimed)
        assert claims == [run.id]
        assert await b.kinds(other, run.id) == ["Submitted", "Claimed"]
        await store.close()


async def _listed(store: Backend, number: int) -> bool:
    return sum((await store.counts()).values()) == number


async def test_a_submission_that_was_answered_with_an_error_never_runs(own_server: NatsServer, opened: Open) -> None:
    other = await opened(own_server.url)
    async with Proxy(own_server.port) as way:
        store = await opened(way.url)
        wait_only(store, 0.3)
        run = b.a_run(key="k")
        number = store.submit(run, f.Submitted(at=b.AT, flow=run.flow))
        submitting = asyncio.ensure_future(number)
        await asyncio.sleep(0)
        way.deaf = True
        with pytest.raises(StoreUnavailable):
            await submitting
        await way.cut()
        await way.mend()

        async def free() -> bool:
            return (await b.submitted(other, key="k")).status is Status.PENDING

        await until(free)
        row = await other.get(run.id)
        assert row is None or row.status is Status.CANCELLED
        await store.close()


FREEZES = """
import asyncio, sys
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.errors import ClaimLost
from tsuzuki.testing import builders as b

async def main():
    store = await NatsBackend.open(sys.argv[1])
    claim = await b.claim_of(store, sys.argv[2], "frozen")
    n = 0
    try:
        while True:
            await store.append(claim, [b.item(f"frozen {n}")])
            n += 1
            await asyncio.sleep(0.001)
    except ClaimLost:
        print("lost", n, flush=True)
    await store.close()

asyncio.run(main())
"""


async def test_the_late_facts_of_a_frozen_worker_are_refused(own_server: NatsServer, opened: Open) -> None:
    store = await opened(own_server.url)
    run = await b.submitted(store)
    worker = subprocess.Popen([sys.executable, "-c", FREEZES, own_server.url, run.id], stdout=subprocess.PIPE)
    try:
        await until(lambda: _reached(store, run.id, 20))
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(0.2)
        claim = await b.claim_of(store, run.id, "next", dead="frozen")
        before = len(await b.journal(store, run.id))
        await store.append(claim, [b.item("mine", attempt=2)])
        worker.send_signal(signal.SIGCONT)
        told, _ = await asyncio.to_thread(worker.communicate, timeout=60)
        assert told.startswith(b"lost")
        assert len(await b.journal(store, run.id)) == before + 1
        assert set((await recorded(store, run.id)).values()) == {1}
    finally:
        worker.kill()
        worker.communicate()


async def test_a_full_store_says_so_and_goes_on_when_there_is_room(own_server: NatsServer, opened: Open) -> None:
    store = await opened(own_server.url, max_bytes=300_000)
    first = await b.claimed(store)
    await store.append(first, [b.item(str(n), result="x" * 1000) for n in range(20)])
    await store.append(first, [b.ending(Status.COMPLETED)])
    claim = await b.claimed(store)
    written = 0
    for size in (1000, 1):
        with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many
            for n in range(1000):
                await store.append(claim, [b.item(f"{size} {n}", result="x" * size)])
                written += 1
    with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many; a small one may still fit
        for _ in range(1000):
            await b.submitted(store)
    assert sum((await recorded(store, claim.run.id)).values()) == written
    assert (await b.row(store, claim.run.id)).done == written
    assert await store.purge([first.run.id]) == 1
    assert await store.append(claim, [b.item("room")]) == written + 3
    await b.submitted(store, key="k")


async def test_a_store_that_cannot_be_reached_is_told_of_soon(opened: Open) -> None:
    port = free_port()
    with pytest.raises(StoreUnavailable, match=rf"127.0.0.1:{port}.* cannot be reached.*check the address"):
        await opened(f"nats://127.0.0.1:{port}", connect_timeout=0.5)


async def test_a_verb_says_that_the_server_is_away_and_works_when_it_is_back(
    own_server: NatsServer, opened: Open
) -> None:
    store = await opened(own_server.url)
    run = await b.submitted(store)
    wait_only(store, 0.5)
    own_server.kill()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.get(run.id)
    with pytest.raises(StoreUnavailable):
        await store.workers()
    wait_only(store, 5)
    own_server.start()

    async def back() -> bool:
        return await store.get(run.id) is not None

    await until(back)
    await b.claim_of(store, run.id)


async def test_a_thousand_runs_go_through_one_worker(nats_server: NatsServer, opened: Open) -> None:
    """On Python 3.11 a pull that waits with `asyncio.wait_for` was seen to stop for good after a few runs."""
    calls: Counter[int] = Counter()

    @flow
    async def counted(n: int) -> int:
        calls[n] += 1
        return n

    url = f"{nats_server.url}?prefix={nats_server.fresh()}"
    submitter, store = await opened(url), await opened(url)
    runs = Runs(submitter)
    async with Worker(store, [counted]) as worker:
        working = asyncio.create_task(worker.run())
        await asyncio.gather(*(runs.submit(counted, {"n": n}) for n in range(1000)))

        async def done() -> bool:
            return await submitter.counts() == {"COMPLETED": 1000}

        await until(done, 60)
        worker.stop()
        await working
    assert set(calls.values()) == {1}
    await store.remove()


async def test_an_address_opens_the_store(own_server: NatsServer) -> None:
    store = await open_backend(f"{own_server.url}?prefix=team&timeout=2")
    run = await b.submitted(store)
    await store.close()
    again = await open_backend(store.url)
    assert await again.get(run.id) == run
    await again.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await again.get(run.id)


async def test_a_frozen_server_costs_time_and_nothing_else(own_server: NatsServer, opened: Open) -> None:
    store, calls = await opened(own_server.url), Calls()
    running = asyncio.create_task(run_here(Runs(store), slow_map(calls, 30), {}))
    await calls.half.wait()
    wait_only(store, 0.5)
    own_server.signal(signal.SIGSTOP)
    await asyncio.sleep(1.5)
    own_server.signal(signal.SIGCONT)
    ended = await running
    assert (ended.status, ended.result) == (Status.COMPLETED, 30)
    assert set(calls.seen.values()) == {1}


async def test_a_claim_is_lost_where_the_journal_went_on_without_us(own_server: NatsServer, opened: Open) -> None:
    one, two = await opened(own_server.url), await opened(own_server.url)
    old = await b.claimed(one, "old")
    await one.append(old, [b.item("a")])
    new = await b.claim_of(two, old.run.id, "new", dead="old")
    with pytest.raises(ClaimLost):
        await one.append(old, [b.item("b")])
    assert await two.append(new, [b.item("b", attempt=2)]) == 5
