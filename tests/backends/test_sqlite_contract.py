"""The store in a SQLite file keeps the contract."""

from pathlib import Path

from tsuzuki.backends import Backend
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.clock import Clock
from tsuzuki.testing import BackendContract


class TestSqliteBackend(BackendContract):
    async def open_backend(self, clock: Clock, folder: Path) -> Backend:
        return await SqliteBackend.open(folder / "tsuzuki.db", clock=clock)
