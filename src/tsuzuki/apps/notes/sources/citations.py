"""What ChatGPT cites: marks in the text that only its own page can read, and the links behind them."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tsuzuki.apps.notes.sources.conversation import one_line

_PRIVATE: Final = re.compile("[\ue200-\ue206]")
_MARK: Final = re.compile(" ?\ue200([^\ue200-\ue202]*)((?:\ue202[^\ue200-\ue202]*)*)\ue201")
"""A kind with what belongs to it: `cite`, `navlist`, `image_group`, and so on."""
_CUT_OFF: Final = re.compile(" ?\ue200\\w*(?:\ue202\\w*)*")
_OLDER: Final = re.compile(r" ?:contentReference\[oaicite:\d{1,9}\](?:\{index=\d{1,9}\})?")
_NUMBERED: Final = re.compile(r" ?【\d[\d:]{0,20}†[^【】\n]{0,200}】")
_SHOWN: Final = {"entity": 1, "url": 0}
"""Kinds that stand for words of the text, and which of theirs it is."""
_LINK: Final = re.compile(r"https?://\S+")
_WITHIN: Final = ("metadata", "items", "sources", "supporting_websites", "fallback_items")
_DEEPEST: Final = 4


def unmarked(text: str) -> str:
    """Gives a text without these marks; where one stands for a name, with the name."""
    if ":contentReference[" in text:
        text = _OLDER.sub("", text)
    if text.isascii():  # as most are, and to find that out takes no time
        return text
    if "†" in text:
        text = _NUMBERED.sub("", text)
    if not _PRIVATE.search(text):
        return text
    return _PRIVATE.sub("", _CUT_OFF.sub("", _MARK.sub(_shown, text)))


def _shown(mark: re.Match[str]) -> str:
    kind, given = mark[1], mark[2].removeprefix("\ue202")
    if kind not in _SHOWN or not given:
        return ""
    words: list[Any] = given.split("\ue202")
    if given.startswith("["):
        try:
            words = json.loads(given)
        except (ValueError, RecursionError):
            words = [given] * 2
    name = next((word for word in words[_SHOWN[kind] :] if isinstance(word, str)), "")
    return f"{' ' if mark[0].startswith(' ') else ''}{name}"


def references(metadata: Any, text: str) -> str:
    """Lists the links that a message cites, each once, and none that its text names already; "" without any."""
    if not isinstance(metadata, dict):
        return ""
    found: dict[str, str] = {}
    for name in ("content_references", "citations"):
        for link, title in _links(metadata.get(name), _DEEPEST):
            if link not in text:
                found[link] = found.get(link) or title
    lines = [f"- {title}: {link}" if title else f"- {link}" for link, title in found.items()]
    return "\n".join(["References:", *lines]) if lines else ""


def _links(value: Any, deep: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            if isinstance(each, dict):
                yield from _links(each, deep)
    elif isinstance(value, dict) and deep:
        link = one_line(value.get("url"))
        if _LINK.fullmatch(link):
            yield link, one_line(value.get("title"))
        for name in _WITHIN:
            yield from _links(value.get(name), deep - 1)
