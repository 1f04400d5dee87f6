"""What tests of workflows get: a store of each kind, and functions that have not been called yet."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.yamlflow import functions
from tsuzuki.backends import Backend
from tsuzuki.backends.address import open_backend


@pytest.fixture(autouse=True)
def nothing_called_yet() -> None:
    functions.forget()


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """An empty store."""
    store = await open_backend("memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'store.db'}")
    yield store
    await store.close()
