"""Hosts whose link is lost, and hosts whose clocks differ by minutes."""

import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.acceptance.flows import catalog
from tests.acceptance.invariants import check_journal
from tests.acceptance.processes import ANOTHER_HOST, until
from tests.acceptance.watched import at_the_gate, check_walked, claims, ended, made, ready, taken_over, working
from tests.nats_server import NatsServer
from tests.networks import Networks
from tests.tcp_proxy import Proxy
from tsuzuki import Runs, Status
from tsuzuki.testing import builders
from tsuzuki.testing.stopwatch import Stopwatch

ITEMS = 40
MINUTES = 300.0


async def test_when_a_host_loses_its_link_another_one_goes_on_and_the_late_facts_of_the_first_are_refused(
    tmp_path: Path,
) -> None:
    with Networks("east", "west") as networks:
        server = NatsServer(
            tmp_path / "nats",
            listen="0.0.0.0",  # noqa: S104 - of a network of its own
            inside=networks.inside("hub"),
            dial=networks.dial,
        )
        server.start()
        try:
            async with Proxy(server.port, dial=networks.dial) as way, Runs.open(way.url) as runs:
                await _lose_a_link(runs, networks, server, tmp_path)
        finally:
            server.stop()


async def _lose_a_link(runs: Runs, networks: Networks, server: NatsServer, folder: Path) -> None:
    east, west = (f"nats://{networks.address(host)}:{server.port}" for host in ("east", "west"))
    run = await runs.submit(catalog.walk, {"items": ITEMS})
    with working(east, folder, inside=networks.inside("east")) as first:
        [holder] = await ready(first)
        await at_the_gate(folder)
        with working(west, folder, inside=networks.inside("west")) as second:
            [other] = await ready(second)
            networks.unplug("east")
            assert await taken_over(runs, run, other) < 10
            (folder / "go").touch()  # the calls of the first host end too: its facts wait for the link
            row = await check_walked(runs, run, folder, ITEMS)
            assert row.attempt == 2
            second.send(signal.SIGTERM)
            assert second.ended() == 0, second.complained
        networks.plug("east")
        await until(lambda: f"run {run.number}: attempt 1" in first.complained, "it learns that its claim is lost")
        assert (await runs.get(run.id)).position == row.position, "nothing came too late"
        again = await ended(runs, await runs.submit(catalog.signed, {"number": 1}))
        assert await runs.result(again.id) == first.pid, "the first host works again"
    assert await claims(runs, run) == [holder, other]
    await check_journal(runs.backend, run.id)


@pytest.mark.parametrize("ahead", [MINUTES, -MINUTES], ids=["fast", "slow"])
async def test_a_clock_that_is_minutes_wrong_costs_nobody_a_lease(
    tmp_path: Path, server: NatsServer, ahead: float
) -> None:
    """The host with the wrong clock holds a run for longer than a lease; then it dies, and is noticed as any other."""
    async with Runs.open(server.url) as runs:
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with working(server.url, tmp_path, "--lease", 2, "--ahead", ahead, inside=ANOTHER_HOST) as first:
            [wrong] = await ready(first)
            await at_the_gate(tmp_path)
            with working(server.url, tmp_path, "--lease", 2) as second:
                [right] = await ready(second)
                since = time.monotonic()
                small = [await runs.submit(catalog.small, {"number": number}) for number in range(10)]
                assert {(await ended(runs, run)).status for run in small} == {Status.COMPLETED}
                await until(lambda: time.monotonic() - since > 5, "two leases are over")
                assert await claims(runs, run) == [wrong]
                first.kill()
                await taken_over(runs, run, right)
                (tmp_path / "go").touch()
                row = await check_walked(runs, run, tmp_path, ITEMS)
        assert row.attempt == 2


@pytest.mark.parametrize("ahead", [MINUTES, -MINUTES], ids=["fast", "slow"])
async def test_later_means_later_on_a_host_with_another_clock_too(
    tmp_path: Path, server: NatsServer, ahead: float
) -> None:
    async with Runs.open(server.url) as runs:
        run = await runs.submit(catalog.waiting, {"number": 7})
        with working(server.url, tmp_path, "--ahead", ahead) as first:
            await ready(first)
            await _handed_back(runs, run.id)
            released = time.monotonic()
            first.kill()
        (tmp_path / "go").touch()
        with working(server.url, tmp_path) as second:
            await ready(second)
            row = await ended(runs, run, within=20)
            waited = time.monotonic() - released
        assert (row.status, row.attempt) == (Status.COMPLETED, 2)
        assert waited > 2, "it was asked again too early"


async def _handed_back(runs: Runs, run_id: str) -> None:
    async for entry in runs.follow(run_id):
        if type(entry.fact).__name__ == "Released":
            return


@pytest.mark.parametrize("ahead", [MINUTES, -MINUTES], ids=["fast", "slow"])
async def test_lists_times_and_cancels_agree_when_clocks_do_not(
    tmp_path: Path, server: NatsServer, ahead: float
) -> None:
    async with Runs.open(server.url) as runs:
        before = datetime.now(UTC) - timedelta(seconds=5)
        cancelled = await runs.submit(catalog.patient, {"items": 20})
        with working(server.url, tmp_path, "--ahead", ahead) as wrong:
            await until(lambda: made(tmp_path, "long").total() == 8, "the calls are under way")
            with Stopwatch() as since:
                await runs.cancel(cancelled.id)
                assert (await ended(runs, cancelled)).status is Status.CANCELLED
                assert since.fair < 2
            by_wrong = [await ended(runs, await runs.submit(catalog.small, {"number": n})) for n in range(3)]
            wrong.kill()
        with working(server.url, tmp_path):
            by_right = [await ended(runs, await runs.submit(catalog.small, {"number": n})) for n in range(3, 6)]
        listed = [row.number for row in await runs.list()]
        assert listed == [row.number for row in [*reversed(by_right), *reversed(by_wrong), cancelled]]
        async with Runs.open(server.url) as another:
            assert [row.number for row in await another.list()] == listed
        after = datetime.now(UTC) + timedelta(seconds=5)
        for row in await runs.list():
            times = [datetime.fromisoformat(t) for t in (row.created_at, row.started_at, row.finished_at) if t]
            assert before < min(times) <= max(times) < after
            assert times == sorted(times)
            ats = [entry.fact.at for entry in await builders.journal(runs.backend, row.id)]
            assert before.timestamp() < min(ats) <= max(ats) < after.timestamp()
