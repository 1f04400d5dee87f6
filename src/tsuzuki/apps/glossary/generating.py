"""GlossaryGenerator: a definition for every term, out of where it stands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tsuzuki import current, task
from tsuzuki.apps.glossary.answers import GlossaryDefinition
from tsuzuki.apps.glossary.asking import (
    Asked,
    CancelEvent,
    Faults,
    ProgressCallback,
    answer,
    digest,
    is_set,
    told,
    until,
)
from tsuzuki.apps.glossary.occurrences import TermIndex, find_occurrences
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.prompts import MOST_CONTEXTS, Subject, define_prompt
from tsuzuki.apps.glossary.records import Document, Entry, Glossary, Occurrence, SynonymGroup, Term


@task(name="glossary_define")
async def define_term(subject: Subject, asked: Asked, debug: str = "") -> dict[str, Any]:
    """Defines one term."""
    given = await answer(GlossaryDefinition, define_prompt(subject), asked, debug)
    return {"term": subject.term, "definition": given.definition, "confidence": given.confidence}


def subject_key(subject: Subject) -> str:
    """Gives the key of a term's item: the term, and all that is said about it."""
    said = (subject.category, subject.synonyms, subject.user_notes, subject.contexts)
    return f"{subject.term} {digest(said)}"


class Subjects:
    """The terms of a project with all that is known of them; only primary ones of synonyms."""

    def __init__(
        self,
        terms: Sequence[Term],
        groups: Sequence[SynonymGroup],
        notes: Mapping[str, str],
        documents: Callable[[], Iterable[Document]],
    ) -> None:
        self._aliases = {group.primary_term_text: group.aliases for group in groups}
        self._terms = _primary(terms, {alias: first for first, aliases in self._aliases.items() for alias in aliases})
        self._notes = notes
        self.occurrences: dict[str, list[Occurrence]] = find_occurrences(documents(), TermIndex(self.names()))

    @classmethod
    def of(cls, project: ProjectFile) -> "Subjects":
        """Gives the terms of a project with all that is known of them."""
        terms = project.terms
        return cls(terms.list(), project.synonyms.list(), terms.notes(), project.documents.each)

    def names(self) -> dict[str, str]:
        """Maps every spelling to its term."""
        found = {alias: term.term_text for term in self._terms for alias in self.aliases(term.term_text)}
        return found | {term.term_text: term.term_text for term in self._terms}

    def aliases(self, term: str) -> list[str]:
        """Gives the synonyms of a term."""
        return self._aliases.get(term, [])

    def list(self) -> list[Subject]:
        """Lists what is asked about each term."""
        return [self.subject(term.term_text, term.category or "") for term in self._terms]

    def subject(self, term: str, category: str = "") -> Subject:
        """Gives what is asked about one term; its synonyms' notes are its own."""
        names = [term, *self.aliases(term)]
        notes = "\n".join(self._notes[name] for name in names if self._notes.get(name))
        places = self.occurrences.get(term, [])[:MOST_CONTEXTS]
        contexts = [f"{place.document_path}:{place.line_number}\n{place.context}" for place in places]
        return Subject(term, category, self.aliases(term), notes, contexts)

    def entry(self, term: str, definition: str, confidence: float) -> Entry:
        """Makes an entry of a definition."""
        return Entry(term, definition, confidence, list(self.aliases(term)), self.occurrences.get(term, []))


def _primary(terms: Sequence[Term], firsts: Mapping[str, str]) -> list[Term]:
    """Gives each term under its primary one, once; one that was not found itself stands in for its synonyms."""
    own = {term.term_text: term for term in terms}
    named: dict[str, Term] = {}
    for term in terms:
        first = firsts.get(term.term_text, term.term_text)
        named.setdefault(first, own.get(first) or replace(term, id=0, term_text=first))
    return list(named.values())


class GlossaryGenerator:
    """Defines terms, each by a question of its own."""

    def __init__(self, asked: Asked, *, debug: str = "") -> None:
        self.failed = 0
        """How many questions failed."""
        self.kept = 0
        """How many terms keep their former entries because of that."""
        self._asked = asked
        self._debug = debug

    async def generate(
        self,
        subjects: Subjects,
        cancel_event: CancelEvent | None = None,
        term_progress_callback: ProgressCallback | None = None,
        theirs: Mapping[str, tuple[str, float]] | None = None,
        former: Mapping[str, Entry] | None = None,
    ) -> Glossary:
        """Return a glossary; after a cancel it has only what was done before.

        What people have defined themselves (`theirs`) is not asked for. A term whose question fails keeps its `former`
        entry, and is left out if it has none; `failed` and `kept` count those.
        """
        if is_set(cancel_event):
            return Glossary()
        theirs, former = theirs or {}, former or {}
        listed = subjects.list()
        asked = [subject for subject in listed if subject.term not in theirs]
        defined = {
            subject.term: subjects.entry(subject.term, *theirs[subject.term])
            for subject in listed
            if subject.term in theirs
        }
        faults = Faults()
        number = 0
        told(term_progress_callback, 0, len(asked), "")
        async for outcome in define_term.stream(
            until(cancel_event, faults, asked),
            key=subject_key,
            on_error="collect",
            concurrency=self._asked.lanes,
            asked=self._asked,
            debug=self._debug,
        ):
            term = asked[number].term
            number += 1
            if isinstance(outcome, dict):
                faults.answered()
                defined[term] = subjects.entry(term, outcome["definition"], outcome["confidence"])
            else:
                why = faults.failed(outcome)
                if (old := former.get(term)) is not None:
                    defined[term] = replace(subjects.entry(term, old.definition, old.confidence), kept=True)
                    self.kept += 1
                what = ("前の定義を残します", "keeps its former definition") if old else ("除外します", "is left out")
                current().log.warning(
                    "%s を定義できませんでした。%s（%s） / %s %s: %s", term, what[0], why, term, what[1], why
                )
            told(term_progress_callback, number, len(asked), term)
        self.failed = faults.count
        if not is_set(cancel_event):
            faults.settle()
        return Glossary([defined[subject.term] for subject in listed if subject.term in defined])
