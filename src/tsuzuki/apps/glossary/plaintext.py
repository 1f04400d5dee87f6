"""Documents without what is no prose: code, addresses, marks of Markdown; and what is marked as important in them."""

import re
from collections.abc import Iterator
from typing import Final

CJK: Final = "\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\u3006\uff66-\uff9f"
"""Characters of Japanese words, as they stand in a class of a regular expression."""
HAS_CJK: Final = re.compile(f"[{CJK}]")

FENCED: Final = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"`[^`\n]+`")
_COMMENT: Final = re.compile(r"<!--.*?-->|<[a-zA-Z/][^<>\n]{0,300}>", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ADDRESS: Final = re.compile(r"\b(?:https?|ftp|nats|tls)://\S+|\b[\w.+-]+@[\w-]+\.[\w.]+|(?<!\w)[\w./-]*/[\w./-]*\.\w+")
_FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+(?:\d[\d.]*[ \t]+)?([^\n#]+?)[ \t#]*$", re.MULTILINE)
_STRONG: Final = re.compile(r"\*\*([^*\n]{2,60})\*\*|__([^_\n]{2,60})__|「([^」\n]{2,40})」|『([^』\n]{2,40})』")
_DEFINED: Final = re.compile(r"(?:^|[。、\s(（「])([^\s。、「」（）()]{2,30}?)」?とは", re.MULTILINE)
_CALLED: Final = re.compile(r"を「?([^\s。、「」（）()を]{2,30}?)」?と(?:いう|いい、|呼ぶ|呼び、|呼ばれ)")
_IS: Final = re.compile(r"(?:^|[.!?][ \t]+)(?:An? |The )?([A-Za-z][\w-]*(?: [\w-]+){0,2}?) is an? ", re.MULTILINE)
EXPLAINED: Final = 2.0
"""How much a mark weighs that says the meaning of something."""
_LEADING: Final = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+([^:：\n]{2,40})[:：]", re.MULTILINE)


def prose(text: str) -> str:
    """Gives the prose of a document; what was taken out leaves a full stop, so that no phrase reaches over it."""
    text = _FRONT.sub("\n", text)
    text = FENCED.sub("\n", text)
    text = _COMMENT.sub(" ", text)
    text = _CODE.sub(" . ", text)
    text = _LINK.sub(r"\1", text)
    return _ADDRESS.sub(" . ", text)


def marked(text: str) -> Iterator[tuple[str, float]]:
    """Gives what a text marks as important, and how much: headings, what is bold or quoted, what is defined."""
    for found in _HEADING.finditer(text):
        yield found[1], 1.0
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
