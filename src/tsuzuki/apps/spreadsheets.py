"""Cells of CSV and TSV that no spreadsheet takes for a formula."""

from typing import Final

_RISKY: Final = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet would take for the beginning of one."""


def no_formula(cell: str) -> str:
    """Gives a text as a cell: one that could be a formula begins with an apostrophe.

    A carriage return becomes a new line: writers put no quotes around it, and readers would begin a row there.
    """
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{cell}" if cell.startswith(_RISKY) else cell
