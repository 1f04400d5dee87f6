"""Servers of their own for tests that kill, freeze, cut off and fill them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.nats_cluster import Cluster
from tests.nats_server import NatsServer
from tsuzuki.backends.nats import NatsBackend

Open = Callable[..., Awaitable[NatsBackend]]


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that belongs to one test."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    """The address of an empty store on the server that all tests share."""
    return f"{nats_server.url}?prefix={nats_server.fresh()}"


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens stores and closes them after the test."""
    stores: list[NatsBackend] = []

    async def open_store(url: str, **options: object) -> NatsBackend:
        stores.append(await NatsBackend.open(url, **options))  # type: ignore[arg-type]  # names as the store knows them
        return stores[-1]

    yield open_store
    for store in stores:
        await store.close()


def wait_only(store: NatsBackend, seconds: float) -> None:
    """Has a store wait so long for an answer from now on: what a test prepares before may take its time."""
    for options in (store._parts.options, store._parts.wire._options):  # noqa: SLF001 - the only two copies
        msgspec.structs.force_setattr(options, "timeout", seconds)


@pytest.fixture(scope="session")
def all_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The servers, which all tests with three servers share; a folder of this name may outlive a test."""
    cluster = Cluster(tmp_path_factory.mktemp("nats-of-all-tests"))
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(all_nodes: Cluster) -> Cluster:
    """The servers, all of them up and caught up."""
    all_nodes.start()
    return all_nodes
