"""What a worker pays for wheels: the first sync, looks while nothing happens, and a listing that finds nothing new."""

import asyncio
import hashlib
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.nats.servers import address, servers
from bench.process import Figures
from tests.wheels.making import make_wheel
from tsuzuki.backends import Backend
from tsuzuki.backends.address import open_backend
from tsuzuki.flowset import FlowSet
from tsuzuki.supply import Goods
from tsuzuki.wheels.registry import Arrived, Registry
from tsuzuki.wheels.sync import WheelSync


def on_sqlite(folder: Path, count: int) -> Figures:
    return asyncio.run(_measured(f"sqlite:{folder / 'store.db'}", folder, count))


def on_nats(folder: Path, count: int) -> Figures:
    with servers(sync="always") as started:
        return asyncio.run(_measured(address(started), folder, count))


async def _measured(store: str, folder: Path, count: int) -> Figures:
    backend = await open_backend(store)
    try:
        for number in range(count):
            await upload(backend, make_wheel(folder, f"many{number}", "1.0", {f"many{number}.py": "X = 1\n"}))
        sync = WheelSync(backend, ["default"], lambda: (Goods(FlowSet()), ()), folder=folder / "w", interval=1e-9)
        first = perf_counter()
        assert await sync.look()
        await sync.renew()
        first = perf_counter() - first
        listings = [await _timed(sync) for _ in range(50)]
        sync._interval = 3600.0  # noqa: SLF001 - from here on nothing but the cheap question
        await sync.look()
        looks = [await _timed(sync) for _ in range(200)]
        sync.close()
    finally:
        await backend.close()
    return {"first_ms": first * 1e3, "listing_ms": median(listings) * 1e3, "look_us": median(looks) * 1e6}


async def _timed(sync: WheelSync) -> float:
    began = perf_counter()
    assert not await sync.look()
    return perf_counter() - began


async def upload(backend: Backend, path: Path) -> None:
    content = path.read_bytes()
    with path.open("rb") as file:
        arrived = Arrived(path.name, file, len(content), hashlib.sha256(content).hexdigest())
        await Registry(backend).upload(arrived)
