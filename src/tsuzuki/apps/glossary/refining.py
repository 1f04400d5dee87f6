"""GlossaryRefiner: entries with issues are defined anew, those that should not be there are left out."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tsuzuki import current, task
from tsuzuki.apps.glossary.answers import GlossaryRefinement
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
from tsuzuki.apps.glossary.generating import Subjects
from tsuzuki.apps.glossary.prompts import Subject, refine_prompt
from tsuzuki.apps.glossary.records import Entry, Glossary, GlossaryIssue


@dataclass(frozen=True, slots=True)
class Weak:
    """An entry with its issues, and what is known of its term."""

    subject: Subject
    definition: str
    issues: list[tuple[str, str]]


@task(name="glossary_refine")
async def refine_term(weak: Weak, asked: Asked, debug: str = "") -> dict[str, Any]:
    """Defines one term anew."""
    prompt = refine_prompt(weak.subject, weak.definition, [(kind, text) for kind, text in weak.issues])
    given = await answer(GlossaryRefinement, prompt, asked, debug)
    return {"term": weak.subject.term, "definition": given.definition, "confidence": given.confidence}


class GlossaryRefiner:
    """Improves a glossary."""

    def __init__(self, asked: Asked, *, required: Iterable[str] = (), debug: str = "") -> None:
        self.failed: set[str] = set()
        """The terms whose questions failed."""
        self._asked = asked
        self._required = frozenset(required)
        self._debug = debug

    async def refine(
        self,
        glossary: Glossary,
        issues: Sequence[GlossaryIssue],
        subjects: Subjects,
        cancel_event: CancelEvent | None = None,
        progress_callback: ProgressCallback | None = None,
    ) -> Glossary:
        """Return the better glossary; an entry whose question fails keeps its definition, and so does a person's."""
        if is_set(cancel_event):
            return glossary
        excluded = {each.term_name for each in issues if each.should_exclude} - self._required
        excluded -= {entry.term_name for entry in glossary.entries if entry.by_person}
        asked = list(_weak(glossary, issues, subjects, excluded))
        better: dict[str, dict[str, Any]] = {}
        faults = Faults()
        number = 0
        told(progress_callback, 0, len(asked), "")
        async for outcome in refine_term.stream(
            until(cancel_event, faults, asked),
            key=lambda each: f"{each.subject.term} {digest(each.definition, each.issues, each.subject.contexts)}",
            on_error="collect",
            concurrency=self._asked.lanes,
            asked=self._asked,
            debug=self._debug,
        ):
            term = asked[number].subject.term
            number += 1
            if isinstance(outcome, dict):
                faults.answered()
                better[term] = outcome
            else:
                why = faults.failed(outcome)
                self.failed.add(term)
                current().log.warning("%s は元のままです（%s） / %s stays as it was: %s", term, why, term, why)
            told(progress_callback, number, len(asked), term)
        if not is_set(cancel_event):
            faults.settle()
        kept = [entry for entry in glossary.entries if entry.term_name not in excluded]
        return Glossary([_refined(entry, better.get(entry.term_name)) for entry in kept])


def _weak(
    glossary: Glossary, issues: Sequence[GlossaryIssue], subjects: Subjects, excluded: set[str]
) -> Iterator[Weak]:
    """Gives the entries that have issues, in the order of the glossary."""
    found: dict[str, list[tuple[str, str]]] = {}
    for each in issues:
        found.setdefault(each.term_name, []).append((each.issue_type, each.description))
    for entry in glossary.entries:
        if entry.term_name in found and entry.term_name not in excluded and not entry.by_person:
            yield Weak(subjects.subject(entry.term_name), entry.definition, found[entry.term_name])


def _refined(entry: Entry, better: dict[str, Any] | None) -> Entry:
    if better is None:
        return entry
    return replace(entry, definition=better["definition"], confidence=better["confidence"], kept=False)


def with_former(glossary: Glossary, former: Mapping[str, Entry], failed: Collection[str] = ()) -> Glossary:
    """Return the glossary with former definitions where a question failed in this run."""
    return Glossary(
        [
            replace(entry, definition=old.definition, confidence=old.confidence, kept=True)
            if (entry.kept or entry.term_name in failed) and (old := former.get(entry.term_name)) is not None
            else entry
            for entry in glossary.entries
        ]
    )
