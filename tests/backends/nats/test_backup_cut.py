"""Backups and restores on NATS that are cut off, or that others take something away from meanwhile."""
# ruff: noqa: SLF001 - it does things between two pieces of a copy

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest

from bench.operate.comparing import items, names
from tests.nats_server import NatsServer
from tsuzuki import Runs, Worker, flow
from tsuzuki.backends import copying
from tsuzuki.backends.nats import NatsBackend, snapshots
from tsuzuki.errors import PlaceTaken, StoreUnavailable
from tsuzuki.examination import examine
from tsuzuki.testing.contract.wheels import a_wheel, content_of, put

LARGE = 600_000
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tsuzuki.backends import copying
from tsuzuki.backends.nats import snapshots

load, loaded = snapshots.load, []

async def until_the_fourth(wire, source, copied):
    if len(loaded) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    loaded.append(source)
    await load(wire, source, copied)

snapshots.load = until_the_fourth
asyncio.run(copying.restore(Path(sys.argv[1]), sys.argv[2]))
"""


@flow
async def large(number: int) -> str:
    return str(number) * LARGE


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "empty")
    server.start()
    yield server
    server.stop()


async def finished(runs: Runs, url: str, count: int) -> list[str]:
    """Executes some runs, each with a large result; gives their ids."""
    ids = [(await runs.submit(large, {"number": number})).id for number in range(count)]
    worker = await Worker.connect(url, flows=[large])
    for _ in ids:
        assert await worker.run_once(30)
    await worker.close()
    return ids


async def test_a_restore_that_was_killed_is_no_store_and_the_next_one_begins_anew(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    content = os.urandom(3_000_000)
    async with Runs.open(url) as runs:
        [run] = await finished(runs, url, 1)
        wheel = await put(runs.backend, a_wheel(content=content), content)
    made = await copying.backup(url, folder)
    await (await NatsBackend.open(there)).close()  # whoever only looks makes a store, which is in nobody's way

    command = [sys.executable, "-c", KILLED, str(folder), there]
    killed = await asyncio.to_thread(subprocess.run, command, check=False)
    assert killed.returncode == -signal.SIGKILL
    half = await names(empty.url)
    assert 3 <= len(half) < len(made.streams)
    with pytest.raises(StoreUnavailable, match="only half restored"):
        await NatsBackend.open(there)
    with pytest.raises(StoreUnavailable, match="only half restored"):
        await copying.backup(there, tmp_path / "of-a-half")
    assert not (tmp_path / "of-a-half").exists()
    assert await names(empty.url) == half, "whoever looked has made nothing"

    with caplog.at_level(logging.WARNING, logger="tsuzuki.nats"):
        await copying.restore(folder, there)
    assert "begun anew" in caplog.text
    for name in (each.name for each in made.streams):
        assert await items(nats_server.url, name) == await items(empty.url, name), f"{name} differs"
    async with Runs.open(there) as runs:
        assert await runs.result(run) == "0" * LARGE
        assert await content_of(runs.backend, wheel) == content
        assert all(check.ok for check in await examine(runs))


async def test_a_second_restore_leaves_one_that_is_under_way_alone(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, folder, refused = nats_server.fresh(), tmp_path / "backup", list[str]()
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    async with Runs.open(url) as runs:
        [run] = await finished(runs, url, 1)
    made = await copying.backup(url, folder)
    load = snapshots.load

    async def meanwhile(wire, source: Path, copied):  # type: ignore[no-untyped-def]
        if source.name == made.streams[-1].file:
            with pytest.raises(PlaceTaken, match="another restore"):
                await copying.restore(folder, there)
            refused.append(source.name)
        await load(wire, source, copied)

    monkeypatch.setattr(snapshots, "load", meanwhile)
    await copying.restore(folder, there)
    assert len(refused) == 1
    async with Runs.open(there) as runs:
        assert await runs.result(run) == "0" * LARGE


async def test_of_two_restores_that_see_an_empty_server_one_is_whole(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path
) -> None:
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    async with Runs.open(url) as runs:
        [run] = await finished(runs, url, 1)
    await copying.backup(url, folder)
    both = await asyncio.gather(*(copying.restore(folder, there) for _ in range(2)), return_exceptions=True)
    [failed] = [each for each in both if isinstance(each, BaseException)]
    assert isinstance(failed, PlaceTaken), failed
    async with Runs.open(there) as runs:
        assert await runs.result(run) == "0" * LARGE
        assert all(check.ok for check in await examine(runs))


async def test_a_run_that_is_purged_while_streams_are_copied_is_not_in_the_restored_store(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is copied with the run; before its large result is copied, it is gone."""
    prefix, folder, save = nats_server.fresh(), tmp_path / "backup", snapshots.save
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    async with Runs.open(url) as runs:
        purged, kept = await finished(runs, url, 2)

        async def meanwhile(wire, stream: str, target: Path):  # type: ignore[no-untyped-def]
            if stream == f"OBJ_{prefix}_blobs":
                assert await runs.backend.purge([purged]) == 1
            return await save(wire, stream, target)

        monkeypatch.setattr(snapshots, "save", meanwhile)
        made = await copying.backup(url, folder)
    assert made.purged == (purged,)
    await copying.restore(folder, there)
    async with Runs.open(there) as runs:
        assert [row.id for row in await runs.list()] == [kept]
        assert await runs.result(kept) == "1" * LARGE
        assert all(check.ok for check in await examine(runs))


async def test_a_run_that_is_submitted_while_streams_are_copied_is_no_dead_letter_in_the_restored_store(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    save = snapshots.save
    async with Runs.open(url) as runs:
        await runs.submit(large, {"number": 1})

        async def meanwhile(wire, stream: str, target: Path):  # type: ignore[no-untyped-def]
            copied = await save(wire, stream, target)
            await runs.submit(large, {"number": 2})
            return copied

        monkeypatch.setattr(snapshots, "save", meanwhile)
        await copying.backup(url, folder)
    await copying.restore(folder, there)
    async with Runs.open(there) as runs:
        told = {check.name: check.text for check in await runs.examine()}
    assert told["letters"].startswith("0 kept"), told
    assert told["refused tickets"].startswith("0 made"), told
    assert "1 missing and written" in told["tickets"], "that of the run that came before the journal was copied"


async def test_keys_that_are_written_while_their_bucket_is_copied_are_not_lost(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server takes an old value out of the copy, too, and has the new one in a block that is not in it."""
    prefix, folder, written = nats_server.fresh(), tmp_path / "backup", list[str]()
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    bucket, documents = f"KV_{prefix}_workers", [f"$KV.{prefix}_workers.doc.test.{number}" for number in range(24)]
    piece = snapshots._piece

    async def write() -> None:
        client = await nats.connect(nats_server.url)
        for subject in documents:
            await client.jetstream().publish(subject, os.urandom(1_000_000))
        await client.close()

    async def meanwhile(wire, stream: str, pieces):  # type: ignore[no-untyped-def]
        if stream == bucket and not written:  # the server waits: it sends only so much ahead
            written.append(stream)
            await write()
        return await piece(wire, stream, pieces)

    await (await NatsBackend.open(url)).close()
    await write()
    monkeypatch.setattr(snapshots, "_piece", meanwhile)
    await copying.backup(url, folder)
    await copying.restore(folder, there)
    client = await nats.connect(empty.url)
    info = await client.jetstream().stream_info(bucket, subjects_filter="$KV.*.doc.test.*")
    await client.close()
    assert set(info.state.subjects or {}) == set(documents)


async def test_a_backup_that_finds_no_room_says_where_and_leaves_nothing(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder, save = f"{nats_server.url}?prefix={nats_server.fresh()}", tmp_path / "backup", snapshots.save
    async with Runs.open(url):
        pass

    async def full(wire, stream: str, target: Path):  # type: ignore[no-untyped-def]
        await save(wire, stream, target)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "save", full)
        with pytest.raises(StoreUnavailable, match=f"{folder}: the disk is full"):
            await copying.backup(url, folder)
    assert not folder.exists()
    assert (await copying.backup(url, folder)).streams


async def test_a_wheel_whose_pieces_are_lost_is_found_by_doctor(nats_server: NatsServer) -> None:
    prefix = nats_server.fresh()
    async with Runs.open(f"{nats_server.url}?prefix={prefix}") as runs:
        kept = await put(runs.backend, a_wheel())
        lost = await put(runs.backend, a_wheel(package="lost"))
        client = await nats.connect(nats_server.url)
        await client.jetstream().purge_stream(f"OBJ_{prefix}_wheels", subject=f"$O.{prefix}_wheels.C.{lost.nuid}")
        await client.close()
        found = {check.name: check for check in await examine(runs)}["wheel files"]
    assert (found.ok, found.text) == (False, f"lost or damaged: {lost.name}")
    assert f"tsuzuki wheels delete {lost.name}" in found.do
    assert kept.name not in found.text
