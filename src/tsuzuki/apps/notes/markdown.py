"""A note as Markdown: front matter that every YAML reader understands, headings below the title, references."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from tsuzuki.apps.notes.digests import digest

WORDS: Final = {"en": ("Summary", "References", "Parts"), "ja": ("要約", "参考", "分割されたノート")}
_BEGINNINGS: Final = frozenset("#>-+*`~=|_")
_PLAIN: Final = re.compile(r"[^\W\d_][\w、。・「」（）()/ +-]*")
_NO_TEXT: Final = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null", "none", "nan", "inf"})
_ESCAPED: Final = re.compile(
    '[\\\\"\x00-\x1f\x7f-\xa0\xad\u2000-\u200f\u2028-\u202f\u205f-\u206f\ud800-\udfff\ufeff\ufff0-\uffff]'
)
_SHORT: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING: Final = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)", re.MULTILINE)
_FENCES: Final = ("```", "~~~")
_KANA: Final = re.compile(r"[ぁ-ゖァ-ヺ]")
_HASH: Final = "\ncontent_hash: "
_ITEM: Final = re.compile(r"^item_id: (.+)$", re.MULTILINE)
_DEEPEST: Final = 6
ORIGIN: Final[tuple[str, ...]] = ("created", "source_provider", "conversation_id")
_HASHED: Final = 16


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a conversation."""

    title: str
    summary: str
    content: str
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """The file names of the notes that it was merged from."""
    cost: float | None = None
    """What the answers cost (US dollars); None where the price is not known."""


@lru_cache(maxsize=256)  # what notes have in common: provider, tags, an id that is said twice
def scalar(text: str) -> str:
    """Writes a text as YAML: plain where no reader can take it for anything else, else in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT and not text.endswith(" "):
        return text
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    if sign in _SHORT:
        return _SHORT[sign]
    if "\ud800" <= sign <= "\udfff":
        return "\ufffd"
    return f"\\u{ord(sign):04x}"


def language_of(text: str) -> str:
    """Says whether a text is Japanese or not."""
    return "ja" if not text.isascii() and _KANA.search(text) else "en"


class Described(Protocol):
    """What a note says of where it comes from."""

    @property
    def item_id(self) -> str:
        """The item that it is the note of."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What is known of the conversation: of it `ORIGIN` is read."""
        ...


def rendered(item: Described, note: Note, *, created: str) -> str:
    """Writes the note of an item; `created` is the day of the import, for one whose own is not known."""
    body = _body(note)
    own = item.metadata.get("created")
    about: dict[str, Any] = {
        "title": scalar(note.title),
        "summary": scalar(note.summary),
        "created": own or created,
        "source_provider": scalar(str(item.metadata.get("source_provider", ""))),
        "source_conversation": scalar(str(item.metadata.get("conversation_id", item.item_id))),
        "item_id": scalar(item.item_id),
    }
    if note.tags:
        about["tags"] = f"[{', '.join(map(scalar, note.tags))}]"
    front = "\n".join(f"{name}: {value}" for name, value in about.items())
    return f"---\n{front}{_HASH}{_hash(front, body)}\n---\n{body}"


def _hash(front: str, body: str) -> str:
    """Tells whether anything was edited: people add tags and aliases to the front matter, too."""
    return digest(f"{front}\n---\n{body}")[:_HASHED]


def _body(note: Note) -> str:
    summary, references, parts = WORDS[language_of(note.summary + note.content)]
    sections = [f"# {note.title}", f"## {summary}", _closed(note.summary.strip()), shifted(note.content.strip())]
    if note.parts:
        sections += [f"## {parts}", "\n".join(f"- [[{name.removesuffix('.md')}]]" for name in note.parts)]
    if note.references:
        sections += [f"## {references}", "\n".join(f"- {_said(each)}" for each in note.references)]
    return "\n" + "\n\n".join(section for section in sections if section) + "\n"


def _said(line: str) -> str:
    """Gives a line that stands in a list for what it says: one that begins as a heading or a list would is none."""
    return f"\\{line}" if line[:1] in _BEGINNINGS else line


def shifted(text: str) -> str:
    """Moves headings below the title of the note, those in code excepted; code that is left open is closed."""
    if "#" not in text:
        return _closed(text)
    if _low_enough(text):
        return text
    lines = _lines(text)
    levels = [len(found[2]) for _, found in lines if found]
    down = max(2 - min(levels), 0) if levels else 0
    return _closed("\n".join(_moved(line, found, down) for line, found in lines))


def _low_enough(text: str) -> bool:
    """Tells whether a text without code has nothing to move; one look at the whole, where its lines cost many."""
    return not any(fence in text for fence in _FENCES) and all(len(found[2]) > 1 for found in _HEADING.finditer(text))


def _lines(text: str) -> list[tuple[str, re.Match[str] | None]]:
    """Gives each line, with its heading where it is one."""
    fence, found = "", list[tuple[str, re.Match[str] | None]]()
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            fence = ""
            found.append((line, None))
            continue
        found.append((line, None if fence else _HEADING.match(line)))
    return found


def _moved(line: str, heading: re.Match[str] | None, down: int) -> str:
    if heading is None or not down:
        return line
    level = min(len(heading[2]) + down, _DEEPEST)
    return f"{heading[1]}{'#' * level}{line[heading.end() :]}"


def _closed(text: str) -> str:
    """Closes code that was left open: what follows would be taken for code."""
    if not any(fence in text for fence in _FENCES):
        return text
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def is_own(text: str, item_id: str) -> bool:
    """Tells whether a file is the note of an item as it was written: one that somebody has edited is theirs."""
    front, end, body = text.removeprefix("---\n").partition("\n---\n")
    if not end or not text.startswith("---\n"):
        return False
    about, _, kept = front.rpartition(_HASH)
    item = _ITEM.search(about)
    return item is not None and item[1] == scalar(item_id) and kept == _hash(about, body)
