"""Long conversations in pieces: cut between messages, each piece beginning with the end of the one before."""

from collections.abc import Iterator, Sequence
from typing import Final

from tsuzuki.apps.notes.sources.conversation import Message

SIZE: Final = 25_000
"""How many characters one piece may have."""
OVERLAP: Final = 2
"""How many messages of the piece before a piece begins with."""
_BETWEEN: Final = len("\n\n")
_SPEAKER: Final = len("**Assistant**: ")
_LEAST: Final = 200


def chunks(messages: Sequence[Message], size: int = SIZE, overlap: int = OVERLAP) -> Iterator[tuple[Message, ...]]:
    """Cuts a conversation into pieces of at most so many characters; the overlap is left out where it does not fit."""
    size = max(size, _LEAST)
    piece: list[Message] = []
    new = 0
    for message in (part for each in messages for part in _parts(each, size)):
        if new and _length(piece) + _BETWEEN + len(message) > size:
            yield tuple(piece)
            piece, new = piece[-overlap:] if overlap else [], 0
            while piece and _length(piece) + _BETWEEN + len(message) > size:
                piece = piece[1:]
        piece.append(message)
        new += 1
    if new:
        yield tuple(piece)


def _length(messages: Sequence[Message]) -> int:
    return sum(len(message) + _BETWEEN for message in messages) - _BETWEEN


def _parts(message: Message, size: int) -> Iterator[Message]:
    """Cuts a message that is longer than a piece, at the end of a paragraph, a line or a word where there is one."""
    text, most = message.text, size - _SPEAKER
    if len(message) <= size:
        yield message
        return
    start = 0
    while start < len(text):
        end = _cut(text, start, start + most)
        yield Message(message.role, text[start:end])
        start = end


def _cut(text: str, start: int, end: int) -> int:
    if end >= len(text):
        return len(text)
    for border in ("\n\n", "\n", "。", ". ", " "):
        at = text.rfind(border, start + (end - start) // 2, end)
        if at >= 0:
            return at + len(border)
    return end
