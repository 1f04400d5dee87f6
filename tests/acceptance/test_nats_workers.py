"""Workers on NATS: killed, frozen, asked to cancel, and ended by what they execute."""

import signal
from pathlib import Path

from tests.acceptance.flows import catalog
from tests.acceptance.invariants import check_journal
from tests.acceptance.processes import ANOTHER_HOST, eventually, started, until
from tests.acceptance.watched import at_the_gate, check_walked, claims, ended, made, ready, taken_over, working
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status
from tsuzuki import facts as f
from tsuzuki.testing import builders
from tsuzuki.testing.stopwatch import Stopwatch

ITEMS = 40


async def test_when_the_holder_is_killed_another_one_on_its_host_goes_on_at_once(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Runs.open(server.url) as runs:
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with working(server.url, tmp_path, "--lease", 600) as first:
            [victim] = await ready(first)
            await at_the_gate(tmp_path)
            with working(server.url, tmp_path, "--lease", 600) as second:
                [survivor] = await ready(second)
                first.kill()
                (tmp_path / "go").touch()
                await taken_over(runs, run, survivor)
                await check_walked(runs, run, tmp_path, ITEMS)
        assert await claims(runs, run) == [victim, survivor]
        assert made(tmp_path, "step").total() <= ITEMS + 4, "more was repeated than was under way"


async def test_the_replay_of_a_thousand_steps_at_once_does_not_overrun_its_connection(
    tmp_path: Path, server: NatsServer
) -> None:
    """Their results came in few large messages: to read such a message once for each step is too much."""
    async with Runs.open(server.url) as runs:
        run = await runs.submit(catalog.wide, {"count": 1000})
        with working(server.url, tmp_path) as first:
            await until(lambda: made(tmp_path, "gate"), "the first worker is at the gate")
            first.kill()
        (tmp_path / "go").touch()
        with working(server.url, tmp_path) as second:
            row = await ended(runs, run)
            assert "is lost" not in second.complained
        assert (row.status, row.attempt) == (Status.COMPLETED, 2)
        assert await runs.result(run.id) == sum(len(f"{number} ") * 100 for number in range(1000))
        assert set(made(tmp_path, "text").values()) == {1}


async def test_the_death_of_a_holder_on_another_host_is_noticed_within_ten_seconds(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Runs.open(server.url) as runs:
        run = await runs.submit(catalog.walk, {"items": ITEMS})
        with working(server.url, tmp_path) as first:
            [victim] = await ready(first)
            await at_the_gate(tmp_path)
            with working(server.url, tmp_path, inside=ANOTHER_HOST) as second:
                [survivor] = await ready(second)
                first.kill()
                (tmp_path / "go").touch()
                assert await taken_over(runs, run, survivor) < 10
                await check_walked(runs, run, tmp_path, ITEMS)
        assert await claims(runs, run) == [victim, survivor]


async def test_the_late_facts_of_a_worker_that_was_frozen_are_refused_and_it_goes_on_with_other_work(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Runs.open(server.url) as runs:
        run = await runs.submit(catalog.signed, {"number": 1})
        with working(server.url, tmp_path, "--lease", 1) as sleeper:
            await until(lambda: made(tmp_path, "sign"), "the first worker is in the task")
            sleeper.send(signal.SIGSTOP)
            (tmp_path / "go").touch()
            with working(server.url, tmp_path, "--lease", 1) as other:
                row = await ended(runs, run)
                assert (row.status, row.attempt) == (Status.COMPLETED, 2)
                assert await runs.result(run.id) == other.pid
                other.send(signal.SIGTERM)
                assert other.ended() == 0, other.complained
            before = len(await builders.journal(runs.backend, run.id))
            sleeper.send(signal.SIGCONT)
            await until(lambda: str(sleeper.pid) in made(tmp_path, "signed"), "the sleeper ends its call")
            await until(lambda: f"run {run.number}: " in sleeper.complained, "it tells that its claim is lost")
            again = await ended(runs, await runs.submit(catalog.signed, {"number": 2}))
            assert await runs.result(again.id) == sleeper.pid
        assert len(await builders.journal(runs.backend, run.id)) == before
        assert await runs.result(run.id) == other.pid
        await check_journal(runs.backend, run.id)


async def test_a_worker_whose_flow_computes_without_a_pause_for_longer_than_its_lease_keeps_the_run(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Runs.open(server.url) as runs:
        with working(server.url, tmp_path, "--lease", 3) as one, working(server.url, tmp_path, "--lease", 3) as other:
            await ready(one, other)
            row = await ended(runs, await runs.submit(catalog.busy, {"seconds": 7.0}))
        assert (row.status, row.attempt) == (Status.COMPLETED, 1)
        assert made(tmp_path, "grind").total() == 1


async def test_a_cancel_is_seen_within_a_second_by_a_worker_in_the_midst_of_its_work(
    tmp_path: Path, server: NatsServer
) -> None:
    async with Runs.open(server.url) as runs:
        with working(server.url, tmp_path):
            for flow, params, calls in (
                (catalog.patient, {"items": 20}, ("long", 8)),
                (catalog.watchful, {"items": 10}, ("attentive", 4)),
            ):
                run = await runs.submit(flow, params)
                await until(lambda calls=calls: made(tmp_path, calls[0]).total() == calls[1], "the calls are under way")  # type: ignore[misc]  # bound early

                async def seen(run_id: str = run.id) -> bool:
                    return "CancelSeen" in await builders.kinds(runs.backend, run_id)

                with Stopwatch() as since:
                    await runs.cancel(run.id)
                    await eventually(seen, "the holder has seen the request")
                    assert since.fair < 1
                row = await ended(runs, run)
                end = (await builders.journal(runs.backend, run.id))[-1].fact
                assert isinstance(end, f.RunCancelled)
                assert row.done + end.interrupted + end.never_started == params["items"]
                await check_journal(runs.backend, run.id)


async def test_a_run_that_kills_its_worker_again_and_again_ends_failed_and_runs_beside_it_complete(
    tmp_path: Path, server: NatsServer
) -> None:
    url = f"{server.url}?max_deliver=4"
    async with Runs.open(url) as runs:
        healthy = [await runs.submit(catalog.signed, {"number": number}) for number in range(3)]
        deadly = await runs.submit(catalog.deadly)
        with started("reborn", url, folder=tmp_path) as one, started("reborn", url, folder=tmp_path) as two:
            await until(lambda: made(tmp_path, "end").total() >= 2, "two workers died with all their runs")
            (tmp_path / "go").touch()
            for run in healthy:
                row = await ended(runs, run)
                assert (row.status, row.attempt <= 3) == (Status.COMPLETED, True)
            row = await ended(runs, deadly)
            assert row.status is Status.FAILED
            assert row.error is not None
            assert "claimed 4 times without one new outcome, 2 of them with no other run" in row.error.message
            assert made(tmp_path, "end").total() == 4
            await eventually(runs.backend.dead_letters, "there is a dead letter")
            assert [letter.run_id for letter in await runs.backend.dead_letters()] == [deadly.id]
            for workers in (one, two):
                workers.send(signal.SIGTERM)
                assert workers.ended() == 0, workers.complained
        for run in (*healthy, deadly):
            await check_journal(runs.backend, run.id)
