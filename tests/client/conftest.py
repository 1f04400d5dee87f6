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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A gateway on SQLite: what commands show comes over HTTP, whichever store is behind it."""
    yield from _place(tmp_path_factory)


@pytest.fixture(scope="module", params=["sqlite", "nats"])
def any_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A gateway on either store."""
    if request.param == "sqlite":
        yield from _place(tmp_path_factory)
    else:
        server: NatsServer = request.getfixturevalue("nats_server")
        yield from _place(tmp_path_factory, "--backend", f"{server.url}?prefix={server.fresh()}")


def _place(folders: pytest.TempPathFactory, *store: str) -> Iterator[Place]:
    room = Room(folders.mktemp("gateway-of-client-tests"))
    _, address = room.up("--flows", "flows.py", *store)
    yield Place(address, room)
    room.leave()
