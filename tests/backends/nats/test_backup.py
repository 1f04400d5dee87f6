"""A store on NATS, backed up while it holds something of everything, and restored into an empty server."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from msgspec.structs import replace

from bench.operate.comparing import items, names
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.backends import copying, manifest
from tsuzuki.backends.nats import snapshots
from tsuzuki.errors import KeyHeld, NewerStore, NotABackup, PlaceTaken
from tsuzuki.examination import examine
from tsuzuki.flow import Flow

LARGE = 600_000
"""So many letters are kept as a blob of three pieces."""
HALF = 40


@task
async def written(number: int) -> str:
    return str(number) * (LARGE if number == 3 else 1)


@flow
async def mixed(count: int) -> int:
    return sum(len(text) for text in await written.map(range(count), concurrency=4))


gates: dict[str, asyncio.Event] = {}
"""What items of a run wait for, after the first ones."""


@task
async def paced(number: int, gate: str) -> str:
    if number >= HALF:
        await gates[gate].wait()
    return await written(number)


@flow
async def halting(count: int, gate: str) -> int:
    return sum(len(text) for text in await paced.map(range(count), gate=gate, concurrency=4))


@flow(key="site:{site}")
async def kept(site: str) -> str:
    return site


@flow
async def broken() -> None:
    raise ValueError("it cannot be done")


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "empty")
    server.start()
    yield server
    server.stop()


async def work_off(url: str, *flows: Flow) -> None:
    """Executes as many runs as there are flows."""
    worker = await Worker.connect(url, flows=flows)
    try:
        for _ in flows:
            assert await worker.run_once(30) is not None
    finally:
        await worker.close()


async def furnished(url: str, prefix: str) -> dict[str, str]:
    """Makes a store with a run of each kind, and buckets and objects that the engine knows nothing of."""
    async with Runs.open(url) as runs:
        ids = {
            "done": (await runs.submit(mixed, {"count": 5})).id,
            "failed": (await runs.submit(broken, {})).id,
        }
        await work_off(url, mixed, broken)
        ids["waiting"] = (await runs.submit(kept, {"site": "a"}, tags=["night"])).id
    client = await nats.connect(url.partition("?")[0])
    try:
        bucket = await client.jetstream().create_key_value(bucket=f"{prefix}_later_history")
        await bucket.put("first", b"uploaded")
        await bucket.put("first", b"replaced")
        shelf = await client.jetstream().create_object_store(f"{prefix}_later_things")
        await shelf.put("thing-1.0-py3-none-any.whl", bytes(range(256)) * 2000)
        await client.jetstream().add_stream(name=f"{prefix}x-journal", subjects=[f"{prefix}x.j.>"])
    finally:
        await client.close()
    return ids


async def test_every_stream_bucket_and_object_comes_back_item_by_item_and_the_work_goes_on(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path
) -> None:
    prefix = nats_server.fresh()
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    ids = await furnished(url, prefix)
    made = await copying.backup(url, tmp_path / "backup")
    streams = {each.name for each in made.streams}
    assert {f"OBJ_{prefix}_later_things", f"KV_{prefix}_later_history", f"KV_{prefix}_workers"} < streams
    assert f"{prefix}x-journal" not in streams, "it is another store's"
    assert await copying.verify(tmp_path / "backup") == (made, [])
    await copying.restore(tmp_path / "backup", there)
    assert set(await names(empty.url)) == streams
    for name in sorted(streams):
        before, after = await items(nats_server.url, name), await items(empty.url, name)
        assert before == after, f"the messages of {name} differ"
    async with Runs.open(there) as runs:
        assert all(check.ok for check in await runs.examine())
        assert (await runs.get(ids["done"])).status is Status.COMPLETED
        assert await runs.result(ids["done"]) == LARGE + 4
        assert [letter.run_id for letter in await runs.backend.dead_letters()] == [ids["failed"]]
        with pytest.raises(KeyHeld):
            await runs.submit(kept, {"site": "a"})
        await work_off(there, kept)
        assert await runs.result(ids["waiting"]) == "a"
        assert (await runs.submit(kept, {"site": "b"})).number == 4, "numbers go on"
    with pytest.raises(PlaceTaken, match="is not empty"):
        await copying.restore(tmp_path / "backup", there)


async def test_a_backup_of_a_store_at_work_goes_on_as_after_a_crash(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path
) -> None:
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    gate = gates.setdefault(prefix, asyncio.Event())
    async with Runs.open(url) as runs, Worker(runs.backend, [halting, mixed]) as worker:
        working = asyncio.create_task(worker.run())
        run = await runs.submit(halting, {"count": 2 * HALF, "gate": prefix})
        while (await runs.get(run.id)).done < HALF:
            await asyncio.sleep(0.01)
        await copying.backup(url, folder)
        others = [await runs.submit(mixed, {"count": 1}) for _ in range(3)]
        gate.set()
        assert (await runs.wait(run.id)).status is Status.COMPLETED
        worker.stop()
        await working
    await copying.restore(folder, there)
    async with Runs.open(there) as runs:
        assert all(check.ok for check in await examine(runs))
        row = await runs.get(run.id)
        assert (row.status, row.done) == (Status.RUNNING, HALF)
        assert [other.id for other in others if await runs.backend.get(other.id)] == [], "they came later"
        await work_off(there, halting)
        again = await runs.get(run.id)
        assert (again.status, again.attempt, again.done) == (Status.COMPLETED, 2, 2 * HALF)
        assert await runs.result(run.id) == LARGE + sum(len(str(n)) for n in range(2 * HALF)) - 1


async def test_a_backup_that_is_damaged_cut_off_or_newer_restores_nothing(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path
) -> None:
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    async with Runs.open(url) as runs:
        await runs.submit(kept, {"site": "a"})
    await copying.backup(url, folder)
    with pytest.raises(PlaceTaken, match="not empty"):
        await copying.backup(url, folder)

    journal = folder / f"{prefix}-journal.snapshot"
    whole = journal.read_bytes()
    journal.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(NotABackup, match="its digest differs"):
        await copying.restore(folder, there)
    # One whose digests were made to fit: the server finds out, and what it has made meanwhile goes again.
    told = manifest.read(folder)
    pieces = tuple(manifest.piece(folder, each.name) for each in told.pieces)
    manifest.write(folder, replace(told, pieces=pieces))
    with pytest.raises(Exception, match="JetStream says"):
        await copying.restore(folder, there)
    assert await names(empty.url) == []

    journal.write_bytes(whole)
    manifest.write(folder, replace(told, version=99))
    with pytest.raises(NewerStore, match="newer Tsuzuki"):
        await copying.restore(folder, there)
    manifest.write(folder, replace(told, kind="sqlite"))
    with pytest.raises(NotABackup, match="backup of a sqlite store"):
        await copying.restore(folder, there)
    (folder / manifest.NAME).unlink()
    with pytest.raises(NotABackup, match="was cut off"):
        await copying.restore(folder, there)
    assert await names(empty.url) == []


async def test_a_key_that_was_handed_on_while_the_streams_were_copied_is_given_back(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is copied while a run holds its key; before the keys are copied another run has taken it."""
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    save = snapshots.save
    async with Runs.open(url) as runs:
        first = await runs.submit(kept, {"site": "a"})

        async def meanwhile(wire, stream: str, target: Path):  # type: ignore[no-untyped-def]
            if stream == f"KV_{prefix}_workers" and (await runs.get(first.id)).status is Status.PENDING:
                await runs.cancel(first.id)
                await runs.submit(kept, {"site": "a"})
            return await save(wire, stream, target)

        monkeypatch.setattr(snapshots, "save", meanwhile)
        await copying.backup(url, folder)
    await copying.restore(folder, there)
    async with Runs.open(there) as runs:
        assert (await runs.get(first.id)).status is Status.PENDING
        [keys] = [check for check in await runs.examine() if check.name == "keys"]
        assert "1 given back" in keys.text
        with pytest.raises(KeyHeld, match=f"held by run {first.number}"):
            await runs.submit(kept, {"site": "a"})
        await work_off(there, kept)
        assert await runs.result(first.id) == "a"


async def test_a_backup_of_streams_that_never_rest_is_restored(
    nats_server: NatsServer, empty: NatsServer, tmp_path: Path
) -> None:
    """Runs come, work and are purged while their streams are copied: what is restored is of a moment in between."""
    prefix, folder = nats_server.fresh(), tmp_path / "backup"
    url, there = f"{nats_server.url}?prefix={prefix}", f"{empty.url}?prefix={prefix}"
    ended = asyncio.Event()
    async with Runs.open(url) as runs, Worker(runs.backend, [mixed]) as worker:
        working = asyncio.create_task(worker.run())

        async def restlessly() -> None:
            while not ended.is_set():
                run = await runs.submit(mixed, {"count": 5})
                assert (await runs.wait(run.id)).status is Status.COMPLETED
                await runs.backend.purge([run.id])

        others = [asyncio.create_task(restlessly()) for _ in range(4)]
        kept_run = await runs.submit(mixed, {"count": 5})
        await runs.wait(kept_run.id)
        made = await copying.backup(url, folder)
        while not any(each.state["last_seq"] < each.after["last_seq"] for each in made.streams):
            shutil.rmtree(folder)  # nothing happened in the moment of the copy
            made = await copying.backup(url, folder)
        ended.set()
        await asyncio.gather(*others)
        worker.stop()
        await working
    await copying.restore(folder, there)
    async with Runs.open(there) as runs, Worker(runs.backend, [mixed]):  # whom a run may wait for that waited then
        assert [check for check in await examine(runs) if not check.ok] == []
        assert await runs.result(kept_run.id) == LARGE + 4
