"""What `doctor` finds in a file that somebody else has changed, what it mends, and what it says to do."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tsuzuki import Runs, Worker, flow, task
from tsuzuki.backends import Check, Query, WorkerRecord
from tsuzuki.examination import examine
from tsuzuki.testing.contract.wheels import CONTENT, a_wheel, put

LARGE = 300_000


@task
async def written(number: int) -> str:
    return "x" * (LARGE if number == 3 else 1)


@flow
async def mixed(count: int) -> int:
    return sum(len(text) for text in await written.map(range(count), concurrency=1))


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """A store with a run of five items, one of them large, and labels."""
    file = tmp_path / "runs.db"
    async with Runs.open(f"sqlite:{file}") as runs:
        await runs.submit(mixed, {"count": 5}, tags=["night", "large"])
        worker = await Worker.connect(runs.backend, flows=[mixed])
        assert await worker.run_once(30)
        await worker.close()
    return file


async def found(file: Path, *statements: str) -> dict[str, Check]:
    """Spoils the file, and examines it."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    async with Runs.open(f"sqlite:{file}") as runs:
        return {check.name: check for check in await examine(runs)}


def wrong(checks: dict[str, Check]) -> set[str]:
    assert all(check.do for check in checks.values() if not check.ok), "each finding says what to do"
    return {check.name for check in checks.values() if not check.ok}


async def test_a_sound_store_has_nothing_wrong(file: Path) -> None:
    checks = await found(file)
    assert wrong(checks) == set()
    assert checks["rows"].text.startswith("1 rows are the fold of their ")


async def test_a_row_that_is_not_the_fold_of_its_facts_is_found_and_rebuilt(file: Path) -> None:
    checks = await found(file, "UPDATE runs SET done = 4")
    assert wrong(checks) == {"rows"}, "the journal ends where the row says: only reading it tells"
    assert "tsuzuki doctor --rebuild" in checks["rows"].do
    async with Runs.open(f"sqlite:{file}") as runs:
        assert await runs.rebuild() == 1
    assert wrong(await found(file)) == set()


async def test_a_fact_that_is_missing_in_the_middle_is_found(file: Path) -> None:
    checks = await found(file, "DELETE FROM facts WHERE position = 4")
    assert wrong(checks) == {"gaps", "journals"}
    assert checks["gaps"].text.startswith("run 1: ")


async def test_what_belongs_to_no_run_goes_and_what_a_run_has_lost_comes_back(file: Path) -> None:
    checks = await found(
        file,
        "INSERT INTO labels VALUES ('ghost', 0.0, 99)",
        "INSERT INTO params VALUES (99, '{}')",
        "DELETE FROM params WHERE run = 1",
        "DELETE FROM labels WHERE label = 'large'",
    )
    assert wrong(checks) == set()
    assert checks["belongings"].text.startswith("2 facts, lines, params and labels of no run swept, 2 ")
    async with Runs.open(f"sqlite:{file}") as runs:
        [row] = await runs.backend.search(Query(label="large"))
        assert bytes(row.params) == b'{"count":5}'
    assert (await found(file))["belongings"].text.startswith("0 ")


async def test_a_large_value_that_is_gone_is_found(file: Path) -> None:
    shutil.rmtree(file.with_name("runs.db-blobs"))
    assert wrong(await found(file)) == {"large values"}


async def test_runs_that_no_living_worker_would_take_are_told_with_the_command_that_helps(file: Path) -> None:
    async with Runs.open(f"sqlite:{file}") as runs:
        await runs.submit("render", {}, tag="gpu")
        checks = {check.name: check for check in await examine(runs)}
    assert wrong(checks) == {"waiting"}
    assert "tsuzuki worker --tags gpu --flows" in checks["waiting"].do


async def test_wheels_that_are_lost_or_damaged_or_cannot_be_installed_are_found(file: Path) -> None:
    async with Runs.open(f"sqlite:{file}") as runs:
        wheels = [await put(runs.backend, a_wheel(package=name)) for name in ("damaged", "lost", "whole")]
        damaged, lost, _ = (file.with_name("runs.db-wheels") / f"{wheel.nuid}.whl" for wheel in wheels)
        damaged.write_bytes(CONTENT[:-1] + b"!")
        lost.unlink()
        sync = {"enabled": True, "last_result": "error", "last_error": "pip cannot install what it requires"}
        now = runs.now()
        record = WorkerRecord(id="w1", host="elsewhere", heartbeat_at=now, started_at=now, wheel_sync=sync)
        await runs.backend.beat(record)
        checks = {check.name: check for check in await examine(runs)}
    assert wrong(checks) == {"wheel files", "wheel sync"}
    assert checks["wheel files"].text == f"lost or damaged: {wheels[0].name}, {wheels[1].name}"
    assert checks["wheel sync"].text == "fails on w1; w1 says: pip cannot install what it requires"
