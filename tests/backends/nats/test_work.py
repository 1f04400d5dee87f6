"""The work queue on NATS deals out runs; whatever happens to its tickets, every run is executed, and once."""
# ruff: noqa: SLF001 - it looks at the queue itself, and loses what else only a crash or the network would lose

import asyncio
import signal
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status, Worker, flow
from tsuzuki import facts as f
from tsuzuki.backends.nats import NatsBackend, tickets, topology
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.work import group_of
from tsuzuki.errors import BadUsage, ClaimLost, StoreUnavailable
from tsuzuki.lifecycle import Run
from tsuzuki.testing import builders as b

DEFAULT = ("default",)


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    return f"{nats_server.url}?prefix={nats_server.fresh()}"


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
    await store._parts.wire.api(topology.delete_stream(store._parts.topology.work))
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
        assert (await Runs(two).wait(run.id)).status is Status.COMPLETED
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
        outage.setattr(store._parts.wire, "tell", _unclear)
        await store.append(claim, [b.ending(Status.COMPLETED)])
    await no_ticket(store)


async def _unclear(*_: object) -> None:
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


# What gets lost


async def test_a_run_whose_ticket_was_lost_is_claimed_without_one(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await opened(url), await opened(url)
    publish = one._parts.wire.publish

    async def lose_tickets(subject: str, data: bytes, **wanted: Any) -> int:
        if subject.startswith(one._parts.topology.all_tickets[:-1]):
            raise Unclear("it got lost")
        return await publish(subject, data, **wanted)

    monkeypatch.setattr(one._parts.wire, "publish", lose_tickets)
    run = await b.submitted(one)
    assert await queued(one) == set()

    async def claimed() -> bool:
        return run.id in await given(two, "two")

    await until(claimed, 10)


SUBMITS = """
import asyncio, os, signal, sys
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.testing import builders as b

writes, publish = int(sys.argv[3]), Wire.publish

async def counted(self, *args, **wanted):
    global writes
    writes -= 1
    if writes < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return await publish(self, *args, **wanted)

async def main():
    store = await NatsBackend.open(sys.argv[1])
    Wire.publish = counted
    await b.submitted(store, id=sys.argv[2], flow="f", key="k", idempotency_key="once")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("writes", range(6), ids=["none", "once", "key", "number", "run", "ticket"])
async def test_a_submitter_that_is_killed_between_two_writes_leaves_all_or_nothing(
    url: str, opened: Open, writes: int
) -> None:
    store, run = await opened(url), b.a_run()
    child = subprocess.Popen([sys.executable, "-c", SUBMITS, url, run.id, str(writes)], stderr=subprocess.PIPE)
    _, complained = await asyncio.to_thread(child.communicate, timeout=30)
    assert child.returncode == -signal.SIGKILL, complained
    accepted = writes >= 4
    assert (await store.get(run.id) is not None) is accepted
    if not accepted:
        other = await b.submitted(store, flow="f", key="k", idempotency_key="once")
        assert other.id != run.id, "what the dead one had taken is free"
        run = other
    else:
        assert (await b.submitted(store, flow="f", idempotency_key="once")).id == run.id

    async def claimed() -> bool:
        return run.id in await given(store)

    await until(claimed, 10)


CLAIMS = """
import asyncio, os, signal, sys
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.backends.nats.chain import Chain

async def die(self, *args, **wanted):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = await NatsBackend.open(sys.argv[1])
    await store.counts()
    Chain.extend = die
    await store.claim("dead", tags=("default",))

asyncio.run(main())
"""


async def test_a_worker_that_is_killed_with_a_ticket_in_its_hand_costs_seconds(url: str, opened: Open) -> None:
    store = await opened(url)
    run = await b.submitted(store)
    child = subprocess.Popen([sys.executable, "-c", CLAIMS, url], stderr=subprocess.PIPE)
    _, complained = await asyncio.to_thread(child.communicate, timeout=30)
    assert child.returncode == -signal.SIGKILL, complained
    assert (await consumer(store, run))["num_ack_pending"] == 1, "it is dealt out, and the ack wait is 30 s"

    async def claimed() -> bool:
        return run.id in await given(store)

    await until(claimed, 10)


async def test_doctor_writes_missing_tickets_and_removes_those_of_no_use(url: str, opened: Open) -> None:
    store = await opened(url)
    missing, over = await b.submitted(store), await b.ended(store, Status.COMPLETED)
    await drop_ticket(store, missing)
    for run in (over, b.a_run()):
        await store._parts.work.enqueue(run)
    await b.submitted(store, not_before=store._clock.now() + 3600)
    held = await b.claimed(store)
    (check,) = [check for check in await store.examine() if check.name == "tickets"]
    assert check.text == "3 tickets, 2 of them of no use and removed, 1 missing and written"
    assert await queued(store) == {missing.id, held.run.id}


# Tickets that make no sense


@pytest.mark.parametrize("body", [b"garbage", b"{}", b'{"run_id": "another"}', b"\xff"])
async def test_a_ticket_that_cannot_be_read_fails_its_run_and_is_not_dealt_again(
    url: str, opened: Open, body: bytes
) -> None:
    store = await opened(url)
    run = await b.submitted(store)
    await drop_ticket(store, run)
    await store._parts.wire.publish(store._parts.topology.ticket(group_of(run), run.id), body)
    assert await given(store) == []
    row = await b.row(store, run.id)
    assert row.status is Status.FAILED
    assert row.error is not None
    (letter,) = await store.dead_letters()
    assert (letter.run_id, letter.reason) == (run.id, "invalid_job")
    await no_ticket(store)


async def test_a_ticket_of_no_run_that_cannot_be_read_is_a_dead_letter(url: str, opened: Open) -> None:
    store = await opened(url)
    nobody = b.a_run()
    await store._parts.wire.publish(store._parts.topology.ticket(group_of(nobody), nobody.id), b"garbage")
    run = await b.submitted(store)
    assert await given(store) == [run.id]
    (letter,) = await store.dead_letters()
    assert (letter.run_id, letter.reason) == (nobody.id, "invalid_job")
    assert await queued(store) == {run.id}


# Settings


async def test_names_and_limits_are_those_that_were_set(
    nats_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = nats_server.fresh()
    monkeypatch.setenv("TSUZUKI_WORK_SUBJECT_PREFIX", f"{name}.jobs")
    monkeypatch.setenv("TSUZUKI_CONSUMER_MAX_ACK_PENDING", "7")
    monkeypatch.setenv("TSUZUKI_CONSUMER_ACK_WAIT_SEC", "never")
    monkeypatch.setenv("TSUZUKI_CONSUMER_MAX_DELIVER", "3")
    monkeypatch.setenv("TSUZUKI_DLQ_STREAM", f"{name}-dead")
    monkeypatch.setenv("TSUZUKI_DLQ_PUBLISH_EXECUTION_ERROR", "false")
    store = await opened(f"{nats_server.url}?prefix={name}&dlq_prefix={name}.graves&max_ack_pending=9")
    assert f"work_prefix={name}.jobs" in store.url
    run = await b.submitted(store)
    for at in range(3):
        await b.claim_of(store, run.id, f"w{at}", dead=f"w{at - 1}")
    good = await b.submitted(store)
    assert await given(store, dead=frozenset({"w2"})) == [good.id]
    config = (await consumer(store, good))["config"]
    assert (config["max_ack_pending"], config["ack_wait"]) == (9, 30_000_000_000)
    assert config["filter_subject"].startswith(f"{name}.jobs.default.0.")
    await b.ended(store, Status.FAILED)
    (letter,) = await store.dead_letters()
    assert (letter.run_id, letter.reason) == (run.id, "max_claims")
    info = await store._parts.wire.api(topology.stream_info(f"{name}-dead"))
    assert info["config"]["subjects"] == [f"{name}.graves.>"]


@pytest.mark.parametrize(
    "query", ["ack_wait=5&ack_progress=5", "ack_progress=40", "work_prefix=a..b", "dlq_stream=a.b", "max_deliver=0"]
)
async def test_settings_that_do_not_fit_together_are_refused(nats_server: NatsServer, query: str) -> None:
    with pytest.raises(BadUsage):
        await NatsBackend.open(f"{nats_server.url}?prefix={nats_server.fresh()}&{query}")


async def test_a_stream_with_other_settings_is_kept_and_told_of(nats_server: NatsServer, opened: Open) -> None:
    name = nats_server.fresh()
    other = await opened(f"{nats_server.url}?prefix={nats_server.fresh()}")
    config = {"name": f"{name}-work", "subjects": [f"{name}.work.>"], "retention": "limits"}
    await other._parts.wire.api(topology.create_stream(f"{name}-work"), **config)
    with pytest.raises(StoreUnavailable, match=f"stream {name}-work has retention='limits'"):
        await opened(f"{nats_server.url}?prefix={name}")


async def test_a_consumer_with_other_limits_is_kept_if_it_will_do(url: str, opened: Open) -> None:
    one, two = await opened(url, ack_wait=20), await opened(url)
    runs = [await b.submitted(one) for _ in range(2)]
    assert await given(one) == [runs[0].id]
    await until(lambda: known(two, 2), 5)
    assert await given(two) == [runs[1].id]
    assert (await consumer(two, runs[0]))["config"]["ack_wait"] == 20_000_000_000
    late = await opened(url, ack_wait=100, ack_progress=50)
    await b.submitted(late)
    with pytest.raises(StoreUnavailable, match="ack_wait"):
        await given(late)


def test_a_ticket_says_which_run_it_is_for() -> None:
    run = b.a_run(number=7, tag="gpu")
    said = msgspec.json.decode(tickets.write(run))
    assert said == {"run_id": run.id, "flow_name": "crawl", "tag": "gpu", "number": 7}


async def test_a_submitter_does_not_wait_long_for_a_queue_that_does_not_answer(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    answers, enqueue = asyncio.Event(), store._parts.work.enqueue

    async def slowly(run: Run) -> None:
        await answers.wait()
        await enqueue(run)

    monkeypatch.setattr(store._parts.work, "enqueue", slowly)
    run = await asyncio.wait_for(b.submitted(store), 5)
    assert await queued(store) == set()
    answers.set()

    async def written() -> bool:
        return await queued(store) == {run.id}

    await until(written, 5)
