"""Submissions of which nobody can tell whether they were kept: the connection was lost in their midst."""
# ruff: noqa: SLF001 - these tests cut a submission short at a certain write

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.backends.nats.conftest import Open, wait_only
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tests.tcp_proxy import Proxy
from tsuzuki import Status
from tsuzuki import facts as f
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.backends.nats.frames import Tip
from tsuzuki.errors import KeyHeld, StoreUnavailable
from tsuzuki.lifecycle import Run
from tsuzuki.testing import builders as b

SUBMITS = """
import asyncio, sys
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.errors import StoreUnavailable
from tsuzuki.testing import builders as b

async def main():
    store = await NatsBackend.open(sys.argv[1], timeout=2)
    extend = store._parts.chain.extend

    async def told(*given, **more):
        print("writes", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return await extend(*given, **more | {"patience": 0.6})

    store._parts.chain.extend = told
    try:
        await b.submitted(store, key="k", idempotency_key="once")
    except StoreUnavailable as error:
        print(error.advice, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
async def other(own_server: NatsServer, opened: Open) -> NatsBackend:
    return await opened(own_server.url)


@pytest.fixture
async def way(own_server: NatsServer) -> AsyncIterator[Proxy]:
    async with Proxy(own_server.port) as between:
        yield between


class Cut:
    """A store that hears no answer to the message that makes a run, nor to anything after."""

    def __init__(self, store: NatsBackend, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
        extend, self._store = store._parts.chain.extend, store

        async def unheard(*given: Any, **more: Any) -> Tip:
            monkeypatch.undo()
            way.deaf = True
            wait_only(store, 0.3)
            return await extend(*given, **more | {"patience": 0.6})

        monkeypatch.setattr(store._parts.chain, "extend", unheard)

    async def submit(self, **fields: Any) -> Run:
        run = b.a_run(**fields)
        with pytest.raises(StoreUnavailable, match=r"unclear.*ask again with the same idempotency key"):
            await self._store.submit(run, f.Submitted(at=b.AT, flow=run.flow))
        wait_only(self._store, 5)
        return run


async def test_a_run_whose_submitter_was_killed_after_its_error_is_found_by_its_idempotency_key(
    own_server: NatsServer, way: Proxy, other: NatsBackend
) -> None:
    """It had landed, nobody is left to take it back: asking again gives it, and there is one run."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SUBMITS, way.url, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        assert process.stdin is not None
        assert await process.stdout.readline() == b"writes\n"
        way.deaf = True
        process.stdin.write(b"\n")
        assert b"unclear" in await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()
    again = await b.submitted(other, key="k", idempotency_key="once")
    assert await other.counts() == {"PENDING": 1}
    assert (await b.claim_of(other, again.id)).run.key == "k"


async def test_a_run_that_somebody_was_given_who_asked_again_is_not_taken_back(
    way: Proxy, other: NatsBackend, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(way.url)
    run = await Cut(store, way, monkeypatch).submit(idempotency_key="once")
    assert (await b.submitted(other, idempotency_key="once")).id == run.id
    await way.cut()
    await way.mend()
    await until(lambda: _settled(store))
    assert (await b.row(other, run.id)).status is Status.PENDING


async def test_what_was_taken_back_is_made_anew_for_who_asks_again(
    way: Proxy, other: NatsBackend, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(way.url)
    run = await Cut(store, way, monkeypatch).submit(idempotency_key="once", key="k")
    await way.cut()
    await way.mend()
    await until(lambda: _settled(store))
    assert (await b.row(other, run.id)).status is Status.CANCELLED
    assert (await b.submitted(other, idempotency_key="once", key="k")).id != run.id


async def test_a_run_that_was_claimed_before_it_could_be_taken_back_is_cancelled_and_keeps_its_key_until_it_ends(
    way: Proxy, other: NatsBackend, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(way.url)
    run = await Cut(store, way, monkeypatch).submit(key="k")
    claim = await b.claim_of(other, run.id)
    await way.cut()
    await way.mend()
    await until(lambda: _settled(store))
    assert (await b.row(other, run.id)).status is Status.CANCELLING
    with pytest.raises(KeyHeld):
        await b.submitted(other, key="k")
    await other.append(claim, [f.RunCancelled(at=b.AT)])
    assert (await b.submitted(other, key="k")).id != run.id


async def test_whoever_asks_again_ends_what_a_submitter_died_of_taking_back(
    way: Proxy, other: NatsBackend, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(way.url)
    run = await Cut(store, way, monkeypatch).submit(idempotency_key="once")
    assert await other._parts.keys.may_take_back(run)  # and there its process is killed
    again = await b.submitted(other, idempotency_key="once")
    assert again.id != run.id
    assert (await b.row(other, run.id)).status is Status.CANCELLED
    wait_only(store, 0.3)  # which still hears nothing when it is closed


async def _settled(store: NatsBackend) -> bool:
    return not store._parts.queue._fences
