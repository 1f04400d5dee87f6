"""The contract of a backend as a test suite: subclass `BackendContract`, say how to open yours, run pytest."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tsuzuki.backends import Backend
from tsuzuki.clock import Clock
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.testing.contract.index import IndexContract, WorkersContract
from tsuzuki.testing.contract.journal import JournalContract
from tsuzuki.testing.contract.keeping import KeepingContract
from tsuzuki.testing.contract.queue import QueueContract
from tsuzuki.testing.contract.requests import KeysContract, RequestsContract
from tsuzuki.testing.contract.store import StoreContract
from tsuzuki.testing.contract.watching import WatchingContract
from tsuzuki.testing.contract.wheels import WheelsContract

__all__ = ["BackendContract"]


class BackendContract(
    JournalContract,
    WatchingContract,
    QueueContract,
    KeysContract,
    RequestsContract,
    IndexContract,
    WorkersContract,
    KeepingContract,
    StoreContract,
    WheelsContract,
):
    """Everything the port promises; a behaviour that is not tested here does not exist."""

    pytestmark = pytest.mark.asyncio

    async def open_backend(self, clock: Clock, folder: Path) -> Backend:
        """Opens a fresh, empty store that reads this clock and may keep its files in this folder."""
        raise NotImplementedError("say how to open your backend: async def open_backend(self, clock, folder)")

    @pytest.fixture
    def clock(self) -> ShiftedClock:
        """The clock of the store: the machine's own, with a wall clock that a test can set."""
        return ShiftedClock()

    @pytest_asyncio.fixture
    async def backend(self, clock: ShiftedClock, tmp_path: Path) -> AsyncIterator[Backend]:
        """A fresh store for each test."""
        store = await self.open_backend(clock, tmp_path)
        yield store
        await store.close()
