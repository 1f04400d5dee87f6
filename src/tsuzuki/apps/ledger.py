"""A SQLite file of an application: its migrations, its transactions, its named statements; the only code that commits.

Each use opens a connection of its own and closes it: no connection is shared between threads or kept over a wait.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import Any, Final, TypeVar

from tsuzuki import privacy
from tsuzuki.errors import NewerStore, NotAStore, StoreUnavailable

Record = TypeVar("Record")
Values = Sequence[Any] | Mapping[str, Any]

PATIENCE: Final = 30.0
"""How long one waits for another who writes (seconds)."""
_TRIES: Final = 200
_PAUSE: Final = 0.05
"""How often, and how far apart (seconds), what SQLite does not wait for is tried."""
_NAMED: Final = re.compile(r"^-- (?P<name>\w+): .*\n(?P<statement>(?:(?!-- ).*\n?)+)", re.MULTILINE)
_PART: Final = re.compile(r"\{(\w+)\}")


def statements_of(file: Path) -> Mapping[str, str]:
    """Reads the named statements out of a `queries.sql`; one may stand in another as `{name}`."""
    found = _NAMED.finditer(file.read_text(encoding="utf-8"))
    named = {each["name"]: each["statement"].strip().rstrip(";") for each in found}
    return {name: _PART.sub(lambda part: named[part[1]], statement) for name, statement in named.items()}


class Ledger:
    """One file; made when it is first used, and brought up to date."""

    def __init__(self, file: Path, migrations: Sequence[Path], statements: Mapping[str, str]) -> None:
        self.file = file
        self._migrations = migrations
        self._statements = statements

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Gives a connection for a few statements, and closes it."""
        try:
            with closing(self._opened()) as connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"{self.file.name} cannot be used: {error}; check disk and permissions") from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Gives a connection within one transaction: all of it is kept, or nothing."""
        with self.reading() as connection, transaction(connection):
            yield connection

    def one(self, query: str, values: Values = ()) -> tuple[Any, ...] | None:
        """Gives the first row of a named query."""
        with self.reading() as connection:
            found: tuple[Any, ...] | None = connection.execute(self._statements[query], values).fetchone()
            return found

    def all(self, query: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Gives every row of a named query."""
        with self.reading() as connection:
            return connection.execute(self._statements[query], values).fetchall()

    def _opened(self) -> sqlite3.Connection:
        try:
            privacy.make_file(self.file)
        except OSError as error:
            raise StoreUnavailable(f"{self.file.parent} cannot be made: {error.strerror}") from error
        # A connection may be filled on the event loop and settled on a thread, one after the other.
        connection = sqlite3.connect(self.file, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            self._migrate(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise NotAStore(f"{self.file} is no {self.file.name}: {error}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Brings the file up to date; two who open it at once take turns."""
        if (version := _version(connection)) == len(self._migrations):
            return
        if version > len(self._migrations):
            raise NewerStore(f"{self.file} was written by a newer Tsuzuki: upgrade this one")
        _use_wal(connection)
        with transaction(connection):
            for number, migration in enumerate(self._migrations[_version(connection) :], _version(connection) + 1):
                for statement in _statements(migration.read_text(encoding="utf-8")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Changes the mode of a new file; SQLite does not wait for others who do so at the same time, so we do."""
    for _ in range(_TRIES):
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
            return
        sleep(_PAUSE)
    connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def transaction(connection: sqlite3.Connection, how: str = "IMMEDIATE") -> Iterator[None]:
    """Makes what is executed in the block one transaction; an immediate one lets nobody else write meanwhile."""
    connection.execute(f"BEGIN {how}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def records(kind: type[Record], rows: list[tuple[Any, ...]]) -> list[Record]:
    """Makes values of rows."""
    return [kind(*row) for row in rows]


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _statements(script: str) -> Iterator[str]:
    """Gives the statements of a script; a script executed as a whole would end the transaction around it."""
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""
