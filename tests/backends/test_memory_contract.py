"""The store in memory keeps the contract."""

from pathlib import Path

from tsuzuki.backends import Backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.clock import Clock
from tsuzuki.testing import BackendContract


class TestMemoryBackend(BackendContract):
    async def open_backend(self, clock: Clock, folder: Path) -> Backend:
        return MemoryBackend(clock)
