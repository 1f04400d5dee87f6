"""Gives the space of what was removed back to the disk: a little at a time after a purge, all at once when asked.

A file keeps pages that are not used any more, and can give them back by and by only if it was made so
(`auto_vacuum`); ours are since this module is there, older ones are written anew once by `compact`.
"""

import contextlib
import sqlite3
from pathlib import Path
from typing import Final

from tsuzuki.backends import Check, amount
from tsuzuki.backends.sqlite.faults import fault
from tsuzuki.backends.sqlite.file import LARGEST_LOG, connect
from tsuzuki.backends.sqlite.turnstile import Turnstile
from tsuzuki.backends.sqlite.writer import Transaction

KEPT: Final = 1024
"""How many free pages stay: writing into space that is there is faster."""
AT_ONCE: Final = 1000
"""How many pages are given back in one turn; whoever else writes has the next one."""
BRIEFLY: Final = 50
"""How long the log waits for whoever uses it before it is cut (milliseconds); others who write wait as long."""
_INCREMENTAL: Final = 2


def give_back(transaction: Transaction) -> bool:
    """Gives some free pages back; tells whether there are more."""
    if transaction.execute("PRAGMA auto_vacuum").fetchall()[0][0] != _INCREMENTAL:
        return False
    spare = transaction.execute("PRAGMA freelist_count").fetchall()[0][0] - KEPT
    for _ in range(min(spare, AT_ONCE)):  # Python takes one step of this statement, which is one page
        transaction.execute("PRAGMA incremental_vacuum(1)")
    return bool(spare > AT_ONCE)


def merge(path: Path) -> None:
    """Merges the log into the file, as far as nobody reads from it, which also cuts the file; blocks.

    A purge is written to the log before it makes the file smaller: a log that has grown large by it goes as well,
    unless somebody uses it just then, after whom the next write cuts it.
    """
    with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        if path.with_name(f"{path.name}-wal").stat().st_size > LARGEST_LOG:
            connection.execute(f"PRAGMA busy_timeout = {BRIEFLY}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def compact(path: Path) -> Check:
    """Writes the whole file anew without its free pages; blocks, and others who write wait meanwhile."""
    turnstile = Turnstile(path)
    before = path.stat().st_size
    try:
        turnstile.enter()
        try:
            with contextlib.closing(connect(path)) as connection:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            turnstile.leave()
    except sqlite3.Error as error:
        raise fault(error, path) from error
    finally:
        turnstile.close()
    after = path.stat().st_size
    return Check("compact", ok=True, text=f"{amount(before)} before, {amount(after)} now")
