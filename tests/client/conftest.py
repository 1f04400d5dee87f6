"""A real gateway with a worker, as `tsuzuki up` starts it, on SQLite and on NATS; both clients speak to it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.nats_server import NatsServer
from tests.rooms import Room


@dataclass(frozen=True)
class Place:
    """A gateway: its address, and the folder in which its worker works."""

    server: str
    room: Room

    def open_gate(self, name: str) -> None:
        (self.room.folder / f"{name}.open").touch()

    def until_began(self, name: str) -> None:
        self.room.until((self.room.folder / f"{name}.began").exists, "the run is under way")


@pytest.fixture(scope="module", params=["sqlite", "nats"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    room = Room(tmp_path_factory.mktemp("gateway-of-client-tests"))
    store: list[str] = []
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        store = ["--backend", f"{server.url}?prefix={server.fresh()}"]
    _, address = room.up("--flows", "flows.py", *store)
    yield Place(address, room)
    room.leave()
