"""A JSON array read one element at a time, in memory that does not grow with the file, nor with an element of it."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tsuzuki.apps.notes.refusals import BadExport, NotUtf8, both
from tsuzuki.apps.notes.sources.archive import Readable

PIECE: Final = 1 << 18
"""How many bytes are read at once."""
MOST: Final = 7_000_000
"""How many characters one element may have: it is in memory as text, and again as what is made of it."""
_BEGINNING: Final = 1 << 16
"""How much of a longer one is looked at, for its title."""
_NEAR: Final = 16
"""An error so close to the end of what was read may only mean that something is missing."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(strict=False)
_FOR_LONG_NUMBERS: Final = json.JSONDecoder(strict=False, parse_int=float)
_GOES_ON: Final = ("", ".", "e", "E")
"""What may follow the part of a number that was read so far."""
_UNFINISHED: Final = "Unterminated string"
_IN_TEXT: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BETWEEN_TEXTS: Final = re.compile(r'[^"\[\]{}]*+')


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for an element that has more characters than are read of one."""

    beginning: dict[str, Any] = field(default_factory=dict)
    """The members that it begins with; the last one is None where it is not whole."""

    def __str__(self) -> str:
        return (
            f"会話が長すぎます（JSON で {MOST:,} 文字まで） / the conversation is too long: "
            f"more than {MOST:,} characters of JSON"
        )


_NO_BEGIN: Final = "エクスポートは「[」で始まります", "an export begins with ["
_EMPTY: Final = "ファイルが空です", "it is empty"
_CUT_OFF: Final = "途中で終わっています", "it ends in the middle"


class _Text:
    """The text of a file as far as it is looked at."""

    def __init__(self, file: Readable, name: str) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoded = 0
        self.name = name
        self.buffer = ""
        self.at = 0
        self.over = False

    def read(self) -> str:
        """Reads the next piece; "" at the end."""
        text = ""
        while not text and not self.over:
            raw = self._file.read(PIECE)
            self.over = not raw
            try:
                text = self._decode(raw, final=self.over)
            except UnicodeDecodeError as error:
                before = len(error.object[: error.start].decode("utf-8", "ignore"))
                raise NotUtf8(self.name, self._decoded + before) from None
        self._decoded += len(text)
        return text

    def more(self, least: int = 1) -> bool:
        """Reads on, and forgets what was taken; tells whether there was more."""
        self.forget()
        pieces, got = [self.buffer], 0
        while got < least and (text := self.read()):
            pieces.append(text)
            got += len(text)
        self.buffer = "".join(pieces)
        return got > 0

    def forget(self) -> None:
        """Lets go of what was taken."""
        self.buffer, self.at = self.buffer[self.at :], 0

    def sign(self) -> str:
        """Gives the next sign that is no space, without taking it; "" at the end."""
        while True:
            found = _SPACE.match(self.buffer, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self.more():
                return ""

    def broken(self, japanese: str, english: str, at: int | None = None) -> BadExport:
        """Says that the file is broken, where and why."""
        place = self._decoded - len(self.buffer) + (self.at if at is None else at)
        return BadExport(
            both(
                f"{self.name} は {place:,} 文字目で壊れています（{japanese}）",
                f"{self.name} is broken at character {place:,}: {english}",
            )
        )


def elements(file: Readable, name: str) -> Iterator[Any]:
    """Gives the elements of the array in a file; raises where the file is broken or ends too soon."""
    text = _Text(file, name)
    first = text.sign()
    if first != "[":
        raise text.broken(*(_NO_BEGIN if first else _EMPTY))
    text.at += 1
    if text.sign() == "]":
        text.at += 1
    else:
        yield from _each(text)
    if text.sign():
        raise text.broken("配列の終わりの後に続きがあります", "something follows the end of the array")


def _each(text: _Text) -> Iterator[Any]:
    while True:
        text.sign()
        yield _element(text)
        sign = text.sign()
        if not sign:
            raise text.broken(
                f"{_CUT_OFF[0]}。最後まで書き込みまたはダウンロードされていません",
                f"{_CUT_OFF[1]}: it was not written or downloaded to its end",
            )
        if sign not in ",]":
            raise text.broken(f"「,」か「]」の位置に {sign!r} があります", f"{sign!r} stands where , or ] was to be")
        text.at += 1
        if sign == "]":
            return


def _element(text: _Text) -> Any:
    """Takes the next element; where the text ends too soon, more of it is read, and of a long one all that there is."""
    whole = False
    while True:
        try:
            value, end = _decoded(text.buffer, text.at)
        except RecursionError:
            raise text.broken("入れ子が深すぎます", "it is nested too deeply") from None
        except ValueError as error:
            at = getattr(error, "pos", text.at)
            if text.over or whole or not _unfinished(error, at, len(text.buffer) - _NEAR):
                at_end = _unfinished(error, at, len(text.buffer))
                why = getattr(error, "msg", str(error))
                raise text.broken(*(_CUT_OFF if at_end else (f"JSON の誤り：{why}", why)), at=at) from None
        else:
            if text.over or whole or text.buffer[end : end + 1] not in _GOES_ON:
                return _taken(text, value, end)
        if len(text.buffer) - text.at < PIECE:
            text.more(PIECE)
        elif (long := _gathered(text)) is not None:
            return long
        else:
            whole = True


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer of more digits than Python reads
        return _FOR_LONG_NUMBERS.raw_decode(text, at)


def _taken(text: _Text, value: Any, end: int) -> Any:
    long = end - text.at > MOST
    text.at = end
    if end > PIECE:  # whoever works on a long one does so without its text beside it
        text.forget()
    return TooLong(value if isinstance(value, dict) else {}) if long else value


def _gathered(text: _Text) -> TooLong | None:
    """Reads on until all of a long element is there; one that is too long is passed over, piece by piece."""
    text.forget()
    if text.buffer[0] not in '"[{':
        raise text.broken("数値が終わっていません", "a number has no end")
    end_in, pieces, size = _Scan().end, [text.buffer], 0
    while (end := end_in(pieces[-1])) < 0 and size <= MOST and (piece := text.read()):
        size += len(pieces[-1])
        pieces.append(piece)
    if size + (len(pieces[-1]) if end < 0 else end) <= MOST:
        text.buffer = ""
        text.buffer = "".join(pieces)
        return None
    found, text.buffer = TooLong(_members(pieces[0][:_BEGINNING])), pieces[-1]
    del pieces
    while end < 0:
        text.buffer = text.read()
        if not text.buffer:
            raise text.broken("途中で終わっています", "it ends in the middle")
        end = end_in(text.buffer)
    text.at = end
    return found


class _Scan:
    """Finds the end of an element that comes in pieces: only what is quoted, and how deep it nests, counts."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = False

    def end(self, piece: str) -> int:
        """Gives where it ends in the next piece; -1 where it does not."""
        at, self._escaped = int(self._escaped), False
        while True:
            found = (_IN_TEXT if self._quoted else _BETWEEN_TEXTS).match(piece, at)
            at = found.end() if found else at
            sign = piece[at : at + 1]
            if sign in ("", "\\"):  # a backslash only stands here without what it belongs to, which comes next
                self._escaped = bool(sign)
                return -1
            at += 1
            if sign == '"':
                self._quoted = not self._quoted
            else:
                self._depth += 1 if sign in "[{" else -1
            if not self._quoted and self._depth <= 0:
                return at


def _members(text: str) -> dict[str, Any]:
    """Reads the members that an object begins with, as far as they are there."""
    found: dict[str, Any] = {}
    at, sign = 1, text[:1].replace("{", ",")
    try:
        while sign == ",":
            name, at = _decoded(text, _after_space(text, at))
            found[str(name)] = None
            found[str(name)], at = _decoded(text, _after_space(text, _after_space(text, at) + 1))
            at = _after_space(text, at) + 1
            sign = text[at - 1 : at]
    except (ValueError, RecursionError):
        pass
    return found


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _unfinished(error: ValueError, at: int, end: int) -> bool:
    return at >= end or str(error).startswith(_UNFINISHED)
