"""The only code that opens and commits to `commits.db`: its migrations, its transactions, and what reads it.

Each use opens a connection of its own and closes it: no connection is shared between threads or kept over a wait.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from tsuzuki import settings
from tsuzuki.apps.commits.queries import SQL
from tsuzuki.errors import NewerStore, NotAStore, StoreUnavailable

Record = TypeVar("Record")
Values = Sequence[Any] | Mapping[str, Any]

FILE: Final = "commits.db"
PATIENCE: Final = 30.0
"""How long one waits for another who writes (seconds)."""
_MIGRATIONS: Final = sorted((Path(__file__).parent / "migrations").glob("*.sql"))


def ledger_of(tenant: str, folder: Path | None = None) -> "Ledger":
    """Gives the ledger of a tenant: each has a file of its own."""
    data = folder or settings.data_dir()
    return Ledger((data / "tenants" / quote(tenant, safe="") if tenant else data) / FILE)


class Ledger:
    """One `commits.db`; made when it is first used."""

    def __init__(self, file: Path) -> None:
        self.file = file

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
            found: tuple[Any, ...] | None = connection.execute(SQL[query], values).fetchone()
            return found

    def all(self, query: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Gives every row of a named query."""
        with self.reading() as connection:
            return connection.execute(SQL[query], values).fetchall()

    def _opened(self) -> sqlite3.Connection:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{self.file.parent} cannot be made: {error.strerror}") from error
        # A gathering is filled on the event loop and settled on a thread, one after the other.
        connection = sqlite3.connect(self.file, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            self._migrate(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise NotAStore(f"{self.file} is no {FILE}: {error}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Brings the file up to date; two who open it at once take turns."""
        if (version := _version(connection)) == len(_MIGRATIONS):
            return
        if version > len(_MIGRATIONS):
            raise NewerStore(f"{self.file} was written by a newer Tsuzuki: upgrade this one")
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            for number, migration in enumerate(_MIGRATIONS[_version(connection) :], _version(connection) + 1):
                for statement in _statements(migration.read_text(encoding="utf-8")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


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
