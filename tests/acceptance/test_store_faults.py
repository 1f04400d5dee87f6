"""What can happen to the store under a running flow, and to a key that many want: each has a clear outcome."""

import asyncio
import contextlib
import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.invariants import (
    calls_in,
    check_journal,
    check_nothing_acknowledged_was_called_again,
    only_run,
    repeated,
)
from tests.acceptance.processes import finished, held_after, started, until
from tsuzuki import Runs, Status, flow, task
from tsuzuki import facts as f
from tsuzuki.errors import StoreError
from tsuzuki.script import run_here


async def test_a_full_disk_stops_a_run_with_a_clear_error_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    data = tmp_path / ".tsuzuki"
    async with Runs.open(data_dir=str(data)):
        pass
    with started("full", 400_000, folder=tmp_path) as child:
        assert child.ended() == 1, child.complained
        told = json.loads(child.said)
        assert told.startswith("StoreUnavailable: ")
        assert "space" in told
    before = calls_in(tmp_path)
    assert before, "the disk was full before anything began"
    async with Runs.open(data_dir=str(data)) as runs:
        row = await only_run(runs)
        assert not row.status.terminal
        await check_journal(runs.backend, row.id)
    assert json.loads(finished("full", folder=tmp_path)) == sum(len(f"{n}:") + 2000 for n in range(300))
    async with Runs.open(data_dir=str(data)) as runs:
        row = await only_run(runs)
        assert row.status is Status.COMPLETED
        successes = await check_journal(runs.backend, row.id)
        named = [(f"fill {s.key}", s) for s in successes]
        assert len(named) == 300
        check_nothing_acknowledged_was_called_again(calls_in(tmp_path), named)
        assert repeated(calls_in(tmp_path)) <= 8


async def test_a_store_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    data = tmp_path / ".tsuzuki"
    async with Runs.open(data_dir=str(data)):
        pass
    file = data / "tsuzuki.db"
    file.chmod(0o444)
    with started("powerless", folder=tmp_path) as child:
        assert child.ended() == 1, child.complained
        assert json.loads(child.said).startswith("StoreUnavailable: ")
        assert "writable" in child.said
    file.chmod(0o644)
    assert json.loads(finished("powerless", folder=tmp_path)) == "done"


async def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    data = tmp_path / ".tsuzuki"
    async with Runs.open(data_dir=str(data)):
        pass
    data.chmod(0o555)
    try:
        with started("powerless", folder=tmp_path) as child:
            assert child.ended() == 1, child.complained
            assert json.loads(child.said).startswith("StoreUnavailable: ")
            assert "writable" in child.said
    finally:
        data.chmod(0o755)


async def test_a_store_that_is_closed_under_a_running_flow_stops_it_with_a_clear_error(tmp_path: Path) -> None:
    closing = asyncio.Event()

    @task
    async def step(number: int) -> int:
        if number == 2:
            closing.set()
            await asyncio.sleep(0.05)
        return number

    @flow
    async def steps() -> int:
        return sum([await step(number) for number in range(5)])

    async with Runs.open(data_dir=str(tmp_path)) as runs:
        work = asyncio.create_task(run_here(runs, steps, {}))
        await closing.wait()
        await runs.backend.close()
        with pytest.raises(StoreError, match="closed"):
            await asyncio.wait_for(work, 60)
    async with Runs.open(data_dir=str(tmp_path)) as runs:
        ended = await run_here(runs, steps, {})
        assert (ended.result, ended.row.attempt) == (10, 2)
        successes = await check_journal(runs.backend, ended.id)
        assert [s.attempt for s in successes] == [1, 1, 2, 2, 2]


async def test_a_store_that_is_deleted_under_a_running_flow_is_told_and_not_made_up(tmp_path: Path) -> None:
    limit = held_after(tmp_path, 2000)
    with started("thousand", 2000, folder=tmp_path) as child:
        await until(lambda: len(calls_in(tmp_path)) > 100, "it is under way")
        shutil.rmtree(tmp_path / ".tsuzuki")
        limit.unlink()
        code = child.ended()
        assert code == 1, f"{child.said[:100]} {child.complained}"
        assert "StoreError" in child.complained or "StoreUnavailable" in child.complained, child.complained
        assert "tsuzuki.db" in child.complained


async def test_of_fifty_starts_of_one_key_one_wins_and_the_others_are_told_which(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        starters = [stack.enter_context(started("starts", folder=tmp_path)) for _ in range(5)]
        for starter in starters:
            await starter.speaks()
        (tmp_path / "go").touch()
        answers = []
        for starter in starters:
            assert starter.ended() == 0, starter.complained
            answers += json.loads(starter.said.splitlines()[1])
    assert len(answers) == 50
    [winner] = [answer["won"] for answer in answers if "won" in answer]
    assert {answer["lost"] for answer in answers if "lost" in answer} == {winner}
    assert all("run 1" in answer["told"] for answer in answers if "lost" in answer)
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        assert (await only_run(runs)).id == winner


@pytest.mark.parametrize("way", ["resume", "cancel"])
async def test_a_key_held_by_a_killed_run_names_two_ways_out_and_both_work(tmp_path: Path, way: str) -> None:
    with started("keyed", 1, folder=tmp_path) as first:
        await until(lambda: calls_in(tmp_path), "the first one runs")
        with started("keyed", 2, folder=tmp_path) as second:
            assert second.ended() == 1, second.complained
            assert "held by run 1" in second.said
            assert "resume" not in second.said, "its holder lives"
        first.kill()
    with started("keyed", 2, folder=tmp_path) as third:
        assert third.ended() == 1, third.complained
        assert "tsuzuki resume 1" in third.said
        assert "tsuzuki cancel 1" in third.said
    (tmp_path / "go").touch()
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        if way == "cancel":
            assert (await runs.cancel(1))[1].status is Status.CANCELLED
        else:
            assert json.loads(finished("keyed", 1, folder=tmp_path)) == 1
            claims = [e.fact async for e in runs.journal(1) if isinstance(e.fact, f.Claimed)]
            assert [claim.attempt for claim in claims] == [1, 2]
        assert json.loads(finished("keyed", 2, folder=tmp_path)) == 2
