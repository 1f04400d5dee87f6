"""The table that people read: every figure beside its goal, and whether it is reached."""

import os
import platform
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

OK, BELOW = "ok", "below"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    work: str
    figure: str
    goal: str = ""
    verdict: str = ""


def judged(work: str, figure: str, goal: str, *, reached: bool) -> Row:
    """Makes a line that has a goal."""
    return Row(work, figure, goal, OK if reached else BELOW)


def table(rows: Sequence[Row]) -> str:
    """Writes the lines in columns."""
    heads = [("work", "figure", "goal", "")]
    cells = heads + [(row.work, row.figure, row.goal, row.verdict) for row in rows]
    widths = [max(len(cell[column]) for cell in cells) for column in range(3)]
    lines = [
        "  ".join([*(text.ljust(width) for text, width in zip(cell, widths, strict=False)), cell[3]]) for cell in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def machine(fsync_ms: float) -> dict[str, Any]:
    """Gives the facts about this machine that the figures depend on."""
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "fsync median ms": round(fsync_ms, 2),
    }


def plain(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Gives the lines for a JSON file."""
    return [asdict(row) for row in rows]
