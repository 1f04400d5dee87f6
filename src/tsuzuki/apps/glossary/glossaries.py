"""The three results of a project: provisional glossary, issues, refined glossary; each replaced as a whole."""

from collections.abc import Iterable
from dataclasses import replace
from sqlite3 import Connection
from typing import Any

import msgspec

from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import Entry, Glossary, GlossaryIssue, Occurrence
from tsuzuki.apps.glossary.refusals import NotThere
from tsuzuki.apps.glossary.terms import first_time
from tsuzuki.apps.ledger import Ledger


class Entries:
    """The entries of a glossary: `provisional` or `refined`."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger = ledger
        self._name = name

    def list(self) -> list[Entry]:
        """Lists the entries in their order."""
        return [_entry(row) for row in self._ledger.all(self._name)]

    def glossary(self) -> Glossary:
        """Gives them as a glossary."""
        return Glossary(self.list())

    def get(self, number: int) -> Entry:
        """Gives one entry."""
        row = self._ledger.one(f"{self._name}_entry", (number,))
        if row is None:
            raise NotThere(f"項目が見つかりません / there is no entry {number}")
        return _entry(row)

    def become(self, entries: Iterable[Entry], run_id: int = 0) -> None:
        """Swaps a new glossary in: all of it or nothing, and once for a run."""
        with self._ledger.writing() as connection:
            if not first_time(connection, run_id, self._name):
                return
            rows = self._rows(connection, entries)
            connection.execute(SQL[f"{self._name}_clear"])
            connection.executemany(SQL[f"{self._name}_add"], rows)

    def _rows(self, _connection: Connection, entries: Iterable[Entry]) -> Iterable[tuple[Any, ...]]:
        return [_cells(entry) for entry in entries]

    def remove(self, number: int) -> None:
        """Removes an entry."""
        with self._ledger.writing() as connection:
            if not connection.execute(SQL[f"{self._name}_remove"], (number,)).rowcount:
                raise NotThere(f"項目が見つかりません / there is no entry {number}")


class Provisional(Entries):
    """The provisional glossary, whose definitions people change: those stay as long as their terms do."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, "provisional")

    def by_person(self) -> dict[str, Entry]:
        """Gives the entries that people have changed, by their terms."""
        return {entry.term_name: entry for entry in self.list() if entry.by_person}

    def change(self, number: int, definition: str, confidence: float, *, by_person: bool) -> Entry:
        """Changes a definition: from now on it is a person's, or a model's again."""
        self.get(number)
        with self._ledger.writing() as connection:
            connection.execute(SQL["provisional_change"], (definition, confidence, int(by_person), number))
        return self.get(number)

    def _rows(self, connection: Connection, entries: Iterable[Entry]) -> Iterable[tuple[Any, ...]]:
        there = [_entry(row) for row in connection.execute(SQL["provisional"])]
        theirs = {entry.term_name: entry for entry in there if entry.by_person}
        return [
            (*_cells(_kept(entry, theirs.get(entry.term_name))), int(entry.term_name in theirs)) for entry in entries
        ]


class Issues:
    """What the review found."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def list(self, issue_type: str | None = None) -> list[GlossaryIssue]:
        """Lists the issues, or those of a type."""
        return [_issue(row) for row in self._ledger.all("issues", {"issue_type": issue_type})]

    def get(self, number: int) -> GlossaryIssue:
        """Gives one issue."""
        row = self._ledger.one("issue", (number,))
        if row is None:
            raise NotThere(f"指摘が見つかりません / there is no issue {number}")
        return _issue(row)

    def become(self, issues: Iterable[GlossaryIssue], run_id: int = 0) -> None:
        """Swaps the issues of a new review in, once for a run."""
        rows = [
            (each.term_name, each.issue_type, each.description, int(each.should_exclude), each.exclusion_reason)
            for each in issues
        ]
        with self._ledger.writing() as connection:
            if not first_time(connection, run_id, "issues"):
                return
            connection.execute(SQL["issues_clear"])
            connection.executemany(SQL["issue_add"], rows)


def _entry(row: tuple[Any, ...]) -> Entry:
    number, name, definition, confidence, aliases, occurrences, by_person = row
    found = msgspec.json.decode(occurrences, type=list[Occurrence])
    return Entry(name, definition, confidence, msgspec.json.decode(aliases), found, number, bool(by_person))


def _kept(entry: Entry, theirs: Entry | None) -> Entry:
    return entry if theirs is None else replace(entry, definition=theirs.definition, confidence=theirs.confidence)


def _cells(entry: Entry) -> tuple[Any, ...]:
    listed = (msgspec.json.encode(entry.aliases).decode(), msgspec.json.encode(entry.occurrences).decode())
    return (entry.term_name, entry.definition, min(max(entry.confidence, 0.0), 1.0), *listed)


def _issue(row: tuple[Any, ...]) -> GlossaryIssue:
    number, name, kind, description, exclude, reason = row
    return GlossaryIssue(name, kind, description, bool(exclude), reason, number)
