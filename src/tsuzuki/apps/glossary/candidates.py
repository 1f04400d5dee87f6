"""Candidates for terms in documents of any number and length: counted in one pass, in bounded memory, then ranked."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tsuzuki.apps.glossary import japanese
from tsuzuki.apps.glossary.english import Phrases, key_of
from tsuzuki.apps.glossary.plaintext import EXPLAINED, HAS_CJK, explained, marked, prose, usual_width
from tsuzuki.apps.glossary.records import Document

MOST: Final = 300
"""How many candidates are looked at, unless somebody says otherwise."""
_MANY: Final = 200_000
"""How many different phrases are remembered before those that were seen once are forgotten."""
_OFTEN: Final = 2
_FAR: Final = 0.12
"""What scores less than this part of the best is no candidate."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A phrase that may be a term, how often it stands there, and how much speaks for it."""

    text: str
    count: int
    score: float


def find_candidates(documents: Iterable[Document], most: int = MOST) -> list[Candidate]:
    """Gives the phrases that may be terms, the likeliest first."""
    runs: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    meant: set[str] = set()
    english = Phrases()
    for document in documents:
        text = prose(usual_width(document.content))
        for phrase, weight in marked(text):
            key = _marked_key(phrase)
            marks[key] += weight  # type: ignore[assignment] # a counter of weights
            if weight >= EXPLAINED and len(meant) < _MANY:
                meant.add(key)
        if len(meant) < _MANY:
            meant.update(map(_marked_key, explained(text)))
        foreign = "\n".join(line for line in text.split("\n") if not HAS_CJK.search(line))
        if len(foreign) < len(text):
            runs.update(japanese.runs("\n".join(line for line in text.split("\n") if HAS_CJK.search(line))))
        english.read(foreign)
        if len(runs) > _MANY:
            runs = Counter({run: count for run, count in runs.items() if count >= _OFTEN})
        if english.size > _MANY:
            english.prune()
        if len(marks) > _MANY:
            marks = Counter(dict(marks.most_common(_MANY // 2)))
    english.settle()
    # A short text says little twice: there one mention has to do.
    least = _OFTEN if sum(runs.values()) + sum(english.counts.values()) > MOST * 2 else 1
    ranked = [*_japanese(runs, marks, meant, least), *_english(english, marks, meant, least)]
    best = _distinct(sorted(ranked, key=lambda each: (-each.score, each.text)))
    line = best[0].score * _FAR if best else 0.0
    # What the documents explain is a candidate however seldom it stands there.
    return [each for each in best if each.score >= line or _marked_key(each.text) in meant][:most]


def _marked_key(phrase: str) -> str:
    phrase = phrase.strip(" *_`:：。、")
    return phrase if HAS_CJK.search(phrase) else key_of(phrase.split() or [""])


def _japanese(runs: Counter[str], marks: Counter[str], meant: set[str], least: int) -> list[Candidate]:
    counts: Counter[str] = Counter()
    seen: dict[str, japanese.Phrase] = {}
    for run, count in runs.items():
        for phrase in japanese.phrases(run):
            # 本醸造酒 is a term where it is explained, though 本 is mostly no part of one.
            text = run if run in meant and run.endswith(phrase.text) else phrase.text
            counts[text] += count
            seen[text] = phrase
    return [
        Candidate(text, count, _score(count, seen[text].words, seen[text].weight, marks.get(text, 0)))
        for text, count in counts.items()
        if count >= least or marks.get(text) or text in meant
    ]


def _english(english: Phrases, marks: Counter[str], meant: set[str], least: int) -> list[Candidate]:
    return [
        Candidate(text, count, _score(count, words, weight, marks.get(key_of(text.split()), 0)))
        for text, count, words, weight in english.weighed(marks, meant, least)
    ]


def _score(count: int, words: int, weight: float, marks: float) -> float:
    """Weighs frequency little, length some, and what the author has marked much."""
    return weight * math.log2(1 + count) * (1 + 0.6 * math.log2(words)) * (1 + 0.5 * min(marks, 3))


def _distinct(ranked: list[Candidate]) -> list[Candidate]:
    """Leaves out what differs from a better one in case or plural only."""
    kept: dict[str, Candidate] = {}
    for each in ranked:
        kept.setdefault(key_of(each.text.split()), each)
    return list(kept.values())
