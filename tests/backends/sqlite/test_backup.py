"""A store in a file, backed up while it is written to, and restored where nothing is."""

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.backends import copying, manifest
from tsuzuki.backends.shelf import DELETE
from tsuzuki.backends.sqlite import backup as copies
from tsuzuki.errors import NewerStore, NotABackup, PlaceTaken
from tsuzuki.examination import examine
from tsuzuki.flow import Flow
from tsuzuki.testing.contract.wheels import CONTENT, a_wheel, an_event, content_of, put

LARGE = 300_000
HALF = 120


@task
async def written(number: int) -> str:
    return str(number % 10) * (LARGE if number % 50 == 3 else 1)


@flow
async def mixed(count: int) -> int:
    return sum(len(text) for text in await written.map(range(count), concurrency=4))


gate = asyncio.Event()
"""What the later items of a run wait for."""


@task
async def paced(number: int) -> str:
    if number >= HALF:
        await gate.wait()
    return await written(number)


@flow
async def halting(count: int) -> int:
    return sum(len(text) for text in await paced.map(range(count), concurrency=4))


def rows(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Gives every row of every table but the workers', who differ on purpose."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: read(connection, table) for table in tables if table != "workers"}


def read(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(f"SELECT * FROM {table}"), key=repr)  # noqa: S608 - the file's own names


async def work_off(store: Path, *flows: Flow) -> None:
    worker = await Worker.connect(f"sqlite:{store}", flows=flows)
    try:
        for _ in flows:
            assert await worker.run_once(30) is not None
    finally:
        await worker.close()


async def test_what_was_there_comes_back_item_by_item_and_the_work_goes_on(tmp_path: Path) -> None:
    store, there = tmp_path / "here" / "runs.db", tmp_path / "there" / "other.db"
    async with Runs.open(f"sqlite:{store}") as runs:
        done = await runs.submit(mixed, {"count": 5}, tags=["night"])
        await work_off(store, mixed)
        waiting = await runs.submit(mixed, {"count": 2})
        wheels = store.with_name("runs.db-wheels")
        wheels.mkdir()
        (wheels / "thing-1.0-py3-none-any.whl").write_bytes(b"PK" * 1000)
        (wheels / "thing-2.0.part").write_bytes(b"PK")
        made = await copying.backup(f"sqlite:{store}", tmp_path / "backup")
        before = rows(store)
    assert made.counts["runs"] == 2
    await copying.restore(tmp_path / "backup", f"sqlite:{there}")
    assert rows(there) == before
    assert (there.with_name("other.db-wheels") / "thing-1.0-py3-none-any.whl").read_bytes() == b"PK" * 1000
    assert not there.with_name("other.db-wheels").joinpath("thing-2.0.part").exists(), "it is only half there"
    async with Runs.open(f"sqlite:{there}") as runs:
        assert await runs.result(done.id) == LARGE + 4
        await work_off(there, mixed)
        assert await runs.result(waiting.id) == 2
        assert all(check.ok for check in await examine(runs))
    with pytest.raises(PlaceTaken, match="is there already"):
        await copying.restore(tmp_path / "backup", f"sqlite:{there}")


async def test_a_backup_of_a_store_at_work_is_one_moment_of_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with Runs.open(f"sqlite:{store}") as runs, Worker(runs.backend, [halting]) as worker:
        working = asyncio.create_task(worker.run())
        run = await runs.submit(halting, {"count": 2 * HALF})
        while (await runs.get(run.id)).done < HALF:
            await asyncio.sleep(0.01)
        await copying.backup(f"sqlite:{store}", tmp_path / "backup")
        gate.set()
        assert (await runs.wait(run.id)).status is Status.COMPLETED
        await copying.restore(tmp_path / "backup", f"sqlite:{tmp_path / 'again.db'}")
        await goes_on(tmp_path / "again.db", run.id)
        worker.stop()
        await working


async def goes_on(store: Path, run_id: str) -> None:
    """The worker that had the run lives, under its name: in the copy it is somebody of another machine."""
    async with Runs.open(f"sqlite:{store}") as runs:
        row = await runs.get(run_id)
        assert (row.status, row.done) == (Status.RUNNING, HALF)
        assert all(check.ok for check in await examine(runs))
        await work_off(store, halting)
        assert (await runs.get(run_id)).attempt == 2
        assert await runs.result(run_id) == 5 * LARGE + 235


async def test_a_run_that_is_purged_while_it_is_copied_is_not_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.db"
    copied = copies._copied  # noqa: SLF001 - the moment between the file and what belongs to it
    async with Runs.open(f"sqlite:{store}") as runs:
        ids = [(await runs.submit(mixed, {"count": 4})).id for _ in range(2)]
        await work_off(store, mixed, mixed)

        def purging(path: Path, target: Path) -> object:
            answer = copied(path, target)
            asyncio.run(_purge(store, ids[0]))
            return answer

        monkeypatch.setattr(copies, "_copied", purging)
        await copying.backup(f"sqlite:{store}", tmp_path / "backup")
    await copying.restore(tmp_path / "backup", f"sqlite:{tmp_path / 'again.db'}")
    async with Runs.open(f"sqlite:{tmp_path / 'again.db'}") as runs:
        assert [row.id for row in await runs.list()] == [ids[1]]
        assert await runs.result(ids[1]) == LARGE + 3
        assert all(check.ok for check in await examine(runs))


async def _purge(store: Path, run_id: str) -> None:
    async with Runs.open(f"sqlite:{store}") as runs:
        assert await runs.backend.purge([run_id]) == 1


async def test_a_backup_that_is_not_whole_restores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, folder, there = tmp_path / "runs.db", tmp_path / "backup", tmp_path / "there" / "runs.db"
    async with Runs.open(f"sqlite:{store}") as runs:
        await runs.submit(mixed, {"count": 4})
        await work_off(store, mixed)
    made = await copying.backup(f"sqlite:{store}", folder)
    [blob] = [each.name for each in made.pieces if "-blobs/" in each.name]
    whole = (folder / blob).read_bytes()
    (folder / blob).write_bytes(b"3" + whole[:-1])
    assert (await copying.verify(folder))[1] == [f"{blob} is not what was written (its digest differs)"]
    with pytest.raises(NotABackup, match="its digest differs"):
        await copying.restore(folder, f"sqlite:{there}")
    (folder / blob).unlink()
    with pytest.raises(NotABackup, match="cannot be read"):
        await copying.restore(folder, f"sqlite:{there}")
    (folder / blob).write_bytes(whole)
    there.parent.mkdir()
    log = there.with_name("runs.db-wal")
    log.write_bytes(b"what an old store had not merged yet")
    with pytest.raises(PlaceTaken, match="-wal is there already"):
        await copying.restore(folder, f"sqlite:{there}")
    log.unlink()

    def full(source: Path, target: Path, *, gone: bool) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(copies, "_copy", full)
        with pytest.raises(Exception, match="the disk is full"):
            await copying.restore(folder, f"sqlite:{there}")
    assert list(there.parent.iterdir()) == []
    manifest.write(folder, replace(made, version=99))
    with pytest.raises(NewerStore, match="newer Tsuzuki"):
        await copying.restore(folder, f"sqlite:{there}")


async def test_a_wheel_that_is_deleted_while_it_is_copied_is_not_in_the_copy_and_one_that_is_lost_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder, copied = tmp_path / "runs.db", tmp_path / "backup", copies._copied  # noqa: SLF001 - the moment between
    async with Runs.open(f"sqlite:{store}") as runs:
        kept, deleted, lost = [await put(runs.backend, a_wheel(package=name)) for name in ("kept", "deleted", "lost")]
        (store.with_name("runs.db-wheels") / f"{lost.nuid}.whl").unlink()

        def deleting(path: Path, target: Path) -> object:
            answer = copied(path, target)
            asyncio.run(_delete(store, deleted.name))
            return answer

        monkeypatch.setattr(copies, "_copied", deleting)
        made = await copying.backup(f"sqlite:{store}", folder)
    assert made.lacking == (f"the wheel {lost.name}",)
    await copying.restore(folder, f"sqlite:{tmp_path / 'again.db'}")
    async with Runs.open(f"sqlite:{tmp_path / 'again.db'}") as runs:
        assert [wheel.name for wheel in await runs.backend.wheels.all()] == [kept.name, lost.name]
        assert await content_of(runs.backend, kept) == CONTENT


async def _delete(store: Path, wheel: str) -> None:
    async with Runs.open(f"sqlite:{store}") as runs:
        assert await runs.backend.wheels.remove(wheel, an_event(DELETE))


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tsuzuki.backends import copying
from tsuzuki.backends.sqlite import backup

copy = backup._copy

def and_die(source, target, *, gone):
    copy(source, target, gone=gone)
    if target.suffix == ".whl":
        os.kill(os.getpid(), signal.SIGKILL)

backup._copy = and_die
{what}
"""


async def test_backups_and_restores_that_were_killed_are_known_as_such(tmp_path: Path) -> None:
    store, folder, there = tmp_path / "runs.db", tmp_path / "backup", tmp_path / "there" / "runs.db"
    async with Runs.open(f"sqlite:{store}") as runs:
        wheel = await put(runs.backend, a_wheel())
    await _killed(f"asyncio.run(copying.backup('sqlite:{store}', Path({str(folder)!r})))")
    with pytest.raises(NotABackup, match="was cut off"):
        await copying.verify(folder)
    with pytest.raises(PlaceTaken, match="was cut off; delete it"):
        await copying.backup(f"sqlite:{store}", folder)
    shutil.rmtree(folder)
    await copying.backup(f"sqlite:{store}", folder)

    await _killed(f"asyncio.run(copying.restore(Path({str(folder)!r}), 'sqlite:{there}'))")
    assert {each.name for each in there.parent.iterdir()} - {"runs.db.part"} == {"runs.db.part-wheels"}
    await copying.restore(folder, f"sqlite:{there}")
    async with Runs.open(f"sqlite:{there}") as runs:
        assert await content_of(runs.backend, wheel) == CONTENT
    assert not list(there.parent.glob("*.part*"))


async def _killed(what: str) -> None:
    program = [sys.executable, "-c", KILLED.replace("{what}", what)]
    ended = await asyncio.to_thread(subprocess.run, program, check=False)
    assert ended.returncode == -signal.SIGKILL


async def test_a_second_restore_leaves_one_that_is_under_way_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, there, copy_all = tmp_path / "backup", f"sqlite:{tmp_path / 'there' / 'tsuzuki.db'}", copies._copy_all  # noqa: SLF001 - in the middle of a restore
    async with Runs.open(f"sqlite:{tmp_path / 'tsuzuki.db'}") as runs:
        wheel = await put(runs.backend, a_wheel())
    await copying.backup(f"sqlite:{tmp_path / 'tsuzuki.db'}", folder)
    refused: list[str] = []

    def meanwhile(pairs):  # type: ignore[no-untyped-def]
        copy_all(pairs)
        if not refused:
            refused.append("another")
            with pytest.raises(PlaceTaken, match="another restore"):
                asyncio.run(copying.restore(folder, there))

    monkeypatch.setattr(copies, "_copy_all", meanwhile)
    await copying.restore(folder, there)
    assert refused
    async with Runs.open(there) as runs:
        assert await content_of(runs.backend, wheel) == CONTENT


async def test_the_name_of_a_restored_store_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut after a restore has said that it is done must not take the file's name back."""
    source, target = tmp_path / "a" / "store.db", tmp_path / "b" / "store.db"
    async with Runs.open(f"sqlite:{source}") as runs:
        await runs.submit("f")
    await copying.backup(f"sqlite:{source}", tmp_path / "copy")
    synced: list[bool] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        fsync(handle)
        if Path(f"/proc/self/fd/{handle}").resolve() == target.parent:
            synced.append(target.exists())

    monkeypatch.setattr(os, "fsync", noted)
    await copying.restore(tmp_path / "copy", f"sqlite:{target}")
    assert synced[-1]
