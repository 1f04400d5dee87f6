"""The tutorial runs on every backend: each test gets a store, and `run` to run a flow on it as a script would."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tsuzuki import Runs
from tsuzuki.backends.address import open_backend
from tsuzuki.flow import Flow
from tsuzuki.script import EndedRun, StartOptions, run_here

RunFlow = Callable[..., Awaitable[EndedRun[Any]]]


@pytest.fixture(params=["memory", "sqlite"])
async def runs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Runs]:
    """The runs of an empty store."""
    url = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'store.db'}"
    backend = await open_backend(url)
    yield Runs(backend)
    await backend.close()


@pytest.fixture
def run(runs: Runs) -> RunFlow:
    """Runs a flow in this process to its end, whatever that is."""

    async def run(flow: Flow[..., Any], *, options: StartOptions | None = None, **params: Any) -> EndedRun[Any]:
        return await run_here(runs, flow, params, options)

    return run
