"""Cells of CSV and TSV that no spreadsheet takes for a formula."""

from typing import Final

_RISKY: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet would take for the beginning of one."""


def no_formula(cell: str) -> str:
    """Gives a text as a cell: one that could be a formula begins with an apostrophe."""
    return f"'{cell}" if cell.startswith(_RISKY) else cell
