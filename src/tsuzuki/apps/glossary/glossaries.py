"""The three results of a project: provisional glossary, issues, refined glossary; each replaced as a whole."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import Entry, GlossaryIssue, Occurrence
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

    def get(self, number: int) -> Entry:
        """Gives one entry."""
        row = self._ledger.one(f"{self._name}_entry", (number,))
        if row is None:
            raise NotThere(f"項目が見つかりません / there is no entry {number}")
        return _entry(row)

    def become(self, entries: Iterable[Entry], run_id: int = 0) -> None:
        """Replace the glossary, all of it or nothing, and once for a run; definitions that people wrote stay."""
        with self._ledger.writing() as connection:
            if not first_time(connection, run_id, self._name):
                return
            theirs = _persons(connection.execute(SQL["persons"]).fetchall())
            rows = [_cells(_theirs(entry, theirs.get(entry.term_name))) for entry in entries]
            connection.execute(SQL[f"{self._name}_clear"])
            connection.executemany(SQL[f"{self._name}_add"], rows)

    def by_person(self) -> dict[str, tuple[str, float]]:
        """Return the definitions that people wrote in either glossary, with their confidence, by term."""
        return _persons(self._ledger.all("persons"))

    def named(self) -> dict[str, Entry]:
        """Return the entries by their terms."""
        return {entry.term_name: entry for entry in self.list()}

    def change(self, number: int, definition: str, confidence: float) -> Entry:
        """Store the definition of a person, which counts in both glossaries from now on."""
        term = self.get(number).term_name
        with self._ledger.writing() as connection:
            for name in ("provisional", "refined"):
                connection.execute(SQL[f"{name}_change"], (definition, confidence, 1, term))
        return self.get(number)

    def regenerate(self, number: int, definition: str, confidence: float) -> Entry:
        """Store the definition of a model that a person asked for: from now on runs may replace it."""
        term = self.get(number).term_name
        with self._ledger.writing() as connection:
            connection.execute(SQL[f"{self._name}_change"], (definition, confidence, 0, term))
            connection.execute(SQL["refined_release"], (term,))
        return self.get(number)

    def remove(self, number: int) -> None:
        """Removes an entry."""
        with self._ledger.writing() as connection:
            if not connection.execute(SQL[f"{self._name}_remove"], (number,)).rowcount:
                raise NotThere(f"項目が見つかりません / there is no entry {number}")


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
    number, name, definition, confidence, aliases, occurrences, by_person, kept = row
    found = msgspec.json.decode(occurrences, type=list[Occurrence])
    listed = msgspec.json.decode(aliases)
    return Entry(name, definition, confidence, listed, found, number, bool(by_person), bool(kept))


def _persons(rows: Iterable[tuple[str, str, float]]) -> dict[str, tuple[str, float]]:
    return {term: (definition, confidence) for term, definition, confidence in rows}


def _theirs(entry: Entry, theirs: tuple[str, float] | None) -> Entry:
    if theirs is None:
        return replace(entry, by_person=False)
    return replace(entry, definition=theirs[0], confidence=theirs[1], by_person=True, kept=False)


def _cells(entry: Entry) -> tuple[Any, ...]:
    listed = (msgspec.json.encode(entry.aliases).decode(), msgspec.json.encode(entry.occurrences).decode())
    marks = (int(entry.by_person), int(entry.kept))
    return (entry.term_name, entry.definition, min(max(entry.confidence, 0.0), 1.0), *listed, *marks)


def _issue(row: tuple[Any, ...]) -> GlossaryIssue:
    number, name, kind, description, exclude, reason = row
    return GlossaryIssue(name, kind, description, bool(exclude), reason, number)
