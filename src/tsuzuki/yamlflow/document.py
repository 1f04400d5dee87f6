"""Reads YAML into a small tree with places: from events alone, no objects, bounded in size, depth and aliases."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import yaml

from tsuzuki.errors import BadWorkflow, WorkflowTooLarge
from tsuzuki.yamlflow.flaws import Place, refused, shown

DEEPEST: Final = 32
"""How many lists and mappings may stand in each other."""
_GROWTH: Final = 2
"""How many times its own size a document may say with the help of aliases."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAK: Final = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_UNREADABLE: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Source:
    """The text of a document, by its lines."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """The lines, as YAML counts them."""
        return _BREAK.split(self.text)


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar: its text, and whether it stands there plain, so that it may be a number."""

    value: str
    plain: bool
    place: Place
    style: str
    source: Source
    weight: int
    height: int = 0

    def at(self, offset: int) -> Place:
        """Gives the place in the document of a character of the text, as exactly as its style allows."""
        before = _BREAK.split(self.value[:offset])
        line, column = len(before) - 1, len(before[-1])
        if self.style == "|":
            return self._in_block(line, column)
        written = self._line(self.place.line)[self.place.column - 1 :]
        opening = 0 if self.plain else 1
        if written[opening:].startswith(self.value):
            return Place(self.place.line, self.place.column + opening + column)
        return self.place

    def _in_block(self, line: int, column: int) -> Place:
        """A literal block begins on the line below; what stands before a line of it is its indentation."""
        number = self.place.line + 1 + line
        content = _BREAK.split(self.value)[line]
        return Place(number, max(len(self._line(number)) - len(content), 0) + column + 1)

    def _line(self, number: int) -> str:
        lines = self.source.lines
        return lines[number - 1] if number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Node", ...]
    place: Place
    weight: int
    height: int


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; its keys are texts, each there once."""

    fields: tuple[tuple[Text, "Node"], ...]
    place: Place
    weight: int
    height: int


Node: TypeAlias = Text | Items | Fields


class _Open:
    """A list or a mapping whose end has not come yet."""

    def __init__(self, event: Any, *, fields: bool) -> None:
        self.place = _place(event.start_mark)
        self.anchor: str | None = event.anchor
        self.fields = fields
        self.nodes: list[Node] = []
        self.keys: set[str] = set()


def read(text: bytes | str, *, most_bytes: int) -> Node:
    """Reads one document."""
    source = Source(_decoded(text, most_bytes))
    try:
        return _Builder(source, most_bytes * _GROWTH).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise refused(_place(mark), f"this is not YAML: {said}; look at the indentation, brackets and quotes") from None
    except yaml.YAMLError as error:
        raise refused(Place(1, 1), f"this is not YAML: {error}") from None


def _decoded(text: bytes | str, most_bytes: int) -> str:
    """Gives the text; refuses what is too large, not UTF-8, or holds characters that YAML has no place for."""
    try:
        encoded = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise _not_text(str(text)[: error.start]) from None
    if len(encoded) > most_bytes:
        raise WorkflowTooLarge(
            f"workflow too large: {len(encoded):,} bytes, and at most {most_bytes:,} are taken; "
            "keep rows and documents out of the workflow, and let its tasks read them"
        )
    try:
        decoded = encoded.decode()
    except UnicodeDecodeError as error:
        raise _not_text(encoded[: error.start].decode()) from None
    decoded = decoded.removeprefix("\ufeff")
    unreadable = _UNREADABLE.search(decoded)
    if unreadable is not None:
        before = _BREAK.split(decoded[: unreadable.start()])
        place = Place(len(before), len(before[-1]) + 1)
        raise refused(place, f"the character U+{ord(unreadable[0]):04X} cannot stand in YAML; remove it")
    return decoded


def _not_text(before: str) -> BadWorkflow:
    lines = _BREAK.split(before)
    return refused(Place(len(lines), len(lines[-1]) + 1), "this is not UTF-8; save the file as UTF-8")


def _place(mark: Any) -> Place:
    return Place(1, 1) if mark is None else Place(mark.line + 1, mark.column + 1)


class _Builder:
    """Builds the tree out of the events of the parser; nothing recurses, so nothing can be nested too deeply for it."""

    def __init__(self, source: Source, most: int) -> None:
        self._source = source
        self._most = most
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._root: Node | None = None
        self._documents = 0

    def build(self) -> Node:
        for event in self._events():
            self._take(event)
        if self._root is None:
            raise refused(Place(1, 1), "there is nothing in it; a workflow begins with `flow:` and `tasks:`")
        return self._root

    def _events(self) -> Iterator[Any]:
        events: Iterator[Any] = yaml.parse(self._source.text, Loader=_LOADER)
        return events

    def _take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise refused(_place(event.start_mark), "a second document begins here; a file holds one workflow")
            case yaml.ScalarEvent():
                self._refuse_tag(event)
                self._keep(self._text(event), event.anchor)
            case yaml.AliasEvent():
                self._keep(self._aliased(event), None)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._refuse_tag(event)
                self._begin(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end()

    def _text(self, event: Any) -> Text:
        place = _place(event.start_mark)
        style = event.style or ""
        return Text(event.value, not style, place, style, self._source, 1 + len(event.value))

    def _aliased(self, event: Any) -> Node:
        place, name = _place(event.start_mark), event.anchor
        if name not in self._anchors:
            raise refused(place, f"*{name} names no anchor above it; write &{name} where the value stands")
        node = self._anchors[name]
        if node is None:
            raise refused(place, f"*{name} stands inside of &{name} itself, which would never end")
        return node

    def _begin(self, event: Any) -> None:
        opened = _Open(event, fields=isinstance(event, yaml.MappingStartEvent))
        if len(self._open) >= DEEPEST:
            raise refused(opened.place, f"this is nested deeper than {DEEPEST} levels")
        if self._open and self._awaits_key(self._open[-1]):
            raise refused(opened.place, "a key is a text, not a list or a mapping")
        if opened.anchor is not None:
            self._anchors[opened.anchor] = None
        self._open.append(opened)

    def _end(self) -> None:
        opened = self._open.pop()
        weight = 1 + sum(node.weight for node in opened.nodes)
        height = 1 + max((node.height for node in opened.nodes), default=0)
        if weight > self._most or height > DEEPEST:
            raise refused(
                opened.place, "its aliases make this far larger than it looks; write less, or without aliases"
            )
        node: Node
        if opened.fields:
            pairs = zip(opened.nodes[::2], opened.nodes[1::2], strict=True)
            fields = tuple((key, value) for key, value in pairs if isinstance(key, Text))
            node = Fields(fields, opened.place, weight, height)
        else:
            node = Items(tuple(opened.nodes), opened.place, weight, height)
        self._keep(node, opened.anchor)

    def _keep(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        if self._awaits_key(parent):
            self._check_key(parent, node)
        parent.nodes.append(node)

    @staticmethod
    def _awaits_key(parent: _Open) -> bool:
        return parent.fields and len(parent.nodes) % 2 == 0

    @staticmethod
    def _check_key(parent: _Open, node: Node) -> None:
        if not isinstance(node, Text):
            raise refused(node.place, "a key is a text, not a list or a mapping")
        if node.plain and node.value == "<<":
            raise refused(
                node.place, "merge keys (<<) are not read here; write the fields out, or use *alias for a value"
            )
        if node.value in parent.keys:
            raise refused(node.place, f"the key {shown(node.value)} is there twice; keep one of them")
        parent.keys.add(node.value)

    @staticmethod
    def _refuse_tag(event: Any) -> None:
        if event.tag is not None:
            raise refused(
                _place(event.start_mark),
                f"the tag {shown(event.tag)} is not read here: nothing is made but plain values",
            )
