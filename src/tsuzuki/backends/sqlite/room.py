"""Gives the space of what was removed back to the disk: a little at a time after a purge, all at once when asked.

A file keeps pages that are not used any more, and can give them back by and by only if it was made so
(`auto_vacuum`); ours are since this module is there, older ones are written anew once by `compact`.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tsuzuki.backends import Check, amount
from tsuzuki.backends.sqlite.faults import fault
from tsuzuki.backends.sqlite.file import LARGEST_LOG, connect
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.turnstile import Turnstile
from tsuzuki.backends.sqlite.writer import Transaction

KEPT: Final = 1024
"""How many free pages stay: writing into space that is there is faster."""
AT_ONCE: Final = 1000
"""How many pages are given back, or rows removed, in one turn; whoever else writes has the next one."""
BRIEFLY: Final = 50
"""How long the log waits for whoever uses it before it is cut (milliseconds); others who write wait as long."""
_INCREMENTAL: Final = 2
_PURGE: Final = ("purge_facts", "purge_logs", "purge_labels", "purge_params")


def remove(transaction: Transaction, run_ids: Sequence[str]) -> list[str]:
    """Remove ended runs with all that belongs to them, and return the ids of those that were there."""
    transaction.flush()
    transaction.execute(SQL["keep_clock"], (transaction.stamp(),))
    removed = [transaction.execute(SQL["purge"], (run_id,)).fetchall() for run_id in run_ids]
    return [rows[0][0] for rows in removed if rows]


def remove_rows(transaction: Transaction, run_ids: Sequence[str]) -> list[str]:
    """Remove only the rows of ended runs, which needs little room. `remove_leftovers` removes the rest."""
    transaction.flush()
    for run_id in run_ids:
        transaction.executemany(SQL["note_leftovers"], transaction.execute(SQL["set_apart"], (run_id,)).fetchall())
    return remove(transaction, run_ids)


def remove_leftovers(transaction: Transaction, at_once: int) -> bool:
    """Remove some of what is left of a run without a row, and return whether there may be more."""
    runs = transaction.execute(SQL["leftovers"]).fetchall()
    [(secure,)] = transaction.execute("PRAGMA secure_delete").fetchall()
    if at_once == 1:  # to overwrite the pages of one large value takes more room than there is
        transaction.execute("PRAGMA secure_delete = OFF")
    try:
        for (number,) in runs:
            for query in _PURGE:
                at_once -= transaction.execute(SQL[query], (number, at_once)).rowcount
            if at_once > 0:
                transaction.execute(SQL["forget_leftovers"], (number,))
    finally:
        transaction.execute(f"PRAGMA secure_delete = {secure}")
    return bool(runs)


def give_back(transaction: Transaction, at_once: int) -> bool:
    """Gives some free pages back; tells whether there are more."""
    if transaction.execute("PRAGMA auto_vacuum").fetchall()[0][0] != _INCREMENTAL:
        return False
    spare = transaction.execute("PRAGMA freelist_count").fetchall()[0][0] - KEPT
    for _ in range(min(spare, at_once)):  # Python takes one step of this statement, which is one page
        transaction.execute("PRAGMA incremental_vacuum(1)")
    return bool(spare > at_once)


def merge(path: Path, largest: int = LARGEST_LOG) -> None:
    """Merges the log into the file, as far as nobody reads from it, which also cuts the file; blocks.

    A purge is written to the log before it makes the file smaller: a log that has grown large by it goes as well,
    unless somebody uses it just then, after whom the next write cuts it.
    """
    if not path.exists():  # to connect would create it
        return
    with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        if path.with_name(f"{path.name}-wal").stat().st_size > largest:
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
