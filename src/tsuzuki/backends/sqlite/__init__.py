"""The store in one SQLite file, in WAL mode, shared by the processes of one machine."""

from tsuzuki.backends.sqlite.store import SqliteBackend

__all__ = ["SqliteBackend"]
