"""What the stages put out, found again by item: the items of extract, the notes of transform, the files of load."""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from zlib import crc32

import msgspec

from tsuzuki.apps.notes.items import ProcessingItem
from tsuzuki.apps.notes.refusals import ExtractDamaged, ItemNotFound
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.errors import BadUsage

ITEMS: Final = "items.jsonl"
INDEX: Final = "index.jsonl"
COMPLETE: Final = "complete.json"
_MAPPED: Final = 16 * 1024 * 1024
"""So much of a mapped file may count as our memory: it would be all of it otherwise, as large as the export."""
_LET_GO: Final = getattr(mmap, "MADV_DONTNEED", None)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of `index.jsonl`: where an item stands in `items.jsonl`, and what one wants to know without reading it."""

    item_id: str
    begins: int
    length: int
    status: str = "PENDING"
    """PENDING: to be transformed; SKIPPED and FAILED: extract itself has done with it."""
    title: str = ""
    reason: str = ""
    parent: str = ""
    parts: tuple[str, ...] = ()
    """The chunks that a parent is merged from."""
    sum: int | None = None
    """The CRC-32 of the line: a disk that gives other bytes back, or an editor, does not go unnoticed."""


_ENTRY: Final = msgspec.json.Decoder(Entry).decode


class _Place(msgspec.Struct, frozen=True, gc=False):
    """What a run needs of an entry: there is one for each item of an export, all the time."""

    item_id: str
    begins: int
    length: int
    status: str = "PENDING"
    parts: tuple[str, ...] = ()
    sum: int | None = None


_PLACE: Final = msgspec.json.Decoder(_Place).decode


class _OnlyId(msgspec.Struct):
    item_id: str


_ONLY_ID: Final = msgspec.json.Decoder(_OnlyId).decode


class whole:  # noqa: N801 - said as `with whole():`
    """Makes of a line that is none any more the error that says so; the stage is done anew by whoever resumes."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raises that error."""
        if isinstance(error, msgspec.MsgspecError | UnicodeDecodeError | BadUsage | TypeError):
            raise ExtractDamaged from error


class Extracted:
    """The items of a session, once extract is whole."""

    def __init__(self, folder: Path) -> None:
        with (folder / INDEX).open("rb") as index, whole():
            self.entries = {place.item_id: place for place in map(_PLACE, index)}
        with (folder / ITEMS).open("rb") as file:  # mapped: to read an item is no call that others wait for
            empty = not os.fstat(file.fileno()).st_size
            self._items = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._read, self._whole = 0, whole()

    def item(self, item_id: str) -> ProcessingItem:
        """Reads an item."""
        entry = self.entries.get(item_id)
        if entry is None:
            raise ItemNotFound(f"{item_id!r} はセッションにありません / {item_id!r} is no item of the session")
        raw = self._items[entry.begins : entry.begins + entry.length]
        self._read += entry.length
        if self._read > _MAPPED and _LET_GO is not None and isinstance(self._items, mmap.mmap):
            self._items.madvise(_LET_GO)
            self._read = 0
        if entry.sum is not None and crc32(raw) != entry.sum:
            raise ExtractDamaged
        with self._whole:
            return ProcessingItem.from_dict(msgspec.json.decode(raw))

    def close(self) -> None:
        """Closes the file."""
        if isinstance(self._items, mmap.mmap):
            self._items.close()


def _entries(path: Path) -> Iterator[Entry]:
    with path.open("rb") as file:
        for line in file:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # whoever works on it finds out, and mends it
                yield _ENTRY(line)


def entries_of(folder: Path) -> list[Entry]:
    """Gives what the index says, or nothing where extract is not whole."""
    return list(_entries(folder / INDEX)) if (folder / INDEX).exists() else []


class Kept:
    """An output that is appended to: the last line of an item counts."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._places: dict[str, tuple[int, int]] | None = None

    def put(self, item_id: str, plain: dict[str, Any]) -> None:
        """Keeps what became of an item."""
        self.put_all([(item_id, msgspec.json.encode({"item_id": item_id, **plain}))])

    def put_all(self, encoded: Sequence[tuple[str, bytes]]) -> None:
        """Keeps what became of several, in one write."""
        places = self._lines.extend([line for _, line in encoded])
        if self._places is not None:
            self._places.update(zip((item_id for item_id, _ in encoded), places, strict=True))

    def get(self, item_id: str) -> dict[str, Any] | None:
        """Gives what was kept for an item; None where there is nothing."""
        if self._places is None:  # most imports never look back: the file is read when somebody does
            self._places = {item: place for item, place, _ in lines_of(self._lines.path)}
        place = self._places.get(item_id)
        if place is None:
            return None
        found: dict[str, Any] = msgspec.json.decode(self._lines.read(*place))
        return found

    def sync(self) -> None:
        """Waits until it is on the disk."""
        self._lines.sync()

    def close(self) -> None:
        """Closes the file."""
        self._lines.close()


def lines_of(path: Path) -> Iterator[tuple[str, tuple[int, int], bytes]]:
    """Gives the lines of an output: the item, where the line stands, and the line; half ones are passed over."""
    if not path.exists():
        return
    begins = 0
    with path.open("rb") as file:
        for line in file:
            begins += len(line)
            try:
                item_id = _ONLY_ID(line).item_id
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            yield item_id, (begins - len(line), len(line)), line


def kept_for(path: Path, item_id: str) -> dict[str, Any] | None:
    """Gives what an output has of one item."""
    found = [line for item, _, line in lines_of(path) if item == item_id]
    plain: dict[str, Any] | None = msgspec.json.decode(found[-1]) if found else None
    return plain
