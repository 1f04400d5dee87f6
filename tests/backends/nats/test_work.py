"""The work queue on NATS deals out runs; whatever happens to its tickets, every run is executed, and once."""
# ruff: noqa: SLF001 - it looks at the queue itself, and loses what else only a crash or the network would lose

import asyncio
import contextlib
from typing import Any

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tsuzuki import Runs, Status, Worker, flow
from tsuzuki import facts as f
from tsuzuki.backends.nats import NatsBackend, administration, tickets, topology
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.work import group_of
from tsuzuki.errors import ClaimLost, StoreUnavailable
from tsuzuki.lifecycle import Run
from tsuzuki.testing import builders as b

DEFAULT = ("default",)


async def queued(store: NatsBackend) -> set[str]:
    """Names the runs that have a ticket."""
    return {topology.last_token(subject) for subject in await store._parts.work._subjects()}


async def consumer(store: NatsBackend, run: Run) -> dict[str, Any]:
    """Tells the state of the consumer that deals out a run."""
    name, _ = store._parts.topology.consumer(group_of(run))
    return await store._parts.wire.api(topology.consumer_info(store._parts.topology.work, name))


async def no_ticket(store: NatsBackend) -> None:
    async def none() -> bool:
        return not await queued(store)

    await until(none, 10)


async def drop_ticket(store: NatsBackend, run: Run) -> None:
    subject = store._parts.topology.ticket(group_of(run), run.id)
    await store._parts.wire.api(topology.purge_stream(store._parts.topology.work), filter=subject)


async def given(store: NatsBackend, worker: str = "worker", **wanted: Any) -> list[str]:
    return [claim.run.id for claim in await store.claim(worker, tags=DEFAULT, **wanted)]


def words(store: NatsBackend, monkeypatch: pytest.MonkeyPatch, lose: tuple[bytes, ...] = ()) -> list[bytes]:
    """Notes what a store says about tickets, and loses some of it on the way."""
    said: list[bytes] = []
    tell = store._parts.wire.tell

    async def tell_and_note(subject: str, data: bytes) -> None:
        said.append(data)
        if data not in lose:
            await tell(subject, data)

    monkeypatch.setattr(store._parts.wire, "tell", tell_and_note)
    return said


# The life of a ticket


async def test_a_shared_run_has_a_ticket_until_it_has_ended(url: str, opened: Open) -> None:
    store = await opened(url)
    run = await b.submitted(store)
    await b.submitted(store, private=True)
    assert await queued(store) == {run.id}
    (claim,) = await store.claim("worker", tags=DEFAULT)
    await store.append(claim, [b.item("a")])
    assert await queued(store) == {run.id}
    assert (await consumer(store, run))["num_ack_pending"] == 1
    await store.append(claim, [b.ending(Status.FAILED)])
    await no_ticket(store)
    await store.ask(run.id, b.resume())
    assert await queued(store) == {run.id}
    assert await given(store) == [run.id]


async def test_a_run_that_was_claimed_without_its_ticket_leaves_none_behind(url: str, opened: Open) -> None:
    store = await opened(url)
    claim = await b.claimed(store)
    assert await queued(store) == {claim.run.id}
    await store.append(claim, [b.ending(Status.COMPLETED)])
    await no_ticket(store)


async def test_the_ticket_of_a_cancelled_run_goes(url: str, opened: Open) -> None:
    store = await opened(url)
    run = await b.submitted(store)
    await store.ask(run.id, b.cancel())
    await no_ticket(store)


async def test_what_is_handed_back_is_dealt_out_again_at_once(url: str, opened: Open) -> None:
    one, two = await opened(url), await opened(url)
    run = await b.submitted(one)
    (claim,) = await one.claim("one", tags=DEFAULT)
    assert (await consumer(one, run))["num_redelivered"] == 0
    await one.append(claim, [f.Released(at=b.AT)])

    async def claimed() -> bool:
        return await given(two, "two") == [run.id]

    await until(claimed, 10)
    state = await consumer(two, run)
    assert (state["num_redelivered"], state["num_ack_pending"]) == (1, 1), "by its ticket, not without"


async def test_a_long_delay_keeps_nobody_back(url: str, opened: Open) -> None:
    """Tickets that are delayed count as dealt out: many of them would stop the queue."""
    store = await opened(url, max_ack_pending=3)
    delayed = [await b.submitted(store) for _ in range(5)]
    while claims := await store.claim("worker", tags=DEFAULT, limit=3):
        for claim in claims:
            await store.append(claim, [f.Released(at=b.AT, not_before=store._clock.now() + 3600)])
    later = await b.submitted(store, not_before=store._clock.now() + 3600)
    run = await b.submitted(store)
    assert await given(store) == [run.id]
    assert await queued(store) == {run.id}, f"neither {later.id} nor {len(delayed)} others have a ticket"


# Dealing


async def test_workers_that_are_dealt_tickets_do_not_want_the_same_run(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [await opened(url) for _ in range(4)]
    runs = {(await b.submitted(stores[0])).id for _ in range(120)}
    beaten = 0
    extend = Chain.extend

    async def extend_and_count(self: Chain, *args: Any, **wanted: Any) -> Any:
        nonlocal beaten
        try:
            return await extend(self, *args, **wanted)
        except Passed:
            beaten += 1
            raise

    monkeypatch.setattr(Chain, "extend", extend_and_count)
    for store in stores:
        await until(lambda store=store: known(store, 120), 10)  # type: ignore[misc]  # bound as it is now
    found: list[str] = []

    async def all_claimed() -> bool:
        rounds = await asyncio.gather(*(given(store, f"w{at}", limit=40) for at, store in enumerate(stores)))
        found.extend(run for claims in rounds for run in claims)
        return len(found) >= 120

    await until(all_claimed, 20)
    assert (set(found), len(found)) == (runs, 120)
    assert beaten < 12, "all but none of the claims met another one"


async def known(store: NatsBackend, count: int) -> bool:
    return sum((await store.counts()).values()) == count


async def test_a_worker_is_not_dealt_what_it_does_not_know(url: str, opened: Open) -> None:
    store = await opened(url, max_ack_pending=5)
    strange = [await b.submitted(store, flow="strange") for _ in range(20)]
    mine = await b.submitted(store, flow="mine")
    assert await given(store, flows={"mine"}, limit=10) == [mine.id]
    assert await given(store, "other", flows={"strange"}) == [strange[0].id]


async def test_more_runs_than_the_queue_has_out_at_a_time_can_be_claimed(url: str, opened: Open) -> None:
    store = await opened(url, max_ack_pending=2)
    runs = {(await b.submitted(store)).id for _ in range(6)}
    found: set[str] = set()

    async def all_claimed() -> bool:
        found.update(await given(store, limit=6))
        return found == runs

    await until(all_claimed, 20)


async def test_a_ticket_of_a_run_that_another_process_holds_does_no_harm(url: str, opened: Open) -> None:
    one, two = await opened(url), await opened(url)
    held = await b.claimed(one, "one")  # by its id: the ticket is still in the queue
    await b.submitted(one)
    waiting = await b.submitted(one)
    await until(lambda: known(two, 3), 5)
    found: list[str] = []

    async def both() -> bool:
        found.extend(await given(two, "two", limit=3))
        return len(found) == 2

    await until(both, 10)
    await one.append(held, [b.item("a"), b.ending(Status.COMPLETED)])
    assert (await b.row(two, held.run.id)).attempt == 1
    assert waiting.id in await queued(two)

    async def gone() -> bool:
        return held.run.id not in await queued(two)

    await until(gone, 5)


async def test_a_ticket_that_comes_after_the_claim_is_kept_with_it(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    held = await b.claimed(store)
    waiting = await b.submitted(store)
    assert await given(store, limit=2) == [waiting.id]
    said = words(store, monkeypatch)
    await store.append(held, [b.ending(Status.COMPLETED)])
    assert said == [tickets.ACK]


async def test_a_consumer_that_was_deleted_is_made_again(url: str, opened: Open) -> None:
    store = await opened(url)
    first, second = await b.submitted(store), await b.submitted(store)
    assert await given(store) == [first.id]
    name, _ = store._parts.topology.consumer(group_of(first))
    await store._parts.wire.api(topology.delete_consumer(store._parts.topology.work, name))
    assert await given(store) == [second.id]


async def test_runs_are_claimed_where_the_queue_is_gone(url: str, opened: Open) -> None:
    store = await opened(url)
    first = await b.submitted(store)
    await store._parts.wire.api(administration.delete_stream(store._parts.topology.work))
    assert await given(store) == [first.id]
    second = await b.submitted(store)
    assert await given(store) == [second.id]


# While a run lives


async def test_a_run_of_many_ack_waits_is_executed_once(url: str, opened: Open) -> None:
    calls = 0

    @flow
    async def long() -> int:
        nonlocal calls
        calls += 1
        await asyncio.sleep(7)
        return calls

    one, two = [await opened(url, ack_wait=3, ack_progress=0.2) for _ in range(2)]
    async with Worker(one, [long]) as first, Worker(two, [long]) as second:
        working = [asyncio.create_task(worker.run()) for worker in (first, second)]
        run = await Runs(one).submit(long)

        async def under_way() -> bool:
            return calls == 1

        await until(under_way, 10)
        # A ticket whose time is up is dealt out again only to somebody who asks, and nobody else has a reason to.
        dealer = tickets.Dealer(two._parts.wire, two._parts.topology, group_of(run), lambda *_: None)
        ending = asyncio.create_task(Runs(two).wait(run.id))
        while not ending.done():
            with contextlib.suppress(Unclear):  # a busy machine has no answer within its second, and that tells nothing
                assert await dealer.deal(1, 0.0) == []
            await asyncio.wait({ending}, timeout=0.1)
        assert (await ending).status is Status.COMPLETED
        assert (await consumer(one, run))["num_redelivered"] == 0
        for worker in (first, second):
            worker.stop()
        await asyncio.gather(*working)
    assert calls == 1
    assert (await b.row(one, run.id)).attempt == 1
    await no_ticket(one)


async def test_a_completed_run_is_not_repeated_when_its_ack_was_lost(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = [await opened(url, ack_wait=0.4, ack_progress=0.1) for _ in range(2)]
    run = await b.submitted(one)
    (claim,) = await one.claim("one", tags=DEFAULT)
    words(one, monkeypatch, lose=(tickets.ACK,))
    await one.append(claim, [b.ending(Status.COMPLETED)])
    assert await queued(one) == {run.id}

    async def dealt_again() -> bool:  # to somebody else, who looks for something to do
        await b.submitted(two)
        await given(two, limit=5)
        return run.id not in await queued(two)

    await until(dealt_again, 20)
    assert await b.kinds(two, run.id) == ["Submitted", "Claimed", "RunCompleted"]


async def test_an_ack_that_cannot_be_sent_is_sent_later(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url, ack_wait=30, ack_progress=0.2)
    await b.submitted(store)
    (claim,) = await store.claim("worker", tags=DEFAULT)
    with monkeypatch.context() as outage:
        outage.setattr(store._parts.wire, "tell", unclear)
        await store.append(claim, [b.ending(Status.COMPLETED)])
    await no_ticket(store)


async def unclear(*_: object) -> None:
    raise Unclear("no way")


async def test_after_a_lost_claim_not_a_word_is_said_about_its_ticket(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await opened(url, ack_wait=5, ack_progress=0.1)
    two = await opened(url)
    run = await b.submitted(one)
    (old,) = await one.claim("old", tags=DEFAULT)
    new = await b.claim_of(two, run.id, "new", dead="old")
    with pytest.raises(ClaimLost):
        await one.append(old, [b.item("late")])

    async def told() -> bool:
        return (await b.row(one, run.id)).holder == "new"

    await until(told, 5)
    await asyncio.sleep(0.2)
    said = words(one, monkeypatch)
    await asyncio.sleep(0.5)
    assert said == []
    assert run.id in await queued(two)
    await two.append(new, [b.ending(Status.COMPLETED, 2)])
    await no_ticket(two)


async def test_a_store_that_fails_while_claiming_lets_others_have_the_ticket(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await opened(url), await opened(url)
    run = await b.submitted(one)

    async def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("not just now")

    monkeypatch.setattr(one._parts.chain, "extend", fail)
    said = words(one, monkeypatch)
    with pytest.raises(StoreUnavailable):
        await one.claim("one", tags=DEFAULT)
    assert said == [tickets.back(2.0)]

    async def claimed() -> bool:
        return run.id in await given(two, "two")

    await until(claimed, 10)


async def test_what_a_stopped_worker_had_claimed_ahead_is_executed_by_another_one_at_once(
    url: str, opened: Open
) -> None:
    go, begun = asyncio.Event(), asyncio.Event()

    @flow
    async def quick(n: int) -> int:
        if n < 0:
            begun.set()
            await go.wait()
        return n

    one, two = await opened(url), await opened(url)
    runs = Runs(one)
    async with Worker(one, [quick], concurrency=1) as first:
        working = asyncio.create_task(first.run())
        for n in range(60):  # so that it learns that runs are short, and claims ahead
            await runs.wait((await runs.submit(quick, {"n": n})).id)
        await runs.submit(quick, {"n": -1}, priority=1)
        await begun.wait()
        for n in range(100, 110):
            await runs.submit(quick, {"n": n})

        async def ahead() -> bool:
            return (await one.counts()).get("RUNNING", 0) > 3

        await until(ahead, 10)
        first.stop()
        async with Worker(two, [quick]) as second:
            other = asyncio.create_task(second.run())

            async def executed() -> bool:
                return (await one.counts()) == {"COMPLETED": 70, "RUNNING": 1}

            await until(executed, 20)  # the ack wait is 30 s
            go.set()
            await working
            second.stop()
            await other
    await no_ticket(one)
