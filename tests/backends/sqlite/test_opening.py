"""A file is ours, made ours, or refused unchanged with what to do next."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.backends.sqlite.conftest import Start, answer
from tsuzuki.backends import Query
from tsuzuki.backends.sqlite import SqliteBackend, migrations
from tsuzuki.backends.sqlite.file import connect
from tsuzuki.errors import NewerStore, NotAStore, StoreUnavailable
from tsuzuki.testing import builders as b

NOBODY = 65534


async def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    store = await SqliteBackend.open(tmp_path / "a" / "b" / "tsuzuki.db")
    await store.close()
    assert (tmp_path / "a" / "b" / "tsuzuki.db").exists()


async def test_a_new_file_is_marked_as_ours_and_synced_on_every_commit(path: Path, backend: SqliteBackend) -> None:
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA application_id").fetchone() == (migrations.MARK,)
        assert other.execute("PRAGMA user_version").fetchone() == (migrations.NEWEST,)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(connect(path)) as ours:
        full = 2
        assert ours.execute("PRAGMA synchronous").fetchone() == (full,)


async def test_the_address_opens_the_store_again(path: Path) -> None:
    first = await SqliteBackend.open(path)
    run = await b.submitted(first)
    await first.close()
    second = await SqliteBackend.open(first.url.removeprefix("sqlite:"))
    assert await second.get(run.id) == run
    await second.close()


async def test_many_processes_may_open_a_new_file_at_once(start: Start) -> None:
    code = """
        async def main():
            store = await SqliteBackend.open(path)
            await b.submitted(store)
            await store.close()
            print("ok")
        asyncio.run(main())
    """
    processes = [start(code) for _ in range(6)]
    assert await asyncio.gather(*map(answer, processes)) == ["ok"] * 6


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    store = await SqliteBackend.open(path)
    assert await store.search(Query()) == []
    await store.close()


async def test_a_file_without_the_last_migrations_gets_them_and_keeps_its_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await SqliteBackend.open(path)
    run = await b.submitted(old)
    await old.close()
    folder = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).with_name("migrations"), folder)
    (folder / f"{migrations.NEWEST + 1:04}_more.sql").write_text("-- More.\nCREATE TABLE more (x);\n", encoding="utf-8")
    steps = migrations.steps(folder)
    monkeypatch.setattr(migrations, "steps", lambda: steps)
    monkeypatch.setattr(migrations, "NEWEST", migrations.NEWEST + 1)
    new = await SqliteBackend.open(path)
    assert await new.get(run.id) == run
    await new.close()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (migrations.NEWEST,)
        assert other.execute("SELECT count(*) FROM more").fetchone() == (0,)


async def test_a_migration_that_fails_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**migrations.steps(), 2: "CREATE TABLE half (x); CREATE TABLE half (x);"}
    monkeypatch.setattr(migrations, "steps", lambda: broken)
    with pytest.raises(Exception, match="half"):
        await SqliteBackend.open(path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    monkeypatch.undo()
    store = await SqliteBackend.open(path)
    await store.close()


def test_migrations_are_numbered_without_gaps() -> None:
    assert list(migrations.steps()) == list(range(1, migrations.NEWEST + 1))


# Refused


async def refused(path: Path, error: type[Exception], match: str) -> None:
    before = path.read_bytes()
    with pytest.raises(error, match=match):
        await SqliteBackend.open(path)
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]


@pytest.mark.parametrize("content", [b"hello", b"\0" * 5000, b"SQLite format 3\0" + b"\x01" * 5000])
async def test_garbage_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    await refused(path, NotAStore, "choose another file")


@pytest.mark.parametrize("mark", [0, 42])
async def test_a_database_of_another_program_is_refused(path: Path, mark: int) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA application_id = {mark}")
        other.execute("CREATE TABLE theirs (x)")
        other.commit()
    await refused(path, NotAStore, "another program")


async def test_a_newer_store_is_refused(path: Path) -> None:
    store = await SqliteBackend.open(path)
    await store.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 999")
        other.execute("PRAGMA journal_mode = DELETE")
    for file in path.parent.glob("tsuzuki.db-*"):
        file.unlink()
    await refused(path, NewerStore, "upgrade tsuzuki")


async def test_a_damaged_page_is_told_when_it_is_read(path: Path) -> None:
    store = await SqliteBackend.open(path)
    for _ in range(50):
        await b.submitted(store)
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(NotAStore, match="damaged"):
        await SqliteBackend.open(path)


OPEN_AS_NOBODY = """
import asyncio, concurrent.futures.thread, os, sys
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.errors import StoreUnavailable
if os.getuid() == 0:
    os.setgid({nobody}); os.setuid({nobody})
try:
    asyncio.run(SqliteBackend.open(sys.argv[1]))
except StoreUnavailable as error:
    print(error)
"""


@pytest.mark.parametrize("locked", ["file", "folder", "place"])
async def test_what_cannot_be_written_says_what_to_do(path: Path, locked: str) -> None:
    folder = path.parent / "store"
    folder.mkdir()
    store = await SqliteBackend.open(folder / "tsuzuki.db")
    await store.close()
    for directory in list(path.parents)[:-2]:
        if directory.stat().st_uid == os.getuid() and directory.is_relative_to(path.parent.parent.parent):
            directory.chmod(0o755)
    folder.chmod(0o555 if locked == "folder" else 0o777)
    for file in folder.iterdir():
        file.chmod(0o444 if locked == "file" else 0o666)
    target = folder / "tsuzuki.db" if locked != "place" else path.parent / "new" / "tsuzuki.db"
    path.parent.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", OPEN_AS_NOBODY.format(nobody=NOBODY), str(target)],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        path.parent.chmod(0o755)
        folder.chmod(0o755)
    assert "writable for this user" in done.stdout


async def test_a_folder_in_the_place_of_the_file_is_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises((StoreUnavailable, NotAStore)):
        await SqliteBackend.open(path)


async def test_a_file_whose_writer_died_in_the_middle_is_put_right(tmp_path: Path) -> None:
    store = await SqliteBackend.open(tmp_path / "tsuzuki.db")
    run = await b.submitted(store)
    await store.close()
    left = tmp_path / "left" / "tsuzuki.db"
    left.parent.mkdir()
    with closing(sqlite3.connect(tmp_path / "tsuzuki.db", isolation_level=None)) as dying:
        dying.execute("PRAGMA journal_mode = DELETE")
        dying.execute("PRAGMA cache_size = 1")
        dying.execute("BEGIN IMMEDIATE")
        dying.executemany("INSERT INTO meta (name, value) VALUES (?, ?)", [(str(n), "x" * 900) for n in range(200)])
        for end in ("", "-journal"):  # what a power cut leaves: a file half written, and how to take that back
            shutil.copy(tmp_path / f"tsuzuki.db{end}", f"{left}{end}")
    again = await SqliteBackend.open(left)
    assert (await b.row(again, run.id)).id == run.id
    assert all(check.ok for check in await again.examine())
    await again.close()
