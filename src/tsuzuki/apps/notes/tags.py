"""Tags as Obsidian takes them: letters and digits of any language, `_`, `-` and `/`; and no mere number."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

MOST_TAGS: Final = 10
"""How many tags a note has at most."""
_PLAIN: Final = re.compile(r"[^\W_](?:[\w/-]*\w)?")
_BETWEEN: Final = re.compile(r"[,、，;；\n]")
_RUNS: Final = re.compile(r"([-/])[-/]*")
_KEPT: Final = frozenset("_-/\u200d")
_NAMED_BY_SIGNS: Final = re.compile(r"(?<!\w)(\w++)(\+\+|#(?!\w))")
"""Languages such as C++ and C#, which would all be C."""


def tags(words: Iterable[str]) -> tuple[str, ...]:
    """Makes tags of words, each once in whatever case; what would be none is left out."""
    found: dict[str, str] = {}
    for tag in (tag for word in words for tag in _made(word)):
        if tag and not tag.isnumeric():
            found.setdefault(tag.casefold(), tag)
    return tuple(found.values())


def _made(word: str) -> Iterator[str]:
    if _PLAIN.fullmatch(word) and "//" not in word:
        yield word
        return
    for piece in _BETWEEN.split(word):
        plain = _NAMED_BY_SIGNS.sub(_spelt_out, piece.strip().replace("'", "").replace("’", ""))
        spelt = "".join(sign if _kept(sign) else "-" for sign in plain)
        yield _RUNS.sub(r"\1", spelt).strip("-/\u200d")


def _spelt_out(found: re.Match[str]) -> str:
    return found[1].lower() + ("sharp" if found[2] == "#" else "pp")


def _kept(sign: str) -> bool:
    """Tells whether a tag may have a sign: vowels of many scripts are marks, and pictures are allowed."""
    return sign.isalnum() or sign in _KEPT or unicodedata.category(sign) in ("Mn", "Mc", "So")
