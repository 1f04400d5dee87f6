"""Where terms stand in documents: found in one pass over each text, whatever the number of terms.

ASCII terms match on word boundaries, CJK terms as substrings. An index has, for the first two characters of a term, the
lengths that a term beginning with them may have; a slice of such a length is a term or not. Nothing is compared with
each term in turn.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from tsuzuki.apps.glossary.plaintext import fenced, original_places, usual_width
from tsuzuki.apps.glossary.records import Document, Occurrence

MOST: Final = 20
"""How many occurrences of a term are kept."""
_WIDE: Final = 300
"""How much of a long line is shown on each side (characters)."""
_WORD: Final = re.compile(r"[A-Za-z0-9_]")
_STARTS: Final = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9_]|[^\x00-\x7f]|[!-/:-@\[-^`{-~]")
"""Where a term can begin: at the start of a word in ASCII, and with anything else."""
_DEFINES: Final = re.compile(
    r"」?(?:とは|は[、,]?|（|\s*[:：]\s|\s*[—–]\s|\s\(|\s(?:is|are|means|refers to)\s)|\*\*\s*[:：—–]|\*\*[:：]|\s*\|\s"
)


class Match(NamedTuple):
    """A term in a text: where, and which."""

    start: int
    end: int
    term: str


@dataclass(frozen=True, slots=True)
class Place:
    """A term in a document as a viewer shows it; lines and columns count from 1."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"use_attribute_docstrings": True}

    term: str
    """The term that it stands for."""
    text: str
    """What is written there: the term, a synonym or another form."""
    line: int
    """The line; the first is 1."""
    column: int
    """The column in which it begins; the first is 1."""
    length: int
    """How many characters it has."""


def spellings(term: str) -> set[str]:
    """Gives how a term is written in running text: one in small letters also as plural, and with a capital."""
    if not term.isascii() or term != term.lower():
        return {term}
    forms = {term, f"{term}es" if term.endswith(("s", "x", "ch", "sh")) else f"{term}s"}
    if term.endswith("y"):
        forms.add(f"{term[:-1]}ies")
    return forms | {form[:1].upper() + form[1:] for form in forms}


class TermIndex:
    """All terms of a project, ready to be found; names maps each spelling to the term it stands for."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._terms: dict[str, str] = {}
        for name, term in names.items():
            for form in spellings(name):
                if form and (form not in self._terms or form == name):
                    self._terms[form] = term
        self._lengths: dict[str, list[int]] = {}
        self._single = {form: term for form, term in self._terms.items() if len(form) == 1}
        for form in self._terms.keys() - self._single.keys():
            lengths = self._lengths.setdefault(form[:2], [])
            if len(form) not in lengths:
                lengths.append(len(form))

    def find(self, text: str) -> Iterator[Match]:
        """Gives every occurrence of every term, those that lie in others too."""
        lengths, terms, single = self._lengths, self._terms, self._single
        for found in _STARTS.finditer(text):
            start = found.start()
            for length in lengths.get(text[start : start + 2], ()):
                end = start + length
                term = terms.get(text[start:end]) if end <= len(text) else None
                if term is not None and _bounded(text, start, end):
                    yield Match(start, end, term)
            if text[start] in single and _bounded(text, start, start + 1):
                yield Match(start, start + 1, single[text[start]])

    def longest(self, text: str) -> list[Match]:
        """Gives occurrences that do not overlap, the longest first where they would."""
        found = sorted(self.find(text), key=lambda match: (match.start, match.start - match.end))
        kept: list[Match] = []
        for match in found:
            if not kept or match.start >= kept[-1].end:
                kept.append(match)
        return kept


def _bounded(text: str, start: int, end: int) -> bool:
    """Tells whether a term that begins or ends with a letter of ASCII begins or ends a word there."""
    if _WORD.match(text[start]) and start and _WORD.match(text[start - 1]):
        return False
    return not (_WORD.match(text[end - 1]) and end < len(text) and _WORD.match(text[end]))


def places(index: TermIndex, text: str) -> list[Place]:
    """Return where terms stand in a text, for a viewer."""
    starts = _line_starts(text)
    usual = usual_width(text)
    places = range(len(text) + 1) if len(usual) == len(text) else original_places(text)
    found = []
    for match in index.longest(usual):
        start, end = places[match.start], places[match.end]
        line = bisect_right(starts, start) - 1
        found.append(Place(match.term, text[start:end], line + 1, start - starts[line] + 1, end - start))
    return found


def find_occurrences(documents: Iterable[Document], index: TermIndex) -> dict[str, list[Occurrence]]:
    """Gives the occurrences of each term, the telling ones first, one for a line and so many at most."""
    found: dict[str, list[tuple[int, Occurrence]]] = {}
    for document in documents:
        text = usual_width(document.content)
        starts, seen = _line_starts(text), set[tuple[str, int]]()
        code = list(fenced(text))
        for match in index.find(text):
            line = bisect_right(starts, match.start) - 1
            known = found.setdefault(match.term, [])
            if (match.term, line) in seen:
                continue
            seen.add((match.term, line))
            telling = -1 if _in_code(code, match.start) else _telling(text, starts[line], match)
            if len(known) >= MOST and (telling <= 0 or known[-1][0] >= telling):
                continue
            known.append((telling, Occurrence(document.file_name, line + 1, _context(text, starts, line, match))))
            if len(known) > MOST:
                known.sort(key=lambda each: -each[0])
                known.pop()
    return {term: [each for _, each in sorted(known, key=lambda one: -one[0])] for term, known in found.items()}


def _in_code(blocks: list[tuple[int, int]], at: int) -> bool:
    place = bisect_right(blocks, (at, at)) - 1
    return place >= 0 and blocks[place][0] <= at < blocks[place][1]


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _telling(text: str, line_start: int, match: Match) -> int:
    """Weighs how likely a line says what a term is: it defines it, has it as heading, or begins with it."""
    before = text[line_start : match.start].lstrip()
    defines = _DEFINES.match(text, match.end) is not None
    if before.startswith("#") and text[match.end : match.end + 1] in ("", "\n"):
        return 3
    if not before.strip("#*-|_「『` 0123456789.>") or before.lower() in ("a ", "an ", "the "):
        return 4 if defines else 2
    return 1 if defines else 0


def _context(text: str, starts: list[int], line: int, match: Match) -> str:
    """Gives a line with the lines before and after it that are not blank; of long ones the part around the term."""
    lines = [_neighbour(text, starts, line, -1), _line(text, starts, line), _neighbour(text, starts, line, +1)]
    at = match.start - starts[line]
    if len(lines[1]) > 2 * _WIDE:
        lines[1] = lines[1][max(at - _WIDE, 0) : at + _WIDE]
    lines[0], lines[2] = lines[0][-_WIDE:], lines[2][:_WIDE]
    return "\n".join(each.rstrip() for each in lines if each.strip())


def _neighbour(text: str, starts: list[int], line: int, step: int) -> str:
    for distance in (1, 2):
        at = line + step * distance
        if not 0 <= at < len(starts):
            return ""
        if (found := _line(text, starts, at)).strip():
            return found
    return ""


def _line(text: str, starts: list[int], line: int) -> str:
    end = starts[line + 1] - 1 if line + 1 < len(starts) else len(text)
    return text[starts[line] : end]
