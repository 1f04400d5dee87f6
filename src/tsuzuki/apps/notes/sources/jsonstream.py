"""A JSON array read one element at a time, in memory that does not grow with the file."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tsuzuki.apps.notes.refusals import BadExport, NotUtf8
from tsuzuki.apps.notes.sources.archive import Readable

PIECE: Final = 1 << 18
"""How many bytes are read at once."""
MOST: Final = 1 << 24
"""How many characters one element may have."""
_NEAR: Final = 16
"""An error so close to the end of what was read may only mean that something is missing."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(strict=False)
_GOES_ON: Final = ("", ".", "e", "E")
"""What may follow the part of a number that was read so far."""
_UNFINISHED: Final = "Unterminated string"


class _Text:
    """The text of a file as far as it is looked at."""

    def __init__(self, file: Readable, name: str) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._passed = 0
        self.name = name
        self.buffer = ""
        self.at = 0
        self.over = False

    def more(self, least: int = 1) -> bool:
        """Reads on, and forgets what was taken; tells whether there was more."""
        self._passed += self.at
        pieces, got = [self.buffer[self.at :]], 0
        self.at = 0
        while got < least and not self.over:
            raw = self._file.read(PIECE)
            self.over = not raw
            try:
                text = self._decode(raw, final=self.over)
            except UnicodeDecodeError as error:
                before = len(error.object[: error.start].decode("utf-8", "ignore"))
                place = self._passed + len(pieces[0]) + got + before
                raise NotUtf8(self.name, f" at character {place:,}") from None
            pieces.append(text)
            got += len(text)
        self.buffer = "".join(pieces)
        return got > 0

    def sign(self) -> str:
        """Gives the next sign that is no space, without taking it; "" at the end."""
        while True:
            found = _SPACE.match(self.buffer, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self.more():
                return ""

    def broken(self, why: str, at: int | None = None) -> BadExport:
        """Says that the file is broken, and where."""
        place = self._passed + (self.at if at is None else at)
        return BadExport(f"{self.name} は壊れています / {self.name} is broken at character {place:,}: {why}")


def elements(file: Readable, name: str) -> Iterator[Any]:
    """Gives the elements of the array in a file; raises where the file is broken or ends too soon."""
    text = _Text(file, name)
    first = text.sign()
    if first != "[":
        raise text.broken("an export begins with [" if first else "it is empty")
    text.at += 1
    if text.sign() == "]":
        text.at += 1
    else:
        yield from _each(text)
    if text.sign():
        raise text.broken("something follows the end of the array")


def _each(text: _Text) -> Iterator[Any]:
    while True:
        text.sign()
        yield _element(text)
        sign = text.sign()
        if not sign:
            raise text.broken("it ends in the middle: it was not written or downloaded to its end")
        if sign not in ",]":
            raise text.broken(f"{sign!r} stands where , or ] was to be")
        text.at += 1
        if sign == "]":
            return


def _element(text: _Text) -> Any:
    """Takes the next element; where the text ends too soon, more of it is read, twice as much each time."""
    while True:
        try:
            value, end = _DECODER.raw_decode(text.buffer, text.at)
        except RecursionError:
            raise text.broken("it is nested too deeply") from None
        except ValueError as error:
            at = getattr(error, "pos", text.at)
            if text.over or not _unfinished(error, at, len(text.buffer) - _NEAR):
                at_end = _unfinished(error, at, len(text.buffer))
                raise text.broken(
                    "it ends in the middle" if at_end else getattr(error, "msg", str(error)), at
                ) from None
        else:
            if text.over or text.buffer[end : end + 1] not in _GOES_ON:
                text.at = end
                return value
        length = len(text.buffer) - text.at
        if length > MOST:
            raise text.broken(f"one conversation has more than {MOST:,} characters")
        text.more(max(length, PIECE))


def _unfinished(error: ValueError, at: int, end: int) -> bool:
    return at >= end or str(error).startswith(_UNFINISHED)
