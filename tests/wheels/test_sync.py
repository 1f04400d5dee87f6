"""A worker's wheels, step by step: what is looked at, installed, checked, refused, tried again and told."""

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import nats
import pytest

from tests.nats_server import NatsServer
from tests.wheels.making import flow_wheel, make_wheel
from tsuzuki import Runs
from tsuzuki.backends import Backend
from tsuzuki.backends.address import open_backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.backends.shelf import Wheel
from tsuzuki.cli.loading import load_flows
from tsuzuki.cli.worker import compiler
from tsuzuki.errors import StoreUnavailable
from tsuzuki.flowset import FlowSet
from tsuzuki.supply import Goods
from tsuzuki.testing import FakeClock
from tsuzuki.wheels.registry import Arrived, Registry
from tsuzuki.wheels.sync import WheelSync
from tsuzuki.worker import Worker


@pytest.fixture(autouse=True)
def python_as_it_was() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def load() -> tuple[Goods, Sequence[str]]:
    loaded = load_flows([], tolerant=True)
    return Goods(FlowSet(loaded.flows), compiler(loaded, [], [])), loaded.refused


async def upload(backend: Backend, path: Path, *tags: str) -> Wheel:
    content = path.read_bytes()
    with path.open("rb") as file:
        arrived = Arrived(path.name, file, len(content), hashlib.sha256(content).hexdigest())
        return await Registry(backend).upload(arrived, tags)


class Bench:
    """A store in memory with a clock that a test moves, and a worker's sync."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.backend: Backend = MemoryBackend(self.clock)
        self.made = folder / "made"
        self.made.mkdir()
        self.syncs: list[WheelSync] = []

    def sync(self, **options: Any) -> WheelSync:
        sync = WheelSync(self.backend, ["default"], load, folder=self.folder / "wheels", **options)
        self.syncs.append(sync)
        return sync

    async def put(self, package: str, version: str = "1.0", **options: Any) -> Wheel:
        return await upload(self.backend, flow_wheel(self.made, package, version, **options))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for sync in bench.syncs:
        sync.close()


async def synced(sync: WheelSync) -> Goods:
    assert await sync.look()
    return await sync.renew()


async def test_a_worker_in_a_program_takes_new_wheels_in_between_its_runs(bench: Bench) -> None:
    runs = Runs(bench.backend)
    async with Worker(bench.backend, supply=bench.sync(), clock=bench.clock) as worker:
        for version in ("1.0", "2.0"):
            await bench.put("stepwise", version)
            row = await runs.submit("stepwise", {"name": "Ann"})
            assert await worker.run_once() == row.id
            assert bytes((await runs.get(row.id)).result or b"") == f'"{version} greets Ann"'.encode()
        (record,) = await bench.backend.workers()
        assert "stepwise" in record.flows
        assert (record.wheel_sync or {})["installed_wheels"] == ["stepwise-2.0-py3-none-any.whl"]


async def test_what_is_installed_is_written_down_and_not_installed_again(bench: Bench) -> None:
    kept = await bench.put("noted")
    goods = await synced(bench.sync())
    assert "noted" in goods.flows
    manifest = json.loads((bench.folder / "wheels/.installed.json").read_bytes())["wheels"]
    folder = manifest[kept.name].pop("folder")
    assert manifest[kept.name] == {
        "wheel_name": kept.name,
        "package_name": "noted",
        "package_version": "1.0",
        "nuid": kept.nuid,
        "size_bytes": kept.size,
        "sha256_hex": kept.sha256,
        "tags": [],
        "installed_at": bench.clock.now(),
    }
    bench.syncs.pop().close()
    mark = bench.folder / "wheels" / folder / "mark"
    mark.touch()
    again = bench.sync()
    await synced(again)
    assert mark.exists()
    assert again.told()["updated_wheels"] == []
    bench.syncs.pop().close()
    (bench.folder / "wheels/.installed.json").write_text("{broken")
    third = bench.sync()
    await synced(third)
    assert (third.told()["updated_wheels"], mark.exists()) == ([kept.name], False)


async def test_wheels_that_did_not_change_cost_one_look_and_at_most_one_listing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await bench.put(f"many{number}")
    sync = bench.sync(interval=10)
    await synced(sync)
    listings: list[int] = []
    real = bench.backend.wheels.all

    async def counted() -> list[Wheel]:
        listings.append(1)
        return await real()

    monkeypatch.setattr(bench.backend.wheels, "all", counted)
    assert [await sync.look() for _ in range(5)] == [False] * 5
    assert not listings, "nothing has happened, and the interval is not over"
    bench.clock.advance(11)
    assert not await sync.look()
    assert len(listings) == 1
    assert sync.told()["selected_count"] == 20


async def test_a_download_that_is_not_what_was_uploaded_is_not_installed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put("honest")
    sync = bench.sync(interval=10)
    await synced(sync)
    bad = await bench.put("honest", "2.0")

    async def garbled(wheel: Wheel) -> AsyncIterator[bytes]:
        yield bytes(wheel.size)

    monkeypatch.setattr(bench.backend.wheels, "read", garbled)
    goods = await synced(sync)
    told = sync.told()
    assert (told["last_result"], told["installed_wheels"]) == ("error", ["honest-1.0-py3-none-any.whl"])
    assert told["last_error"] == f"{bad.name}: what was downloaded is not what was uploaded: its digest differs"
    assert goods.flows["honest"].function.__code__.co_filename.count("honest-1.0-")
    assert not await sync.look(), "it is not tried again at once"
    bench.clock.advance(11)
    assert not await sync.look(idle=False), "no run is held up for it"
    bench.clock.advance(11)
    assert await sync.look(), "but at the next sync"


async def test_wheels_that_need_each_other_are_upgraded_together(bench: Bench) -> None:
    for version in ("1.0", "2.0"):
        await bench.put("above", version, requires=[f"below>={version}"])
        await bench.put("below", version)
        sync = bench.sync() if version == "1.0" else bench.syncs[0]
        await synced(sync)
        assert (sync.told()["last_error"], sync.told()["updated_count"]) == (None, 2)


async def test_told_to_stop_it_leaves_an_installation_undone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def endless(wheel: Wheel) -> AsyncIterator[bytes]:
        begun.set()
        await asyncio.Event().wait()
        yield bytes(wheel.size)

    async with Worker(bench.backend, supply=bench.sync(), clock=bench.clock) as worker:
        monkeypatch.setattr(bench.backend.wheels, "read", endless)
        await bench.put("slow")
        working = asyncio.create_task(worker.run())
        await begun.wait()
        worker.stop()
        await working
    assert not list((bench.folder / "wheels").glob("slow*"))


@pytest.mark.parametrize("store", ["sqlite", "nats"])
async def test_the_same_holds_for_bytes_that_changed_on_disk_or_on_the_server(
    store: str, bench: Bench, nats_server: NatsServer
) -> None:
    prefix = nats_server.fresh()
    address = f"{nats_server.url}?prefix={prefix}" if store == "nats" else f"sqlite:{bench.folder / 'store.db'}"
    async with opened(address) as backend:
        bench.backend = backend
        kept = await bench.put("damaged")
        if store == "sqlite":
            (file,) = (bench.folder / "store.db-wheels").iterdir()
            file.write_bytes(bytes(kept.size))
        else:
            connection = await nats.connect(nats_server.url)
            stream, subject = f"OBJ_{prefix}_wheels", f"$O.{prefix}_wheels.C.{kept.nuid}"
            await connection.jetstream().purge_stream(stream, subject=subject)
            await connection.jetstream().publish(subject, bytes(kept.size))
            await connection.close()
        sync = bench.sync()
        await synced(sync)
        assert "its digest differs" in sync.told()["last_error"]
        assert sync.told()["installed_wheels"] == []


@contextlib.asynccontextmanager
async def opened(address: str) -> AsyncIterator[Backend]:
    backend = await open_backend(address)
    try:
        yield backend
    finally:
        if isinstance(backend, NatsBackend):
            await backend.remove()
        await backend.close()


async def test_what_a_wheel_requires_comes_from_the_index_that_pip_is_set_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = bench.folder / "index"
    index.mkdir()
    make_wheel(index, "deeper", "3.1", {"deeper.py": "DEPTH = 3\n"})
    make_wheel(index, "needed", "2.0", {"needed.py": "from deeper import DEPTH\n"}, requires=["deeper", "msgspec"])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    uses = {"imports": "from needed import DEPTH", "text": "depth {DEPTH}"}
    await bench.put("drawing", **uses, requires=["needed>=2", "tsuzuki", "absent; python_version < '3'"])
    sync = bench.sync()
    goods = await synced(sync)
    assert sync.told()["last_error"] is None
    assert await goods.flows["drawing"].function() == "depth 3"
    brought = {path.name for path in bench.folder.glob("wheels/drawing-*/.dependencies/*.py")}
    assert brought == {"needed.py", "deeper.py"}, "what the worker has itself is not brought again"


async def test_an_installation_that_takes_too_long_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.put("quick")
    await bench.put("slow", requires=["not-to-be-found"])
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an index that never answers
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        sync = bench.sync(timeout=3)
        await synced(sync)
    assert sync.told()["installed_wheels"] == ["quick-1.0-py3-none-any.whl"]
    assert sync.told()["last_error"] == "slow-1.0-py3-none-any.whl: it took longer than 3 s"


async def test_a_wheel_that_cannot_be_imported_is_told_and_the_others_work(bench: Bench) -> None:
    await bench.put("fine")
    await bench.put("broken", imports="import not_there_at_all")
    sync = bench.sync(interval=10)
    goods = await synced(sync)
    assert ("fine" in goods.flows, "broken" in goods.flows) == (True, False)
    assert "not_there_at_all" in sync.told()["last_error"]
    assert not await sync.look()
    assert sync.told()["last_result"] == "error", "it stays so until it is tried again, or something changes"


@pytest.mark.parametrize("broken", ["print('noise'); raise SystemExit", "import os; os._exit(0)"])
async def test_a_new_version_that_cannot_be_imported_leaves_the_old_one_at_work(bench: Bench, broken: str) -> None:
    await bench.put("greeting", "1.0")
    sync = bench.sync(interval=10)
    await synced(sync)
    wheel = await bench.put("greeting", "1.1", imports=broken)
    await bench.put("other", "1.0")
    bench.clock.advance(11)
    goods = await synced(sync)
    told = sync.told()
    assert (told["last_result"], told["last_error"][: len(wheel.name)]) == ("error", wheel.name)
    assert told["installed_wheels"] == ["greeting-1.0-py3-none-any.whl", "other-1.0-py3-none-any.whl"]
    assert (
        goods.flows["greeting"].function.__globals__["__file__"].startswith(str(bench.folder / "wheels/greeting-1.0"))
    )
    await bench.put("greeting", "1.2")
    bench.clock.advance(11)
    await synced(sync)
    assert sync.told()["installed_wheels"] == ["greeting-1.2-py3-none-any.whl", "other-1.0-py3-none-any.whl"]
    assert sync.told()["last_result"] == "ok"


async def test_a_library_that_breaks_installed_flows_waits_until_their_next_version(bench: Bench) -> None:
    await upload(bench.backend, make_wheel(bench.made, "library", "1.0", {"library.py": "OLD = 1\n"}))
    await bench.put("user", "1.0", imports="from library import OLD")
    sync = bench.sync(interval=10)
    await synced(sync)
    await upload(bench.backend, make_wheel(bench.made, "library", "2.0", {"library.py": "NEW = 2\n"}))
    bench.clock.advance(11)
    assert "user" in (await synced(sync)).flows
    assert "with it user-1.0-py3-none-any.whl breaks" in sync.told()["last_error"]
    assert "cannot import name 'OLD'" in sync.told()["last_error"]
    await bench.put("user", "2.0", imports="from library import NEW")
    bench.clock.advance(11)
    assert "user" in (await synced(sync)).flows
    assert sync.told()["installed_wheels"] == ["library-2.0-py3-none-any.whl", "user-2.0-py3-none-any.whl"]


async def test_what_the_worker_itself_runs_on_is_never_replaced(bench: Bench) -> None:
    hidden = make_wheel(bench.made, "innocent", "1.0", {"msgspec/__init__.py": "", "queue.py": ""})
    await upload(bench.backend, hidden)
    for package in ("tsuzuki", "msgspec"):
        await upload(bench.backend, make_wheel(bench.made, package, "999.0", {f"{package}/__init__.py": ""}))
    sync = bench.sync()
    await synced(sync)
    told = sync.told()
    assert told["skipped_incompatible"] == ["msgspec-999.0-py3-none-any.whl", "tsuzuki-999.0-py3-none-any.whl"]
    assert told["installed_wheels"] == []
    assert told["last_error"] == f"{hidden.name}: it would take the place of what the worker runs on: msgspec, queue"


async def test_a_store_that_is_away_is_told_and_what_is_here_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put("staying")
    await synced(bench.sync())
    bench.syncs.pop().close()
    sync = bench.sync(interval=10)

    async def away() -> str:
        raise StoreUnavailable("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(bench.backend.wheels, "news", away)
        assert not await sync.look()
        goods = await sync.renew()
    assert "staying" in goods.flows
    assert sync.told()["last_error"] == "the wheels cannot be listed: it is away"
    bench.clock.advance(1.1)
    assert await sync.look(), "as soon as it is back"
    await sync.renew()
    assert (sync.told()["last_result"], sync.told()["updated_wheels"]) == ("ok", [])


async def test_a_second_worker_in_the_same_place_takes_a_folder_of_its_own(bench: Bench) -> None:
    first, second = bench.sync(), bench.sync()
    await bench.put("shared")
    for sync in (first, second):
        await synced(sync)
    assert len(list(bench.folder.glob("wheels*/shared-1.0-*"))) == 2
    assert first.told()["installed_wheels"] == second.told()["installed_wheels"]
