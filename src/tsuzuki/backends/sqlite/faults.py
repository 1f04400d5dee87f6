"""Turns what sqlite3 and the file system say into our errors, with what to do next."""

import errno
import sqlite3
from pathlib import Path
from typing import Final

from tsuzuki.errors import NotAStore, StoreError, StoreUnavailable

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_BROKEN: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_UNAVAILABLE: Final = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was half-written: free some space and try again",
    sqlite3.SQLITE_READONLY: "it cannot be written; make the file and its folder writable for this user",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and that this user may write there",
    sqlite3.SQLITE_PERM: "this user may not open it; change its permissions, or choose another data directory",
    sqlite3.SQLITE_IOERR: "the disk refused to read or write; free some space, check the disk and try again",
    sqlite3.SQLITE_NOMEM: "there is not enough memory; free some and try again",
}


_UNCLEAR: Final = (
    "whether this was kept is unclear until the next write: look at the run, or ask again with the same idempotency key"
)


class UnclearCommit(sqlite3.OperationalError):
    """A commit failed, and what it left in the log could not be written over: a crash may bring it back."""

    sqlite_errorcode = sqlite3.SQLITE_IOERR


def refused_io(error: sqlite3.Error) -> bool:
    """Return whether the disk refused to read or write."""
    return _code(error) == sqlite3.SQLITE_IOERR


def busy(error: sqlite3.Error) -> bool:
    """Tells whether somebody else is writing just now."""
    return _code(error) in _BUSY


def fault(error: sqlite3.Error, path: Path, holder: str = "") -> StoreError:
    """Says what an error of sqlite3 means for the store at `path`; `holder` is the process that writes."""
    code = _code(error)
    if code in _BUSY and holder:
        advice = f"{holder} is in the middle of writing; if it is stopped, let it go on; if it hangs, end it"
        return StoreUnavailable(f"{path}: {advice}", advice)
    if code in _BUSY:
        advice = "locked by another program; close what has it open (a database browser, a backup) and try again"
        return StoreUnavailable(f"{path} is {advice}", f"it is {advice}")
    if code in _BROKEN:
        what, advice = "is damaged or not a Tsuzuki store", "restore a copy, or choose another file"
        return NotAStore(f"{path} {what} ({error}); {advice}", f"it {what}; {advice}")
    if code in _UNAVAILABLE:
        advice = f"{_UNAVAILABLE[code]}; {_UNCLEAR}" if isinstance(error, UnclearCommit) else _UNAVAILABLE[code]
        return StoreUnavailable(f"{path}: {advice} ({error})", advice)
    return StoreError(f"{path}: SQLite says: {error}")


def file_fault(error: OSError, path: Path) -> StoreError:
    """Says what an error of the file system means for the store at `path`."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        advice = "the disk is full; nothing was half-written: free some space and try again"
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        advice = "it cannot be written; make it and its folder writable for this user, or choose another data directory"
    else:
        advice = "check the path and the disk, and try again"
    return StoreUnavailable(f"{path}: {advice} ({error.strerror or error})", advice)


def _code(error: sqlite3.Error) -> int:
    """Gives the primary code; errors of the Python module itself have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
