"""Several processes on one NATS store: each has its own view, and all agree."""
# ruff: noqa: SLF001 - it reaches for the parts of a store, to bring about what else only a crash would

import asyncio
import time
from typing import Any

import msgspec
import pytest

from tests.backends.nats.conftest import Open, wait_only
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Status
from tsuzuki import facts as f
from tsuzuki.backends import Query, WorkerRecord
from tsuzuki.backends.nats import NatsBackend, topology
from tsuzuki.backends.nats.frames import Tip
from tsuzuki.errors import BadUsage, KeyHeld, StoreUnavailable
from tsuzuki.lifecycle import Run
from tsuzuki.testing import builders as b


@pytest.fixture
async def stores(nats_server: NatsServer, opened: Open) -> tuple[NatsBackend, NatsBackend]:
    url = f"{nats_server.url}?prefix={nats_server.fresh()}"
    return await opened(url), await opened(url)


Two = tuple[NatsBackend, NatsBackend]


async def listed(store: NatsBackend, query: Query) -> list[Run]:
    return await store.search(query)


async def test_others_see_a_run_and_its_end_within_a_second(stores: Two) -> None:
    one, two = stores
    run = await b.submitted(one, tags=("a",), params=msgspec.Raw(b'{"x":"' + b"y" * 5000 + b'"}'))

    async def seen() -> bool:
        return await listed(two, Query(label="a")) == [run]

    await until(seen, 1)
    claim = await b.claim_of(two, run.id)
    assert claim.run.params == run.params
    await two.append(claim, [b.item("a"), b.ending(Status.COMPLETED)])

    async def ended() -> bool:
        return [row.status for row in await listed(one, Query())] == [Status.COMPLETED]

    await until(ended, 1)
    assert await listed(one, Query()) == await listed(two, Query())


async def test_a_purged_run_vanishes_for_others_and_does_not_come_back(stores: Two, opened: Open) -> None:
    one, two = stores
    run = await b.ended(one, Status.COMPLETED)

    async def count() -> bool:
        return sum((await two.counts()).values()) == 1

    await until(count)
    assert await one.purge([run.id]) == 1

    async def gone() -> bool:
        return await two.counts() == {}

    await until(gone, 1)
    assert await two.get(run.id) is None
    third = await opened(one.url)
    assert await third.counts() == {}


async def test_a_request_gets_in_beside_a_holder_that_writes_all_the_time(stores: Two) -> None:
    one, two = stores
    claim = await b.claimed(one)
    stop = asyncio.Event()

    async def write() -> int:
        n = 0
        while not stop.is_set():
            await one.append(claim, [b.item(str(n))])
            n += 1
        return n

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.1)
    async with asyncio.timeout(60):
        _, row = await two.ask(claim.run.id, b.cancel())
    assert row is not None
    assert row.status is Status.CANCELLING

    async def told() -> bool:
        return bool(await listed(one, Query(holder="worker", status=(Status.CANCELLING,))))

    await until(told)
    stop.set()
    written = await writing
    kinds = await b.kinds(two, claim.run.id)
    assert (kinds.count("ItemDone"), kinds.count("CancelAsked")) == (written, 1)


async def test_the_holder_lets_a_request_in(stores: Two) -> None:
    one, two = stores
    claim = await b.claimed(one)
    await two._parts.requests.put(claim.run.id, b.cancel())

    async def seen() -> bool:
        return (await b.row(two, claim.run.id)).status is Status.CANCELLING

    await until(seen, 1)


async def test_a_private_run_that_others_know_is_theirs_when_it_is_resumed_for_all(stores: Two) -> None:
    one, two = stores
    run = await b.ended(one, Status.FAILED, private=True)
    assert [row.id for row in await two.search(Query(private=True))] == [run.id]
    assert await two.claim("other", tags=["default"]) == []
    await one.ask(run.id, f.ResumeAsked(at=b.AT, share=True))

    async def given() -> bool:
        return [claim.run.id for claim in await two.claim("other", tags=["default"])] == [run.id]

    await until(given, 5)
    assert await two.search(Query(private=True)) == []


async def test_a_key_of_a_submitter_that_died_half_way_is_taken_over(stores: Two) -> None:
    one, two = stores
    dead = b.a_run(key="k", idempotency_key="once")
    await one._parts.keys.take_once(dead)
    await one._parts.keys.take(dead)  # and here its process is killed
    run = await b.submitted(two, key="k", idempotency_key="once")
    assert run.id != dead.id
    # It was not dead after all, and is fenced.
    submitted = [f.Submitted(at=b.AT, flow=dead.flow)]
    late = await one._parts.queue._make(dead, submitted, one.clock.monotonic() + 10)
    assert late.id == run.id
    with pytest.raises(KeyHeld):
        await b.submitted(one, key="k")
    assert (await b.submitted(one, idempotency_key="once")).id == run.id


@pytest.mark.parametrize("once", [None, "once"])
async def test_a_submitter_that_stood_still_learns_who_went_on_with_its_key(
    stores: Two, monkeypatch: pytest.MonkeyPatch, once: str | None
) -> None:
    one, two = stores
    extend, winner = one._parts.chain.extend, list[Run]()

    async def stand_still(*given: Any, **more: Any) -> Tip:
        monkeypatch.undo()
        winner.append(await b.submitted(two, key="k", idempotency_key=once))  # it waits for the grace, and takes over
        return await extend(*given, **more)

    monkeypatch.setattr(one._parts.chain, "extend", stand_still)
    if once is None:
        with pytest.raises(KeyHeld) as held:
            await b.submitted(one, key="k")
        assert held.value.run_id == winner[0].id
    else:
        assert (await b.submitted(one, key="k", idempotency_key=once)).id == winner[0].id
    assert await two.counts() == {"PENDING": 1}


async def test_a_submitter_whose_key_is_free_again_is_told_to_try_again(
    stores: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = stores
    extend = one._parts.chain.extend

    async def stand_still(*given: Any, **more: Any) -> Tip:
        monkeypatch.undo()
        await b.ended(two, Status.COMPLETED, key="k")
        return await extend(*given, **more)

    monkeypatch.setattr(one._parts.chain, "extend", stand_still)
    with pytest.raises(StoreUnavailable, match=r"stood still while it submitted.*try again"):
        await b.submitted(one, key="k")
    assert (await b.submitted(one, key="k")).status is Status.PENDING


async def test_an_answer_that_came_while_this_process_stood_still_is_heard(url: str, opened: Open) -> None:
    store = await opened(url)
    run = await b.submitted(store)
    wait_only(store, 0.5)
    asked = asyncio.create_task(store.get(run.id))
    await asyncio.sleep(0)
    time.sleep(1.5)
    assert await asked == run


async def test_one_of_many_submitters_in_two_processes_gets_the_key(stores: Two) -> None:
    answers = await asyncio.gather(
        *(b.submitted(store, key="k") for _ in range(10) for store in stores), return_exceptions=True
    )
    assert sum(isinstance(answer, Run) for answer in answers) == 1
    assert sum(isinstance(answer, KeyHeld) for answer in answers) == 19


async def test_no_run_is_given_to_two_processes(stores: Two) -> None:
    one, two = stores
    for _ in range(100):
        await b.submitted(one)
    given: list[str] = []

    async def work(store: NatsBackend, worker: str) -> None:
        while claims := await store.claim(worker, tags=("default",), limit=10):
            given.extend(claim.run.id for claim in claims)

    await asyncio.gather(work(one, "w1"), work(two, "w2"))
    while len(given) < 100:
        await work(two, "w2")
    assert len(set(given)) == len(given) == 100


async def test_a_feed_whose_consumer_was_deleted_goes_on_where_it_was(stores: Two) -> None:
    one, two = stores
    await b.submitted(one)
    feed = two._parts.follower.feed
    await two.counts()
    await two._parts.wire.api(topology.delete_consumer(feed._stream, feed._name))
    run = await b.submitted(one)

    async def seen() -> bool:
        return [row.id for row in await listed(two, Query(number=run.number))] == [run.id]

    await until(seen, 10)


async def test_whoever_leaves_takes_his_consumers_with_him(stores: Two) -> None:
    one, two = stores
    assert [await one.counts(), await two.counts()] == [{}, {}]

    async def followers() -> list[int]:
        names = one._parts.topology
        told = [await one._parts.wire.api(topology.stream_info(stream)) for stream in (names.journal, names.state)]
        return [info["state"]["consumer_count"] for info in told]

    async def both_follow() -> bool:
        return await followers() == [2, 2]

    await until(both_follow, 5)
    await two.close()
    assert await followers() == [1, 1]


async def test_workers_and_progress_are_seen_by_others(stores: Two) -> None:
    one, two = stores
    claim = await b.claimed(one, "w1")
    await one.beat(WorkerRecord(id="w1", heartbeat_at=b.AT * 2, tags=("a.b *",)))
    await one.log(claim.run.id, [], progress=b"[1]")
    assert [worker.id for worker in await two.workers()] == ["w1"]

    async def seen() -> bool:
        row = await b.row(two, claim.run.id)
        return (row.heartbeat_at, bytes(row.progress)) == (b.AT * 2, b"[1]")

    await until(seen, 1)


async def test_many_workers_are_all_listed(stores: Two) -> None:
    one, two = stores
    names = {f"a worker. named {n}" for n in range(1200)}
    for name in names:
        await one.beat(WorkerRecord(id=name, heartbeat_at=b.AT))
    assert {worker.id for worker in await two.workers()} == names


async def test_a_batch_larger_than_a_message_is_kept_whole(stores: Two) -> None:
    one, two = stores
    claim = await b.claimed(one)
    large = [b.item(str(n), result="x" * 200_000) for n in range(12)]
    assert await one.append(claim, large) == 14
    assert [entry.fact for entry in await two.read(claim.run.id, after=2)] == large


async def test_a_token_opens_the_door_and_is_not_shown(opened: Open, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = NatsServer(tmp_path_factory.mktemp("guarded"), settings="authorization { token: sesame }")
    server.start()
    try:
        store = await opened(server.url, token="sesame")  # noqa: S106 - of this test
        await b.submitted(store)
        assert "sesame" not in store.url
        await store.close()
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["nats://", "nats://a?prefix=a.b", "nats://a?color=red", "nats://a?replicas=many"])
async def test_an_address_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(BadUsage):
        await NatsBackend.open(url)


async def test_a_worker_that_comes_back_hears_at_once_what_its_name_held(nats_server: NatsServer, opened: Open) -> None:
    url = f"{nats_server.url}?prefix={nats_server.fresh()}"
    first = await opened(url)
    await first.beat(WorkerRecord(id="same", heartbeat_at=b.AT))
    for _ in range(200):
        await b.submitted(first)  # so that a new process takes a moment to know all
    claim = await b.claimed(first, "same")
    again = await opened(url)
    held = await again.beat(WorkerRecord(id="same", heartbeat_at=b.AT))
    assert [(holding.run_id, holding.attempt) for holding in held] == [(claim.run.id, 1)]
