"""The named statements of `queries.sql`, which with the migrations spells all SQL of this application."""

from pathlib import Path
from typing import Final

from tsuzuki.apps.ledger import statements_of

SQL: Final = statements_of(Path(__file__).with_name("queries.sql"))
