"""Tickets that get lost, come too late or make no sense: every run is executed all the same, or fails in sight."""
# ruff: noqa: SLF001 - it looks at the queue itself, and loses what else only a crash or the network would lose

import asyncio
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.backends.nats.test_work import (
    consumer,
    drop_ticket,
    given,
    no_ticket,
    queued,
    unclear,
)
from tsuzuki import Status
from tsuzuki import facts as f
from tsuzuki.backends import WorkerRecord
from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.work import group_of
from tsuzuki.errors import ClaimLost
from tsuzuki.lifecycle import Run
from tsuzuki.testing import builders as b


async def test_a_run_whose_ticket_was_lost_is_claimed_without_one(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await opened(url), await opened(url)
    publish = one._parts.wire.publish

    async def lose_tickets(subject: str, data: bytes, **wanted: Any) -> int:
        if subject.startswith(one._parts.topology.all_work[:-1]):
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
    await store._parts.work.enqueue(over)
    await b.submitted(store, not_before=store._clock.now() + 3600)
    held = await b.claimed(store)
    (check,) = [check for check in await store.examine() if check.name == "tickets"]
    assert check.text == "2 tickets, 1 of them of no use and removed, 1 missing and written"
    assert await queued(store) == {missing.id, held.run.id}


async def test_a_run_that_comes_back_without_a_ticket_gets_a_new_one(url: str, opened: Open) -> None:
    store = await opened(url)
    claim = await b.claimed(store)
    await drop_ticket(store, claim.run)
    await store.append(claim, [f.Released(at=b.AT)])
    assert await queued(store) == {claim.run.id}


async def test_a_submitter_does_not_wait_long_for_a_queue_that_does_not_answer(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    answers, enqueue = asyncio.Event(), store._parts.work.enqueue

    async def slowly(run: Run) -> None:
        await answers.wait()
        await enqueue(run)

    monkeypatch.setattr(store._parts.work, "enqueue", slowly)
    run = await asyncio.wait_for(b.submitted(store), 60)
    assert await queued(store) == set()
    answers.set()

    async def written() -> bool:
        return await queued(store) == {run.id}

    await until(written)


async def test_a_dead_letter_that_cannot_be_written_changes_nothing_and_is_written_later(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    claim = await b.claimed(store)
    with monkeypatch.context() as outage:
        outage.setattr(store._parts.letters, "write", unclear)
        await store.append(claim, [b.ending(Status.FAILED)])
    assert (await b.row(store, claim.run.id)).status is Status.FAILED
    assert await store.dead_letters() == []
    await store.examine()
    assert [letter.run_id for letter in await store.dead_letters()] == [claim.run.id]


async def test_a_dead_letter_that_somebody_has_dropped_is_not_written_again(url: str, opened: Open) -> None:
    store = await opened(url)
    first, second = await b.claimed(store), await b.claimed(store)
    for claim in (first, second):
        await store.append(claim, [b.ending(Status.FAILED)])
    (kept,) = [letter for letter in await store.dead_letters() if letter.run_id == second.run.id]
    for letter in await store.dead_letters():
        if letter != kept:
            assert await store.drop_letter(letter.id)
            assert not await store.drop_letter(letter.id)
    await store.examine()
    assert await store.dead_letters() == [kept]
    # A later failure is another matter: a crash may have kept its letter back.
    await store.ask(first.run.id, b.resume())
    assert await store._parts.letters.dropped() == {first.run.id: 1}
    again = await b.claim_of(store, first.run.id)
    await store.append(again, [b.ending(Status.FAILED, attempt=again.attempt)])
    (late,) = [letter for letter in await store.dead_letters() if letter.run_id == first.run.id]
    await store._parts.wire.api(topology.delete_message(store._parts.topology.letters), seq=int(late.id), no_erase=True)
    await store.examine()
    assert [letter.run_id for letter in await store.dead_letters()] == [first.run.id, second.run.id]
    await store.purge([first.run.id])
    await store.examine()
    assert await store._parts.letters.dropped() == {}


async def test_nothing_is_kept_of_claims_that_others_have_by_now(url: str, opened: Open) -> None:
    one, two = await opened(url), await opened(url)
    idle, used, held = await b.claimed(one), await b.claimed(one), await b.claimed(one)
    await one.append(used, [b.item("a")])
    for claim in (idle, used):
        await b.claim_of(two, claim.run.id, "another", dead="worker")

    async def alone() -> bool:
        await one.beat(WorkerRecord(id="worker"))
        return not one._pens.holds(idle) and not one._pens.holds(used)

    await until(alone, 10)
    assert one._pens.holds(held)
    with pytest.raises(ClaimLost):
        await one.append(used, [b.item("b")])
    assert not one._pens.holds(used)
    await one.append(held, [b.item("a"), b.ending(Status.COMPLETED)])
    assert not one._pens.holds(held)


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
