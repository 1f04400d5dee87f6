"""Each test of processes has a folder of its own to start them in, on SQLite; some on NATS too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nats_server import NatsServer
from tests.rooms import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.leave()


@pytest.fixture(params=["sqlite", "nats"])
def any_room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    """A folder on either store, where what is tested depends on it: who takes over, what is handed back."""
    store: str | None = None
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        store = f"{server.url}?prefix={server.fresh()}"
    room = Room(tmp_path, store)
    yield room
    room.leave()
