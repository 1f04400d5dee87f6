"""GlossaryReviewer: what is wrong with the entries of a glossary, asked in batches."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tsuzuki import current, task
from tsuzuki.apps.glossary.answers import GlossaryReview
from tsuzuki.apps.glossary.asking import Asked, CancelEvent, Faults, answer, digest, is_set, told, until
from tsuzuki.apps.glossary.plaintext import name_finder
from tsuzuki.apps.glossary.prompts import review_prompt
from tsuzuki.apps.glossary.records import Entry, Glossary, GlossaryIssue, IssueType

REVIEW_BATCH_SIZE: Final = 10
_LONGEST: Final = 2000
_issue_type: Final = name_finder(IssueType)
Batch = list[tuple[str, str, float, str, list[str]]]


@task(name="glossary_review")
async def review_batch(batch: Any, asked: Asked, debug: str = "") -> list[dict[str, Any]]:
    """Reviews some entries."""
    entries = [(str(term), str(text), float(sure), str(notes), same) for term, text, sure, notes, same in batch]
    given = await answer(GlossaryReview, review_prompt(entries), asked, debug)
    return [each.model_dump() for each in given.issues]


def batch_size(given: int) -> int:
    """Gives how many entries are asked about at once; refuses what is no such number."""
    if given < 1:
        raise ValueError(f"review_batch_size must be at least 1, not {given}")
    return given


class GlossaryReviewer:
    """Reviews a glossary."""

    unreviewed = 0
    """How many entries were in batches that failed."""

    def __init__(
        self,
        asked: Asked,
        *,
        review_batch_size: int = REVIEW_BATCH_SIZE,
        notes: Mapping[str, str] | None = None,
        debug: str = "",
    ) -> None:
        self._asked = asked
        self._size = batch_size(review_batch_size)
        self._notes = notes or {}
        self._debug = debug

    async def review(
        self,
        glossary: Glossary,
        cancel_event: CancelEvent | None = None,
        batch_progress_callback: Callable[[int, int], None] | None = None,
    ) -> list[GlossaryIssue] | None:
        """Gives what is wrong, `[]` where nothing is; None means cancelled. A batch that fails is skipped."""
        if is_set(cancel_event):
            return None
        batches = self._batches(glossary)
        told(batch_progress_callback, 0, len(batches))
        issues: list[GlossaryIssue] = []
        faults = Faults()
        number = 0
        async for outcome in review_batch.stream(
            until(cancel_event, faults, self._begun(batches, batch_progress_callback)),
            key=lambda batch: f"{batch[0][0]} … {digest(batch)}",
            on_error="collect",
            concurrency=self._asked.lanes,
            asked=self._asked,
            debug=self._debug,
        ):
            if isinstance(outcome, list):
                faults.answered()
                issues += checked(outcome, glossary)
            else:
                why = faults.failed(outcome)
                self.unreviewed += len(batches[number])
                current().log.warning(
                    "レビューの一部を飛ばしました（%s） / a batch of the review is skipped: %s", why, why
                )
            number += 1
        if is_set(cancel_event):
            return None
        faults.settle()
        return issues

    def _batches(self, glossary: Glossary) -> list[Batch]:
        rows = [(e.term_name, e.definition, e.confidence, self._notes_of(e), e.aliases) for e in glossary.entries]
        return [rows[at : at + self._size] for at in range(0, len(rows), self._size)]

    def _notes_of(self, entry: Entry) -> str:
        """Return the notes of a term and of its synonyms, as they are told where it is defined."""
        names = (entry.term_name, *entry.aliases)
        return "\n".join(self._notes[name] for name in names if self._notes.get(name))

    def _begun(self, batches: list[Batch], callback: Callable[[int, int], None] | None) -> Iterator[Batch]:
        """Tells of each batch before it is asked about."""
        for number, batch in enumerate(batches, 1):
            told(callback, number, len(batches))
            yield batch


def checked(found: list[dict[str, Any]], glossary: Glossary) -> list[GlossaryIssue]:
    """Return the issues that make sense: of a known type, about a term that is there, and saying something."""
    term_name = name_finder(entry.term_name for entry in glossary.entries)
    return [
        GlossaryIssue(
            term,
            kind,
            each["description"].strip()[:_LONGEST],
            each["should_exclude"],
            (each["exclusion_reason"] or "").strip()[:_LONGEST] or None,
        )
        for each in found
        if (term := term_name(each["term_name"])) is not None
        and (kind := _issue_type(each["issue_type"])) is not None
        and each["description"].strip()
    ]
