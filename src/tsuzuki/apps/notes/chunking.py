"""Long conversations in pieces: cut between messages, each piece beginning with the end of the one before."""

from collections import deque
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
_END: Final = 8
"""What part of a piece the end of a message may be that does not fit in whole."""
_CUT_OFF: Final = "…"
_BORDERS: Final = ("\n\n", "\n", "。", ". ", " ")


def chunks(messages: Sequence[Message], size: int = SIZE, overlap: int = OVERLAP) -> Iterator[tuple[Message, ...]]:
    """Cuts a conversation into pieces of at most so many characters; each begins with the last messages before it."""
    size = max(size, _LEAST)
    last: deque[Message] = deque(maxlen=overlap)
    piece: list[Message] = []
    new = 0
    for message in (part for each in messages for part in _parts(each, size)):
        if new and _length(piece) + _BETWEEN + len(message) > size:
            yield tuple(piece)
            piece, new = _before(last, size - _BETWEEN - len(message), size // _END), 0
        piece.append(message)
        last.append(message)
        new += 1
    if new:
        yield tuple(piece)


def _before(last: Sequence[Message], room: int, most: int) -> list[Message]:
    """Gives the last messages as far as there is room: whole, the nearest first, else their ends, else none."""
    found = [_end(message, most) for message in last]
    while found and _length(found) > room:
        found = found[1:]
    whole = list(last)[len(last) - len(found) :]
    for at in reversed(range(len(found))):
        if _length(found) + len(whole[at]) - len(found[at]) <= room:
            found[at] = whole[at]
    return found


def _end(message: Message, most: int) -> Message:
    """Gives the end of a message that is longer, from the beginning of a paragraph, a line or a word on."""
    if len(message) <= most:
        return message
    text = message.text[-(most - _SPEAKER - len(_CUT_OFF)) :]
    at = next((found + len(each) for each in _BORDERS if 0 <= (found := text.find(each)) < len(text) // 2), 0)
    return Message(message.role, _CUT_OFF + text[at:])


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
    for border in _BORDERS:
        at = text.rfind(border, start + (end - start) // 2, end)
        if at >= 0:
            return at + len(border)
    return end
