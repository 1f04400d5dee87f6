"""NATS is away for a while, loses answers, repeats and swaps what it delivers: nothing is lost or repeated."""

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.flows import catalog
from tests.acceptance.invariants import check_journal
from tests.acceptance.processes import ANOTHER_HOST, eventually, until
from tests.acceptance.watched import at_the_gate, check_walked, claims, ended, made, ready, working
from tests.nats_server import NatsServer
from tests.tcp_proxy import Proxy, Twist
from tsuzuki import Run, Runs, Status
from tsuzuki.errors import StoreUnavailable
from tsuzuki.lifecycle import RunUpdateResult
from tsuzuki.testing import builders

ITEMS = 60
KINDS = ["refused", "silent"]


@contextlib.asynccontextmanager
async def without(way: Proxy, kind: str) -> AsyncIterator[None]:
    """Nothing can be reached: connections are refused, or nothing gets through any more."""
    if kind == "refused":
        await way.cut()
        yield
        await way.mend()
    else:
        way.silence()
        yield
        way.speak()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_chaos_of_no_nats_at_all_loses_and_repeats_nothing_and_nobody_has_to_be_started_again(
    tmp_path: Path, server: NatsServer, kind: str, outage: float
) -> None:
    async with Runs.open(server.url) as runs, Proxy(server.port) as way:
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with working(way.url, tmp_path) as one, working(way.url, tmp_path) as two:
            await ready(one, two)
            await at_the_gate(tmp_path)
            async with without(way, kind):
                await asyncio.sleep(outage / 2)
                (tmp_path / "go").touch()
                await asyncio.sleep(outage / 2)
            row = await check_walked(runs, run, tmp_path, ITEMS)
            assert row.attempt == 1
            assert set(made(tmp_path, "step").values()) == {1}
            more = [await runs.submit(catalog.small, {"number": number}) for number in range(20)]
            assert {(await ended(runs, run)).status for run in more} == {Status.COMPLETED}
            assert one.running()
            assert two.running()


async def test_an_outage_that_outlasts_the_lease_several_times_takes_no_run_from_its_holder(
    tmp_path: Path, server: NatsServer
) -> None:
    """Both workers hear nothing for so long, and neither takes that for the silence of the other."""
    async with Runs.open(server.url) as runs, Proxy(server.port) as way:
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with (
            working(way.url, tmp_path, "--lease", 2, inside=ANOTHER_HOST) as one,
            working(way.url, tmp_path, "--lease", 2, inside=ANOTHER_HOST) as other,
        ):
            await ready(one, other)
            await at_the_gate(tmp_path)
            async with without(way, "refused"):
                await asyncio.sleep(4)
                (tmp_path / "go").touch()
                await asyncio.sleep(4)
            row = await check_walked(runs, run, tmp_path, ITEMS)
            assert row.attempt == 1
            assert set(made(tmp_path, "step").values()) == {1}
            more = [await runs.submit(catalog.small, {"number": number}) for number in range(10)]
            assert {(await ended(runs, run)).status for run in more} == {Status.COMPLETED}
            assert one.running()
            assert other.running()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_result_that_is_ready_while_nats_is_away_is_kept(
    tmp_path: Path, server: NatsServer, kind: str
) -> None:
    async with Runs.open(server.url) as runs, Proxy(server.port) as way:
        run = await runs.submit(catalog.heavy, {"size": 1_000_000})
        with working(f"{way.url}?timeout=0.5", tmp_path) as worker:
            await ready(worker)
            await until(lambda: made(tmp_path, "weigh"), "the call is under way")
            async with without(way, kind):
                (tmp_path / "go").touch()
                await asyncio.sleep(2)
            row = await ended(runs, run)
        assert (row.status, row.attempt) == (Status.COMPLETED, 1)
        assert await runs.result(run.id) == 1_000_000
        assert made(tmp_path, "weigh").total() == 1


async def test_a_chaos_in_which_the_answer_to_the_last_fact_is_lost_does_not_repeat_the_completed_run(
    tmp_path: Path, server: NatsServer, outage: float
) -> None:
    async with Runs.open(server.url) as runs, Proxy(server.port) as way:
        run = await runs.submit(catalog.hasty)
        with working(way.url, tmp_path, "--lease", 2) as holder:
            [name] = await ready(holder)
            await until(lambda: made(tmp_path, "hasty"), "the flow is under way")
            with working(server.url, tmp_path, "--lease", 2) as other:
                await ready(other)
                way.deaf = True
                (tmp_path / "go").touch()
                row = await ended(runs, run)
                async with without(way, "refused"):
                    await asyncio.sleep(outage)
                other.send(signal.SIGTERM)
                assert other.ended() == 0, other.complained
            again = await ended(runs, await runs.submit(catalog.signed, {"number": 1}))
            assert await runs.result(again.id) == holder.pid, "it works again without having been started again"
        assert (row.status, row.attempt) == (Status.COMPLETED, 1)
        assert made(tmp_path, "hasty").total() == 1
        assert await claims(runs, run) == [name]
        await check_journal(runs.backend, run.id)


async def test_acknowledgements_that_are_lost_again_and_again_write_and_call_nothing_twice(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Runs.open(server.url) as runs, Proxy(server.port) as way:
        (tmp_path / "go").touch()
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with working(way.url, tmp_path) as worker:
            await ready(worker)
            await _grown(runs, run, 2)  # it works on the run, and every write from now on is of the holder
            for _ in range(6):
                before = (await runs.get(run.id)).position
                way.deaf = True
                after = await _grown(runs, run, before)
                await way.cut()
                await way.mend()
                await _grown(runs, run, after)
            row = await check_walked(runs, run, tmp_path, ITEMS)
        assert row.attempt == 1
        assert set(made(tmp_path, "step").values()) == {1}


async def _grown(runs: Runs, run: Run, before: int) -> int:
    """Waits until more is written; gives how far the journal is."""
    row = run

    async def more() -> bool:
        nonlocal row
        row = await runs.get(run.id)
        return row.position > before or row.status.terminal

    await eventually(more, "the journal grows")
    return row.position


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancel_that_is_asked_while_the_holder_is_cut_off_is_seen_when_it_is_back(
    tmp_path: Path, server: NatsServer, kind: str
) -> None:
    async with Runs.open(server.url) as runs, Proxy(server.port) as way:
        run = await runs.submit(catalog.patient, {"items": 20})
        with working(way.url, tmp_path):
            await until(lambda: made(tmp_path, "long").total() == 8, "the calls are under way")
            async with without(way, kind):
                answer, row = await runs.cancel(run.id)
                assert (answer, row.status) == (RunUpdateResult.UPDATED, Status.CANCELLING)
                await asyncio.sleep(1)
            row = await ended(runs, run)
        assert (row.status, row.done, row.attempt) == (Status.CANCELLED, 3, 1)
        kinds = await builders.kinds(runs.backend, run.id)
        assert kinds.index("CancelAsked") < kinds.index("CancelSeen") < kinds.index("RunCancelled")
        await check_journal(runs.backend, run.id)


async def test_whoever_asks_for_a_cancel_without_nats_is_told_so_and_can_ask_again(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Proxy(server.port) as way, Runs.open(f"{way.url}?timeout=0.5") as runs:
        run = await runs.submit(catalog.patient, {"items": 20})
        with working(server.url, tmp_path):
            await until(lambda: made(tmp_path, "long").total() == 8, "the calls are under way")
            for kind in KINDS:
                async with without(way, kind):
                    with pytest.raises(StoreUnavailable, match="try again"):
                        await runs.cancel(run.id)
            await eventually(lambda: _cancelled(runs, run), "it can be asked for")
            row = await ended(runs, run)
        assert (row.status, row.done) == (Status.CANCELLED, 3)


async def _cancelled(runs: Runs, run: Run) -> bool:
    try:
        await runs.cancel(run.id)
    except StoreUnavailable:
        return False
    return True


async def test_workers_come_back_when_the_server_refused_them_for_a_while(tmp_path: Path) -> None:
    """A client whose rights are withdrawn is told so and gives up for good; the worker must not."""
    rights = 'authorization {{ token: "{}" }}'
    server = NatsServer(tmp_path / "nats", settings=rights.format("ours"))
    server.start()
    try:
        async with Runs.open(f"{server.url}?token=ours") as runs:
            run = await runs.submit(catalog.walk, {"items": ITEMS})
            with working(f"{server.url}?token=ours", tmp_path) as worker:
                await ready(worker)
                await at_the_gate(tmp_path)
                for token in ("another", "ours"):
                    server.reload(rights.format(token))
                    await until(lambda: worker.complained.count("is lost"), "the worker is turned out")
                (tmp_path / "go").touch()
                row = await check_walked(runs, run, tmp_path, ITEMS)
                assert row.attempt == 1
                assert set(made(tmp_path, "step").values()) == {1}
                more = await runs.submit(catalog.small, {"number": 1})
                assert (await ended(runs, more)).status is Status.COMPLETED
    finally:
        server.stop()


async def test_nobody_takes_a_run_over_while_nothing_can_be_written_for_longer_than_a_lease(
    tmp_path: Path, server: NatsServer
) -> None:
    """As when servers elect a leader: everything can be read, and no heartbeat gets in."""
    stalled = asyncio.Event()
    async with (
        Runs.open(server.url) as runs,
        Proxy(server.port, asked=unless(stalled)) as one_way,
        Proxy(server.port, asked=unless(stalled)) as other_way,
    ):
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with (
            working(one_way.url, tmp_path, inside=ANOTHER_HOST) as one,
            working(other_way.url, tmp_path, inside=ANOTHER_HOST) as other,
        ):
            await ready(one, other)
            await at_the_gate(tmp_path)
            stalled.set()
            await asyncio.sleep(9)
            stalled.clear()
            (tmp_path / "go").touch()
            row = await check_walked(runs, run, tmp_path, ITEMS)
        assert row.attempt == 1
        assert set(made(tmp_path, "step").values()) == {1}


def unless(stalled: asyncio.Event) -> Twist:
    """Keeps back what would be written while it is so; reads go through."""

    async def held(frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        kept: list[bytes] = []
        async for frame in frames:
            if stalled.is_set() and frame.startswith((b"PUB", b"HPUB")) and b" $JS.API." not in frame[:40]:
                kept.append(frame)
                continue
            if not stalled.is_set():
                for late in kept:
                    yield late
                kept.clear()
            yield frame

    return held


async def test_deliveries_that_come_twice_or_out_of_order_change_nothing(tmp_path: Path, server: NatsServer) -> None:
    async with (
        Runs.open(server.url) as runs,
        Proxy(server.port, asked=repeated, answered=shuffled) as one_way,
        Proxy(server.port, asked=repeated, answered=shuffled) as other_way,
    ):
        with working(one_way.url, tmp_path) as one, working(other_way.url, tmp_path) as other:
            names = await ready(one, other)
            submitted = [await runs.submit(catalog.small, {"number": number}) for number in range(60)]
            for number, run in enumerate(submitted):
                row = await ended(runs, run)
                assert (row.status, row.attempt) == (Status.COMPLETED, 1)
                assert await runs.result(run.id) == " ".join(f"{number}:{n}" for n in range(4))
                await check_journal(runs.backend, run.id)
                [worker] = await claims(runs, run)
                assert worker in names
    assert made(tmp_path, "part").total() == 60 * 4
    assert set(made(tmp_path, "part").values()) == {1}


async def repeated(frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Sends some of what extends a chain twice."""
    async for frame in frames:
        yield frame
        if frame.startswith(b"HPUB") and b"Expected-Last-Subject" in frame and random.random() < 0.3:
            yield frame


async def shuffled(frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Delivers some of what consumers get twice, and some of it after what comes next."""
    late: list[bytes] = []
    async for frame in frames:
        if b" $JS.ACK." in frame.partition(b"\r\n")[0] and random.random() < 0.2:
            late.append(frame)
            if random.random() < 0.5:
                yield frame
            continue
        yield frame
        while late:
            yield late.pop()
