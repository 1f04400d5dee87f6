"""Space that a purge frees goes back to the disk, whoever else has the file open."""

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.acceptance.processes import ANOTHER_HOST
from tests.backends.sqlite.conftest import Start
from tsuzuki import facts as f
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.backends.sqlite.file import LARGEST_LOG
from tsuzuki.backends.sqlite.room import KEPT
from tsuzuki.lifecycle import Status
from tsuzuki.testing import builders as b

MEGA = 1024**2
PAGE = 4096
LARGE = msgspec.json.encode("x" * 50_000)


async def filled(backend: SqliteBackend, runs: int = 30) -> list[str]:
    """Lets some runs end that take about half a megabyte each."""
    ids = []
    for _ in range(runs):
        claim = await b.claimed(backend)
        facts = [f.ItemDone(at=b.AT, step="s", key=str(n), result=msgspec.Raw(LARGE)) for n in range(10)]
        await backend.append(claim, [*facts, b.ending(Status.COMPLETED)])
        ids.append(claim.run.id)
    return ids


def size(path: Path) -> float:
    return path.stat().st_size / MEGA


def as_it_was_once(path: Path) -> None:
    """Makes a file one that cannot give space back by and by."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (0,)


async def test_a_purge_shrinks_the_file_while_others_have_it_open(
    backend: SqliteBackend, path: Path, start: Start
) -> None:
    other: subprocess.Popen[str] = start(
        """
        async def main():
            store = await SqliteBackend.open(path)
            run = await b.submitted(store)
            print(run.id, flush=True)
            sys.stdin.readline()
            print((await store.get(run.id)).status, flush=True)
            await store.close()
        asyncio.run(main())
        """
    )
    assert other.stdout is not None
    waiting = other.stdout.readline().strip()
    ids = await filled(backend)
    assert await backend.purge([]) == 0
    kept = ids.pop()
    assert await backend.purge(ids) == len(ids)
    assert size(path) < 1.5 + KEPT * PAGE / MEGA
    assert size(path.with_name(f"{path.name}-wal")) < 1 + LARGEST_LOG / MEGA, "what was written to remove it goes too"
    assert len(await backend.read(kept)) == 13
    assert await backend.get(waiting) is not None
    assert all(check.ok for check in await backend.examine())
    out, _ = other.communicate("\n", timeout=60)
    assert out.strip() == "PENDING"


async def test_a_file_of_an_older_version_is_compacted_when_asked(path: Path) -> None:
    backend = await SqliteBackend.open(path)
    ids = await filled(backend)
    await backend.close()
    as_it_was_once(path)
    backend = await SqliteBackend.open(path)
    try:
        large = size(path)
        assert await backend.purge(ids[:20]) == 20
        assert size(path) >= large, "it cannot give space back by and by"
        told = await backend.compact()
        assert told.ok
        assert size(path) < large / 2
        assert await backend.purge(ids[20:]) == 10
        assert size(path) < 0.5 + KEPT * PAGE / MEGA, "from now on it can"
        assert all(check.ok for check in await backend.examine())
        await b.submitted(backend)
    finally:
        await backend.close()


async def test_compacting_loses_nothing_that_others_write_meanwhile(
    backend: SqliteBackend, path: Path, start: Start
) -> None:
    ids = await filled(backend)
    other = start(
        """
        async def main():
            store = await SqliteBackend.open(path)
            claim = await b.claimed(store, worker="other")
            print(claim.run.id, flush=True)
            for n in range(300):
                await store.append(claim, [b.item(str(n))])
            await store.close()
        asyncio.run(main())
        """
    )
    assert other.stdout is not None
    run = other.stdout.readline().strip()
    await backend.purge(ids)
    for _ in range(3):
        assert (await backend.compact()).ok
    assert other.wait(60) == 0
    assert len(await backend.read(run)) == 302
    assert all(check.ok for check in await backend.examine())


async def test_a_purge_leaves_the_room_that_a_new_file_begins_with(backend: SqliteBackend, path: Path) -> None:
    before = size(path)
    run = await b.ended(backend, Status.COMPLETED)
    assert await backend.purge([run.id]) == 1
    assert size(path) == pytest.approx(before, abs=0.1)


def test_a_store_on_a_disk_that_is_full_to_its_last_byte_is_opened_and_purged(tmp_path: Path) -> None:
    command = [*ANOTHER_HOST, sys.executable, "-m", "tests.backends.sqlite.full_disk", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == ["free 0", "deleted 1", "purged 119"]
