"""Whoever waits for a run, or asks about one, while the server is away for some seconds."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.backends.nats.conftest import Open, wait_only
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status
from tsuzuki.backends import Line, Query
from tsuzuki.errors import StoreClosed, StoreUnavailable
from tsuzuki.testing import builders as b


async def test_those_who_wait_and_follow_bridge_an_outage(own_server: NatsServer, opened: Open) -> None:
    store, client = await opened(own_server.url), await opened(own_server.url)
    runs, claim = Runs(client), await b.claimed(store)
    positions: list[int] = []
    lines: list[str] = []

    async def follow() -> None:
        async for entry in runs.follow(claim.run.id):
            positions.append(entry.position)  # noqa: PERF401 - it is looked at meanwhile

    async def follow_log() -> None:
        async for line in runs.follow_log(claim.run.id):
            lines.append(line.text)  # noqa: PERF401 - it is looked at meanwhile

    waiting = asyncio.gather(runs.wait(claim.run.id), follow(), follow_log())
    await store.log(claim.run.id, [Line(1.0, "before")])
    while positions != [1, 2] or not lines:
        await asyncio.sleep(0.01)
    wait_only(client, 0.3)
    own_server.kill()
    await asyncio.sleep(2)  # several times as long as an answer is waited for
    assert not waiting.done()
    own_server.start()
    await store.log(claim.run.id, [Line(2.0, "after")])
    await store.append(claim, [b.item("a"), b.ending(Status.COMPLETED)])
    row, _, _ = await asyncio.wait_for(waiting, 60)
    assert (row.status, positions, lines) == (Status.COMPLETED, [1, 2, 3, 4], ["before", "after"])


async def test_a_request_waits_for_the_connection(own_server: NatsServer, opened: Open) -> None:
    store = await opened(own_server.url, timeout=60)
    run = await b.submitted(store)
    own_server.kill()
    while await store._parts.wire.connected(0):  # noqa: SLF001 - it waits until the outage is noticed
        await asyncio.sleep(0.01)
    asked = asyncio.gather(store.get(run.id), store.read(run.id), b.submitted(store, key="k"), store.workers())
    await asyncio.sleep(0.5)
    assert not asked.done()
    own_server.start()
    row, entries, other, workers = await asked
    assert (row, len(entries), other.key, workers) == (run, 1, "k", [])


async def test_a_request_that_cannot_be_sent_says_so_in_our_words(own_server: NatsServer, opened: Open) -> None:
    store = await opened(own_server.url)
    run = await b.submitted(store)
    wait_only(store, 0.4)
    own_server.kill()
    while await store._parts.wire.connected(0):  # noqa: SLF001 - it waits until the outage is noticed
        await asyncio.sleep(0.01)
    began = asyncio.get_running_loop().time()
    for verb in (store.get(run.id), store.read(run.id), b.submitted(store)):
        with pytest.raises(StoreUnavailable, match=r"does not answer \(there is no connection to it\); check"):
            await verb
    assert asyncio.get_running_loop().time() - began > 1, "each of them waited"


async def test_those_who_wait_are_told_that_the_store_was_closed(own_server: NatsServer, opened: Open) -> None:
    store = await opened(own_server.url)
    run = await b.submitted(store)
    wait_only(store, 0.3)
    waiting = asyncio.create_task(Runs(store).wait(run.id))
    await asyncio.sleep(0.1)
    own_server.kill()
    await asyncio.sleep(0.5)
    await store.close()
    with pytest.raises(StoreClosed, match="was closed"):
        await asyncio.wait_for(waiting, 60)


@pytest.mark.parametrize("kind", ["killed", "frozen"])
async def test_lists_and_counts_are_not_given_from_before_an_outage(
    own_server: NatsServer, opened: Open, kind: str
) -> None:
    store = await opened(own_server.url)
    run = await b.submitted(store)
    looks = (lambda: store.search(Query()), store.counts, lambda: store.counts(updated_after=1.0), store.waiting_since)
    assert [bool(await look()) for look in looks] == [True, True, True, True]
    wait_only(store, 0.5)
    own_server.signal(signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
    refused = [await _refused(look) for look in looks]
    assert all("nothing was heard of its journal" in text for text in refused), refused
    if kind == "killed":
        own_server.kill()
        own_server.start()
    else:
        own_server.signal(signal.SIGCONT)
    wait_only(store, 5)

    async def back() -> bool:
        try:
            return [row.id for row in await store.search(Query())] == [run.id]
        except StoreUnavailable:
            return False

    await until(back, 60)
    assert await store.counts() == {"PENDING": 1}


async def _refused(look: Callable[[], Awaitable[object]]) -> str:
    """Looks until it is refused; gives what is said."""
    async with asyncio.timeout(60):
        while True:
            try:
                await look()
            except StoreUnavailable as error:
                return str(error)
            await asyncio.sleep(0.05)


async def test_a_loop_that_stood_still_does_not_make_lists_look_old(own_server: NatsServer, opened: Open) -> None:
    store = await opened(own_server.url, timeout=2)
    run = await b.submitted(store)
    time.sleep(4)
    assert [row.id for row in await store.search(Query())] == [run.id]
