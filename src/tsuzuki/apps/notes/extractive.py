"""Notes without a model: the sentences of a conversation that say most, by a rule of the offline provider."""

import re
from collections import Counter
from typing import Final

from tsuzuki import llm
from tsuzuki.apps.notes.markdown import Note

MOST: Final = 60_000
"""How many characters are looked at."""
EXCHANGES: Final = 12
"""How many questions with their answers a note has."""
_TERM: Final = re.compile(r"[A-Za-z][A-Za-z0-9'_-]{2,}|[ァ-ヶー]{2,}|[一-龠々]{2,}")
_URL: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}、。「」]+[^\s<>\"'()\[\]{}、。「」.,;:!?]")
_TURN: Final = re.compile(r"^\*\*(User|Assistant)\*\*: ", re.MULTILINE)
_CODE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_MARKS: Final = re.compile(r"^[ \t]*(?:#{1,6}|[-*+>]|\d+[.)])[ \t]+|\*\*|__|`", re.MULTILINE)
_SHORT: Final = 8
_LONG: Final = 400
_LONG_QUESTION: Final = 80
_COMMON: Final = frozenset(
    [
        "the",
        "and",
        "for",
        "that",
        "this",
        "with",
        "you",
        "your",
        "are",
        "was",
        "were",
        "have",
        "has",
        "had",
        "not",
        "but",
        "can",
        "will",
        "would",
        "should",
        "could",
        "from",
        "they",
        "them",
        "then",
        "than",
        "there",
        "here",
        "what",
        "when",
        "where",
        "which",
        "who",
        "how",
        "why",
        "all",
        "any",
        "some",
        "one",
        "two",
        "its",
        "it's",
        "about",
        "into",
        "also",
        "just",
        "like",
        "more",
        "most",
        "use",
        "used",
        "using",
        "user",
        "assistant",
    ]
)


def note(title: str, text: str) -> Note:
    """Makes a note of a conversation."""
    seen = text[:MOST]
    prose = _CODE.sub("\n\n", seen)
    weights = Counter(term for each in _TERM.findall(prose) if (term := each.lower()) not in _COMMON)
    exchanges = _exchanges(prose)
    spoken = " ".join(answer for _, answer in exchanges) or prose
    summary = best(spoken, weights, 3) or best(prose, weights, 3) or [prose.strip()[:_LONG] or seen.strip()[:_LONG]]
    return Note(
        title=title,
        summary=" ".join(summary),
        content=_content(exchanges, weights) or "\n".join(f"- {line}" for line in summary),
        tags=tuple(term for term, count in weights.most_common(5) if count > 1),
        references=tuple(dict.fromkeys(_URL.findall(seen)))[:20],
    )


def _exchanges(text: str) -> list[tuple[str, str]]:
    """Gives questions with what was answered; a text that is no conversation is one answer."""
    marks = list(_TURN.finditer(text))
    if not marks:
        return [("", text)]
    found: list[tuple[str, str]] = []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=True):
        said = text[mark.end() : end].strip()
        if mark[1] == "User":
            found.append((said, ""))
        elif found:
            question, answer = found[-1]
            found[-1] = (question, f"{answer}\n\n{said}" if answer else said)
        else:
            found.append(("", said))
    return found


def _content(exchanges: list[tuple[str, str]], weights: Counter[str]) -> str:
    parts: list[str] = []
    for question, answer in exchanges[:EXCHANGES]:
        lines = best(answer or question, weights, 3)
        heading = _heading(question)
        if lines:
            parts.append((f"### {heading}\n\n" if heading else "") + "\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts)


def _heading(question: str) -> str:
    line = " ".join(_MARKS.sub("", question).split()).strip("# ")
    return line if len(line) <= _LONG_QUESTION else line[: _LONG_QUESTION - 1].rstrip() + "…"


def best(text: str, weights: Counter[str], count: int) -> list[str]:
    """Gives the sentences that say most, in their order: their words are frequent here and not everywhere."""
    every = list(dict.fromkeys(line for line in llm.text.sentences(_MARKS.sub("", text)) if len(line) >= _SHORT))
    if len(every) > count:
        scores = [_score(line, weights) / (number + 4) ** 0.3 for number, line in enumerate(every)]
        chosen = sorted(range(len(every)), key=lambda number: (-scores[number], number))[:count]
        every = [every[number] for number in sorted(chosen)]
    return [line if len(line) <= _LONG else line[: _LONG - 1].rstrip() + "…" for line in every]


def _score(line: str, weights: Counter[str]) -> float:
    terms = {term.lower() for term in _TERM.findall(line)}
    return sum(weights[term] for term in terms) / (len(terms) + 2) if terms else 0.0
