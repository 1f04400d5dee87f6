"""A note as Markdown: front matter that every YAML reader understands, headings below the title, references."""

import json
import re
from collections.abc import Iterator, Mapping
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
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FIRST_UNDERLINED: Final = re.compile(r"^ {0,3}=+[ \t]*$", re.MULTILINE)
_BEGINS_ELSE: Final = re.compile(r" {0,3}(?:[#>|]|[-+*][ \t]|\d{1,9}[.)][ \t])| {4}|\t")
"""How lines begin that are no words of a paragraph: headings, quotes, tables, lists, code."""
_INLINE: Final = re.compile(r"(?<!`)(`++)(?!`)[^`]*+(?:(?!\1(?!`))`++[^`]*+)*+\1(?!`)")
"""Code within a line."""
_LINKS: Final = re.compile(r"(?<!\\)(?:\[\[|%%)")
_SIGNS: Final = re.compile(r"(?<!\\)(?:\[\[|%%|(?<!\S)#(?=\w))")
"""What begins a link or a comment, and a tag: in a title or a summary that is no heading of its own."""
_KANA: Final = re.compile(r"[ぁ-ゖァ-ヺ]")
_FIELD: Final = re.compile(r"^([\w-]+):[ \t]+(\S.*)$", re.MULTILINE)
_PROPERTY: Final = re.compile(r"([^\s:#-][^:]*):(?=\s|$)")
_OURS: Final = frozenset(
    {"title", "summary", "created", "source_provider", "source_conversation", "source_hash", "item_id", "model", "tags",
     "content_hash"}
)  # fmt: skip
"""The properties that an import writes; any other is the owner's."""
_DEEPEST: Final = 6
ORIGIN: Final[tuple[str, ...]] = ("created", "source_provider", "conversation_id", "file_id")
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
    model: str = ""
    """Which model made it; "" where none did. Such a note is paid for, and gives way to no other."""
    untranslated: str = ""
    """Why its summary is not in the language that was asked for."""


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


def said_in(metadata: Mapping[str, Any]) -> str:
    """Return the digest of what was said in a conversation, as its note states it; "" where it is not known."""
    return str(metadata.get("file_id", "")).removeprefix("sha256:")[:_HASHED]


def rendered(item: Described, note: Note, *, created: str, properties: str = "") -> str:
    """Writes the note of an item; `created` is the day of the import, for one whose own is not known.

    `properties` are lines of front matter that the owner of the vault has added.
    """
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
    if said := said_in(item.metadata):
        about["source_hash"] = scalar(said)
    if note.model:
        about["model"] = scalar(note.model)
    if note.tags:
        about["tags"] = f"[{', '.join(map(scalar, note.tags))}]"
    about["content_hash"] = scalar(_hash(body))
    front = "\n".join(f"{name}: {value}" for name, value in about.items())
    return f"---\n{front}\n{properties}---\n{body}"


def _hash(body: str) -> str:
    """Return what tells whether the text of a note was edited; its properties may change."""
    return digest(body)[:_HASHED]


def _body(note: Note) -> str:
    summary, references, parts = WORDS[language_of(note.summary + note.content)]
    sections = [f"# {plain(note.title, _SIGNS)}", f"## {summary}", _closed(plain(note.summary.strip(), _SIGNS)),
                plain(shifted(note.content.strip()))]  # fmt: skip
    if note.parts:
        sections += [f"## {parts}", "\n".join(f"- [[{name.removesuffix('.md')}]]" for name in note.parts)]
    if note.references:
        sections += [f"## {references}", "\n".join(f"- {_said(each)}" for each in note.references)]
    return "\n" + "\n\n".join(section for section in sections if section) + "\n"


def plain(text: str, signs: re.Pattern[str] = _LINKS) -> str:
    """Return a text in which nothing but code looks like a link, a comment or a tag of Obsidian."""
    if signs.search(text) is None:
        return text
    return "\n".join(line if code else _escaped(line, signs) for line, code in _coded(text))


def _escaped(line: str, signs: re.Pattern[str]) -> str:
    pieces, begins = list[str](), 0
    for code in _INLINE.finditer(line):
        pieces += [signs.sub(_behind, line[begins : code.start()]), code[0]]
        begins = code.end()
    return "".join([*pieces, signs.sub(_behind, line[begins:])])


def _behind(found: re.Match[str]) -> str:
    return "".join(f"\\{sign}" for sign in found[0])


def _said(line: str) -> str:
    """Gives a line that stands in a list for what it says: one that begins as a heading or a list would is none."""
    return f"\\{line}" if line[:1] in _BEGINNINGS else line


def shifted(text: str) -> str:
    """Moves headings below the title of the note, those in code excepted; code that is left open is closed."""
    underlined = "=" in text and _FIRST_UNDERLINED.search(text) is not None
    if "#" not in text and not underlined:
        return _closed(text)
    if not underlined and _low_enough(text):
        return text
    lines = _lines(_by_signs(text))
    levels = [len(found[2]) for _, found in lines if found]
    down = max(2 - min(levels), 0) if levels else 0
    return _closed("\n".join(_moved(line, found, down) for line, found in lines))


def _low_enough(text: str) -> bool:
    """Tells whether a text without code has nothing to move; one look at the whole, where its lines cost many."""
    return not any(fence in text for fence in _FENCES) and all(len(found[2]) > 1 for found in _HEADING.finditer(text))


def _lines(text: str) -> list[tuple[str, re.Match[str] | None]]:
    """Gives each line, with its heading where it is one."""
    return [(line, None if code else _HEADING.match(line)) for line, code in _coded(text)]


def _coded(text: str) -> Iterator[tuple[str, bool]]:
    """Gives each line, and whether it is one of code, as the fences around it are."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            fence = ""
            yield line, True
            continue
        yield line, bool(fence)


def _by_signs(text: str) -> str:
    """Writes headings that are underlined as others are: with signs before them."""
    made: list[str] = []
    words: list[str] | None = []
    """The lines of the paragraph so far; None in what is no paragraph, up to its end."""
    for line, code in _coded(text):
        mark = None if code else _UNDERLINE.fullmatch(line)
        if mark and words:
            del made[-len(words) :]
            made.append(f"{'#' if mark[1][0] == '=' else '##'} {' '.join(map(str.strip, words))}")
            words = []
            continue
        made.append(line)
        if code or mark or not line.strip() or _HEADING.match(line):
            words = []
        elif _BEGINS_ELSE.match(line):
            words = None
        elif words is not None:
            words.append(line)
    return "\n".join(made)


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


def fields_of(front: str) -> dict[str, str]:
    """Return the properties in front matter whose values are single texts, without their quotes."""
    return {name: _unquoted(value.rstrip()) for name, value in _FIELD.findall(front)}


def _unquoted(value: str) -> str:
    if value[:1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value
    return value[1:-1].replace("''", "'") if value[:1] == value[-1:] == "'" else value


def _halves(text: str) -> tuple[str, str]:
    """Return the front matter and the body of a note; the front matter is empty where there is none."""
    front, end, body = text.removeprefix("---\n").partition("\n---\n")
    return (front, body) if end and text.startswith("---\n") else ("", text)


def is_edited(text: str) -> bool:
    """Tell whether somebody has edited the text of a note; a changed property is no edit."""
    front, body = _halves(text)
    return fields_of(front).get("content_hash") != _hash(body)


def is_own(text: str, item_id: str, *, paid: bool = True) -> bool:
    """Tells whether a file is the note of an item with its text as it was written: one that was edited is theirs.

    For a note that nothing was `paid` for, one that a model made is not: it stays.
    """
    fields = fields_of(_halves(text)[0])
    return fields.get("item_id") == item_id and (paid or "model" not in fields) and not is_edited(text)


def with_properties_of(text: str, note: Note) -> tuple[Note, str]:
    """Return a note with the tags of an older text of it added, and the lines of properties that its owner added."""
    front, _ = _halves(text)
    own, lines = False, list[str]()
    for line in front.split("\n"):
        if found := _PROPERTY.match(line):
            own = found[1].strip("\"' ") not in _OURS
        if own:
            lines.append(f"{line}\n")
    tags = dict.fromkeys((*_tags(front), *note.tags))
    return msgspec.structs.replace(note, tags=tuple(tags)), "".join(lines)


def _tags(front: str) -> list[str]:
    import yaml  # noqa: PLC0415 - few notes are replaced

    try:
        found = yaml.safe_load(front)
    except yaml.YAMLError:
        return []
    tags = found.get("tags") if isinstance(found, dict) else None
    return [str(tag) for tag in (tags if isinstance(tags, list) else [tags]) if tag]
