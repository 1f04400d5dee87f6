"""Brings a file to the current schema: numbered steps, forward only, all in one transaction."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tsuzuki.errors import NewerStore

MARK: Final = 0x545A4B31
"""The application id in the header of our files: "TZK1"."""

_FILES: Final = Path(__file__).with_name("migrations")
_COMMENT: Final = re.compile(r"--[^\n]*")


def steps(folder: Path = _FILES) -> Mapping[int, str]:
    """Gives the migrations by number."""
    return {int(path.name[:4]): path.read_text(encoding="utf-8") for path in sorted(folder.glob("[0-9]*.sql"))}


NEWEST: Final = max(steps())
"""The number of the last migration: what `user_version` says in a file of this version."""


def version(connection: sqlite3.Connection) -> int:
    """Reads the number of the last migration that a file has seen."""
    number: int = connection.execute("PRAGMA user_version").fetchall()[0][0]
    return number


def refuse_newer(present: int, path: Path) -> None:
    """Refuses a file that a later version has brought further than this one knows."""
    if present > NEWEST:
        raise NewerStore(
            f"{path} was written by a newer Tsuzuki (its version is {present}, this one knows {NEWEST}); "
            "upgrade tsuzuki, or choose another file"
        )


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Applies what a file has not seen; runs inside a transaction, so that it happens whole or not at all."""
    present = version(connection)
    refuse_newer(present, path)
    for number, script in steps().items():
        if number > present:
            for statement in statements(script):
                connection.execute(statement)
    if present < NEWEST:
        connection.execute(f"PRAGMA application_id = {MARK}")
        connection.execute(f"PRAGMA user_version = {NEWEST}")


def statements(script: str) -> Iterator[str]:
    """Splits a script into statements (a trigger has some inside); `executescript` would end the transaction."""
    statement = ""
    for piece in _COMMENT.sub("", script).split(";")[:-1]:
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
