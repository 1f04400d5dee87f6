"""Names of files as text, whatever they were written in: a file keeps its own name, and is opened by it.

Names in an old ZIP, and on a disk that one was unpacked onto, are bytes of the system that made it. Those that are no
UTF-8 are read as Windows in Japan writes them where that makes sense.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import Final

from tsuzuki.apps.notes.digests import digest

_BYTES: Final = re.compile("[\udc80-\udcff]")
"""How Python writes the bytes of a name that are no UTF-8."""
_NOBODYS: Final = re.compile("[\x80-\x9f\ue000-\uf8ff]")
"""What the bytes of another system become: signs that no name has."""
_WINDOWS: Final = "cp932"


def spelled(name: str) -> str:
    """Gives the name of a file as a text; what cannot be read of it is replaced. Of a path each part counts alone."""
    if name.isascii() or not _BYTES.search(name):
        return name
    return "/".join(_read(os.fsencode(part)) or os.fsencode(part).decode(errors="replace") for part in name.split("/"))


def spelled_in_zip(name: str) -> str:
    """Gives the name of a file in a ZIP that does not say how it is written, and was taken for cp437."""
    return name if name.isascii() else _read(name.encode("cp437")) or name


def _read(raw: bytes) -> str:
    for encoding in ("utf-8", _WINDOWS):
        with suppress(UnicodeDecodeError):
            text = raw.decode(encoding)
            if not _NOBODYS.search(text):
                return text
    return ""


def by_text(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Gives names by their texts; one whose text is another's name already gets a mark made of its bytes."""
    own, foreign = {}, []
    for name, text in names:
        if name == text:
            own[text] = name
        else:
            foreign.append((name, text))
    for name, text in sorted(foreign):
        own[_marked(name, text) if text in own else text] = name
    return own


def _marked(name: str, text: str) -> str:
    path = PurePath(text)
    return path.with_name(f"{path.stem}-{digest(ascii(name))[:8]}{path.suffix}").as_posix()
