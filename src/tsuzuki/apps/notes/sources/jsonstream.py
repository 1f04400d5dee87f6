"""A JSON array read one element at a time, in memory that does not grow with the file, nor with an element of it."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tsuzuki.apps.notes.refusals import BadExport, NotUtf8, UnknownFormat, both
from tsuzuki.apps.notes.sources.archive import Readable
from tsuzuki.apps.notes.sources.scanning import Scan, narrow

PIECE: Final = 1 << 18
"""How many bytes are read at once."""
MOST: Final = 120_000_000
"""How much memory one element may take (bytes): an import stays below 200 MB with it. Scan.weighed tells."""
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


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Stands for an element that is not read: it takes too much memory, or nests too deeply."""

    why: str
    beginning: dict[str, Any] = field(default_factory=dict)
    """The members that it begins with; the last one is None where it is not whole."""

    def __str__(self) -> str:
        return self.why


TOO_LONG: Final = (
    f"会話が長すぎます（メモリー上で {MOST // 1_000_000} MB まで）。必要な部分を Markdown ファイルに保存して、"
    "取り込んでください / the conversation is too long: it takes more than "
    f"{MOST // 1_000_000} MB of memory; save what you need of it as Markdown files, and import these"
)
TOO_DEEP: Final = (
    "会話の入れ子が深すぎます。必要な部分を Markdown ファイルに保存して、取り込んでください / "
    "the conversation is nested too deeply; save what you need of it as Markdown files, and import these"
)
_NO_BEGIN: Final = "エクスポートは「[」で始まります", "an export begins with ["
_ARRAY: Final = "conversations"
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
    """Gives the elements of the array in a file; raises where the file is broken or ends too soon.

    The array may also be what an object has as its `conversations`.
    """
    text = _Text(file, name)
    first = text.sign()
    if first == "{":
        yield from _within(text)
    elif first == "[":
        yield from _array(text)
    else:
        raise text.broken(*(_NO_BEGIN if first else _EMPTY))
    if text.sign():
        raise text.broken("エクスポートの終わりの後に続きがあります", "something follows the end of the export")


def _array(text: _Text) -> Iterator[Any]:
    text.at += 1
    if text.sign() == "]":
        text.at += 1
    else:
        yield from _each(text)


def _within(text: _Text) -> Iterator[Any]:
    """Gives the elements of the array that an object has; what else it has is passed over."""
    keys: list[str] = []
    text.at += 1
    while text.sign() not in ("}", ""):
        key = _element(text)
        _take(text, ":")
        keys.append(str(key))
        if key == _ARRAY and text.sign() == "[":
            yield from _array(text)
        else:
            text.sign()
            _element(text)
        if text.sign() != "}":
            _take(text, ",")
    if not text.sign():
        raise text.broken(*_CUT_OFF)
    text.at += 1
    if _ARRAY not in keys:
        raise _unknown(text.name, keys)


def _take(text: _Text, wanted: str) -> None:
    sign = text.sign()
    if sign != wanted:
        told = (f"「{wanted}」の位置に {sign!r} があります", f"{sign!r} stands where {wanted} was to be")
        raise text.broken(*(told if sign else _CUT_OFF))
    text.at += 1


def _unknown(name: str, keys: list[str]) -> UnknownFormat:
    has = ", ".join(key[:40] for key in keys[:8]) or "{}"
    return UnknownFormat(
        both(
            f"{name} の形式がわかりません。会話のリストも、`{_ARRAY}` のリストもありません。あるもの：{has}",
            f"the format of {name} is not known: it is no list of conversations, and has none as `{_ARRAY}`, but: "
            f"{has}; name the export as you got it",
        )
    )


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
            return _too_deep(text)
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
    text.at = end
    if end > PIECE:  # whoever works on a long one does so without its text beside it
        text.forget()
    return value


def _gathered(text: _Text) -> PassedOver | None:
    """Reads on until all of a long element is there; one that is too long is passed over, piece by piece."""
    text.forget()
    if text.buffer[0] not in '"[{':
        raise text.broken("数値が終わっていません", "a number has no end")
    scan, pieces, end = Scan(), list[str](), -1
    while end < 0 and text.buffer:
        within, end = scan.escaped, scan.end(text.buffer)
        pieces.append(narrow(text.buffer if end < 0 else text.buffer[:end], within))
        text.buffer = text.read() if end < 0 else text.buffer[end:]
        if scan.weighed(pieces[-1]) > MOST:
            beginning = _members(pieces[0][:_BEGINNING])
            del pieces
            return _skipped(text, PassedOver(TOO_LONG, beginning), None if end >= 0 else scan)
    pieces.append(text.buffer)
    text.buffer = "".join(pieces)
    return None


def _too_deep(text: _Text) -> PassedOver:
    text.forget()
    return _skipped(text, PassedOver(TOO_DEEP, _members(text.buffer[:_BEGINNING])), Scan())


def _skipped(text: _Text, instead: PassedOver, scan: Scan | None) -> PassedOver:
    """Passes over the rest of an element, where it has one, piece by piece; gives what stands for it."""
    while scan is not None and (end := scan.end(text.buffer)) < 0:
        text.buffer = text.read()
        if not text.buffer:
            raise text.broken(*_CUT_OFF)
    text.at = 0 if scan is None else end
    return instead


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
