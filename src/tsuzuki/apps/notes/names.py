"""File names that are safe on every system, made of titles."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from tsuzuki.apps.notes.digests import digest

LONGEST: Final = 100
"""How many bytes of a title a name has: with suffixes it fits into the 255 that disks allow, and into long paths."""
UNTITLED: Final = "untitled"
_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*\[\]#^%\x00-\x1f\x7f-\x9f]+')
_RESERVED: Final = re.compile(r"(?i)(con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³]|conin\$|conout\$)(\..*)?")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS: Final = frozenset("\u200d\ufe0f")
"""They make one picture of several: emoji keep them."""


def safe(title: str) -> str:
    """Makes a file name, without its ending, of a title."""
    seen = title if title.isascii() and title.isprintable() else _seen(title)
    name = " ".join(_FORBIDDEN.sub(" ", seen).split())
    name = name.encode()[:LONGEST].decode(errors="ignore").strip(" .").lstrip("~-$")
    name = name.strip(" .\u200d\ufe0f")
    return f"_{name}" if _RESERVED.fullmatch(name) else name or UNTITLED


def _seen(title: str) -> str:
    """Gives a title in one spelling, without what nobody sees."""
    plain = unicodedata.normalize("NFC", title)
    return "".join(" " if sign.isspace() else sign for sign in plain if _shown(sign))


def _shown(sign: str) -> bool:
    return sign in _JOINERS or sign in "\t\n" or unicodedata.category(sign) not in _UNSEEN


def folded(name: str) -> str:
    """Gives what a name is on systems that tell neither cases nor spellings of a letter apart."""
    return (
        name.lower() if name.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    )


def candidates(stem: str, item_id: str) -> Iterator[str]:
    """Gives the names that a note may have: the plain one, then ones that nobody else would have."""
    yield f"{stem}.md"
    base, dash, number = stem.rpartition("_")
    numbered = dash and number.isdigit() and len(number) == len("001")
    head, tail = (base, f"_{number}") if numbered else (stem, "")
    own = digest(item_id)
    yield from (f"{head}-{own[:8]}{tail}.md", f"{head}-{own[:16]}{tail}.md", f"{own}{tail}.md")
