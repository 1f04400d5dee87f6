"""Opens the file: finds out whether it is ours, makes it ours when it is new, and refuses it unchanged otherwise."""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from tsuzuki import privacy
from tsuzuki.backends.sqlite.faults import fault, file_fault
from tsuzuki.backends.sqlite.migrations import MARK, migrate, refuse_newer, version
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.turnstile import Turnstile
from tsuzuki.backends.sqlite.writer import patiently, transact
from tsuzuki.errors import NotAStore, StoreUnavailable

PATIENCE: Final = 5.0
"""How long reading waits for a lock, in seconds; it hardly ever has to."""
LARGEST_LOG: Final = 8 * 1024 * 1024
"""How many bytes of its log SQLite keeps once it was merged; one large write would make it large for good."""
RESERVE_BYTES: Final = 1024 * 1024
"""So much space is reserved beside the file, for its log and its locks while a full disk is purged."""
_HEADER: Final = b"SQLite format 3\0"


class Opened(NamedTuple):
    """An open file: where it is, its turnstile, the connection that writes and the one that reads."""

    path: Path
    turnstile: Turnstile
    writing: sqlite3.Connection
    reading: sqlite3.Connection


def prepare(path: Path) -> Opened:
    """Opens the store at `path`, also on a full disk, so that it can be purged; blocks, for a thread to call."""
    try:
        path = path.expanduser().resolve()
    except OSError as error:
        raise file_fault(error, path) from error
    try:
        opened = _open(path)
    except StoreUnavailable:
        if not _use_reserve(path):
            raise
        return _open(path)
    refill_reserve(path)
    return opened


def _open(path: Path) -> Opened:
    try:
        privacy.make_file(path)
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
            writing.execute("PRAGMA busy_timeout = 0")  # whoever writes waits by itself, in turn
            reading = connect(path)
            opened.callback(reading.close)
            reading.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise fault(error, path, turnstile.holder()) from error
        opened.pop_all()
    return Opened(path, turnstile, writing, reading)


def _use_reserve(path: Path) -> bool:
    """Free the reserved space where the disk is full: to open the file SQLite needs some beside it."""
    if not hasattr(os, "statvfs"):
        return False
    try:
        room, place = os.statvfs(path.parent), _reserve_of(path)
        if room.f_bavail * room.f_frsize >= RESERVE_BYTES or not place.stat().st_size:
            return False
        os.truncate(place, 0)
    except OSError:
        return False
    return True


def refill_reserve(path: Path) -> None:
    """Reserve space for opening the file on a full disk, where there is some."""
    if not hasattr(os, "posix_fallocate"):
        return
    with contextlib.suppress(OSError):
        if (place := _reserve_of(path)).stat().st_size:
            return
        with place.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
            except OSError:
                file.truncate(0)


def _reserve_of(path: Path) -> Path:
    """Return the file that holds the reserved space: one of the turnstile, whose content nobody reads."""
    return path.with_name(f"{path.name}-main")


_MARK_AT: Final = 68
_MARK_END: Final = 72
"""Where the application id stands in the header of a SQLite file."""


def connect(path: Path) -> sqlite3.Connection:
    """Opens a connection in autocommit mode that waits for locks."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        # Reads the file: another process may just be making it, or leaving it, for which SQLite does not always wait.
        patiently(lambda: connection.execute("PRAGMA synchronous = FULL"), PATIENCE)
        connection.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def inspect(path: Path) -> None:
    """Refuses what is not ours, newer than us or not writable, without changing a byte of it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise NotAStore(f"{path} is not a SQLite file; choose another file")
    # Even to look leaves a file of locks beside it, with the same permissions, which would have to be mended too.
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreUnavailable(f"{path} cannot be written; make the file and its folder writable for this user")
    try:
        mark, present, tables = patiently(lambda: _look_at(path), PATIENCE)
    except sqlite3.Error as error:
        if error.sqlite_errorname.startswith("SQLITE_READONLY") and _was_ours(path):
            return  # a process died while it wrote: SQLite puts that right when the file is opened to be written
        raise fault(error, path) from error
    if mark != MARK and (mark or tables or present):
        raise NotAStore(f"{path} belongs to another program; choose another file")
    refuse_newer(present, path)


def _was_ours(path: Path) -> bool:
    """Tells by its header, or by our lock beside it while it is being made, whether an unfinished file is ours."""
    with path.open("rb") as file:
        mark = int.from_bytes(file.read(_MARK_END)[_MARK_AT:], "big")
    return mark == MARK or (mark == 0 and path.with_name(f"{path.name}-next").exists())


def _look_at(path: Path) -> tuple[int, int, int]:
    """Reads whose file it is, its version, and how much is in it."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)) as connection:
        connection.execute("BEGIN")  # one look: another process may just be making it
        mark = connection.execute("PRAGMA application_id").fetchall()[0][0]
        return mark, version(connection), connection.execute(SQL["tables"]).fetchall()[0][0]


def _make_ours(connection: sqlite3.Connection, turnstile: Turnstile, path: Path) -> None:
    """Brings the file to WAL mode and to the current schema; two processes may do this at once."""
    turnstile.enter()
    try:
        new = version(connection) == 0
        if new:  # only before anything is written: so that `room` can give space back later
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall(), PATIENCE)
        transact(connection, lambda: migrate(connection, path))
        if new:
            _make_room(connection)
    finally:
        turnstile.leave()


def _make_room(connection: sqlite3.Connection) -> None:
    """Makes a new file and its log as large as they will soon be: writing into space that is there is a third faster.

    A crash in between leaves a table that holds nothing anybody looks for; space that cannot be had is not needed.
    """
    with contextlib.suppress(sqlite3.OperationalError):
        transact(connection, lambda: connection.execute(SQL["take_room"]))
        transact(connection, lambda: connection.execute(SQL["give_room"]))
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


def copy_all(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copies a file as it is at one moment, in one read transaction, which holds up nobody."""
    source.backup(target)
    target.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, with no log beside it
