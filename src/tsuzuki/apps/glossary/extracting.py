"""TermExtractor: candidates out of documents, classified in batches."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tsuzuki import current, task
from tsuzuki.apps.glossary.answers import GlossaryTermClasses
from tsuzuki.apps.glossary.asking import Asked, CancelEvent, Faults, answer, digest, is_set, told, until
from tsuzuki.apps.glossary.candidates import MOST, find_candidates
from tsuzuki.apps.glossary.occurrences import TermIndex, find_occurrences
from tsuzuki.apps.glossary.plaintext import name_finder
from tsuzuki.apps.glossary.prompts import classify_prompt
from tsuzuki.apps.glossary.records import Category, Document, Term

BATCH: Final = 20
"""How many candidates are classified at once."""
_CONTEXT: Final = 200
_category: Final = name_finder(Category)
Batch = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found: terms with their categories, and common nouns, which are left out."""

    terms: list[Term] = field(default_factory=list)
    common_nouns: list[str] = field(default_factory=list)
    unclassified: int = 0
    """How many candidates got no usable answer; those that were terms before stay terms."""


@task(name="glossary_candidates")
def candidates_step(find: Callable[[], Batch]) -> list[list[str]]:
    """Finds candidates, each with a place where it stands."""
    return [list(pair) for pair in find()]


@task(name="glossary_classify")
async def classify_batch(batch: Any, asked: Asked, debug: str = "") -> list[list[str]]:
    """Classify some candidates; an answer that names none of them is no answer, and is asked for again."""
    given = await answer(GlossaryTermClasses, classify_prompt([(one, two) for one, two in batch]), asked, debug)
    candidate = name_finder(text for text, _ in batch)
    classes: dict[str, str] = {}
    for each in given.terms:
        text, category = candidate(each.term), _category(each.category)
        if text is not None and category is not None:
            classes.setdefault(text, category)  # the first word on a term counts
    if not classes:
        raise RuntimeError(
            "候補と一致する回答がありません / the answer gives none of the candidates a known category: "
            "try again or choose another model"
        )
    return [[text, category] for text, category in classes.items()]


class TermExtractor:
    """Finds the terms of documents."""

    def __init__(
        self,
        asked: Asked,
        *,
        excluded: Iterable[str] = (),
        required: Iterable[str] = (),
        former: Iterable[Term] = (),
        debug: str = "",
    ) -> None:
        self._asked = asked
        self._former = {term.term_text: term for term in former}
        self._required = list(dict.fromkeys(required))
        self._excluded = frozenset(excluded) - frozenset(self._required)
        self._debug = debug

    async def extract_terms(
        self,
        documents: Callable[[], Iterable[Document]],
        said: str,
        cancel_event: CancelEvent | None = None,
        progress_callback: Callable[[int, int], None] | None = None,
    ) -> Extraction:
        """Gives the terms of documents; `said` is what they say, in a few letters."""
        key = digest(said, sorted(self._excluded))
        pairs = await candidates_step.keyed(key)(lambda: self._candidates(documents))  # type: ignore[misc] # async here
        batches = [pairs[at : at + BATCH] for at in range(0, len(pairs), BATCH)]
        told(progress_callback, 0, len(batches))
        classes: dict[str, str] = {}
        unanswered: list[str] = []
        faults = Faults()
        done = 0
        async for outcome in classify_batch.stream(
            until(cancel_event, faults, batches),
            key=lambda batch: f"{batch[0][0]} … {digest(batch)}",
            on_error="collect",
            concurrency=self._asked.lanes,
            asked=self._asked,
            debug=self._debug,
        ):
            self._gather(outcome, batches[done], classes, unanswered, faults)
            done += 1
            told(progress_callback, done, len(batches))
        if is_set(cancel_event):
            return Extraction()
        faults.settle()
        return self._extraction([pair[0] for pair in pairs], classes, unanswered)

    def _candidates(self, documents: Callable[[], Iterable[Document]]) -> Batch:
        found = [each.text for each in find_candidates(documents(), MOST) if each.text not in self._excluded]
        places = find_occurrences(documents(), TermIndex({text: text for text in found}))
        return [(text, places[text][0].context[:_CONTEXT] if places.get(text) else "") for text in found]

    def _gather(
        self, outcome: Any, batch: Batch, classes: dict[str, str], unanswered: list[str], faults: Faults
    ) -> None:
        if isinstance(outcome, list):
            faults.answered()
            classes.update(dict(outcome))
            return
        unanswered += [text for text, _ in batch]
        why = faults.failed(outcome)
        current().log.warning("候補の一部を飛ばしました（%s） / a batch of candidates is left out: %s", why, why)

    def _extraction(self, candidates: Sequence[str], classes: dict[str, str], unanswered: Sequence[str]) -> Extraction:
        common = [text for text in candidates if classes.get(text) == Category.COMMON_NOUN]
        kept = [text for text in candidates if text in classes and classes[text] != Category.COMMON_NOUN]
        stay = [self._former[text] for text in unanswered if text in self._former]
        if not kept and not stay and len(common) < len(candidates):
            raise RuntimeError(
                f"候補 {len(candidates)} 件がいずれも用語と判定されませんでした。用語はそのまま残ります / "
                f"the model takes none of the {len(candidates)} candidates for a term: the terms stay as they were. "
                "Choose another model, or add terms yourself"
            )
        there = {*kept, *(term.term_text for term in stay)}
        always = [text for text in self._required if text not in there]
        terms = [*(Term(0, text, classes.get(text)) for text in kept), *stay]
        terms += [Term(0, text, classes.get(text)) for text in always]
        return Extraction(terms, [text for text in common if text not in self._required], len(unanswered))
