"""Cancels while the way to the server, or the leader of a cluster, is away: asked again under one name, or told of."""
# ruff: noqa: SLF001 - these tests cut a request short at a certain write

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_requests import asked, let_in
from tests.nats_cluster import Cluster
from tests.nats_server import NatsServer
from tests.tcp_proxy import Proxy
from tsuzuki import Runs, Status
from tsuzuki.backends.nats import NatsBackend, queue
from tsuzuki.errors import StoreUnavailable
from tsuzuki.lifecycle import RunUpdateResult
from tsuzuki.testing import builders as b


@pytest.fixture
async def way(own_server: NatsServer) -> AsyncIterator[Proxy]:
    async with Proxy(own_server.port) as between:
        yield between


def unheard(store: NatsBackend, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Lets the store hear no answer from when it keeps a request; gives when that is."""
    publish, begun = store._parts.requests._publish, asyncio.Event()

    async def deafly(*given: Any) -> int:
        way.deaf = way.deaf or not begun.is_set()
        begun.set()
        return await publish(*given)

    monkeypatch.setattr(store._parts.requests, "_publish", deafly)
    return begun


async def test_a_cancel_whose_acknowledgement_was_lost_is_kept_once_and_answered(
    way: Proxy, own_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, store = await opened(own_server.url), await opened(way.url)
    run = await b.submitted(other)
    begun = unheard(store, way, monkeypatch)
    asking = asyncio.create_task(store.ask(run.id, b.cancel()))
    await begun.wait()
    while not await asked(other, run.id):
        await asyncio.sleep(0.01)
    await way.cut()
    await way.mend()
    result, row = await asking
    assert row is not None
    assert (result, row.status) == (RunUpdateResult.UPDATED, Status.CANCELLED)
    ((seq, _),) = await asked(other, run.id)
    assert await let_in(other, run.id) == [seq]


async def test_a_cancel_of_which_nobody_knows_what_became_says_so_and_comes_true(
    way: Proxy, own_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "ELECTION", 0.6)
    other, store = await opened(own_server.url), await opened(way.url, timeout=0.3)
    run = await b.submitted(other)
    unheard(store, way, monkeypatch)
    with pytest.raises(StoreUnavailable, match="may or may not have been let in") as told:
        await store.ask(run.id, b.cancel())
    assert "may or may not have been let in: look at the run, or ask again" in told.value.advice
    assert len(await asked(other, run.id)) == 1
    result, _ = await other.ask(run.id, b.cancel())
    assert result in (RunUpdateResult.UPDATED, RunUpdateResult.ALREADY_TERMINAL)
    assert (await b.row(other, run.id)).status is Status.CANCELLED
    assert (await b.kinds(other, run.id)).count("CancelAsked") == 1
    await way.cut()
    with pytest.raises(StoreUnavailable) as told:
        await store.ask(run.id, b.cancel())
    assert "may or may not" not in str(told.value), "nothing was asked"


@pytest.mark.xdist_group("nats cluster")
async def test_cancels_while_the_leader_of_the_journal_is_killed_are_answered_and_let_in_once(
    cluster: Cluster,
) -> None:
    async with Runs.open(cluster.url) as runs:
        store = runs.backend
        rows = [await b.submitted(store) for _ in range(8)]
        leader = cluster.nodes[await cluster.leader(store._parts.topology.journal)]  # type: ignore[attr-defined]  # NATS
        cancels = [asyncio.create_task(runs.cancel(row.id)) for row in rows[:4]]
        await asyncio.sleep(0)
        leader.kill()
        cancels += [asyncio.create_task(runs.cancel(row.id)) for row in rows[4:]]
        answers = await asyncio.gather(*cancels)
        assert {(result, row.status) for result, row in answers} == {(RunUpdateResult.UPDATED, Status.CANCELLED)}
        for row in rows:
            assert (await b.kinds(store, row.id)).count("CancelAsked") == 1
