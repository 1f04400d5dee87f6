"""The terms of a project: those that were found, those that are left out, those that are always there."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tsuzuki.apps.glossary.plaintext import usual_width
from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import Category, ListedTerm, Term
from tsuzuki.apps.glossary.refusals import BadValue, NotThere, Taken
from tsuzuki.apps.glossary.times import current_utc_iso
from tsuzuki.apps.ledger import Ledger, records

LONGEST_TERM: Final = 200
LONGEST_NOTES: Final = 10_000


def checked_term(text: str) -> str:
    """Return the text of a term as it is stored: in NFC and in the usual width, so that each term is there once."""
    clean = " ".join(usual_width(text).split())
    if not clean or len(clean) > LONGEST_TERM or not clean.isprintable():
        raise BadValue(f"用語が不正です / a term has 1 to {LONGEST_TERM} characters that can be seen")
    return clean


def checked_category(category: str | None) -> str | None:
    """Gives a category that there is."""
    if category is not None and category not in set(Category):
        raise BadValue(f"分類が不正です / a category is one of {', '.join(Category)}, not {category[:40]!r}")
    return category


class Listed:
    """A list of terms beside the terms themselves: `excluded` or `required`."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger = ledger
        self._name = name

    def list(self) -> list[ListedTerm]:
        """Lists them."""
        return records(ListedTerm, self._ledger.all(self._name))

    def texts(self) -> Sequence[str]:
        """Lists their texts."""
        return [each.term_text for each in self.list()]

    def add(self, text: str, source: str = "manual") -> tuple[ListedTerm, bool]:
        """Adds a term; tells whether it is new."""
        clean = checked_term(text)
        with self._ledger.writing() as connection:
            new = connection.execute(SQL[f"{self._name}_add"], (clean, source, current_utc_iso())).rowcount > 0
            row = connection.execute(SQL[f"{self._name}_named"], (clean,)).fetchone()
        return ListedTerm(*row), new

    def remove(self, number: int) -> None:
        """Removes a term from the list."""
        with self._ledger.writing() as connection:
            if not connection.execute(SQL[f"{self._name}_remove"], (number,)).rowcount:
                raise NotThere(f"見つかりません / there is no such term in the list: {number}")


class Terms:
    """The terms of one project."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.excluded = Listed(ledger, "excluded")
        self.required = Listed(ledger, "required")

    def stored(self) -> list[Term]:
        """Lists the terms that are stored, whatever is excluded or required."""
        return records(Term, self._ledger.all("terms"))

    def list(self) -> list[Term]:
        """Lists what counts: stored ones that are not excluded, and required ones, whatever else is said of them."""
        excluded, required = set(self.excluded.texts()), self.required.list()
        wanted = {each.term_text for each in required}
        stored = [each for each in self.stored() if each.term_text in wanted or each.term_text not in excluded]
        there = {each.term_text for each in stored}
        return stored + [Term(-each.id, each.term_text) for each in required if each.term_text not in there]

    def get(self, number: int) -> Term:
        """Gives a term; one that is only required by its negative id."""
        if number < 0:
            found = next((each for each in self.required.list() if each.id == -number), None)
            if found is not None:
                row = self._ledger.one("term_named", (found.term_text,))
                return Term(number, found.term_text) if row is None else Term(*row)
        elif (row := self._ledger.one("term", (number,))) is not None:
            return Term(*row)
        raise NotThere(f"用語が見つかりません / there is no term {number}")

    def add(self, text: str, category: str | None = None, notes: str = "") -> Term:
        """Adds a term that a person has named."""
        clean = checked_term(text)
        values = (clean, checked_category(category), _notes(notes), 1)
        with self._ledger.writing() as connection:
            if not connection.execute(SQL["term_add"], values).rowcount:
                raise _taken(clean)
        return self.named(clean)

    def named(self, text: str) -> Term:
        """Gives a term by its text."""
        row = self._ledger.one("term_named", (text,))
        if row is None:
            raise NotThere(f"用語が見つかりません / there is no term {text!r}")
        return Term(*row)

    def change(self, number: int, changed: Mapping[str, Any]) -> Term:
        """Changes a term; notes alone do not make it a person's."""
        term = replace(self.get(number), **changed)
        text, category = checked_term(term.term_text), checked_category(term.category)
        if term.id < 0:  # only required so far: now it is a term too
            return self.add(text, category, term.user_notes)
        number = term.id
        own = term.by_person or bool(changed.keys() - {"user_notes"})
        values = {"id": number, "term_text": text, "category": category, "by_person": int(own)}
        try:
            with self._ledger.writing() as connection:
                connection.execute(SQL["term_change"], {**values, "user_notes": _notes(term.user_notes)})
        except sqlite3.IntegrityError:
            raise _taken(text) from None
        return self.get(number)

    def remove(self, number: int) -> None:
        """Removes a term."""
        with self._ledger.writing() as connection:
            if not connection.execute(SQL["term_remove"], (number,)).rowcount:
                raise NotThere(f"用語が見つかりません / there is no term {number}")

    def become(self, found: Iterable[Term], common_nouns: Iterable[str], run_id: int = 0) -> None:
        """Replace what an earlier extraction found and exclude common nouns; terms that people wrote about stay."""
        with self._ledger.writing() as connection:
            if not first_time(connection, run_id, "extract"):
                return
            before = records(Term, connection.execute(SQL["terms"]).fetchall())
            notes = build_user_notes_map(before)
            required = {row[1] for row in connection.execute(SQL["required"]).fetchall()}
            now = current_utc_iso()
            auto = [(text, "auto", now) for text in dict.fromkeys(common_nouns) if text not in required]
            connection.executemany(SQL["excluded_add"], auto)
            excluded = {row[1] for row in connection.execute(SQL["excluded"]).fetchall()} - required
            connection.execute(SQL["terms_clear"])
            rows = [
                (each.term_text, each.category, notes.get(each.term_text, each.user_notes), 0)
                for each in found
                if each.term_text not in excluded
            ]
            theirs = notes.keys() | {row[0] for row in connection.execute(SQL["persons"])}
            noted = [(each.term_text, each.category, each.user_notes, 0) for each in before if each.term_text in theirs]
            connection.executemany(SQL["term_add"], rows + noted)

    def notes(self) -> dict[str, str]:
        """Gives the notes of those terms that have some."""
        return build_user_notes_map(self.stored())


def first_time(connection: sqlite3.Connection, run_id: int, step: str) -> bool:
    """Notes that a run saves the results of a step; tells whether it has not done so before."""
    return not run_id or connection.execute(SQL["run_save_add"], (run_id, step)).rowcount > 0


def build_user_notes_map(terms: Iterable[Term]) -> dict[str, str]:
    """Maps terms to their notes; those without are left out."""
    return {each.term_text: each.user_notes for each in terms if each.user_notes.strip()}


def _notes(text: str) -> str:
    if len(text) > LONGEST_NOTES:
        raise BadValue(f"メモが長すぎます / notes have at most {LONGEST_NOTES:,} characters")
    return text


def _taken(text: str) -> Taken:
    return Taken(f"同じ用語があります / there is that term already: {text!r}")
