"""Each test of processes has a folder of its own to start them in, on SQLite and on NATS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nats_server import NatsServer
from tests.rooms import Room


@pytest.fixture(params=["sqlite", "nats"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    store: str | None = None
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        store = f"{server.url}?prefix={server.fresh()}"
    room = Room(tmp_path, store)
    yield room
    room.leave()
