"""Which names documents may have: relative paths that mean the same on every machine and look like nothing else."""

import re
import unicodedata
from pathlib import PurePosixPath
from typing import Final

from tsuzuki.apps.glossary.refusals import BadFileName, Refused

ENDINGS: Final = (".txt", ".md")
LARGEST: Final = 3 * 1024 * 1024
LONGEST_SEGMENT: Final = 255
LONGEST_PATH: Final = 1024
_INVALID: Final = frozenset('<>:"|?*')
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?", re.IGNORECASE)
_LOOKALIKES: Final = frozenset("／⁄∕⧸＼⧵﹨．․‥…：﹕∶＊？＂＜＞｜")
"""Characters that look like those which mean something in a path."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that nobody sees: control, bidirectional, zero-width, surrogates, unassigned."""


def checked_name(name: str) -> str:
    """Gives the name as it is stored (NFC), or says what is wrong with it."""
    clean = unicodedata.normalize("NFC", name)
    if not clean.strip():
        raise _bad("空です", "it is empty", name)
    if clean.startswith(("/", "~")) or re.match(r"[A-Za-z]:", clean):
        raise _bad("絶対パスは使えません", "an absolute path is not taken: give a path inside the project", name)
    if "\\" in clean:
        raise _bad("バックスラッシュは使えません", "it has a backslash: write / between folders", name)
    for sign in clean:
        if unicodedata.category(sign) in _HIDDEN or sign in _LOOKALIKES:
            raise _bad("使えない文字があります", f"it has a character that is not taken (U+{ord(sign):04X})", name)
        if sign in _INVALID:
            raise _bad("使えない文字があります", f"it has a character that some systems refuse ({sign})", name)
    if len(clean.encode()) > LONGEST_PATH:
        raise _bad("パスが長すぎます", f"the path is longer than {LONGEST_PATH} bytes", name)
    for segment in clean.split("/"):
        _check_segment(segment, name)
    if not clean.lower().endswith(ENDINGS):
        raise _bad(".txt または .md のみ使えます", "only .txt and .md are taken", name)
    return clean


def _check_segment(segment: str, name: str) -> None:
    if segment in ("", ".", ".."):
        raise _bad("パスが不正です", "a part of the path is empty, . or ..", name)
    if len(segment.encode()) > LONGEST_SEGMENT:
        raise _bad("名前が長すぎます", f"a part of the path is longer than {LONGEST_SEGMENT} bytes", name)
    if segment != segment.strip() or segment.endswith("."):
        raise _bad("末尾の空白やピリオドは使えません", "a part of the path begins or ends with a space or a dot", name)
    if _DEVICES.fullmatch(segment):
        raise _bad("予約された名前です", "that name is reserved on some systems", name)


def check_content(name: str, content: str) -> None:
    """Refuses a text that is too large or no text."""
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > LARGEST:
        raise Refused(f"ファイルが大きすぎます / {_shown(name)} has {size:,} bytes: at most 3 MB are taken")
    if "\x00" in content or any("\ud800" <= sign <= "\udfff" for sign in content):
        raise Refused(f"テキストではありません / {_shown(name)} is no text in UTF-8")


def _bad(japanese: str, english: str, name: str) -> BadFileName:
    return BadFileName(f"ファイル名が不正です: {japanese} / {_shown(name)}: {english}")


def _shown(name: str) -> str:
    """Gives a name for a message: its end, without signs that nobody sees."""
    last = PurePosixPath(name.replace("\\", "/")).name or name
    return repr("".join(sign if sign.isprintable() else "?" for sign in last[-80:]))
