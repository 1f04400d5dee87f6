"""`CompletedItemsCache`: which items a stage has done, read from `pipeline_stages.jsonl`."""

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import msgspec

from tsuzuki.apps.notes.items import StageType

logger: Final = logging.getLogger("tsuzuki.notes")
_MOST_WARNINGS: Final = 20
"""How many bad lines are named one by one."""
_SUCCESS: Final = "success"
BOM: Final = b"\xef\xbb\xbf"
"""What some editors put before a text."""
Told: TypeAlias = set[tuple[str, int]]
"""The bad lines that were warned of, each by its log and number."""
_TOLD: Final[ContextVar[Told | None]] = ContextVar("notes_told", default=None)
_EVER: Final[Told] = set()
_MOST_KEPT: Final = 10_000


class _Line(msgspec.Struct):
    """What is read of a line; the rest of it is for people."""

    stage: str
    status: str
    item_id: str
    parent_item_id: str | None = None
    chunk_index: int | None = None


_READ: Final = msgspec.json.Decoder(_Line).decode
NO_SENSE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a line raises that makes no sense."""


@dataclass
class CompletedItemsCache:
    """The items that a stage has done: those whose latest record is a success."""

    items: set[str]
    stage: StageType
    chunks: dict[str, set[int]] = field(default_factory=dict, repr=False)
    """The chunks that are done, by the item they are pieces of."""

    def __post_init__(self) -> None:
        self.stage = _checked(self.stage)

    @classmethod
    def from_jsonl(cls, jsonl_path: Path, stage: StageType, *, until: int | None = None) -> "CompletedItemsCache":
        """Reads the log, or its first `until` bytes; one that cannot be read warns and gives an empty cache.

        The latest record of an item decides. A bad line is passed over with a warning that names it.
        """
        return _read(Path(jsonl_path), _checked(stage), until, set(), growing=False)

    def is_completed(self, item_id: str) -> bool:
        """Tells whether an item is done."""
        return item_id in self.items

    def is_parent_completed(self, parent_item_id: str, total_chunks: int) -> bool:
        """Tells whether all chunks of an item are done; one that is missing counts as not done."""
        return len(self.chunks.get(parent_item_id, ())) >= total_chunks > 0

    def leave_out(self, wholes: Iterable[tuple[str, Iterable[str]]]) -> None:
        """Counts wholes as not done of which a part is not: these are done together, or merged anew."""
        for item_id, parts in wholes:
            if not all(part in self.items for part in parts):
                self.items.discard(item_id)

    def __len__(self) -> int:
        return len(self.items)


@contextmanager
def telling_once() -> Iterator[None]:
    """Lets all who read logs inside, such as a command and the run it carries out, warn of a bad line once."""
    token = _TOLD.set(set())
    try:
        yield
    finally:
        _TOLD.reset(token)


def told_here() -> Told:
    """Gives what was warned of by the command around this code; outside of one nothing was."""
    found = _TOLD.get()
    return set() if found is None else found


def done_in(path: Path, stage: StageType, *, until: int | None = None, told: Told | None = None) -> CompletedItemsCache:
    """Reads a log as `from_jsonl` does, and warns of nothing twice: by `told`, else in a command, else in a process.

    A gateway reads the same log again and again, for pages that look every second: half a line at its end is being
    written, or is told of once somebody goes on behind it.
    """
    if told is None and (told := _TOLD.get()) is None:
        if len(_EVER) > _MOST_KEPT:
            _EVER.clear()
        told = _EVER
    return _read(path, stage, until, told, growing=True)


def _read(path: Path, stage: StageType, until: int | None, told: Told, *, growing: bool) -> CompletedItemsCache:
    try:
        with path.open("rb") as file:
            found = _records(path, lines_in(file, until), told, growing=growing)
            return CompletedItemsCache(*_done(found, stage.value))
    except FileNotFoundError:
        pass
    except OSError as error:
        if (str(path), 0) not in told:
            logger.warning("%s cannot be read (%s): every item counts as not done", path, error)
        told.add((str(path), 0))
    return CompletedItemsCache(set(), stage)


def _checked(stage: Any) -> StageType:
    found = StageType(stage)
    if found is StageType.EXTRACT:
        raise ValueError("extract is passed over as a whole stage: a cache is for transform or load")
    return found


def _done(records: Iterator[_Line], stage: str) -> tuple[set[str], StageType, dict[str, set[int]]]:
    items: set[str] = set()
    chunks: dict[str, set[int]] = {}
    seen: dict[str, set[int]] = {}
    for line in records:
        if line.stage != stage:
            continue
        done = line.status == _SUCCESS
        if done:
            items.add(line.item_id)
        else:
            items.discard(line.item_id)
        if line.parent_item_id is not None:
            pieces = chunks.setdefault(line.parent_item_id, set())
            if line.chunk_index is not None:
                seen.setdefault(line.parent_item_id, set()).add(line.chunk_index)
                (pieces.add if done else pieces.discard)(line.chunk_index)
            items.discard(line.parent_item_id)  # a whole is made of what its pieces were before it
    items.difference_update(parent for parent, known in seen.items() if chunks[parent] != set(range(max(known) + 1)))
    return items, StageType(stage), chunks


def lines_in(file: IO[bytes], until: int | None = None) -> Iterator[bytes]:
    """Gives the lines of a file, or of its first bytes, one after the other: a log may be larger than memory likes.

    Half a line is the last, also where the rest of it is written this very moment: that is no line of its own.
    """
    left = sys.maxsize if until is None else until
    for line in file:
        left -= len(line)
        if left < 0:  # the log was written anew since, and has another line there
            return
        yield line
        if not line.endswith(b"\n"):
            return


def _records(path: Path, lines: Iterator[bytes], told: Told, *, growing: bool) -> Iterator[_Line]:
    bad = 0
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        try:
            yield _READ(line.removeprefix(BOM) if number == 1 else line)
        except NO_SENSE as error:
            if (growing and not line.endswith(b"\n")) or (str(path), number) in told:
                continue
            told.add((str(path), number))
            bad += 1
            if bad <= _MOST_WARNINGS:
                logger.warning("%s, line %d is passed over: %s", path, number, error)
    if bad > _MOST_WARNINGS:
        logger.warning("%s: %d lines are passed over", path, bad)
