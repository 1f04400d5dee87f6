"""Stores as earlier versions left them: they open, are brought to the present, and their runs go on.

Each file in `older/` is the dump of a store that the Tsuzuki of that schema has made with these flows.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.backends import Query
from tsuzuki.backends.sqlite import migrations
from tsuzuki.examination import examine

OLDER = Path(__file__).with_name("older")
SCHEMAS = sorted(int(file.stem) for file in OLDER.glob("*.sql"))


@task
async def weigh(n: int) -> int:
    return n * 10


@flow
async def weights(count: int) -> int:
    found = await weigh.map(range(count), concurrency=2, on_error="collect")
    return sum(found.succeeded)


@flow(key="site:{site}")
async def kept(site: str) -> str:
    return site


def test_there_is_a_store_of_every_earlier_schema() -> None:
    assert set(SCHEMAS) >= set(range(1, migrations.NEWEST)), "dump a store of the schema before the new one"


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_store_of_an_earlier_version_opens_and_its_runs_go_on(tmp_path: Path, schema: int) -> None:
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((OLDER / f"{schema}.sql").read_text())
        assert migrations.version(connection) == schema
    async with Runs.open(f"sqlite:{file}") as runs:
        checks = {check.name: check for check in await examine(runs)}
        assert [name for name, check in checks.items() if not check.ok] == ["waiting"], "a run waits for a worker"
        rows = {row.number: row for row in await runs.list()}
        assert [rows[n].status for n in (1, 2, 3, 4)] == ["COMPLETED", "FAILED", "PENDING", "CANCELLED"]
        assert (rows[1].done, rows[1].failed, await runs.result(rows[1].id)) == (6, 2, 180)
        for query in (
            Query(label="café"),
            Query(flow="weights", tag="default"),
            Query(key="site:a"),
            Query(private=False),
        ):
            assert await runs.backend.search(query), f"nothing is found by {query}"
        assert [letter.run_id for letter in await runs.backend.dead_letters()] == [rows[2].id]
        assert await runs.backend.read_log(rows[1].id), "what it said is kept"
        assert (await runs.submit(kept, {"site": "a"}, idempotency_key="once")).id == rows[3].id
        await runs.resume(rows[1].id)
        await carried_out(runs, rows[1].id, rows[3].id)
        again = await runs.get(rows[1].id)
        assert (again.status, again.done, again.failed) == (Status.COMPLETED, 8, 0)
        assert await runs.result(again.id) == 280
        assert (await runs.submit(kept, {"site": "c"})).number > 4, "numbers go on"
        assert all(check.ok for check in await examine(runs, quick=False) if check.name != "waiting")


async def carried_out(runs: Runs, *run_ids: str) -> None:
    worker = await Worker.connect(runs.backend, flows=[weights, kept])
    try:
        assert {await worker.run_once(30) for _ in run_ids} == set(run_ids)
    finally:
        await worker.close()
