"""Additions and deletions by month and author: out of sums that every collection adds to, each commit once."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tsuzuki.apps.commits.authors import Authors
from tsuzuki.apps.commits.ledger import Ledger
from tsuzuki.errors import BadUsage

_FEW: Final = 3
_CENTURY: Final = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """Which statistics are asked for: of everything, of a project or of one of its branches."""

    project_id: int | None = None
    branch_name: str | None = None
    authors: tuple[str, ...] = ()
    merges: bool = True
    since: str | None = None
    until: str | None = None

    def __post_init__(self) -> None:
        if self.branch_name is not None and self.project_id is None:
            raise BadUsage("ブランチはプロジェクトとともに指定してください / a branch belongs to a project: name both")
        for month in (self.since, self.until):
            if month is not None and not _is_month(month):
                raise BadUsage(f"月は 2026-01 の形で指定してください / {month!r} is no month; write 2026-01")
        if self.since and self.until and self.since > self.until:
            raise BadUsage(
                "開始月は終了月より前でなければなりません / "
                f"the span ends before it begins: {self.since} to {self.until}"
            )


@dataclass(frozen=True, slots=True)
class Row:
    """What an author did in a month."""

    month: str
    author: str
    commits: int
    additions: int
    deletions: int
    missing_stats: int

    @property
    def changes(self) -> int:
        """Additions and deletions together."""
        return self.additions + self.deletions


@dataclass(frozen=True, slots=True)
class Statistics:
    """The rows, by month and author, and their sums."""

    rows: Sequence[Row]

    @property
    def commits(self) -> int:
        """The number of commits."""
        return sum(row.commits for row in self.rows)

    @property
    def additions(self) -> int:
        """The number of added lines."""
        return sum(row.additions for row in self.rows)

    @property
    def deletions(self) -> int:
        """The number of deleted lines."""
        return sum(row.deletions for row in self.rows)

    @property
    def missing_stats(self) -> int:
        """The number of commits whose source gave no figures."""
        return sum(row.missing_stats for row in self.rows)

    @property
    def months(self) -> list[str]:
        """Every month from the first to the last, also those in which nothing happened; at most of a century."""
        known = sorted({row.month for row in self.rows})
        if not known or int(known[-1][:4]) - int(known[0][:4]) > _CENTURY:
            return known  # somebody's clock was wrong by far: the years between would hide everything else
        return list(_between(known[0], known[-1]))

    @property
    def periods(self) -> list[str]:
        """Every period from the first to the last: months, or the days or hours that `closely` gives."""
        known = sorted({row.month for row in self.rows})
        if not known or len(known[0]) == len("2026-01"):
            return self.months
        step = timedelta(days=1) if len(known[0]) == len("2026-01-31") else timedelta(hours=1)
        first, last = datetime.fromisoformat(known[0]), datetime.fromisoformat(known[-1])
        many = (last - first) // step + 1
        return [(first + step * at).isoformat()[: len(known[0])] for at in range(many)]

    @property
    def authors(self) -> list[str]:
        """The authors, those who changed most first."""
        sums = dict[str, int]()
        for row in self.rows:
            sums[row.author] = sums.get(row.author, 0) + row.changes
        return sorted(sums, key=lambda name: (-sums[name], name))


def statistics(ledger: Ledger, asked: Asked) -> Statistics:
    """Reads statistics."""
    query = "statistics" if asked.branch_name is None else "statistics_of_branch"
    authors = Authors(ledger)
    return _made(ledger.all(query, _values(asked, authors)), authors)


def _values(asked: Asked, authors: Authors) -> dict[str, object]:
    return {
        "project_id": asked.project_id,
        "branch_name": asked.branch_name,
        "authors": json.dumps(authors.called(asked.authors)) if asked.authors else None,
        "merges": asked.merges,
        "since": asked.since,
        "until": asked.until,
    }


def _made(found: list[tuple[Any, ...]], authors: Authors) -> Statistics:
    return Statistics([Row(month, authors.name(author_id), *sums) for month, author_id, *sums in found])


def closely(ledger: Ledger, asked: Asked, found: Statistics) -> Statistics:
    """Gives the same by day where there are few months, by hour where there are few days: for pictures."""
    if asked.branch_name is not None or not 0 < len(found.months) <= _FEW:
        return found
    authors = Authors(ledger)
    for width in (len("2026-01-31"), len("2026-01-31T00")):
        found = _made(ledger.all("statistics_closely", {**_values(asked, authors), "width": width}), authors)
        if len(found.periods) > _FEW:
            break
    return found


def author_names(ledger: Ledger, project_id: int | None = None) -> list[str]:
    """Lists the names of everybody who has written something."""
    return Authors(ledger).names(row[0] for row in ledger.all("authors_of", {"project_id": project_id}))


def _is_month(text: str) -> bool:
    year, _, month = text.partition("-")
    whole = len(year) == len("2026") and len(month) == len("01") and (year + month).isdigit()
    return whole and 1 <= int(month) <= 12  # noqa: PLR2004 - the months of a year


def _between(first: str, last: str) -> list[str]:
    year, month = map(int, first.split("-"))
    months = [first]
    while months[-1] < last:
        year, month = (year + month // 12, month % 12 + 1)
        months.append(f"{year:04d}-{month:02d}")
    return months
