"""Opens the file: finds out whether it is ours, makes it ours when it is new, and refuses it unchanged otherwise."""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from tsuzuki.backends.sqlite.faults import busy, fault, file_fault
from tsuzuki.backends.sqlite.migrations import MARK, NEWEST, migrate, version
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.turnstile import Turnstile
from tsuzuki.backends.sqlite.writer import transact
from tsuzuki.errors import NewerStore, NotAStore, StoreUnavailable

PATIENCE: Final = 5.0
"""How long reading waits for a lock, in seconds; it hardly ever has to."""
_TRIES: Final = 100
_HEADER: Final = b"SQLite format 3\0"


class Opened(NamedTuple):
    """An open file: where it is, its turnstile, the connection that writes and the one that reads."""

    path: Path
    turnstile: Turnstile
    writing: sqlite3.Connection
    reading: sqlite3.Connection


def prepare(path: Path) -> Opened:
    """Opens the store at `path`; blocks, for a thread to call."""
    try:
        path = path.expanduser().resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        inspect(path)
        turnstile = Turnstile(path)
    except OSError as error:
        raise file_fault(error, path) from error
    with contextlib.ExitStack() as opened:
        opened.callback(turnstile.close)
        try:
            writing = connect(path)
            opened.callback(writing.close)
            _make_ours(writing, turnstile, path)
            reading = connect(path, timeout=PATIENCE)
            opened.callback(reading.close)
            reading.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise fault(error, path) from error
        opened.pop_all()
    return Opened(path, turnstile, writing, reading)


def connect(path: Path, *, timeout: float = 0.0) -> sqlite3.Connection:
    """Opens a connection in autocommit mode; whoever writes waits by itself, in turn."""
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def inspect(path: Path) -> None:
    """Refuses what is not ours, newer than us or not writable, without changing a byte of it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise NotAStore(f"{path} is not a SQLite file; choose another file")
    try:
        with contextlib.closing(_look_at(path)) as connection:
            mark = connection.execute("PRAGMA application_id").fetchall()[0][0]
            tables = connection.execute(SQL["tables"]).fetchall()[0][0]
            present = version(connection)
    except sqlite3.Error as error:
        raise fault(error, path) from error
    if mark != MARK and (mark or tables or present):
        raise NotAStore(f"{path} belongs to another program; choose another file")
    if present > NEWEST:
        raise NewerStore(
            f"{path} was written by a newer Tsuzuki (its version is {present}, this one knows {NEWEST}); "
            "upgrade tsuzuki, or choose another file"
        )
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreUnavailable(f"{path} cannot be written; make the file and its folder writable for this user")


def _look_at(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE, isolation_level=None)


def _make_ours(connection: sqlite3.Connection, turnstile: Turnstile, path: Path) -> None:
    """Brings the file to WAL mode and to the current schema; two processes may do this at once."""
    turnstile.enter()
    try:
        _to_wal(connection)
        transact(connection, lambda: migrate(connection, path))
    finally:
        turnstile.leave()


def _to_wal(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")
    for left in reversed(range(_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            break
        except sqlite3.OperationalError as error:
            # Another process is just recovering or leaving the file: SQLite does not wait for that by itself.
            if not busy(error) or not left:
                raise
    connection.execute("PRAGMA busy_timeout = 0")
