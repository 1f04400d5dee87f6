"""The tutorial runs on every backend: each test gets a store, and `run` to run a flow on it as a script would."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fundamentals.over_http import RemoteRuns, remote
from tests.nats_server import NatsServer
from tsuzuki import Runs
from tsuzuki.backends.address import open_backend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.flow import Flow
from tsuzuki.script import EndedRun, StartOptions, run_here

RunFlow = Callable[..., Awaitable[EndedRun[Any]]]


@pytest.fixture(params=["memory", "sqlite", "nats", "sqlite over http", "nats over http"])
async def runs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Runs]:
    """The runs of an empty store; over HTTP they are started, awaited, listed, cancelled and resumed by a client."""
    where = address(request, tmp_path)
    backend = await open_backend(where)
    if request.param.endswith("over http"):
        async with remote(where, backend) as there:
            yield there
    else:
        yield Runs(backend)
    if isinstance(backend, NatsBackend):
        await backend.remove()
    await backend.close()


def address(request: pytest.FixtureRequest, folder: Path) -> str:
    kind = request.param.partition(" ")[0]
    if kind == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        return f"{server.url}?prefix={server.fresh()}"
    return "memory:" if kind == "memory" else f"sqlite:{folder / 'store.db'}"


@pytest.fixture
def run(runs: Runs) -> RunFlow:
    """Runs a flow in this process to its end, whatever that is."""

    async def run(flow: Flow[..., Any], *, options: StartOptions | None = None, **params: Any) -> EndedRun[Any]:
        if isinstance(runs, RemoteRuns):
            return await runs.carried_out(flow, params, options or StartOptions())
        return await run_here(runs, flow, params, options)

    return run
