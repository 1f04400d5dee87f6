"""The store on NATS JetStream keeps the contract."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.nats_server import NatsServer
from tsuzuki.backends import Backend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.clock import Clock
from tsuzuki.testing import BackendContract
from tsuzuki.testing.clock import ShiftedClock


class TestNatsBackend(BackendContract):
    @pytest.fixture(autouse=True)
    def the_server(self, nats_server: NatsServer) -> None:
        self.server = nats_server

    async def open_backend(self, clock: Clock, folder: Path) -> Backend:
        return await NatsBackend.open(self.server.url, clock=clock, prefix=self.server.fresh())

    @pytest_asyncio.fixture
    async def backend(self, clock: ShiftedClock, tmp_path: Path) -> AsyncIterator[Backend]:
        store = await self.open_backend(clock, tmp_path)
        assert isinstance(store, NatsBackend)
        yield store
        await store.remove()
        await store.close()
