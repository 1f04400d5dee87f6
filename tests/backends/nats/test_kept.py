"""The file in which a machine keeps the lists of a store: gone on with, built anew, shared, and never needed."""

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Runs
from tsuzuki import facts as f
from tsuzuki.backends import Query, WorkerRecord
from tsuzuki.backends.nats import NatsBackend, kept, saving
from tsuzuki.lifecycle import RunUpdateResult, Status
from tsuzuki.testing import builders as b

# ruff: noqa: SLF001 - what a process reads, and whether it has opened its file, only its parts can tell

RUNS = 30


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test keeps its lists."""
    monkeypatch.setenv("TSUZUKI_PROJECTION_DIR", str(tmp_path / "lists"))
    return tmp_path / "lists"


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    """The address of an empty store; a server sets room aside for the logs of each, and these have none."""
    return f"{nats_server.url}?prefix={nats_server.fresh()}&max_log_bytes={1 << 20}"


def the_file(folder: Path) -> Path:
    (found,) = folder.glob("*.db")
    return found


@contextmanager
def changed(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as database, database:
        yield database


def read_since_opened(store: NatsBackend) -> int:
    return store._parts.follower.feed._delivered


def following(store: NatsBackend) -> bool:
    return store._parts.follower._opening is not None


async def listed(store: NatsBackend) -> list[str]:
    return sorted(run.id for run in await store.search(Query(limit=10_000)))


async def filled(opened: Open, url: str) -> list[str]:
    """Makes a store with runs whose file is up to date, and closes it; gives the ids of its runs."""
    store = await opened(url)
    runs = [await b.submitted(store) for _ in range(RUNS)]
    assert await listed(store) == sorted(run.id for run in runs)
    await store.close()
    return sorted(run.id for run in runs)


# Going on


async def test_a_process_reads_only_what_came_since_the_file_was_written(opened: Open, url: str) -> None:
    ids = await filled(opened, url)
    other = await opened(url)
    more = [(await b.submitted(other)).id for _ in range(3)]
    assert not following(other)
    store = await opened(url)
    assert await listed(store) == sorted([*ids, *more])
    assert read_since_opened(store) == 3
    again = await opened(url)
    assert await listed(again) == sorted([*ids, *more])
    assert read_since_opened(again) == 0


async def test_where_more_came_than_there_are_runs_only_the_last_of_each_is_read(opened: Open, url: str) -> None:
    await filled(opened, url)
    other = await opened(url)
    claim = await b.claimed(other)
    for number in range(RUNS * 2):
        await other.append(claim, [b.item(f"{number}")])
    store = await opened(url)
    assert await store.counts() == {"PENDING": RUNS, "RUNNING": 1}
    assert read_since_opened(store) <= RUNS + 1


async def test_a_run_that_was_purged_meanwhile_is_not_listed(opened: Open, url: str) -> None:
    ids = await filled(opened, url)
    other = await opened(url)
    await other.ask(ids[0], b.cancel())
    assert await other.purge([ids[0]]) == 1
    await other.close()
    store = await opened(url)
    assert await listed(store) == ids[1:]
    assert await store.counts() == {"PENDING": RUNS - 1}


async def test_what_somebody_submits_is_in_his_list_at_once(opened: Open, url: str) -> None:
    one, two = await opened(url), await opened(url)
    for number in range(1, 6):
        for store in (one, two):
            run = await b.submitted(store)
            assert run.id in await listed(store)
        assert sum((await two.counts()).values()) == 2 * number

    async def agree() -> bool:
        return await listed(one) == await listed(two)

    await until(agree, 1)


# Built anew


def remove(path: Path) -> None:
    path.unlink()


def halve(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def spoil_the_middle(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + random.Random(2).randbytes(len(whole) - 4096))


def make_it_older(path: Path) -> None:
    with changed(path) as database:
        database.execute("DROP TABLE labels")
        database.execute("PRAGMA user_version = 900")


def let_it_know_more_than_there_is(path: Path) -> None:
    with changed(path) as database:
        database.execute("UPDATE about SET seq = 1000000")


def let_the_journal_be_another(path: Path) -> None:
    with changed(path) as database:
        database.execute("UPDATE about SET mark = 'before a restore'")


def let_rows_be_unreadable(path: Path) -> None:
    with changed(path) as database:
        database.execute("UPDATE runs SET row = x'00'")


DAMAGES = (
    remove,
    halve,
    empty,
    fill_with_garbage,
    spoil_the_middle,
    make_it_older,
    let_it_know_more_than_there_is,
    let_the_journal_be_another,
    let_rows_be_unreadable,
)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_file_that_is_lost_or_damaged_is_built_anew(
    opened: Open, url: str, folder: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    ids = await filled(opened, url)
    damage(the_file(folder))
    store = await opened(url)
    assert await listed(store) == ids
    assert await store.counts() == {"PENDING": RUNS}
    assert ("built anew" in caplog.text) is (damage not in (remove, empty))
    await store.close()
    after = await opened(url)
    assert await listed(after) == ids
    assert read_since_opened(after) == 0, "the new file is gone on with"


@pytest.mark.parametrize("damage", [halve, fill_with_garbage, let_rows_be_unreadable])
async def test_a_file_that_is_damaged_while_it_is_open_is_built_anew(
    opened: Open, url: str, folder: Path, damage: Callable[[Path], None]
) -> None:
    ids = await filled(opened, url)
    store = await opened(url)
    assert await store.counts() == {"PENDING": RUNS}
    damage(the_file(folder))
    assert await listed(store) == ids
    more = (await b.submitted(store)).id
    assert await listed(store) == sorted([*ids, more])


async def test_a_file_that_missed_the_traces_of_removed_runs_is_built_anew(
    opened: Open, url: str, folder: Path
) -> None:
    ids = await filled(opened, url)
    with changed(the_file(folder)) as database:
        database.execute("UPDATE about SET at = at - 86400")
    idle = await opened(url)
    assert await listed(idle) == ids
    assert read_since_opened(idle) == 0, "where nothing happened there is nothing to miss"
    await idle.close()
    with changed(the_file(folder)) as database:
        database.execute("UPDATE about SET at = at - 86400")
    other = await opened(url)
    more = (await b.submitted(other)).id
    store = await opened(url)
    assert await listed(store) == sorted([*ids, more])
    assert read_since_opened(store) == RUNS + 1


async def test_a_store_that_was_removed_and_made_anew_has_none_of_the_old_runs(opened: Open, url: str) -> None:
    await filled(opened, url)
    remover = await opened(url)
    await remover.remove()
    await remover.close()
    store = await opened(url)
    runs = [await b.submitted(store) for _ in range(RUNS + 5)]
    assert await listed(store) == sorted(run.id for run in runs)
    assert await store.counts() == {"PENDING": RUNS + 5}


async def test_doctor_builds_lists_anew_that_know_of_more_runs_than_there_are(
    opened: Open, url: str, folder: Path
) -> None:
    ids = await filled(opened, url)
    with changed(the_file(folder)) as database:
        database.execute("DELETE FROM runs WHERE number > 3")
        database.execute("INSERT INTO counts VALUES ('crawl', 'default', '', 'FAILED', 1000)")
    store = await opened(url)
    assert (await store.counts())["FAILED"] == 1000
    checks = {check.name: check for check in await store.examine()}
    assert checks["journals"].ok, checks["journals"].text
    assert await listed(store) == ids


async def test_where_the_folder_cannot_be_written_lists_are_kept_in_memory(
    opened: Open, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TSUZUKI_PROJECTION_DIR", str(tmp_path / "file" / "lists"))
    ids = await filled(opened, url)
    assert await listed(await opened(url)) == ids


async def test_a_process_that_stands_still_while_it_writes_holds_nobody_up(
    opened: Open, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "BUSY", 0.1)
    ids = await filled(opened, url)
    store = await opened(url)
    assert await listed(store) == ids
    with closing(sqlite3.connect(the_file(folder), isolation_level=None)) as frozen:
        frozen.execute("BEGIN IMMEDIATE")
        more = (await b.submitted(store)).id
        assert await listed(store) == sorted([*ids, more])


# Not needed


async def test_whatever_is_asked_for_by_the_id_of_a_run_opens_no_file(opened: Open, url: str, folder: Path) -> None:
    store, other = await opened(url), await opened(url)
    runs = Runs(store)
    row = await runs.submit("crawl", {}, private=True)
    (claim,) = await other.claim("w1", run_id=row.id)
    waiting = asyncio.create_task(store.changed(row.id, claim.run.position, 30))
    await asyncio.sleep(0)
    await other.append(claim, [b.item("a")])
    await other.log(row.id, [], progress=b"[1]")
    async with asyncio.timeout(10):
        await waiting
    assert (await runs.get(row.id)).status is Status.RUNNING
    assert len(await store.read(row.id)) == 3
    answer, after = await runs.cancel(row.id)
    assert (answer, after.status) == (RunUpdateResult.UPDATED, Status.CANCELLING)
    await other.append(claim, [f.RunCancelled(at=b.AT)])
    assert (await runs.wait(row.id)).status is Status.CANCELLED
    assert (await runs.resume(row.id)).status is Status.PENDING
    (again,) = await store.claim("w2", run_id=row.id)
    assert again.attempt == 2
    assert [following(store), following(other)] == [False, False]
    assert not folder.exists()


async def test_a_worker_that_lists_nothing_leaves_the_file_to_those_who_do(
    opened: Open, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "MOST", 8)
    worker, other = await opened(url), await opened(url)
    assert await worker.claim("w1", tags=("default",)) == []
    ids = [(await b.submitted(other)).id for _ in range(20)]

    async def all_heard() -> bool:
        return len(await worker.search(Query(status=(Status.PENDING,), tag="default", private=False))) == 20

    await until(all_heard, 10)
    assert worker._parts.projection.file.behind
    (claim,) = await worker.claim("w1", tags=("default",))
    held = await worker.beat(WorkerRecord(id="w1", heartbeat_at=b.AT))
    assert [holding.run_id for holding in held] == [claim.run.id]
    assert worker._parts.projection.file.behind
    assert await worker.counts() == {"PENDING": 19, "RUNNING": 1}
    assert await listed(worker) == sorted(ids)
    assert not worker._parts.projection.file.behind


# Several processes

MEMBER = """
import asyncio, json, sys
from tsuzuki.backends import Query
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.testing import builders as b

async def main(url, mine, all_of_them):
    store = await NatsBackend.open(url)
    for _ in range(mine):
        run = await b.submitted(store)
        assert run.id in [row.id for row in await store.search(Query(limit=10_000))]
    while sum((await store.counts()).values()) < all_of_them:
        await asyncio.sleep(0.01)
    print(json.dumps(sorted(row.id for row in await store.search(Query(limit=10_000)))))
    await store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def start(url: str, mine: int, all_of_them: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", MEMBER, url, str(mine), str(all_of_them)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_processes_that_share_a_file_agree(opened: Open, url: str, folder: Path) -> None:
    members = [start(url, 40, 120) for _ in range(3)]
    told = [(await asyncio.to_thread(member.communicate, timeout=60))[0] for member in members]
    assert [member.returncode for member in members] == [0, 0, 0]
    lists = [json.loads(text) for text in told]
    assert lists[0] == lists[1] == lists[2]
    assert len(lists[0]) == 120
    store = await opened(url)
    assert await listed(store) == lists[0]
    assert len(list(folder.glob("*.db"))) == 1


async def test_processes_that_are_killed_while_they_write_leave_a_file_that_is_right(
    opened: Open, url: str, folder: Path
) -> None:
    store = await opened(url)
    await asyncio.gather(*(b.submitted(store) for _ in range(1500)))
    dice = random.Random(5)
    for _ in range(8):
        members = [start(url, 3, 1 << 30) for _ in range(2)]
        deadline = time.monotonic() + 30
        while not list(folder.glob("*.db")) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        await asyncio.sleep(dice.random() * 0.7)
        for member in members:
            member.send_signal(signal.SIGKILL)
            member.communicate()
    right = await opened(url)
    ids = await listed(right)
    assert ids == await listed(store)
    assert sum((await right.counts()).values()) == len(ids) >= 1500
    with closing(sqlite3.connect(the_file(folder))) as database:
        assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        assert database.execute("SELECT sum(runs) FROM counts").fetchone() == (len(ids),)
