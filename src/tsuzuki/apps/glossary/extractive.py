"""Definitions out of the text itself: the sentence that says what a term is, or else one that says most of it."""

import re
from collections.abc import Sequence
from typing import Final

from tsuzuki import llm
from tsuzuki.apps.glossary.occurrences import spellings
from tsuzuki.apps.glossary.plaintext import HAS_CJK

NOTHING: Final = "—"
"""The definition of a term that no text explains."""
_MOST: Final = 400
_SHORTEST: Final = 6
_SOURCE: Final = re.compile(r"\A[^\n]*?\.(?:md|txt):\d+\n", re.IGNORECASE)
_HEADING: Final = re.compile(r"^\s*#{1,6}\s*(?:\d[\d.]*\s+)?(.*?)[\s#]*$")
_ITEM: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_PARTIAL: Final = re.compile(r"[a-z、。)）」,;:|]")
"""How something begins whose beginning stands elsewhere."""
_ENDED: Final = re.compile(r"[.。!?！？:：)）」]$")


def found_definition(names: Sequence[str], contexts: Sequence[str], sentences: int = 1) -> tuple[str, float]:
    """Gives a definition out of contexts, and how sure it is; `NOTHING` where there is none."""
    patterns = _patterns(names)
    best: dict[str, float] = {}
    for context in contexts:
        for text, score in _statements(context, names, patterns):
            clean = _clean(text)
            if len(clean) >= _SHORTEST and clean.lower() not in {name.lower() for name in names}:
                best[clean] = max(best.get(clean, 0.0), score)
    if not best:
        return NOTHING, 0.0
    ranked = sorted(best, key=lambda text: (-best[text], len(text)))
    chosen = [text for text in ranked[:sentences] if best[text] >= best[ranked[0]] / 3]
    glue = "" if HAS_CJK.search(chosen[0]) else " "
    return glue.join(map(_ended, chosen))[:_MOST], round(best[ranked[0]], 2)


def _ended(text: str) -> str:
    if _ENDED.search(text):
        return text
    return f"{text}。" if HAS_CJK.search(text) else f"{text}."


def _patterns(names: Sequence[str]) -> list[tuple[re.Pattern[str], float]]:
    """Gives the forms in which a term is defined, the surest first."""
    forms = sorted({form for name in names for form in spellings(name)}, key=len, reverse=True)
    any_of = "|".join(map(re.escape, forms))
    name = f"[「『*_`]*(?:{any_of})[」』*_`]*(?:[（(][^）)]*[）)])?"
    article = "(?:(?:the|an?|each|every|all) )?"
    return [
        (re.compile(rf"^{name}とは"), 0.95),
        (re.compile(rf"^{article}{name} (?:is|are) (?:an?|the|one|any|what|how|where|who|when)\b", re.IGNORECASE), 0.9),
        (re.compile(rf"^{article}{name} (?:means?|refers? to|stands? for|denotes?|describes?)\b", re.IGNORECASE), 0.9),
        (re.compile(rf"^{name}は.*(?:である|です|をいう|を指す|のこと|という|と呼ぶ|ものだ)"), 0.85),
        (re.compile(rf"(?:を|は){name}(?:と呼ぶ|という|と呼ばれる|と言う)"), 0.85),
        (re.compile(rf"(?:called|known as|named) {article}{name}", re.IGNORECASE), 0.75),
        (re.compile(rf"^{name}(?:は|が)"), 0.65),
        (re.compile(rf"^{article}{name} (?:is|are|has|have|holds?|keeps?|gives?|lets?)\b", re.IGNORECASE), 0.6),
        (re.compile(rf"^{article}{name}(?![A-Za-z0-9])", re.IGNORECASE), 0.45),
        (re.compile(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])" if names[0].isascii() else name, re.IGNORECASE), 0.3),
    ]


def _statements(
    context: str, names: Sequence[str], patterns: list[tuple[re.Pattern[str], float]]
) -> list[tuple[str, float]]:
    """Gives what a context says about a term, and how much each is a definition."""
    lines = _SOURCE.sub("", f"{context}\n").strip("\n").split("\n")
    lowered = {form.lower() for name in names for form in spellings(name)}
    found: list[tuple[str, float]] = []
    for at, line in enumerate(lines):
        found += _cells(line, lowered)
        heading = _HEADING.match(line)
        if heading and heading[1].strip(" *`「」").lower() in lowered and at + 1 < len(lines):
            said = llm.text.sentences(_flowing(lines[at + 1 :]))
            found += [(said[0], 0.6)] if said and not _PARTIAL.match(said[0]) else []
    prose = _flowing([line for line in lines if not _HEADING.match(line) and "|" not in line])
    for sentence in llm.text.sentences(prose):
        text = _clean(sentence)
        score = next((score for pattern, score in patterns if pattern.search(text)), 0.0)
        if score:
            found.append((text, score * (0.5 if _PARTIAL.match(text) or not _ENDED.search(text) else 1.0)))
    return found


def _cells(line: str, names: set[str]) -> list[tuple[str, float]]:
    """Reads a line that explains a term: a row of a table, or an item with a colon."""
    if line.count("|") > 1:
        cells = [_clean(cell) for cell in line.strip().strip("|").split("|")]
        first = cells[0].strip("`* ").lower()
        if first in names and len(cells) > 1 and len(cells[1]) >= _SHORTEST:
            return [(cells[1], 0.75)]
        return []
    plain = _clean(_ITEM.sub("", line))
    head, colon, rest = plain.partition("：" if "：" in plain else ": ")
    return [(rest.strip(), 0.75)] if colon and head.strip("`* 「」").lower() in names and rest.strip() else []


def _flowing(lines: Sequence[str]) -> str:
    """Puts lines together: an item of a list begins anew, Japanese has no space between lines."""
    text = ""
    for line in lines:
        part = _ITEM.sub("", line).strip()
        if not text or _ITEM.match(line):
            text += f"\n\n{part}"
        else:
            text += part if HAS_CJK.search(text[-1:]) and HAS_CJK.search(part[:1]) else f" {part}"
    return text.strip()


def _clean(text: str) -> str:
    """Gives a text without marks of Markdown."""
    text = _LINK.sub(r"\1", _ITEM.sub("", text))
    return " ".join(text.replace("**", "").replace("__", "").strip("|> #").split())
