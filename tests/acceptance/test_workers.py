"""Several worker processes on one store: killed, frozen, stopped in order, and ended by what they execute."""

import asyncio
import signal
from pathlib import Path

from tests.acceptance.flows import catalog
from tests.acceptance.invariants import calls_in, check_journal, check_nothing_acknowledged_was_called_again
from tests.acceptance.processes import Child, held_after, started, until
from tsuzuki import Run, Runs, Status
from tsuzuki import facts as f
from tsuzuki.backends import Query
from tsuzuki.testing import builders
from tsuzuki.testing.stopwatch import Stopwatch

LEASE = 1.0


def made(folder: Path, task: str) -> int:
    return sum(call.startswith(f"{task} ") for _, call in calls_in(folder))


async def ready(*workers: Child) -> list[str]:
    """Waits until workers say their ids."""
    for worker in workers:
        await worker.speaks()
    return [worker.said.splitlines()[0].strip('"') for worker in workers]


async def ended(runs: Runs, submitted: list[Run]) -> list[Run]:
    return [await asyncio.wait_for(runs.wait(run.id), 60) for run in submitted]


async def test_when_a_worker_is_killed_another_one_takes_its_runs_over_at_once(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        submitted = [await runs.submit(catalog.small, {"number": number}) for number in range(200)]
        limit = held_after(tmp_path, 2000)  # so that both are at work when one is killed, and neither is done
        with started("work", folder=tmp_path) as first, started("work", folder=tmp_path) as second:
            [victim, survivor] = await ready(first, second)
            await until(lambda: made(tmp_path, "part") > 100, "a part of the work is done")
            held = await frozen_with_runs(first, victim, runs)
            first.kill()
            limit.unlink()
            with Stopwatch() as since:
                rows = await ended(runs, submitted)
                assert since.fair < 10, "it waited for a lease although both were on one host"
        assert {row.status for row in rows} == {Status.COMPLETED}
        over = [run for run in held if (await runs.get(run.id)).attempt == 2]
        assert over, "nothing had to be taken over"
        assert {claim.worker for claim in await claims_of(runs, over[0].id)} == {victim, survivor}
        calls = calls_in(tmp_path)
        for number, run in enumerate(submitted):
            expected = [f"{number}:{n}" for n in range(4)]
            assert await runs.result(run.id) == " ".join(expected)
            successes = await check_journal(runs.backend, run.id)
            names = [(f"part {number}:{s.key}" if s.key else f"whole {number}", s) for s in successes]
            assert sorted(name for name, _ in names) == [*(f"part {name}" for name in expected), f"whole {number}"]
            mine = [(attempt, call) for attempt, call in calls if call.split()[1].partition(":")[0] == str(number)]
            check_nothing_acknowledged_was_called_again(mine, names)


async def frozen_with_runs(worker: Child, name: str, runs: Runs) -> list[Run]:
    """Freezes a worker in a moment in which it holds runs, so that it holds them still when it is killed."""
    while True:
        await worker.freezes()
        if held := await runs.list(Query(holder=name, limit=1000)):
            return held
        worker.send(signal.SIGCONT)
        await asyncio.sleep(0.001)


async def claims_of(runs: Runs, run_id: str) -> list[f.Claimed]:
    facts = [entry.fact for entry in await builders.journal(runs.backend, run_id)]
    return [fact for fact in facts if isinstance(fact, f.Claimed)]


async def test_a_worker_that_was_only_frozen_can_do_no_harm_when_it_wakes(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        run = await runs.submit(catalog.signed, {"number": 1})
        with started("work", "--lease", LEASE, folder=tmp_path) as sleeper:
            await until(lambda: made(tmp_path, "sign") == 1, "the first worker is in the task")
            await freeze_between_writes(sleeper, runs)
            (tmp_path / "go").touch()
            with started("work", "--lease", LEASE, folder=tmp_path) as other:
                row = await asyncio.wait_for(runs.wait(run.id), 60)
                assert row.status is Status.COMPLETED
                assert row.attempt == 2
                assert await runs.result(run.id) == other.pid
                other.send(signal.SIGTERM)
                assert other.ended() == 0, other.complained
            sleeper.send(signal.SIGCONT)
            await until(lambda: made(tmp_path, "signed") == 2, "the sleeper ends its call")
            await until(lambda: "run 1: " in sleeper.complained, "the sleeper tells that its claim is lost")
            await check_journal(runs.backend, run.id)
            assert await runs.result(run.id) == other.pid
            again = await runs.submit(catalog.signed, {"number": 2})
            [row] = await ended(runs, [again])
            assert await runs.result(row.id) == sleeper.pid


async def freeze_between_writes(worker: Child, runs: Runs) -> None:
    """Freezes a worker, but not in the middle of a write, where all others would have to wait for it."""
    while True:
        await worker.freezes()
        line = asyncio.ensure_future(runs.backend.log("nobody", []))
        done, _ = await asyncio.wait({line}, timeout=2)
        if done:
            return
        worker.send(signal.SIGCONT)
        await line


async def test_a_worker_that_is_stopped_hands_back_what_it_had_claimed_ahead(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        with started("work", "--concurrency", 1, "--foresight", 60, folder=tmp_path) as worker:
            [name] = await ready(worker)
            await ended(runs, [await runs.submit(catalog.small, {"number": number}) for number in range(60)])
            slow = await runs.submit(catalog.signed, {"number": 1}, priority=1)
            await until(lambda: made(tmp_path, "sign"), "the slow run is under way")
            behind = [await runs.submit(catalog.small, {"number": number}) for number in range(100, 110)]
            while len(await runs.list(Query(holder=name))) < 3:
                await asyncio.sleep(0.01)
            worker.send(signal.SIGTERM)
            while len(await runs.list(Query(holder=name))) > 1:
                await asyncio.sleep(0.01)
            assert worker.running(), "it waits for the run under way"
            (tmp_path / "go").touch()
            assert worker.ended() == 0, worker.complained
        assert (await runs.get(slow.id)).status is Status.COMPLETED
        rows = [await runs.get(run.id) for run in behind]
        assert {(row.status, row.holder) for row in rows} == {(Status.PENDING, None)}
        assert [row for row in rows if "Released" in await builders.kinds(runs.backend, row.id)]
        with started("work", folder=tmp_path):
            assert {row.status for row in await ended(runs, behind)} == {Status.COMPLETED}


async def test_a_run_that_kills_its_workers_fails_and_the_runs_beside_it_complete(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        healthy = [await runs.submit(catalog.signed, {"number": number}) for number in range(3)]
        deadly = await runs.submit(catalog.deadly)
        url = runs.backend.url
        with started("reborn", url, folder=tmp_path) as one, started("reborn", url, folder=tmp_path) as two:
            await until(lambda: made(tmp_path, "end") >= 2, "two workers died with all their runs")
            (tmp_path / "go").touch()
            rows = await ended(runs, [*healthy, deadly])
            for workers in (one, two):
                workers.send(signal.SIGTERM)
                assert workers.ended() == 0, workers.complained
        assert [row.status for row in rows] == [*[Status.COMPLETED] * 3, Status.FAILED]
        assert max(row.attempt for row in rows[:3]) <= 3
        assert rows[3].error is not None
        assert "claimed 5 times without one new outcome, 3 of them with no other run" in rows[3].error.message
        assert made(tmp_path, "end") == 5
        told = one.complained + two.complained
        assert "perhaps it ends its workers. No other run is executed beside it" in told
        assert [letter.run_id for letter in await runs.backend.dead_letters()] == [deadly.id]
        for row in rows:
            await check_journal(runs.backend, row.id)
