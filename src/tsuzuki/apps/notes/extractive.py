"""Notes without a model: the sentences of a conversation that say most, by a rule of the offline provider.

It has to be as quick as the disk: a text is split once, by plain patterns, and each sentence is looked at once.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain
from operator import truediv
from typing import Final

from tsuzuki.apps.notes.markdown import Note

MOST: Final = 60_000
"""How many characters are looked at."""
EXCHANGES: Final = 12
"""How many questions with their answers a note has."""
LINES: Final = 3
"""How many sentences stand for an answer, and for the whole."""
_MARKED: Final = ("\n", "*", "_")
"""Where none of these is in a text, it has no marks but at its beginning."""
_SHORTEST_TERM: Final = 3
_TERM: Final = re.compile(r"[a-z][a-z0-9'_-]{2,}|[ァ-ヶー]{2,}|[一-龠々]{2,}")
_SENTENCE: Final = re.compile(r"[^。！？!?.\n]+(?:[.!?][^\s。！？!?.][^。！？!?.\n]*)*[。！？!?.]*[」』）)\"”’]*")
_URL: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}、。「」]+[^\s<>\"'()\[\]{}、。「」.,;:!?]")
_TURN: Final = re.compile(r"\*\*(?<![^\n]\*\*)(User|Assistant)\*\*: ")
"""At the beginning of a line; a pattern that begins with its signs is found much sooner than one that begins with ^."""
_CODE: Final = re.compile(
    r"^(\*\*(?:User|Assistant)\*\*: )?[ \t]*(`{3,}(?=[^`\n]*$)|~{3,}).*?"
    r"(?:^[ \t]*\2[`~]*|(?=^\*\*(?:User|Assistant)\*\*: )|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""Code also begins where a message does, and ends with the message where nobody has closed it."""
_MARKS: Final = re.compile(r"^[ \t]*[|:-][ \t|:-]*$|^[ \t]*(?:#{1,6}|[-*+>]|\d+[.)])[ \t]+|\*\*|__", re.MULTILINE)
"""What is no word, except for the marks of code; a line between the head of a table and its rows has none."""
_SHORT: Final = 8
_SHORT_WITHOUT_SPACES: Final = 4
"""A sentence of Japanese or Chinese says much in few signs."""
_LONG: Final = 400
_LONGEST_CODE: Final = 4000
_LONG_QUESTION: Final = 80
_COMMON: Final = frozenset(
    """
    the and for that this with you your are was were have has had not but can will would should could from they them
    then than there here what when where which who how why all any some one two its it's about into also just like
    more most use used using user assistant
    """.split()  # noqa: SIM905 - words are read more easily so
)


def note(title: str, text: str) -> Note:
    """Makes a note of a conversation."""
    seen = text[:MOST]
    prose = _CODE.sub("\\1\n\n", seen) if _coded(seen) else seen
    exchanges = [(question, sentences(answer or question)) for question, answer in _exchanges(prose)]
    weights = weighed(exchanges)
    scored = [(question, list(answer), _scores(answer, weights)) for question, answer in exchanges]
    answers = [(question, best(lines, scores)) for question, lines, scores in scored[:EXCHANGES]]
    summary = answers[0][1] if len(scored) == 1 and len(scored[0][1]) > LINES else _summary(scored)
    summary = summary or [_flat(prose) or title.strip() or _flat(seen) or " ".join(seen.split())]
    return Note(
        title=title,
        summary=" ".join(summary),
        content=_content(answers) or _as_it_is(seen, summary),
        tags=tuple(term for term, count in weights.most_common(5) if count > 1),
        references=tuple(dict.fromkeys(_URL.findall(seen)))[:20] if "/" in seen else (),
    )


def _summary(scored: list[tuple[str, list[str], list[float]]]) -> list[str]:
    """Gives the sentences that say most of the whole; of a short conversation one, since the content says all."""
    every = list(chain.from_iterable(lines for _, lines, _ in scored))
    scores = list(chain.from_iterable(those for _, _, those in scored))
    return best(every, scores, LINES if len(every) > LINES else 1)


def _coded(text: str) -> bool:
    """Tells whether a text may have code in it; one sign is found in no time, three are not."""
    return ("`" in text and "```" in text) or ("~" in text and "~~~" in text)


def _flat(text: str) -> str:
    """Gives the beginning of a text on one line, without saying who spoke."""
    return " ".join(_TURN.sub("", text).split())[:_LONG]


def _as_it_is(text: str, summary: list[str]) -> str:
    """Gives the content of a note without sentences: code as it stands, else what sums it up."""
    if _coded(text) and text.strip():
        return text.strip()[:_LONGEST_CODE]
    return "\n".join(f"- {line}" for line in summary)


def sentences(text: str) -> dict[str, list[str]]:
    """Splits a text into sentences, each of them once, with their words."""
    plain = _unmarked(text)
    if plain.isascii():
        return _english(plain)
    found: dict[str, list[str]] = {}
    for each in _SENTENCE.findall(plain):
        line = " ".join(each.split())
        if line not in found and len(line) >= (_SHORT if line.isascii() else _SHORT_WITHOUT_SPACES):
            found[line] = _words(line.lower()) if line.isascii() else _TERM.findall(line.lower())
    return found


def _unmarked(text: str) -> str:
    """Gives a text without the marks of Markdown; to look for four signs takes less than the pattern."""
    return _MARKS.sub("", text) if any(mark in text for mark in _MARKED) or not text[:1].isalpha() else text


def _english(text: str) -> dict[str, list[str]]:
    """The same for a text of ASCII alone, split by plain signs: a pattern takes five times as long."""
    lines = text.strip().replace(". ", ".\n")
    for sign in "!?":
        if sign in lines:  # to look for one sign costs nothing, for two it does
            lines = lines.replace(f"{sign} ", f"{sign}\n")
    words = [low.rstrip(".!?").split() for low in lines.lower().replace(",", " ").split("\n")]
    found = dict(zip(lines.split("\n"), words, strict=True))
    if all(found.values()) and len(min(found, key=len)) >= _SHORT:  # as nearly always: nothing to leave out
        return found
    return {line: said for line, said in found.items() if said and len(line) >= _SHORT}


def _words(line: str) -> list[str]:
    return line.rstrip(".!?").replace(",", " ").split()


def weighed(exchanges: list[tuple[str, dict[str, list[str]]]]) -> Counter[str]:
    """Counts the words; those that say nothing count as never said."""
    counts = Counter(chain.from_iterable(chain.from_iterable(answer.values() for _, answer in exchanges)))
    for term in counts:
        if len(term) < _SHORTEST_TERM and term.isascii():
            counts[term] = 0
    for term in _COMMON & counts.keys():
        counts[term] = 0
    return counts


def _scores(answer: dict[str, list[str]], weights: Counter[str]) -> list[float]:
    """Says how much each sentence says: its words are frequent here, and not everywhere."""
    weight = weights.__getitem__
    return [sum(map(weight, terms)) / (len(terms) + 2) for terms in answer.values()]


@cache  # few conversations have thousands of sentences: tables are as long as they have to be
def _less(bits: int) -> tuple[float, ...]:
    """Gives how much less a sentence says that comes later, for as many of them as a number of so many bits can say."""
    return tuple((number + 4) ** 0.3 for number in range(1 << bits))


def best(every: list[str], scores: list[float], most: int = LINES) -> list[str]:
    """Gives the sentences that say most, in their order; later ones say a little less."""
    chosen: Sequence[int] = range(len(every))
    if len(every) > most:
        later = list(map(truediv, scores, _less(len(every).bit_length())))
        chosen = sorted(sorted(chosen, key=later.__getitem__, reverse=True)[:most])
    return [shortened(every[number], _LONG) for number in chosen]


def shortened(line: str, most: int) -> str:
    """Gives a line with single spaces, and cuts one that is too long."""
    line = " ".join(line.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


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


def _content(answers: list[tuple[str, list[str]]]) -> str:
    parts: list[str] = []
    for question, answer in answers:
        lines = "\n".join(f"- {line}" for line in answer)
        asked = " ".join(_unmarked(question[: 4 * _LONG_QUESTION]).split()).strip("# ")
        if lines:
            parts.append(f"## {shortened(asked, _LONG_QUESTION)}\n\n{lines}" if asked else lines)
    return "\n\n".join(parts)
