"""A gateway for tests: a real server on a free port of the loopback, a real client, and workers when asked for."""

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.gateway import processes
from tests.gateway.flows import FLOWS
from tests.gateway.processes import Serving, command
from tests.nats_server import NatsServer
from tsuzuki import Runs
from tsuzuki.backends.address import open_backend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.flow import Flow
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.server import Server, make_server
from tsuzuki.worker import Worker

PATIENCE = 60.0
AUTHORITIES = httpx2.create_ssl_context()
"""Read once: a client that reads them itself takes longer for that than for everything else."""
ENDED = ("COMPLETED", "FAILED", "CANCELLED")


@dataclass
class Event:
    """One server-sent event."""

    name: str = ""
    data: Any = None
    number: str | None = None


@dataclass
class House:
    """A gateway at work, and what a test does with it."""

    runs: Runs
    client: httpx2.AsyncClient
    app: Any
    server: Server
    url: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def work(self, flows: Iterable[Flow[..., Any]] = FLOWS, **options: Any) -> Worker:
        """Lets a worker work until the test ends."""
        worker = await self.stack.enter_async_context(Worker(self.runs.backend, flows, grace=5.0, **options))
        task = asyncio.create_task(worker.run())

        async def stop() -> None:
            worker.stop()
            await task

        self.stack.push_async_callback(stop)
        return worker

    async def submit(self, flow: str, params: dict | None = None, **more: Any) -> str:
        answer = await self.client.post("/runs", json={"flow_name": flow, "params": params or {}, **more})
        assert answer.status_code == 200, answer.text
        run_id: str = answer.json()["run_id"]
        return run_id

    async def get(self, path: str, code: int = 200, **params: Any) -> Any:
        answer = await self.client.get(path, params=params)
        assert answer.status_code == code, (answer.status_code, answer.text)
        return answer.json()

    async def post(self, path: str, body: Any = None, code: int = 200, **more: Any) -> Any:
        answer = (
            await self.client.post(path, json=body, **more)
            if body is not None
            else await self.client.post(path, **more)
        )
        assert answer.status_code == code, (answer.status_code, answer.text)
        return answer.json()

    async def ended(self, run_id: str, status: str = "COMPLETED", **params: Any) -> dict[str, Any]:
        """Waits until a run has ended, which must be as expected."""
        return await self.until(run_id, lambda run: run["status"] in ENDED, status, **params)

    async def until(
        self, run_id: str, fits: Callable[[dict[str, Any]], bool], status: str = "", **params: Any
    ) -> dict[str, Any]:
        run: dict[str, Any] = {}
        async with asyncio.timeout(PATIENCE):
            while not run or not fits(run):
                run = await self.get(f"/runs/{run_id}", **params)
                await asyncio.sleep(0.01)
        assert not status or run["status"] == status, run
        return run

    async def letters(self, count: int = 1) -> list[dict[str, Any]]:
        """Waits until there are so many dead letters: on NATS one comes a moment after the end of its run."""
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                found = (await self.get("/dlq"))["items"]
        assert len(found) == count
        return found

    async def events(
        self, path: str, *, headers: dict[str, str] | None = None, **params: Any
    ) -> AsyncGenerator[Event, None]:
        async with self.client.stream("GET", path, params=params, headers=headers, timeout=PATIENCE) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for event in parsed(answer.aiter_lines()):
                yield event


async def parsed(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    event = Event()
    async for line in lines:
        if not line:
            yield event
            event = Event()
            continue
        name, _, value = line.partition(": ")
        assert name in ("id", "event", "data"), line
        if name == "id":
            event.number = value
        elif name == "event":
            event.name = value
        else:
            assert event.name, "event: comes before data:"
            event.data = json.loads(value)


@asynccontextmanager
async def served(runs: Runs, options: Options) -> AsyncIterator[House]:
    """Serves these runs until the test ends."""
    app = create_app(runs, options=options)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        server = make_server(app, options, log_level="warning")
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            assert not serving.done(), serving.result()
            await asyncio.sleep(0.005)
        url = f"http://127.0.0.1:{port}"
        async with (
            httpx2.AsyncClient(base_url=url, timeout=PATIENCE, verify=AUTHORITIES) as client,
            AsyncExitStack() as stack,
        ):
            yield House(runs, client, app, server, url, stack)
        server.should_exit = True
        await serving


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Runs]:
    backend = await open_backend(address)
    try:
        yield Runs(backend)
    finally:
        if isinstance(backend, NatsBackend):
            await backend.remove()
        await backend.close()


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server that a test may kill, with little room."""
    server = NatsServer(tmp_path / "nats", jetstream="max_file_store: 8000000")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "nats"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        return f"{server.url}?prefix={server.fresh()}"
    if request.param == "of its own":
        own: NatsServer = request.getfixturevalue("own_nats")
        return f"{own.url}?prefix={own.fresh()}&max_log_bytes=1000000"
    return f"sqlite:{tmp_path / 'store.db'}"


@pytest.fixture
async def house(address: str) -> AsyncIterator[House]:
    """A gateway over an empty store, on SQLite and on NATS."""
    async with opened(address) as runs, served(runs, Options()) as house:
        yield house


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[House]:
    """A gateway on SQLite alone, for what does not depend on the store."""
    async with opened(f"sqlite:{tmp_path / 'store.db'}") as runs, served(runs, Options()) as house:
        yield house


Serve = Callable[[Options], Awaitable[House]]


@pytest.fixture
async def serve(address: str) -> AsyncIterator[Serve]:
    """Serves an empty store with the options that a test chooses."""
    async with AsyncExitStack() as stack:
        runs = await stack.enter_async_context(opened(address))

        async def serve(options: Options) -> House:
            return await stack.enter_async_context(served(runs, options))

        yield serve


@pytest.fixture
def serving(tmp_path: Path, address: str) -> Iterator[Serving]:
    """Starts gateways of one store, and ends them with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> tuple["subprocess.Popen[str]", str]:
        with (tmp_path / "log").open("a") as log:  # a pipe that nobody reads would hold it up
            store = ("--backend", address)
            process = command("serve", "--port", "0", *store, *arguments, folder=tmp_path, out=log, **environment)
        started.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"at (http://\S+)", line):
                return process, found[1]
        raise AssertionError("it did not start")

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=processes.PATIENCE)
