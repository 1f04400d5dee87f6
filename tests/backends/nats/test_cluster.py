"""Three servers with three replicas lose their leader, and no fact."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import Calls, recorded, slow_map, until
from tests.nats_server import NatsServer, free_port
from tsuzuki import Runs, Status
from tsuzuki.backends.nats import NatsBackend, topology
from tsuzuki.script import run_here

# ruff: noqa: SLF001 - it asks the server who leads
pytestmark = pytest.mark.xdist_group("nats cluster")


class Cluster:
    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.servers = {
            f"n{at}": NatsServer(
                folder / f"n{at}",
                settings=f'server_name: n{at}\ncluster {{ name: c, listen: "127.0.0.1:{port}", routes: [{routes}] }}',
            )
            for at, port in enumerate(ports)
        }

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers.values()).replace(",nats://", ",") + "?replicas=3"

    async def leader(self, store: NatsBackend) -> str:
        parts = store._parts
        info = await parts.wire.api(topology.stream_info(parts.topology.journal))
        return str(info["cluster"]["leader"])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    for server in cluster.servers.values():
        server.start()
    yield cluster
    for server in cluster.servers.values():
        server.stop()


async def ready(cluster: Cluster, opened: Open) -> NatsBackend:
    """Opens the store as soon as the servers have found each other."""
    stores: list[NatsBackend] = []

    async def opens() -> bool:
        stores.append(await opened(cluster.url))
        return True

    await until(opens, 60)
    return stores[0]


async def test_a_flow_goes_on_when_the_leader_is_killed(cluster: Cluster, opened: Open) -> None:
    store, calls = await ready(cluster, opened), Calls()
    running = asyncio.create_task(run_here(Runs(store), slow_map(calls), {}))
    await calls.half.wait()
    leader = await cluster.leader(store)
    cluster.servers[leader].kill()
    ended = await running
    assert (ended.status, ended.result) == (Status.COMPLETED, 60)
    assert set(calls.seen.values()) == {1}, "no item was called twice"
    assert set((await recorded(store, ended.id)).values()) == {1}
