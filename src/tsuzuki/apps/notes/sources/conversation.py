"""A conversation, whatever it came from."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tsuzuki.apps.notes.digests import digest, digest_of

LONGEST_TITLE: Final = 50
"""How much of the first message stands for a missing title."""
_LONGEST_ID: Final = 200
_LARGEST_ID: Final = 10**_LONGEST_ID
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_ODD: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_ODD_BYTES: Final = bytes([*range(0x09), *range(0x0B, 0x20), 0x7F])
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SPOKEN_BY: Final = {"user": "**User**: ", "assistant": "**Assistant**: "}
_SMALL: Final = 1 << 16
"""So many characters are put together without a thought."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said: by the `user`, the `assistant`, or nobody (a text that is no conversation)."""

    role: str
    text: str

    def __str__(self) -> str:
        return _SPOKEN_BY.get(self.role, "") + self.text

    def __len__(self) -> int:
        """How many characters it has with who said it; without making a copy of what may be megabytes."""
        return len(self.speaker) + len(self.text)

    @property
    def speaker(self) -> str:
        """Who said it, as it stands before the text."""
        return _SPOKEN_BY.get(self.role, "")


@dataclass(frozen=True)
class Conversation:
    """A conversation as a reader gives it."""

    id: str
    title: str
    created: str
    """The day, YYYY-MM-DD; "" where it is not known."""
    messages: tuple[Message, ...]
    filename: str
    references: tuple[str, ...] = ()
    own: bool = False
    """Whether it is a note that an import has written."""
    repeated: bool = False
    """Whether the very same came before."""

    @cached_property
    def text(self) -> str:
        """All that was said. It may be megabytes: ask for its length, its digest, or whether it is blank by name."""
        return transcript(self.messages)

    @cached_property
    def length(self) -> int:
        """How many characters `text` has."""
        return sum(map(len, self.messages)) + len("\n\n") * max(len(self.messages) - 1, 0)

    @property
    def blank(self) -> bool:
        """Whether nothing was said."""
        return not any(message.speaker or message.text.strip() for message in self.messages)

    @cached_property
    def said(self) -> str:
        """The digest of all that was said."""
        return digest(self.text) if self.length <= _SMALL else digest_of(_pieces(self.messages))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A conversation that its reader could not make sense of."""

    id: str
    title: str
    filename: str
    error: Exception


def transcript(messages: tuple[Message, ...] | list[Message]) -> str:
    """Writes messages one after the other."""
    return "\n\n".join(map(str, messages))


def _pieces(messages: Iterable[Message]) -> Iterator[str]:
    between = ""
    for message in messages:
        yield between
        yield message.speaker
        yield message.text
        between = "\n\n"


def clean(text: Any) -> str:
    """Gives a text without what no file takes: control signs, halves of pairs, and line ends of other systems."""
    if not isinstance(text, str):
        return ""
    if not (_odd_in_ascii(text) if text.isascii() else _ODD.search(text)):
        return text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", plain))


def _odd_in_ascii(text: str) -> bool:
    """The same as `_ODD` finds, five times as fast: most of what is read here is ASCII, and all of it is looked at."""
    return len(text.encode().translate(None, _ODD_BYTES)) < len(text)


def one_line(text: Any) -> str:
    """Gives a text on one line."""
    plain = isinstance(text, str) and text.isascii() and text.isprintable()
    if plain and " " not in text:
        return str(text)
    return " ".join((text if plain else clean(text)).split())


def titled(title: Any, messages: tuple[Message, ...] | list[Message]) -> str:
    """Gives the title, or the beginning of the first message where there is none."""
    if found := one_line(title):
        return found
    first = next((message.text for message in messages if message.role in ("user", "") and message.text), "")
    line = one_line(first or (messages[0].text if messages else ""))
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1].rstrip() + "…"


def identified(given: Any, content: Callable[[], str]) -> str:
    """Gives the id of a conversation: its own, or one made of what it says."""
    if type(given) is int and abs(given) < _LARGEST_ID:
        return str(given)
    found = one_line(given) if isinstance(given, str) else ""
    return found if 0 < len(found) <= _LONGEST_ID else digest(content())[:32]
