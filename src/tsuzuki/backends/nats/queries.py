"""The named statements of `queries.sql`, the only place of this store that spells SQL."""

from pathlib import Path
from typing import Final

from tsuzuki.backends.statements import read

SQL: Final = read(Path(__file__).with_name("queries.sql"))
