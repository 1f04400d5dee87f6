"""What is wrong with a workflow, and where: several flaws of one document are told together."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple

from tsuzuki.errors import BadWorkflow

_TOLD: Final = 20
"""So many flaws are told; a document with more has one cause for most of them."""
_COMPARED: Final = 200
"""With so many words a misspelled one is compared."""
_LONGEST: Final = 40
"""Longer words are not compared: that takes the square of their length."""


class Place(NamedTuple):
    """A line and a column of the document, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Flaw:
    """One thing that is wrong, where it is, and what to do."""

    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.text}"


class Flaws:
    """The flaws that were found so far."""

    def __init__(self) -> None:
        self._found: list[Flaw] = []
        self._suggested = 0

    def add(self, place: Place, text: str) -> None:
        """Notes a flaw."""
        self._found.append(Flaw(place.line, place.column, text))

    def suggest(self, word: str, known: Iterable[str]) -> str:
        """Gives what is probably meant; no more of these than are told, because they take their time."""
        self._suggested += 1
        return did_you_mean(word, known) if self._suggested <= _TOLD else "look at the others first"

    def take(self, error: BadWorkflow) -> None:
        """Notes the flaws of a part that could not be read at all."""
        self._found += flaws_of(error)

    def __iter__(self) -> Iterator[Flaw]:
        return iter(sorted(set(self._found)))

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self) -> None:
        """Raises what was found, if anything was."""
        if self._found:
            raise refusal(list(self))


def refusal(flaws: list[Flaw]) -> BadWorkflow:
    """Makes the error of these flaws."""
    told = "; ".join(map(str, flaws[:_TOLD]))
    more = f"; and {len(flaws) - _TOLD} more" if len(flaws) > _TOLD else ""
    problems: tuple[dict[str, object], ...] = tuple(
        {
            "type": "workflow_yaml",
            "loc": ["workflow"],
            "msg": str(flaw),
            "line": flaw.line,
            "column": flaw.column,
            "text": flaw.text,
        }
        for flaw in flaws[:_TOLD]
    )
    return BadWorkflow(f"invalid workflow yaml: {told}{more}", problems, line=flaws[0].line, column=flaws[0].column)


def flaws_of(error: BadWorkflow) -> list[Flaw]:
    """Gives the flaws that an error tells of."""
    told = [Flaw(int(str(p["line"])), int(str(p["column"])), str(p["text"])) for p in error.problems]
    return told or [Flaw(error.line, error.column, str(error))]


def refused(place: Place, text: str) -> BadWorkflow:
    """Makes the error of one flaw, after which nothing more can be understood."""
    return refusal([Flaw(place.line, place.column, text)])


def shown(text: str, most: int = 60) -> str:
    """Shows a text of the document in a message."""
    told = repr(text)
    return told if len(told) <= most else told[: most - 2] + "…" + told[0]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggests the known word that is meant, or lists what there is."""
    words = list(known)
    alike = (other for other in words if len(other) <= _LONGEST and abs(len(other) - len(word)) <= _LONGEST // 8)
    close = get_close_matches(word, islice(alike, _COMPARED), n=1) if len(word) <= _LONGEST else []
    if close:
        return f"did you mean {close[0]!r}?"
    few = ", ".join(words[:10]) + (", …" if len(words) > 10 else "")  # noqa: PLR2004 - as many as a line takes
    return f"there is {few}" if words else "there is none"
