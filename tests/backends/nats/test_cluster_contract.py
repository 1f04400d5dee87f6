"""Three replicas keep the core of the contract: fenced appends, claims, keys, and versions of wheels."""

import asyncio
from collections.abc import AsyncIterator

import nats
import pytest
import pytest_asyncio

from tests.nats_cluster import Cluster
from tsuzuki.backends import Backend
from tsuzuki.backends.nats import NatsBackend, options
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.testing.contract.journal import JournalContract
from tsuzuki.testing.contract.queue import QueueContract
from tsuzuki.testing.contract.requests import KeysContract
from tsuzuki.testing.contract.wheels import WheelsContract

pytestmark = pytest.mark.asyncio


async def empty(cluster: Cluster, prefix: str) -> None:
    """Empties the streams of a store: that takes a tenth of the time that new ones with three replicas take."""
    client = await nats.connect([node.url for node in cluster.nodes.values()])
    streams = Topology(options.parse(cluster.url, prefix=prefix)).streams()
    await asyncio.gather(*(client.jetstream().purge_stream(name) for name in streams))
    await client.close()


class TestThreeReplicas(JournalContract, QueueContract, KeysContract, WheelsContract):
    """What is fenced or exclusive; the rest of the contract does not depend on how many servers keep it."""

    @pytest.fixture
    def clock(self) -> ShiftedClock:
        return ShiftedClock()

    @pytest_asyncio.fixture
    async def backend(self, clock: ShiftedClock, cluster: Cluster) -> AsyncIterator[Backend]:
        store = await NatsBackend.open(cluster.url, clock=clock, prefix="contract")
        yield store
        await store.close()
        await empty(cluster, "contract")
