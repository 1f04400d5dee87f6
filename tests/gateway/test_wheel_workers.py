"""Wheels from the gateway into real workers: installed before a run, upgraded between runs, removed, and told of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import PATIENCE, House
from tests.rooms import Process
from tests.wheels.making import flow_wheel, make_wheel
from tsuzuki import AsyncClient

WAITS = """
import asyncio, pathlib
from tsuzuki import flow

@flow(name="waiting")
async def waiting() -> str:
    pathlib.Path("began").touch()
    while not pathlib.Path("open").exists():
        await asyncio.sleep(0.01)
    from library import VERSION  # as late as can be
    return VERSION
"""
USES = """
from library import VERSION
from tsuzuki import flow

@flow
async def uses() -> str:
    return VERSION
"""


class Site:
    """A gateway with its store, and workers that sync."""

    def __init__(self, folder: Path, house: House, client: AsyncClient, address: str) -> None:
        self.folder, self.house, self.client, self.address = folder, house, client, address
        self.processes: list[Process] = []
        self.made = folder / "made"
        self.made.mkdir()

    def worker(self, name: str, *arguments: str, interval: float = 0.3) -> Process:
        options = ("--backend", self.address, "--data-dir", ".tsuzuki", "--worker-id", name, "--wheel-sync")
        every = ("--wheel-sync-interval-sec", str(interval))
        number = len(self.processes)
        process = Process(self.folder, number, "worker", *options, *every, *arguments, PIP_NO_INDEX="1")
        self.processes.append(process)
        return process

    async def upload(self, wheel: Path, **options: Any) -> dict[str, Any]:
        return dict(await self.client.upload_wheel(wheel.name, wheel, **options))

    async def run(self, flow: str, status: str = "COMPLETED", tag: str = "default", **params: Any) -> dict[str, Any]:
        return await self.house.ended(await self.house.submit(flow, params, tag=tag), status)

    async def result(self, flow: str, **params: Any) -> Any:
        return (await self.run(flow, **params))["result"]

    async def sync(self, worker: str, fits: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Waits until what a worker tells of its wheels fits."""
        found: dict[str, Any] = {}
        async with asyncio.timeout(PATIENCE):
            while not found or not fits(found):
                await asyncio.sleep(0.02)
                records = await self.house.get("/workers")
                found = next((each["wheel_sync"] for each in records if each["worker_id"] == worker), {})
        return found

    async def flows(self) -> set[str]:
        return {flow["name"] for flow in await self.house.get("/flows")}


@pytest.fixture
async def site(house: House, address: str, tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncClient(house.url) as client:
        site = Site(tmp_path, house, client, address)
        yield site
        for process in site.processes:
            await asyncio.to_thread(process.kill)


def library(folder: Path, version: str) -> Path:
    files = {"library/__init__.py": f"VERSION = {version!r}\n", "library/flows.py": WAITS}
    return make_wheel(folder, "library", version, files, entries=["library = library.flows"])


async def test_a_wheel_is_upgraded_between_runs_and_a_run_keeps_the_one_it_began_with(site: Site) -> None:
    (site.folder / "uses.py").write_text(USES)
    await site.upload(library(site.made, "1.0"))
    await site.upload(flow_wheel(site.made, "greeting", "1.0"), tags=["default"])
    site.worker("w1", "--flows", "uses.py")
    assert await site.result("greeting", name="Ann") == "1.0 greets Ann"
    assert await site.result("uses") == "1.0"
    assert {"greeting", "uses", "waiting"} <= await site.flows()
    under_way = await site.house.submit("waiting")
    async with asyncio.timeout(PATIENCE):
        while not (site.folder / "began").exists():
            await asyncio.sleep(0.01)
    kept = await site.upload(flow_wheel(site.made, "greeting", "1.1"))
    second = await site.upload(library(site.made, "2.0"))
    before = await site.sync("w1", lambda sync: True)
    assert before["installed_wheels"] == ["greeting-1.0-py3-none-any.whl", "library-1.0-py3-none-any.whl"]
    (site.folder / "open").touch()
    assert (await site.house.ended(under_way))["result"] == "1.0"
    assert await site.result("greeting", name="Bo") == "1.1 greets Bo"
    last = await site.run("uses")  # a file of the worker itself, which took a constant in at its top
    assert last["result"] == "2.0"
    assert last["wheels"] == {kept["name"]: kept["sha256_hex"], second["name"]: second["sha256_hex"]}
    for version in ("1.0", "1.1"):  # whoever looked in between would take the older one
        await site.client.delete_wheel(f"greeting-{version}-py3-none-any.whl")
    gone = await site.sync("w1", lambda sync: sync["removed_wheels"] == [kept["name"]])
    assert (gone["last_result"], gone["installed_wheels"]) == ("ok", [second["name"]])
    assert (await site.run("greeting", "FAILED"))["error"].startswith("flow_not_found")
    assert "greeting" not in await site.flows()


async def test_workers_take_what_their_tags_say_and_what_fails_fails_alone(site: Site) -> None:
    await site.upload(flow_wheel(site.made, "forall", "1.0"))
    await site.upload(flow_wheel(site.made, "forred", "1.0"), tags=["red", "other"])
    wheel = flow_wheel(site.made, "needing", "1.0", requires=["tsuzuki", "not-to-be-found>=3"])
    needing = await site.upload(wheel, tags=["red"])
    windows = await site.upload(flow_wheel(site.made, "native", "1.0", fits="cp39-cp39-win_amd64"), tags=["red"])
    red = site.worker("red", "--tags", "red", interval=30)
    site.worker("blue", "--tags", "blue")
    sync = await site.sync("red", lambda sync: sync["last_result"] == "error")
    assert sync["installed_wheels"] == ["forall-1.0-py3-none-any.whl", "forred-1.0-py3-none-any.whl"]
    assert needing["name"] in sync["last_error"]
    assert "not-to-be-found" in sync["last_error"]
    assert sync["skipped_incompatible"] == [windows["name"]]
    told = [line for line in red.log if line.get("err_id") == "ERR-TSUZUKI-0024"]
    assert told[0]["message"].startswith("wheel sync failed: needing")
    assert (await site.run("forred", tag="red"))["result"] == "1.0 greets you"
    blue = await site.sync("blue", lambda sync: sync["last_result"] == "ok")
    assert blue["installed_wheels"] == ["forall-1.0-py3-none-any.whl"]
    assert (await site.run("forred", "FAILED", tag="blue"))["error"].startswith("flow_not_found")
    assert (await site.run("forall", tag="blue"))["result"] == "1.0 greets you"
    await site.upload(flow_wheel(site.made, "needing", "1.1", requires=["forall"]), tags=["red"])
    assert (await site.run("needing", tag="red"))["result"] == "1.1 greets you"
    mended = await site.sync("red", lambda sync: sync["last_result"] == "ok")
    assert (mended["last_error"], len(mended["installed_wheels"])) == (None, 3)
    folders = {path.name for path in (site.folder / ".tsuzuki").glob("wheels*")}
    assert folders == {"wheels", "wheels-2"}, "each worker has a folder of its own"


async def test_a_run_that_goes_on_from_a_wheel_makes_no_call_twice(site: Site) -> None:
    source = (Path(__file__).parents[1] / "cli" / "arguments.py").read_text()
    (site.folder / "arguments.py").write_text(source)
    site.worker("from-a-file", "--flows", "arguments.py")
    run_id = await site.house.submit("arguments")
    await site.house.ended(run_id, "FAILED")
    calls = (site.folder / "calls.txt").read_text()
    await asyncio.to_thread(site.processes.pop().kill)
    files = {"parcel/__init__.py": "", "parcel/moved.py": source}
    await site.upload(make_wheel(site.made, "parcel", "1.0", files, entries=["arguments = parcel.moved"]))
    (site.folder / "go").touch()
    site.worker("from-a-wheel")
    await site.sync("from-a-wheel", lambda sync: sync["installed_wheels"])
    await site.house.post(f"/runs/{run_id}/resume")
    assert (await site.house.ended(run_id))["result"] == "done"
    assert (site.folder / "calls.txt").read_text() == calls
