"""Markdown and text files, each a note to be, and JSONL for whatever else.

A line of JSONL is an object: `{"id", "title", "created_at", "messages": [{"role": "user", "text": "…"}]}`, or with
`"text"` instead of `messages`. All but the text are optional. A text that is null or missing is empty; one that is
anything but a text makes its line fail.
"""

import codecs
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from tsuzuki.apps.notes.refusals import BadExport, NotUtf8, both
from tsuzuki.apps.notes.sources.archive import Readable
from tsuzuki.apps.notes.sources.conversation import (
    Conversation,
    Message,
    Unreadable,
    clean,
    identified,
    one_line,
    titled,
)
from tsuzuki.apps.notes.times import day_of

TEXTS: Final = (".md", ".markdown", ".txt")
LARGEST: Final = 16 * 1024 * 1024
"""How large a text file, or a line of JSONL, may be (bytes)."""
_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"^(title|date|created)[ \t]*+:([^\n]*+)", re.MULTILINE)
_OWN: Final = (
    re.compile(r"^item_id: ", re.MULTILINE),
    re.compile(r"^content_hash: ['\"]?[0-9a-f]{16}['\"]?$", re.MULTILINE),
)
"""What the front matter of a note has that an import has written: a vault may lie in the folder that is read."""
_HEADING: Final = re.compile(r"^#[ \t]++([^\n]++)", re.MULTILINE)
_BLANK: Final = b" \t\r\n" + codecs.BOM_UTF8
_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant", "model": "assistant"}


def text_file(file: Readable, name: str) -> Conversation | Unreadable:
    """Reads a Markdown or text file; its id is its path in the folder."""
    stem = PurePosixPath(name).stem
    try:
        raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            told = both(f"{name} は {LARGEST:,} バイトを超えています", f"{name} has more than {LARGEST:,} bytes")
            raise BadExport(told)  # noqa: TRY301 - told of as one of its failures
        text = clean(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Unreadable(name, stem, name, NotUtf8(name).with_traceback(error.__traceback__))
    except (BadExport, OSError) as error:
        return Unreadable(name, stem, name, error)
    front = _FRONT.match(text)
    fields = {name: _unquoted(value) for name, value in _FIELD.findall(front[1])} if front else {}
    body = (text[front.end() :] if front else text).strip()
    heading = _HEADING.search(body)
    title = one_line(fields.get("title") or (_heading(heading[1]) if heading else stem))
    messages = (Message("", body),) if body else ()
    created = day_of(fields.get("created") or fields.get("date"))
    own = front is not None and all(mark.search(front[1]) for mark in _OWN)
    return Conversation(name, title, created, messages, name, own=own)


def _unquoted(value: str) -> str:
    """Return the value of a field without its quotes; a pattern that did this would take quadratic time."""
    value = value.strip(" \t")
    value = value[1:] if value[:1] in ("'", '"') else value
    return value[:-1] if value[-1:] in ("'", '"') else value


def _heading(text: str) -> str:
    """Return a heading without the number signs that may close it."""
    return text.rstrip(" \t").rstrip("#").rstrip(" \t") or text


def lines(file: Readable, name: str) -> Iterator[Conversation | Unreadable]:
    """Reads JSONL; a line that makes no sense is told of, and the others are read."""
    for number, line in enumerate(_lines(file), start=1):
        label = f"{name}:{number}"
        if number == 1 and line and _of_two_bytes(line):  # no line of it would make sense
            yield Unreadable(name, name, name, NotUtf8(name))
            return
        if line is None:
            long = both(f"{label} は {LARGEST:,} バイトを超えています", f"{label} has more than {LARGEST:,} bytes")
            yield Unreadable(label, label, name, BadExport(long))
            continue
        if not line.strip(_BLANK):
            continue
        try:
            yield _conversation(msgspec.json.decode(line.removeprefix(codecs.BOM_UTF8)), name)
        except UnicodeDecodeError as error:
            yield Unreadable(label, label, name, NotUtf8(label).with_traceback(error.__traceback__))
        except (msgspec.DecodeError, RecursionError) as error:
            told = BadExport(both(f"{label} は JSON として読み取れません（{error}）", f"{label} is no JSON: {error}"))
            yield Unreadable(label, label, name, told.with_traceback(error.__traceback__))
        except TypeError as error:
            yield Unreadable(label, label, name, error)


def _of_two_bytes(line: bytes) -> bool:
    """Tells UTF-16 by its mark, or by the zeros between its signs."""
    return line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in line[:4]


def _lines(file: Readable) -> Iterator[bytes | None]:
    """Gives the lines; None for one that is too long, of which no more is kept."""
    pieces: list[bytes] = []
    size = 0
    while raw := file.read(1 << 18):
        *whole, rest = raw.split(b"\n")
        for end in whole:
            yield b"".join([*pieces, end]) if size + len(end) <= LARGEST else None
            pieces, size = [], 0
        size += len(rest)
        pieces = [*pieces, rest] if size <= LARGEST else []
    yield b"".join(pieces) if size <= LARGEST else None


def _conversation(value: Any, name: str) -> Conversation:
    if not isinstance(value, dict) or not ({"messages", "text"} & value.keys()):
        raise TypeError(
            '1 行は "messages" か "text" を持つオブジェクトです / a line is an object with "messages" or "text"'
        )
    listed = value.get("messages", [{"role": "", "text": value.get("text")}])
    if not isinstance(listed, list):
        raise TypeError(
            '"messages" は "role" と "text" を持つオブジェクトのリストです / '
            '"messages" is a list of objects with "role" and "text"'
        )
    messages = tuple(_message(each) for each in listed)
    messages = tuple(message for message in messages if message.text)
    return Conversation(
        id=identified(value.get("id"), lambda: f"{value.get('title')}{value.get('created_at')}{messages}"),
        title=titled(value.get("title"), messages),
        created=day_of(value.get("created_at")),
        messages=messages,
        filename=name,
    )


def _message(each: Any) -> Message:
    if not isinstance(each, dict):
        raise TypeError("メッセージはオブジェクトでなければなりません / a message is an object")
    text = each.get("content") if each.get("text") in (None, "") else each["text"]
    if not isinstance(text, str | None):
        has = type(text).__name__
        raise TypeError(both(f'"text" が文字列ではありません（{has}）', f'a "text" is no text, but {has}'))
    return Message(_ROLES.get(str(each.get("role", "")), ""), clean(text).strip())
