"""Statistics as text: a table for people, CSV, TSV and plain values for programs."""

import csv
import io
from dataclasses import asdict
from typing import Any, Final

from tsuzuki.apps.commits.statistics import Statistics
from tsuzuki.apps.spreadsheets import no_formula

HEAD: Final = ("month", "author", "commits", "additions", "deletions", "changes", "missing_stats")


def cells(statistics: Statistics) -> list[tuple[str | int, ...]]:
    """Gives the rows as cells."""
    return [
        (row.month, row.author, row.commits, row.additions, row.deletions, row.changes, row.missing_stats)
        for row in statistics.rows
    ]


def separated(statistics: Statistics, separator: str) -> str:
    """Gives CSV or TSV with a head line; a name cannot become a formula."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(HEAD)
    for row in cells(statistics):
        writer.writerow(no_formula(cell) if isinstance(cell, str) else cell for cell in row)
    return text.getvalue()


def plain(statistics: Statistics) -> dict[str, Any]:
    """Gives statistics for JSON."""
    return {
        "months": statistics.months,
        "authors": statistics.authors,
        "rows": [{**asdict(row), "changes": row.changes} for row in statistics.rows],
        "totals": {
            "commits": statistics.commits,
            "additions": statistics.additions,
            "deletions": statistics.deletions,
            "changes": statistics.additions + statistics.deletions,
            "missing_stats": statistics.missing_stats,
        },
    }
