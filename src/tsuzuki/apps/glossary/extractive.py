"""Definitions out of the text itself: the sentence that says what a term is, or else one that says most of it."""

import re
from collections.abc import Sequence
from typing import Final

from tsuzuki import llm
from tsuzuki.apps.glossary.occurrences import spellings
from tsuzuki.apps.glossary.plaintext import HAS_CJK, LINK

NOTHING: Final = "—"
"""The definition of a term that no text explains."""
_MOST: Final = 400
_SHORTEST: Final = 6
_SENTENCE: Final = 15
_LEAST: Final = 0.2
"""What is less sure than this is no definition."""
_SOURCE: Final = re.compile(r"\A[^\n]*?\.(?:md|txt):\d+\n", re.IGNORECASE)
_HEADING: Final = re.compile(r"\s*+#{1,6}\s*+(?:\d[\d.]*+\s++)?+(.*)")
_RULE: Final = re.compile(r"\s*+(?:\|\s*+)?+:?-{2,}+[\s:|-]*+$")
_MARK: Final = re.compile(r"\s*+(?:```|~~~|(?:\|\s*+)?+:?-{2,}+[\s:|-]*+$|<!--|\$ )")
"""Lines that say nothing: fences, rules of tables, commands."""
_ITEM: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_PARTIAL: Final = re.compile(r"[a-z、。)）」,;:|]")
"""How something begins whose beginning stands elsewhere."""
_ENDED: Final = re.compile(r"[.。!?！？)）」]$")
_LEANING: Final = re.compile(r"(?:これ|それ|このよう|そのよう|こうし|そうし)|(?:This|That|These|Those|It|They)\b")
"""How a sentence begins that means the one before it."""
_POINTING: Final = re.compile(r"(?:How|See|When|Where|What|Which|Below|Here|The following)\b")
"""How a sentence begins that says where something is told."""
_TELLING: Final = 3
"""So many words of its own a sentence has that tells something; in Japanese twice as many characters."""


_TERM: Final = "\ue000"
"""Stands for the term while a sentence is looked at, so that the forms below are the same for all."""
_NAME: Final = f"[「『*_`]{{0,9}}{_TERM}[」』*_`]{{0,9}}(?:[（(][^）)]{{0,{_MOST}}}[）)])?"
_ARTICLE: Final = "(?:(?:the|an?|each|every|all) )?"
_OVER: Final = r"(?=[.,;:)]|$| (?:and|or|is|are|when|which|that|by|in|for)\b)"
"""What follows a name that has ended: a longer name is another term."""
_ACTS: Final = (
    "can cannot may must will should would do not only also then leave tell bring feed give come go run take make stand"
)
_DOES: Final = rf"(?=,? (?:[a-z]+(?:s|ed)|{_ACTS.replace(' ', '|')})\b)"
"""What follows a name in a sentence that says what it does."""
_WITH: Final = (
    r"(?=,? (?:that|which|who|whose|of|in|on|with|by|to|for|from|and|or|without|once)\b|[,(])"
    r".*\b(?:is|are|was|were|has|have|can|cannot|may|must|will|does|do|should)\b"
)
"""What follows a name of which more is said before the verb comes."""
_FORMS: Final = tuple(
    (re.compile(form, re.IGNORECASE), score)
    for form, score in (
        (rf"^{_NAME}とは", 0.95),
        (rf"(?:^|; ){_ARTICLE}{_NAME} (?:is|are) (?:an?|the|one|any|what|how|where|who|when)\b", 0.9),
        (rf"^{_ARTICLE}{_NAME} (?:means?|refers? to|stands? for|denotes?|describes?)\b", 0.9),
        (rf"^{_NAME}は.*(?:である|です|をいう|を指す|のこと|という|と呼ぶ|ものだ)", 0.85),
        (rf"(?:を|は){_NAME}(?:と呼ぶ|という|と呼ばれる|と言う)", 0.85),
        (rf"(?:を|は){_NAME}、.{{0,{_MOST}}}(?:と呼ぶ|という|と呼ばれる|と言う)", 0.8),
        (rf"(?:called|known as|named) {_ARTICLE}{_NAME}{_OVER}", 0.75),
        (rf"^{_NAME}(?:は|が)", 0.65),
        (rf"^{_ARTICLE}{_NAME} (?:is|are|has|have|holds?|keeps?|gives?|lets?)\b", 0.6),
        (rf"{_NAME}, an? [\w-]+(?: [\w-]+)? (?:that|which|who|of|for|to|with)\b", 0.55),
        (rf"^{_NAME}(?=[をにでとのもやへ、（])", 0.45),
        (rf"^{_ARTICLE}{_NAME}{_DOES}", 0.45),
        (rf"^{_ARTICLE}{_NAME}{_WITH}", 0.45),
        (_TERM, 0.3),
    )
)
"""The forms in which a term is defined, the surest first, and how sure each is."""


def found_definition(names: Sequence[str], contexts: Sequence[str]) -> tuple[str, float]:
    """Gives a definition out of contexts, and how sure it is; `NOTHING` where there is none."""
    term = _any_of(names)
    best: dict[str, float] = {}
    for context in contexts:
        for text, score in _statements(context, names, term):
            clean = _clean(text)
            if len(clean) >= _SHORTEST and clean.lower() not in {name.lower() for name in names}:
                best[clean] = max(best.get(clean, 0.0), score if score >= _LEAST else 0.0)
    best = {text: score for text, score in best.items() if score}
    if not best:
        return NOTHING, 0.0
    ranked = sorted(best, key=lambda text: (-best[text], len(text)))
    return _ended(ranked[0])[:_MOST], round(best[ranked[0]], 2)


def _ended(text: str) -> str:
    if _ENDED.search(text):
        return text
    return f"{text}。" if HAS_CJK.search(text) else f"{text}."


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    """Gives what finds a term in whatever spelling, ASCII ones as whole words."""
    forms = sorted({form for name in names for form in spellings(name)}, key=len, reverse=True)
    bounded = [
        rf"(?<![A-Za-z0-9_]){re.escape(f)}(?![A-Za-z0-9_]|\.[A-Za-z])" if f.isascii() else re.escape(f) for f in forms
    ]
    return re.compile("|".join(bounded))


def _statements(context: str, names: Sequence[str], term: re.Pattern[str]) -> list[tuple[str, float]]:
    """Gives what a context says about a term, and how much each is a definition."""
    lines = _telling_lines(_SOURCE.sub("", f"{context}\n").strip("\n").split("\n"))
    lowered = {form.lower() for name in names for form in spellings(name)}
    found: list[tuple[str, float]] = []
    for at, line in enumerate(lines):
        found += _cells(line, lowered)
        heading = _HEADING.match(line)
        if heading and heading[1].rstrip("# \t\u3000").strip(" *`「」").lower() in lowered and at + 1 < len(lines):
            said = llm.text.sentences(_flowing(lines[at + 1 :]))
            if said and len(said[0]) >= _SENTENCE and not _PARTIAL.match(said[0]):
                about = term.search(said[0]) is not None
                found.append((said[0], 0.2 if _POINTING.match(said[0]) else 0.6 if about else 0.35))
    prose = _flowing([line.replace("**", "") for line in lines if not _HEADING.match(line) and "|" not in line])
    before = ""
    for sentence in llm.text.sentences(prose):
        text = _clean(sentence)
        marked = term.sub(_TERM, text)
        score = next((score for form, score in _FORMS if form.search(marked)), 0.0) if _tells(marked) else 0.0
        if score:
            whole = _joined(before, text) if _LEANING.match(text) and before else text
            found.append((whole, score * (0.5 if _PARTIAL.match(text) or not _ENDED.search(text) else 1.0)))
        before = text
    return found


def _tells(marked: str, more: int = 0) -> bool:
    """Tells whether a sentence says anything beside the term itself."""
    rest, least = marked.replace(_TERM, " "), _TELLING + more
    return len(re.findall(r"[A-Za-z0-9]+", rest)) >= least or len(HAS_CJK.findall(rest)) >= 2 * least


def _joined(before: str, text: str) -> str:
    return f"{before}{text}" if HAS_CJK.search(before) else f"{before} {text}"


def _telling_lines(lines: list[str]) -> list[str]:
    """Gives the lines that say something: no fences, no rules of tables, and not the heads above these."""
    heads = {at - 1 for at, line in enumerate(lines) if _RULE.match(line)}
    return [line for at, line in enumerate(lines) if at not in heads and not _MARK.match(line)]


def _cells(line: str, names: set[str]) -> list[tuple[str, float]]:
    """Reads a line that explains a term: a row of a table, or an item with a colon."""
    if line.count("|") > 1:
        cells = [_clean(cell) for cell in line.strip().strip("|").split("|")]
        first = cells[0].strip("`* ").lower()
        if first in names and len(cells) > 1 and len(cells[1]) >= _SENTENCE and _tells(cells[1], 2):
            return [(cells[1], 0.2 if cells[1].startswith("`") else 0.4)]
        return []
    plain = _clean(_ITEM.sub("", line))
    head, colon, rest = plain.partition("：" if "：" in plain else ": ")
    if not colon or head.strip("`* 「」").lower() not in names or not rest.strip():
        return []
    return [(rest.strip(), 0.25 if rest.strip().startswith("`") else 0.7)]


def _flowing(lines: Sequence[str]) -> str:
    """Puts lines together: paragraphs and items begin anew, Japanese has no space between lines."""
    text = ""
    for line in lines:
        part = _ITEM.sub("", line).strip()
        if not text or not part or text.endswith("\n\n") or _ITEM.match(line):
            text += f"\n\n{part}"
        else:
            text += part if HAS_CJK.search(text[-1:]) and HAS_CJK.search(part[:1]) else f" {part}"
    return text.strip()


def _clean(text: str) -> str:
    """Gives a text without marks of Markdown."""
    text = LINK.sub(r"\1", _ITEM.sub("", text))
    return " ".join(text.replace("**", "").replace("__", "").strip("|> #").split())
