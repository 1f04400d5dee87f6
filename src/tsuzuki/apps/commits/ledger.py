"""The file of this application, `commits.db`."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

from tsuzuki import settings
from tsuzuki.apps import ledger
from tsuzuki.apps.commits.queries import SQL
from tsuzuki.apps.ledger import records, transaction

__all__ = ["FILE", "Ledger", "ledger_of", "records", "transaction"]

FILE: Final = "commits.db"
_MIGRATIONS: Final = sorted((Path(__file__).parent / "migrations").glob("*.sql"))


def ledger_of(tenant: str, folder: Path | None = None) -> "Ledger":
    """Gives the ledger of a tenant: each has a file of its own."""
    data = folder or settings.data_dir()
    return Ledger((data / "tenants" / quote(tenant, safe="") if tenant else data) / FILE)


class Ledger(ledger.Ledger):
    """One `commits.db`; made when it is first used."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, _MIGRATIONS, SQL)
