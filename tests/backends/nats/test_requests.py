"""Requests of others: kept on a subject of their own, let into the chain once, by whoever can."""
# ruff: noqa: SLF001 - it reaches for the parts of a store, to bring about what else only a crash would

import asyncio
import sys
from typing import Any

import msgspec
import nats
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Status
from tsuzuki import facts as f
from tsuzuki.backends import Query
from tsuzuki.backends.nats import NatsBackend, administration, requests, topology
from tsuzuki.backends.nats.requests import Fate
from tsuzuki.errors import StoreError
from tsuzuki.lifecycle import RunUpdateResult
from tsuzuki.testing import builders as b

ASKS = """
import asyncio, os, signal, sys
from tsuzuki import facts as f
from tsuzuki.backends.nats import NatsBackend

async def main():
    store = await NatsBackend.open(sys.argv[1])
    put = store._parts.requests.put

    async def die(*given):
        print(await put(*given), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    store._parts.requests.put = die
    ask = {"cancel": f.CancelAsked, "resume": f.ResumeAsked}[sys.argv[3]](at=store.clock.now())
    await store.ask(sys.argv[2], ask)

asyncio.run(main())
"""


@pytest.fixture
async def pair(url: str, opened: Open) -> tuple[NatsBackend, NatsBackend]:
    return await opened(url), await opened(url)


async def asked(store: NatsBackend, run_id: str) -> list[tuple[int, dict[str, Any]]]:
    """Reads what lies on the subject of a run, as any client of NATS can."""
    names = store._parts.topology
    request = {"seq": 1, "next_by_subj": names.request(run_id), "batch": 100}
    found = await store._parts.wire.many(topology.direct_get(names.journal), msgspec.json.encode(request))
    return [(int((each.headers or {})["Nats-Sequence"]), msgspec.json.decode(each.data)) for each in found]


async def let_in(store: NatsBackend, run_id: str) -> list[int]:
    """Gives the requests that messages of a chain say they have let in."""
    return [seq for _, frame in await store._parts.chain.after(run_id, 0) for seq in frame.requests]


async def test_a_request_is_a_message_of_its_own_and_the_holder_lets_it_in_without_a_refused_write(
    pair: tuple[NatsBackend, NatsBackend],
) -> None:
    one, two = pair
    claim = await b.claimed(one)
    await one.append(claim, [b.item("before")])
    result, row = await two.ask(claim.run.id, b.cancel())
    assert row is not None
    assert (result, row.status, row.position) == (RunUpdateResult.UPDATED, Status.CANCELLING, 4)
    ((seq, told),) = await asked(two, claim.run.id)
    assert told["kind"] == "CancelAsked"
    assert await let_in(two, claim.run.id) == [seq]
    frames = await one._parts.chain.after(claim.run.id, seq)
    assert [frame.mark.partition(".")[0] for _, frame in frames] == [one._parts.chain._writer]
    await one.append(claim, [b.item("after")])
    assert (await b.kinds(two, claim.run.id))[-2:] == ["CancelAsked", "ItemDone"]


async def test_where_nobody_holds_a_run_the_asker_lets_its_request_in(pair: tuple[NatsBackend, NatsBackend]) -> None:
    _, two = pair
    run = await b.submitted(two)
    assert (await two.ask(run.id, b.cancel()))[0] is RunUpdateResult.UPDATED
    _, row = await two.ask(run.id, b.resume())
    assert row is not None
    assert row.status is Status.PENDING
    assert await let_in(two, run.id) == [seq for seq, _ in await asked(two, run.id)]


async def test_a_holder_that_does_not_listen_is_not_waited_for(url: str, opened: Open) -> None:
    """Its loop may stand still, or it is dead and nobody knows yet."""
    one, two = await opened(url), await opened(url)
    claim = await b.claimed(one)
    one._parts.requests.let_in = lambda *_: None
    _, row = await two.ask(claim.run.id, b.cancel())
    assert row is not None
    assert row.status is Status.CANCELLING
    await one.append(claim, [b.item("goes on")])
    assert (await b.kinds(two, claim.run.id)).count("CancelAsked") == 1


@pytest.mark.parametrize(("what", "status"), [("cancel", Status.CANCELLED), ("resume", Status.PENDING)])
async def test_what_an_asker_asked_for_that_was_killed_is_done_once(
    nats_server: NatsServer, url: str, opened: Open, what: str, status: Status
) -> None:
    del nats_server
    stores = [await opened(url) for _ in range(2)]
    run = await (b.submitted(stores[0]) if what == "cancel" else b.ended(stores[0], Status.FAILED))
    for store in stores:
        await store.counts()  # they follow the journal, as workers and gateways do
    command = (sys.executable, "-c", ASKS, url, run.id, what)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()

    async def done() -> bool:
        return (await b.row(stores[0], run.id)).status is status

    await until(done)
    assert await let_in(stores[0], run.id) == [int(told)]


@pytest.mark.parametrize("old", [600.0, 0.0])
async def test_what_was_asked_while_nobody_followed_is_done_before_anybody_claims(
    pair: tuple[NatsBackend, NatsBackend], monkeypatch: pytest.MonkeyPatch, old: float
) -> None:
    """As after a restore, or when all workers were away: a short run would have ended before somebody looked."""
    one, two = pair
    monkeypatch.setattr(requests, "LEFT", 0.0)  # whoever asked has had its time
    monkeypatch.setattr(requests, "OLD", old)
    runs = [await b.submitted(one) for _ in range(60)]
    for run in runs:
        await one._parts.requests.put(run.id, b.cancel())
    last = await b.submitted(one)
    assert [claim.run.id for claim in await two.claim("worker", tags=["default"], limit=100)] == [last.id]
    assert {(await b.row(one, run.id)).status for run in runs} == {Status.CANCELLED}


@pytest.mark.parametrize("old", [600.0, 0.0])
async def test_a_request_counts_from_when_the_server_kept_it(
    nats_server: NatsServer, pair: tuple[NatsBackend, NatsBackend], monkeypatch: pytest.MonkeyPatch, old: float
) -> None:
    """The clock of whoever asked may be an hour behind, or we were away; nonsense beside it harms nobody."""
    one, two = pair
    monkeypatch.setattr(requests, "OLD", old)
    run = await b.submitted(one)
    held = await b.claimed(one)
    subject = one._parts.topology.request
    client = await nats.connect(nats_server.url)
    try:
        await two.counts()  # it follows the journal
        wrong = msgspec.json.encode({"kind": "CancelAsked", "at": one.clock.now() - 3600})
        for asked_of in (run.id, held.run.id):
            await client.jetstream().publish(subject(asked_of), b"{")
            await client.jetstream().publish(subject(asked_of), wrong)
    finally:
        await client.close()

    async def done() -> bool:
        return (await b.row(one, run.id)).status is Status.CANCELLED

    await until(done)
    await one.append(held, [f.RunCancelled(at=one.clock.now(), attempt=held.attempt)])
    for each in (run.id, held.run.id):
        (told,) = [entry.fact for entry in await one.read(each) if isinstance(entry.fact, f.CancelAsked)]
        assert abs(told.at - one.clock.now()) < 60
    assert not [row for row in await two.search(Query()) if not row.status.terminal]


async def test_a_message_in_a_journal_that_is_none_keeps_nobody_from_the_lists(
    nats_server: NatsServer, pair: tuple[NatsBackend, NatsBackend]
) -> None:
    one, two = pair
    run = await b.submitted(one)
    client = await nats.connect(nats_server.url)
    try:
        await client.jetstream().publish(one._parts.topology.chain("ghost"), b"nonsense")
    finally:
        await client.close()
    assert [row.id for row in await two.search(Query())] == [run.id]
    with pytest.raises(StoreError, match="not written by Tsuzuki"):
        await two.get("ghost")


async def test_a_request_from_before_an_end_does_nothing_after_it(pair: tuple[NatsBackend, NatsBackend]) -> None:
    """Its asker was answered that the run had ended; when it is resumed later, that was not meant."""
    one, _ = pair
    claim = await b.claimed(one)
    one._parts.requests.let_in = lambda *_: None
    seq = await one._parts.requests.put(claim.run.id, b.cancel())
    assert await one._parts.requests.fate(claim.run.id, seq) is Fate.OPEN
    await one.append(claim, [b.item_failed("x"), b.ending(Status.FAILED)])
    assert await one._parts.requests.fate(claim.run.id, seq) is Fate.OVER
    await one.ask(claim.run.id, b.resume())
    assert await one._parts.requests.fate(claim.run.id, seq) is Fate.OVER


async def test_requests_go_with_their_run(pair: tuple[NatsBackend, NatsBackend]) -> None:
    one, _ = pair
    run = await b.submitted(one)
    await one.ask(run.id, b.cancel())
    assert await one.purge([run.id]) == 1
    assert await asked(one, run.id) == []
    await one._parts.requests.put("nobody", b.cancel())
    checks = {check.name: check for check in await one.examine()}
    assert "of 1 that are no more swept" in checks["requests"].text
    assert checks["journals"].ok


async def test_a_store_of_old_is_widened_by_who_may_and_works_before(
    own_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await opened(own_server.url)
    names = first._parts.topology
    config = (await first._parts.wire.api(topology.stream_info(names.journal)))["config"]
    config["subjects"] = config["subjects"][:1]
    await first._parts.wire.api(administration.update_stream(names.journal), **config)
    with monkeypatch.context() as denied:
        denied.setattr(administration, "update_stream", lambda _: "nobody.listens")
        limited = await opened(own_server.url, timeout=2)
    assert not limited._parts.requests.kept
    run = await b.submitted(limited)
    assert (await limited.ask(run.id, f.CancelAsked(at=b.AT)))[0] is RunUpdateResult.UPDATED
    full = await opened(own_server.url)
    assert full._parts.requests.kept
    await full.ask((await b.submitted(full)).id, b.cancel())


async def test_a_cancel_of_a_dead_holders_run_is_settled_also_where_another_let_it_in(
    pair: tuple[NatsBackend, NatsBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    claim = await b.claimed(one)
    put, asking = two._parts.requests.put, two._parts.requests

    async def slowly(run_id: str, fact: f.Fact, patience: float) -> int:
        seq = await put(run_id, fact, patience)
        while await asking.fate(run_id, seq) is not Fate.LET_IN:
            await asyncio.sleep(0.01)
        return seq

    monkeypatch.setattr(asking, "put", slowly)
    result, row = await two.ask(claim.run.id, b.cancel(), dead=frozenset({claim.run.holder or ""}))
    assert row is not None
    assert (result, row.status) == (RunUpdateResult.UPDATED, Status.CANCELLED)
    assert (await b.kinds(two, claim.run.id))[-2:] == ["CancelAsked", "RunCancelled"]
    assert len(await let_in(two, claim.run.id)) == 1
