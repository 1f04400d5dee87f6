"""An element of JSON that comes in pieces: where it ends, what it takes in memory, and how it takes less."""

import json
import re
from typing import Final

_PLAIN: Final = 3
"""What a character takes on its way into notes (bytes, as measured: with copies, and what is not given back)."""
_LETTERS: Final = 8
"""How much more each takes where some are no ASCII."""
_PICTURES: Final = 5
"""How much more where some are emoji."""
_BRACKET: Final = 120
"""What each bracket of an object or a list stands for, at the most."""
_QUOTED: Final = 64
"""What a text takes beside its letters."""
_NUMBER: Final = 10
"""What a character between texts takes at the most: a list of numbers does."""
_IN_TEXT: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_ESCAPED: Final = re.compile(r"(?:\\u(?!00|[dD][89a-fA-F])[0-9a-fA-F]{4})++|\\.", re.DOTALL)
_WIDE: Final = re.compile("[\U00010000-\U0010ffff]+")
_WIDE_ESCAPED: Final = re.compile(r"\\u[dD]")
_BETWEEN_TEXTS: Final = re.compile(r'[^"\[\]{}]*+')


def narrow(piece: str, within: bool) -> str:
    """Writes a text in what takes least memory: letters as they are, but signs as escapes that make all others wide.

    A piece may begin within an escape: its first sign then belongs to the piece before.
    """
    if "\\u" in piece:
        piece = piece[:within] + _ESCAPED.sub(_letters, piece[within:])
    return piece if piece.isascii() else _WIDE.sub(_escapes, piece)


def _letters(found: re.Match[str]) -> str:
    escapes = found[0]
    return escapes.encode().decode("unicode_escape") if len(escapes) > len("\\u") else escapes


def _escapes(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


class Scan:
    """Finds the end of an element that comes in pieces: only what is quoted, and how deep it nests, counts.

    It also says how much memory the element takes, so that neither many characters nor many objects take too much.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self.escaped = False
        """Whether the last piece ended with a backslash without what it belongs to."""
        self._made = self._size = 0
        self._letters = self._pictures = False

    def weighed(self, piece: str) -> int:
        """Gives how many bytes the element takes with this piece, as text and as what is made of it."""
        self._size += len(piece)
        self._letters = self._letters or not piece.isascii()
        self._pictures = self._pictures or _WIDE_ESCAPED.search(piece) is not None
        return self._made + self._size * (_PLAIN + _LETTERS * self._letters + _PICTURES * self._pictures)

    def end(self, piece: str) -> int:
        """Gives where it ends in the next piece; -1 where it does not."""
        at, self.escaped = int(self.escaped), False
        while True:
            found = (_IN_TEXT if self._quoted else _BETWEEN_TEXTS).match(piece, at)
            start, at = at, found.end() if found else at
            sign = piece[at : at + 1]
            if not self._quoted:
                self._made += (at - start) * _NUMBER
            if sign in ("", "\\"):  # a backslash only stands here without what it belongs to, which comes next
                self.escaped = bool(sign)
                return -1
            at += 1
            if sign == '"':
                self._quoted = not self._quoted
            else:
                self._depth += 1 if sign in "[{" else -1
            if not self._quoted:
                self._made += _QUOTED if sign == '"' else _BRACKET
                if self._depth <= 0:
                    return at
