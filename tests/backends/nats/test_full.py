"""A JetStream without room left says so, loses nothing, and goes on when there is room again."""
# ruff: noqa: SLF001 - it looks at the streams themselves, and breaks what else only the network would break

import asyncio
import contextlib
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import recorded, until
from tests.nats_server import NatsServer
from tsuzuki import Run, Runs, Status, Worker, flow, task
from tsuzuki import facts as f
from tsuzuki.backends import Line, Query, WorkerRecord
from tsuzuki.backends.nats import NatsBackend, topology
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.errors import StoreUnavailable
from tsuzuki.lifecycle import RunUpdateResult
from tsuzuki.testing import builders as b

FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
ROOM = 8_000_000
ITEMS = 64
"""So many items of 100,000 bytes fit beside the reserve, but not beside another run."""
LIMITS: dict[str, dict[str, Any]] = {
    "of the server": {"jetstream": f"max_file_store: {ROOM}"},
    "of the account": {
        "settings": f"accounts {{ A {{ jetstream {{ max_file: {ROOM} }}, users: [{{ user: me, password: me }}] }} }}"
    },
}


@pytest.fixture(params=list(LIMITS))
async def store(request: pytest.FixtureRequest, tmp_path: Path, opened: Open):  # type: ignore[no-untyped-def]
    """A store on a server with little room."""
    server = NatsServer(tmp_path / "nats", **LIMITS[request.param])
    server.start()
    who = {"user": "me", "password": "me"} if "settings" in LIMITS[request.param] else {}
    yield await opened(server.url, max_log_bytes=1_000_000, **who)
    server.stop()


async def test_what_was_acknowledged_is_kept_and_the_rest_refused(store: NatsBackend) -> None:
    claims = [await b.claimed(store) for _ in range(3)]
    written: dict[str, int] = {}
    for claim, size in zip(claims, (200_000, 1_000, 1), strict=True):
        count = 0
        with pytest.raises(StoreUnavailable, match=r"JetStream is full.*purge old runs, or give it more room"):  # noqa: PT012 - one of many
            while True:
                await store.append(claim, [b.item(str(count), result="x" * size)])
                count += 1
        written[claim.run.id] = count
    with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many; a small one may still fit
        while True:
            await b.submitted(store, key=None)
    for run_id, count in written.items():
        assert await recorded(store, run_id) == {str(n): 1 for n in range(count)}
        assert (await b.row(store, run_id)).done == count


async def test_work_goes_on_when_room_is_made(store: NatsBackend) -> None:
    old = await b.claimed(store)
    await store.append(old, [b.item("old", result="x" * 700_000)])
    await store.append(old, [b.ending(Status.COMPLETED)])
    calls: list[int] = []

    @task
    async def heavy(n: int) -> str:
        calls.append(n)
        return "x" * 100_000

    @flow
    async def filling() -> int:
        return len(await heavy.map(range(ITEMS), concurrency=1))

    async with Worker(store, [filling]) as worker:
        working = asyncio.create_task(worker.run())
        run = await Runs(store).submit(filling, {})

        async def full() -> bool:
            try:
                await b.claimed(store, tag="other", private=True)
            except StoreUnavailable as error:
                return "full" in str(error)
            return False

        await until(full)
        before = len(await recorded(store, run.id))
        assert await store.purge([old.run.id]) == 1

        async def ended() -> bool:
            return (await b.row(store, run.id)).status is Status.COMPLETED

        await until(ended)
        worker.stop()
        await working
    assert before < ITEMS
    assert await recorded(store, run.id) == {str(n): 1 for n in range(ITEMS)}
    assert len(calls) - ITEMS <= 20, "only what was under way when there was no room is called again"


async def test_a_store_that_does_not_fit_says_what_to_ask_for(tmp_path: Path, opened: Open) -> None:
    server = NatsServer(tmp_path / "nats", jetstream=f"max_file_store: {ROOM}")
    server.start()
    with pytest.raises(StoreUnavailable, match=r"no room for the stream tsuzuki-log.*ask for less with.*max_log"):
        await opened(server.url)
    server.stop()


async def brimful(store: NatsBackend) -> str:
    """Fills a store to the last byte, mostly with the blobs of a run that ended; gives its id."""
    claim = await b.claimed(store, key="held", idempotency_key="once")
    await store.log(claim.run.id, [Line(1.0, "a line")])
    await store.append(claim, [b.ending(Status.COMPLETED)])
    with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many
        for size in range(700_000, 800_000):
            await store.put_blob(claim.run.id, b"x" * size)
    for size in (10_000, 100, 0):
        with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many
            for number in count():
                await store.put_record("ballast", f"{size}-{number}", b"x" * size)
    return claim.run.id


async def blobs_kept(store: NatsBackend) -> int:
    """Counts the pieces of all blobs."""
    told = await store._parts.wire.api(topology.stream_info(store._parts.topology.blobs))
    return int(told["state"]["messages"])


async def test_a_purge_makes_room_where_not_even_its_tombstone_fits(store: NatsBackend, opened: Open) -> None:
    run_id = await brimful(store)
    other = await opened(store.url, **({"password": "me"} if "user=" in store.url else {}))
    assert [row.id for row in await other.search(Query())] == [run_id]
    assert await store.purge([run_id]) == 1
    assert await blobs_kept(store) == 0
    assert await store.read_log(run_id) == []

    async def gone() -> bool:
        return await other.search(Query()) == []

    await until(gone)
    again = await b.claimed(store, key="held", idempotency_key="once")
    await store.put_blob(again.run.id, b"x" * 700_000)


@pytest.mark.parametrize("part", ["logs", "blobs", "chain"])
async def test_a_purge_that_failed_on_the_way_is_finished_by_the_next(
    store: NatsBackend, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    await brimful(store)

    async def away(*_: Any, **__: Any) -> None:
        raise Unclear("the connection was lost")

    monkeypatch.setattr(getattr(store._parts, part), "drop" if part == "chain" else "purge", away)
    with pytest.raises(StoreUnavailable, match=r"does not answer.*try again"):
        await Runs(store).purge(older_than=FUTURE)
    monkeypatch.undo()
    assert await Runs(store).purge(older_than=FUTURE) == 1
    assert await blobs_kept(store) == 0
    assert await store.search(Query()) == []


async def test_doctor_finishes_a_purge_whose_process_died(
    store: NatsBackend, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brimful(store)

    async def dies(*_: Any) -> None:
        raise Unclear("the process is gone")

    monkeypatch.setattr(store._parts.blobs, "purge", dies)
    with pytest.raises(StoreUnavailable):
        await Runs(store).purge(older_than=FUTURE)
    assert await blobs_kept(store) > 0
    heir = await opened(store.url, **({"password": "me"} if "user=" in store.url else {}))
    assert "blobs: those of 1 runs" in "; ".join(f"{check.name}: {check.text}" for check in await heir.examine())
    assert await blobs_kept(store) == 0
    await heir.put_blob((await b.claimed(heir)).run.id, b"x" * 700_000)


# The reserve


async def room(store: NatsBackend) -> tuple[bool, str]:
    (check,) = [check for check in await store.examine() if check.name == "room"]
    return check.ok, check.text


async def test_runs_can_end_and_be_cancelled_and_workers_are_seen_where_there_is_no_room(store: NatsBackend) -> None:
    assert (await room(store))[0]
    ends, cancelled = [await b.claimed(store, worker) for worker in ("one", "two")]
    waits = await b.submitted(store)
    old = await brimful(store)
    for worker in ("one", "two"):
        await store.beat(WorkerRecord(id=worker, heartbeat_at=store.clock.now()))
    assert {worker.id for worker in await store.workers()} == {"one", "two"}
    await store.append(ends, [b.ending(Status.FAILED)])
    ask = f.CancelAsked(at=b.AT, attempt=1)
    assert (await store.ask(cancelled.run.id, ask))[0] is RunUpdateResult.UPDATED
    await store.append(cancelled, [b.ending(Status.CANCELLED)])
    assert [letter.run_id for letter in await store.dead_letters()] == [ends.run.id]
    for can_wait in (b.submitted(store), b.claim_of(store, waits.id), store.put_blob(waits.id, b"x")):
        with pytest.raises(StoreUnavailable, match="JetStream is full"):
            await can_wait
    ok, text = await room(store)
    assert not ok
    assert "JetStream is full" in text
    assert await store.purge([old]) == 1
    assert await room(store) == (True, "1 MB are kept for the ends of runs")
    await b.claim_of(store, waits.id)


async def test_a_process_that_leaves_while_it_takes_ballast_in_makes_no_server_look_full(
    url: str, opened: Open
) -> None:
    """As every process does that is the first to open a store, and has soon done what it came for."""
    one, two = await opened(url), await opened(url)
    assert (await room(one))[0]
    reserve, publish, written = two._parts.reserve, two._parts.wire.publish, asyncio.Event()

    async def slowly(*given: Any, **more: Any) -> int:
        await publish(*given, **more)
        if given[0] == reserve._pieces[7]:
            written.set()
            await asyncio.Event().wait()
        return 0

    two._parts.wire.publish = slowly  # type: ignore[method-assign]
    taking_in = asyncio.create_task(reserve._written(reserve._pieces))
    await written.wait()
    taking_in.cancel()
    await asyncio.gather(taking_in, return_exceptions=True)
    await one._parts.reserve.spare(surely=True)


async def test_nobody_is_refused_while_ballast_is_taken_in_again(url: str, opened: Open) -> None:
    """A process that left on the way has put in the last piece, and not the first, which tells that there is room."""
    store = await opened(url)
    assert (await room(store))[0]
    reserve, publish = store._parts.reserve, store._parts.wire.publish
    for piece in reserve._pieces[:-1]:
        await reserve._remove(piece)
    taken_in, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(*given: Any, **more: Any) -> int:
        if given[0] in reserve._pieces:
            taken_in.set()
            await go_on.wait()
        return await publish(*given, **more)

    store._parts.wire.publish = slowly  # type: ignore[method-assign]
    refilling = asyncio.create_task(reserve.refill())
    await taken_in.wait()
    claiming = asyncio.create_task(b.claimed(store))
    await asyncio.sleep(0)
    go_on.set()
    assert (await claiming).run.status is Status.RUNNING
    await refilling


async def test_a_large_value_that_does_not_fit_leaves_no_pieces_that_take_the_room_of_others(
    store: NatsBackend,
) -> None:
    run, whole = await b.submitted(store), 0
    with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many
        for size in range(700_000, 800_000):
            await store.put_blob(run.id, b"x" * size)
            whole += 1
    assert await blobs_kept(store) == 4 * whole, "three pieces and an end"


async def test_runs_wait_with_large_results_for_room_and_call_nothing_again(store: NatsBackend) -> None:
    calls: list[int] = []

    @flow
    async def large(n: int) -> str:
        calls.append(n)
        return f"{n}" * 300_000

    runs, submitted = Runs(store), list[Run]()
    async with Worker(store, [large], concurrency=30, name="w") as worker:
        working = asyncio.create_task(worker.run())
        with contextlib.suppress(StoreUnavailable):
            for n in range(10, 40):
                submitted.append(await runs.submit(large, {"n": n}))

        async def told_by_doctor() -> bool:
            ok, text = await room(store)
            return not ok and "full" in text

        await until(told_by_doctor, 60)

        async def all_ended() -> bool:
            await runs.purge(older_than=FUTURE)
            return await store.counts() == {}

        await until(all_ended, 60)
        worker.stop()
        await working
    assert sorted(calls) == list(range(10, 10 + len(submitted))), "each was called once"
