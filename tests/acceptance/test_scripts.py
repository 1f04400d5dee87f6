"""A script that runs its own flow: interrupted in order, cancelled from elsewhere, and poisoned."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.acceptance.invariants import calls_in, check_journal, only_run, repeated
from tests.acceptance.processes import ended_slowly, finished, held_after, started, until
from tsuzuki import Runs, Status
from tsuzuki.testing import builders
from tsuzuki.testing.stopwatch import Stopwatch

ITEMS = 600


async def test_a_script_that_is_interrupted_once_keeps_what_was_finished_and_goes_on(tmp_path: Path) -> None:
    limit = held_after(tmp_path, 2000)
    with started("thousand", ITEMS, folder=tmp_path) as child:
        await until(lambda: len(calls_in(tmp_path)) > 100, "it is under way")
        child.send(signal.SIGINT)
        assert await ended_slowly(child, limit) == -signal.SIGINT, "as any script that Ctrl-C ends: 130 in a shell"
        assert "Traceback" not in child.complained
        assert (
            child.complained.splitlines()[-1]
            == "run 1 of thousand was interrupted (start it again to go on, or `tsuzuki resume 1`)"
        )
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        row = await only_run(runs)
        assert (row.status, row.holder) == (Status.PENDING, None)
        assert (await builders.kinds(runs.backend, row.id))[-1] == "Released"
        assert len(calls_in(tmp_path)) == row.done, "every call that returned was recorded"
    assert len(json.loads(finished("thousand", ITEMS, folder=tmp_path))) == ITEMS
    assert repeated(calls_in(tmp_path)) == 0
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        assert len(await check_journal(runs.backend, row.id)) == ITEMS


async def test_a_script_can_be_cancelled_from_another_process(tmp_path: Path) -> None:
    with started("thousand", 5000, folder=tmp_path) as child:
        await until(lambda: len(calls_in(tmp_path)) > 100, "it is under way")
        async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
            with Stopwatch() as since:
                await runs.cancel(1)
                row = await asyncio.wait_for(runs.wait(1), 60)
                assert since.fair < 1
            assert row.status is Status.CANCELLED
            await check_journal(runs.backend, row.id)
        assert child.ended() != 0
        assert "RunStopped" in child.complained


async def test_two_starts_of_one_script_do_not_do_the_same_work(tmp_path: Path) -> None:
    """While the first one lives its run is its own: the second is a run of its own, not a second pair of hands."""
    with started("thousand", ITEMS, folder=tmp_path) as first:
        await until(lambda: len(calls_in(tmp_path)) > 50, "the first is under way")
        first_half = finished("thousand", 10, folder=tmp_path)
        assert len(json.loads(first_half)) == 10
        assert first.ended() == 0, first.complained
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        rows = await runs.list()
        assert sorted(row.done for row in rows) == [10, ITEMS]
        assert {row.attempt for row in rows} == {1}


@pytest.mark.parametrize("where", ["in_a_thread", "on_the_loop", "in_the_flow", "in_the_input"])
async def test_a_keyboard_interrupt_from_users_code_stops_a_script_in_order(tmp_path: Path, where: str) -> None:
    with started("interrupts", where, folder=tmp_path) as child:
        assert child.ended() == -signal.SIGINT, "as any script that Ctrl-C ends: 130 in a shell"
        assert "Traceback" not in child.complained
        assert "start it again to go on" in child.complained.splitlines()[-1]
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        row = await only_run(runs)
        assert (row.status, row.holder) == (Status.PENDING, None)
    assert int(finished("interrupts", where, folder=tmp_path)) == 45
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        assert (await only_run(runs)).status is Status.COMPLETED


async def test_tries_made_before_a_crash_count_after_it(tmp_path: Path) -> None:
    with started("tries", 4, folder=tmp_path) as child:
        assert child.ended() == 7, "its third call ended the process"
    with started("tries", 4, folder=tmp_path) as child:
        assert child.ended() == 1
        assert "failed after 4 tries" in child.complained
    assert (tmp_path / "calls").read_text().split() == ["failed", "failed", "killed", "failed", "failed"]


async def _waiting(runs: Runs) -> None:
    async with asyncio.timeout(60):
        while not any(row.not_before for row in await runs.list()):
            await asyncio.sleep(0.01)


async def test_a_second_start_does_not_take_a_run_from_the_process_that_waits_with_it(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        with started("waits", 5, folder=tmp_path) as first:
            await _waiting(runs)
            with started("waits", 5, folder=tmp_path) as second:
                assert second.ended() == 1
                assert f"in process {first.pid}" in second.complained
                assert "tsuzuki cancel 1" in second.complained
            assert first.running()
            first.kill()
        (tmp_path / "ready").touch()
        assert finished("waits", 5, folder=tmp_path).strip() == "ready", "nobody waits with it any more"
        assert (await only_run(runs)).status is Status.COMPLETED
    *while_it_lived, last = map(int, (tmp_path / "calls").read_text().split())
    assert set(while_it_lived) == {first.pid}
    assert last not in (first.pid, second.pid)


async def test_a_script_says_why_it_waits_and_a_resume_wakes_it(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        with started("waits", 3600, folder=tmp_path) as child:
            await until(lambda: "waits until" in child.complained, "it says that it waits")
            row = await only_run(runs)
            assert row.waiting_reason == "the answer is not there yet"
            (tmp_path / "ready").touch()
            await runs.resume(1)
            assert child.ended() == 0, child.complained
            assert child.said.strip() == "ready"
            assert child.complained.count("the answer is not there yet") == 1


async def test_a_script_that_is_started_again_waits_until_the_same_moment_and_is_seen_to_wait(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        with started("waits", 3600, folder=tmp_path) as first:
            await _waiting(runs)
            first.send(signal.SIGINT)
            first.ended()
        before = await only_run(runs)
        with started("waits", 3600, folder=tmp_path) as again:
            await until(lambda: "waits until" in again.complained, "it says that it waits")
            row = await only_run(runs)
            assert (row.not_before, row.position) == (before.not_before, before.position)
            assert await runs.holders.waited_for([row]) == {row.id}, "it is not left behind"
            with started("waits", 3600, folder=tmp_path) as third:
                assert third.ended() == 1
                assert f"in process {again.pid}" in third.complained
            (tmp_path / "ready").touch()
            await runs.resume(1)
            assert again.ended() == 0, again.complained
    assert len((tmp_path / "calls").read_text().split()) == 2, "the task was asked once, and when it was woken"


async def test_a_script_that_waits_notices_that_its_run_was_cancelled(tmp_path: Path) -> None:
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        with started("waits", 3600, folder=tmp_path) as child:
            await _waiting(runs)
            await runs.cancel(1)
            assert child.ended() == 1
            assert "RunStopped" in child.complained


async def test_ctrl_c_in_a_notebook_stops_the_run_behind_the_cell(tmp_path: Path) -> None:
    limit = held_after(tmp_path, 2000)
    with started("notebook", ITEMS, folder=tmp_path) as child:
        await until(lambda: len(calls_in(tmp_path)) > 50, "it is under way")
        child.send(signal.SIGINT)
        assert await ended_slowly(child, limit) == -signal.SIGINT
        assert "start it again to go on" in child.complained
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        row = await only_run(runs)
        assert (row.status, row.holder) == (Status.PENDING, None)
        assert len(calls_in(tmp_path)) == row.done, "every call that returned was recorded"
    assert finished("notebook", ITEMS, folder=tmp_path).strip() == str(ITEMS)
