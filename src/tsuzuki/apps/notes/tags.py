"""Tags as Obsidian takes them: letters and digits of any language, `_`, `-` and `/`; and no mere number."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

_PLAIN: Final = re.compile(r"[^\W_](?:[\w/-]*\w)?")
_BETWEEN: Final = re.compile(r"[,、，;；\n]")
_RUNS: Final = re.compile(r"([-/])[-/]*")
_KEPT: Final = frozenset("_-/\u200d")


def tags(words: Iterable[str]) -> tuple[str, ...]:
    """Makes tags of words, each once; what would be none is left out."""
    found = (tag for word in words for tag in _made(word))
    return tuple(dict.fromkeys(tag for tag in found if tag and not tag.isnumeric()))


def _made(word: str) -> Iterator[str]:
    if _PLAIN.fullmatch(word) and "//" not in word:
        yield word
        return
    for piece in _BETWEEN.split(word):
        spelt = "".join(sign if _kept(sign) else "-" for sign in piece.strip().replace("'", "").replace("’", ""))
        yield _RUNS.sub(r"\1", spelt).strip("-/\u200d")


def _kept(sign: str) -> bool:
    """Tells whether a tag may have a sign: vowels of many scripts are marks, and pictures are allowed."""
    return sign.isalnum() or sign in _KEPT or unicodedata.category(sign) in ("Mn", "Mc", "So")
