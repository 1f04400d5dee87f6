"""Documents without what is no prose: code, addresses, marks of Markdown; and what is marked as important in them.

A document has up to 3 MB and comes from anybody: nothing here is tried twice (`++`, `(?<!…)`), so that no text takes
more than linear time.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final

CJK: Final = "\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\u3006\uff66-\uff9f"
"""Characters of Japanese words, as they stand in a class of a regular expression."""
HAS_CJK: Final = re.compile(f"[{CJK}]")

_FENCE: Final = re.compile(r"^[ \t]*+(```|~~~)([^\n]*+)", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`\n]+`")
_TAG: Final = re.compile(r"<[a-zA-Z/][^<>\n]{0,300}>")
_COMMENT: Final = re.compile(rf"<!--(?:[^-]|-(?!->))*+(-->)?|{_TAG.pattern}")
LINK: Final = re.compile(r"!?\[([^\[\]\n]*+)\]\((?:[^()\n]|\([^()\n]*+\))*+\)")
_ADDRESS: Final = re.compile(r"\b(?:https?|ftp|nats|tls)://\S+|(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.]+")
_PATH: Final = re.compile(r"(?<![\w./-])[\w.-]*+/[\w./-]*+")
_ENDING: Final = re.compile(r"\.\w+")
_FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING: Final = re.compile(r"^#{1,6}[ \t]++(?:\d[\d.]*+[ \t]++)?([^\n#]++)[ \t#]*+$", re.MULTILINE)
_STRONG: Final = re.compile(r"\*\*([^*\n]{2,60})\*\*|__([^_\n]{2,60})__|「([^」\n]{2,40})」|『([^』\n]{2,40})』")
_DEFINED: Final = re.compile(r"(?:^|[。、\s(（「])([^\s。、「」（）()]{2,30}?)」?とは", re.MULTILINE)
_CALLED: Final = re.compile(r"を「?([^\s。、「」（）()を]{2,30}?)」?と(?:いう|いい、|呼ぶ|呼び、|呼ばれ)")
_IS: Final = re.compile(r"(?:^|[.!?][ \t]+)(?:An? |The )?([A-Za-z][\w-]*(?: [\w-]+){0,2}?) is an? ", re.MULTILINE)
_OTHER_WIDTH: Final = re.compile("[０-９Ａ-Ｚａ-ｚ]+|[ｦ-ﾟ]+")
_CHARACTER: Final = re.compile("[ｦ-ﾝ][ﾞﾟ]?|.", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\s_-]+")
EXPLAINED: Final = 2.0
"""How much a mark weighs that says the meaning of something."""
_LEADING: Final = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+([^:：\n]{2,40})[:：]", re.MULTILINE)


def usual_width(text: str) -> str:
    """Return a text in NFC, with letters and digits in half width and katakana in full width."""
    return _OTHER_WIDTH.sub(lambda found: _nfkc(found[0]), unicodedata.normalize("NFC", text))


def original_places(text: str) -> list[int]:
    """Return where each character of `usual_width(text)` begins in a text that is in NFC, and where the text ends."""
    places: list[int] = []
    for found in _CHARACTER.finditer(text):
        places += [found.start()] * len(_nfkc(found[0]) if _OTHER_WIDTH.match(found[0]) else found[0])
    return [*places, len(text)]


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def comparable(text: str) -> str:
    """Return a text without what models change when they repeat a name: case, width, spaces, hyphens, underscores."""
    return _BETWEEN.sub("", _nfkc(text).casefold())


def name_finder(names: Iterable[str]) -> Callable[[str], str | None]:
    """Return a function that finds the name that a model means: the same text, or else a comparable one."""
    exact = set(names)
    alike = {comparable(name): name for name in exact}
    return lambda text: text if text in exact else alike.get(comparable(text))


def prose(text: str) -> str:
    """Gives the prose of a document; what was taken out leaves a full stop, so that no phrase reaches over it."""
    text = _FRONT.sub("\n", text)
    text = _without_fenced(text)
    text = _without_comments(text)
    text = _CODE.sub(" . ", text)
    text = LINK.sub(r"\1", text)
    return _PATH.sub(_without_path, _ADDRESS.sub(" . ", text))


def fenced(text: str) -> Iterator[tuple[int, int]]:
    """Gives where blocks of code begin and end: a fence, and the next one of its kind that says nothing else."""
    fences = list(_FENCE.finditer(text))
    ends = {kind: [each for each in fences if each[1] == kind and not each[2].strip(" \t")] for kind in ("```", "~~~")}
    over = 0
    for fence in fences:
        if fence.start() < over:
            continue
        later = ends[fence[1]]
        at = bisect_right(later, fence.start(), key=re.Match.start)
        if at < len(later):
            over = later[at].end()
            yield fence.start(), over


def _without_fenced(text: str) -> str:
    pieces, over = list[str](), 0
    for start, end in fenced(text):
        pieces.append(text[over:start])
        over = end
    return "\n".join([*pieces, text[over:]])


def _without_comments(text: str) -> str:
    """Leave out comments and tags; a comment that is never closed is none."""
    return _COMMENT.sub(_without_comment, text)


def _without_comment(found: re.Match[str]) -> str:
    return _TAG.sub(" ", found[0]) if found[0].startswith("<!--") and not found[1] else " "


def _without_path(found: re.Match[str]) -> str:
    """Leaves a path out as far as the ending of its file; one without is prose: and/or."""
    endings = list(_ENDING.finditer(found[0], found[0].index("/")))
    return f" . {found[0][endings[-1].end() :]}" if endings else found[0]


def marked(text: str) -> Iterator[tuple[str, float]]:
    """Gives what a text marks as important, and how much: headings, what is bold or quoted, what is defined."""
    for found in _HEADING.finditer(text):
        yield found[1].rstrip(), 1.0
    for found in _STRONG.finditer(text):
        yield next(part for part in found.groups() if part), 1.0
    for found in _DEFINED.finditer(text):
        yield found[1], EXPLAINED
    for found in _LEADING.finditer(text):
        yield found[1], 0.5


def explained(text: str) -> Iterator[str]:
    """Gives what a text says the meaning of besides Xとは, which it marks: をXという, X is a."""
    for sign, pattern in (("を", _CALLED), (" is a", _IS)):
        if sign in text:  # most of the time is saved where a text is in the other language
            for found in pattern.finditer(text):
                yield found[1]
