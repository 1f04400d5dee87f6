"""Notes without a model: the sentences of a conversation that say most, by a rule of the offline provider.

It has to be as quick as the disk: a text is split once, by plain patterns, and each sentence is looked at once.
"""

import re
from collections import Counter
from itertools import chain
from typing import Final

from tsuzuki.apps.notes.markdown import Note

MOST: Final = 60_000
"""How many characters are looked at."""
EXCHANGES: Final = 12
"""How many questions with their answers a note has."""
LINES: Final = 3
"""How many sentences stand for an answer, and for the whole."""
_MARKED: Final = ("\n", "*", "_", "`")
"""Where none of these is in a text, it has no marks but at its beginning."""
_SHORTEST_TERM: Final = 3
_TERM: Final = re.compile(r"[a-z][a-z0-9'_-]{2,}|[ァ-ヶー]{2,}|[一-龠々]{2,}")
_SENTENCE: Final = re.compile(r"[^。！？!?.\n]+(?:[.!?][^\s。！？!?.][^。！？!?.\n]*)*[。！？!?.]*[」』）)\"”’]*")
_URL: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}、。「」]+[^\s<>\"'()\[\]{}、。「」.,;:!?]")
_TURN: Final = re.compile(r"\*\*(?<![^\n]\*\*)(User|Assistant)\*\*: ")
"""At the beginning of a line; a pattern that begins with its signs is found much sooner than one that begins with ^."""
_CODE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_MARKS: Final = re.compile(r"^[ \t]*(?:#{1,6}|[-*+>]|\d+[.)])[ \t]+|\*\*|__|`", re.MULTILINE)
_LESS: Final = tuple((number + 4) ** 0.3 for number in range(MOST // 2))
"""How much less a sentence says that comes later; there cannot be more of them."""
_SHORT: Final = 8
_SHORT_WITHOUT_SPACES: Final = 4
"""A sentence of Japanese or Chinese says much in few signs."""
_LONG: Final = 400
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
    prose = _CODE.sub("\n\n", seen) if _coded(seen) else seen
    exchanges = [(question, sentences(answer or question)) for question, answer in _exchanges(prose)]
    weights = weighed(exchanges)
    scored = [(question, _scored(answer, weights)) for question, answer in exchanges]
    every = [sentence for _, answer in scored for sentence in answer]
    summary = best(every, LINES if len(every) > LINES else 1)  # of a short one the content says all
    summary = summary or [_flat(prose) or _flat(seen)]
    return Note(
        title=title,
        summary=" ".join(summary),
        content=_content(scored) or "\n".join(f"- {line}" for line in summary),
        tags=tuple(term for term, count in weights.most_common(5) if count > 1),
        references=tuple(dict.fromkeys(_URL.findall(seen)))[:20] if "/" in seen else (),
    )


def _coded(text: str) -> bool:
    """Tells whether a text may have code in it; one sign is found in no time, three are not."""
    return ("`" in text and "```" in text) or ("~" in text and "~~~" in text)


def _flat(text: str) -> str:
    """Gives the beginning of a text on one line, without saying who spoke; of one that is nothing else, all."""
    return (" ".join(_TURN.sub("", text).split()) or " ".join(text.split()))[:_LONG]


def sentences(text: str) -> dict[str, list[str]]:
    """Splits a text into sentences, each of them once, with their words."""
    plain = _MARKS.sub("", text) if any(mark in text for mark in _MARKED) or not text[:1].isalpha() else text
    if plain.isascii():
        return _english(plain)
    found: dict[str, list[str]] = {}
    for each in _SENTENCE.findall(plain):
        line = " ".join(each.split())
        if line not in found and len(line) >= (_SHORT if line.isascii() else _SHORT_WITHOUT_SPACES):
            found[line] = _words(line.lower()) if line.isascii() else _TERM.findall(line.lower())
    return found


def _english(text: str) -> dict[str, list[str]]:
    """The same for a text of ASCII alone, split by plain signs: a pattern takes five times as long."""
    lines = text.strip().replace(". ", ".\n")
    for sign in "!?":
        if sign in lines:  # to look for one sign costs nothing, for two it does
            lines = lines.replace(f"{sign} ", f"{sign}\n")
    words = lines.lower().replace(",", " ")
    found: dict[str, list[str]] = {}
    for line, low in zip(lines.split("\n"), words.split("\n"), strict=True):
        if len(line) >= _SHORT and line not in found and (said := low.rstrip(".!?").split()):
            found[line] = said
    return found


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


def _scored(answer: dict[str, list[str]], weights: Counter[str]) -> list[tuple[str, float]]:
    """Says how much each sentence says: its words are frequent here, and not everywhere."""
    found, weight = [], weights.__getitem__
    for line, terms in answer.items():
        found.append((line, sum(map(weight, terms)) / (len(terms) + 2)))
    return found


def best(every: list[tuple[str, float]], most: int = LINES) -> list[str]:
    """Gives the sentences that say most, in their order; later ones say a little less."""
    chosen = list(range(len(every)))
    if len(every) > most:
        scores = [score / less for (_, score), less in zip(every, _LESS, strict=False)]
        chosen = sorted(sorted(chosen, key=scores.__getitem__, reverse=True)[:most])
    return [shortened(every[number][0], _LONG) for number in chosen]


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


def _content(exchanges: list[tuple[str, list[tuple[str, float]]]]) -> str:
    parts: list[str] = []
    for question, answer in exchanges[:EXCHANGES]:
        lines = "\n".join(f"- {line}" for line in best(answer))
        asked = " ".join(_MARKS.sub("", question[: 4 * _LONG_QUESTION]).split()).strip("# ")
        if lines:
            parts.append(f"## {shortened(asked, _LONG_QUESTION)}\n\n{lines}" if asked else lines)
    return "\n\n".join(parts)
