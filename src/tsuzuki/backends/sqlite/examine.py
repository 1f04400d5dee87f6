"""The store looked over for `doctor`: what is checked, and how it is said."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tsuzuki.backends import Check, amount, disk
from tsuzuki.backends.sqlite import wheels
from tsuzuki.backends.sqlite.blobs import Blobs
from tsuzuki.backends.sqlite.faults import fault
from tsuzuki.backends.sqlite.file import connect
from tsuzuki.backends.sqlite.migrations import NEWEST, version
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import text
from tsuzuki.backends.sqlite.turnstile import PATIENCE, Turnstile
from tsuzuki.backends.sqlite.writer import transact

LITTLE_SPACE: Final = 100 << 20
_MENDING: Final = ("sweep_facts", "sweep_logs", "sweep_params", "sweep_labels", "mend_params", "mend_labels")


def examine(path: Path, blobs: Blobs, now: float) -> list[Check]:
    """Examines the store on a connection of its own, and sweeps what a crash left behind; blocks."""
    connection = connect(path)
    try:
        return [
            Check("file", ok=True, text=f"{path}: {_size(path)}, schema {version(connection)} of {NEWEST}"),
            Check("sqlite", ok=True, text=sqlite3.sqlite_version),
            _sound(connection),
            _agreement(connection),
            _belongings(path, connection),
            _blobs(connection, blobs, now),
            _wheels(connection, path, now),
            _missing(connection, blobs),
            _space(path),
            _turns(path),
        ]
    except sqlite3.Error as error:
        raise fault(error, path) from error
    finally:
        connection.close()


def _sound(connection: sqlite3.Connection) -> Check:
    try:
        found = [row[0] for row in connection.execute("PRAGMA quick_check(10)").fetchall()]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found == ["ok"]:
        return Check("integrity", ok=True, text="every page is sound")
    return Check(
        "integrity",
        ok=False,
        text=f"the file is damaged: {'; '.join(found)}",
        do="stop what uses it, move it away, and tsuzuki restore a backup in its place",
    )


def _agreement(connection: sqlite3.Connection) -> Check:
    runs, expected, facts = connection.execute(SQL["totals"]).fetchall()[0]
    disagreeing = connection.execute(SQL["disagreeing"]).fetchall()[0][0]
    if not disagreeing and expected == facts:
        return Check("journals", ok=True, text=f"the rows of runs ({runs}) agree with their facts ({facts})")
    return Check(
        "journals",
        ok=False,
        text=f"{disagreeing} of {runs} rows disagree with their journals ({facts} facts, {expected} expected)",
        do="rebuild them with tsuzuki doctor --rebuild",
    )


def _belongings(path: Path, connection: sqlite3.Connection) -> Check:
    """Sees to what lies beside rows: of no run it goes, and what a run has lost comes back from its journal."""
    orphans = sum(connection.execute(SQL["orphans"]).fetchall()[0])
    bare = sum(connection.execute(SQL["bare_runs"]).fetchall()[0])
    if orphans or bare:
        turnstile = Turnstile(path)
        turnstile.enter()
        try:
            transact(connection, lambda: [connection.execute(SQL[name]) for name in _MENDING])
        finally:
            turnstile.leave()
            turnstile.close()
    text = f"{orphans} facts, lines, params and labels of no run swept, {bare} runs given theirs back"
    return Check("belongings", ok=True, text=text)


def _missing(connection: sqlite3.Connection, blobs: Blobs) -> Check:
    missing = [pair for pair in connection.execute(SQL["references"]) if not blobs.has(*pair)]
    if not missing:
        return Check("large values", ok=True, text="every value that a fact refers to is there")
    run, blob = missing[0]
    text = f"{len(missing)} that facts refer to are not there, the first: {blob} of run {run}"
    return Check("large values", ok=False, text=text, do=f"bring {blobs.folder} back from a backup")


def _blobs(connection: sqlite3.Connection, blobs: Blobs, now: float) -> Check:
    swept = blobs.sweep(_known(connection), now)
    return Check("blobs", ok=True, text=f"{amount(blobs.size())}, {swept} left behind by a crash and swept")


def _wheels(connection: sqlite3.Connection, path: Path, now: float) -> Check:
    folder = wheels.folder_of(path)
    swept = wheels.sweep(folder, lambda: [row[1] for row in _records(connection)], now)
    size = disk.size(folder.glob("*.whl"))
    told = f"{len(_records(connection))} wheels, {amount(size)}, {swept} left behind by a crash and swept"
    return Check("wheels", ok=True, text=told)


def _records(connection: sqlite3.Connection) -> list[tuple[str, bytes]]:
    return connection.execute(SQL["records"], (wheels.KIND,)).fetchall()


def _known(connection: sqlite3.Connection) -> Callable[[list[str]], set[str]]:
    return lambda ids: {row[0] for row in connection.execute(SQL["known_runs"], (text(ids),)).fetchall()}


def _space(path: Path) -> Check:
    free = shutil.disk_usage(path.parent).free
    enough = free > LITTLE_SPACE
    do = "" if enough else "free some: tsuzuki purge --older-than 30d removes old runs"
    return Check("disk", ok=enough, text=f"{amount(free)} free", do=do)


def _turns(path: Path) -> Check:
    turnstile = Turnstile(path)
    try:
        if turnstile.enter():
            turnstile.leave()
            return Check("turns", ok=True, text="those who write take turns")
        who = turnstile.holder() or "another process"
    finally:
        turnstile.close()
    told = f"{who} has kept its turn to write for {PATIENCE:.0f} s; others write without turns"
    return Check("turns", ok=False, text=told, do="if it is stopped, let it go on; if it hangs, end it")


def _size(path: Path) -> str:
    wal = path.with_name(f"{path.name}-wal")
    return f"{amount(path.stat().st_size)} and a log of {amount(wal.stat().st_size if wal.exists() else 0)}"
