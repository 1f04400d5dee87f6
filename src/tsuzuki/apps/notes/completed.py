"""`CompletedItemsCache`: which items a stage has done, read from `pipeline_stages.jsonl`."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from tsuzuki.apps.notes.items import StageType

logger: Final = logging.getLogger("tsuzuki.notes")
_MOST_WARNINGS: Final = 20
"""How many bad lines are named one by one."""
_SUCCESS: Final = "success"


class _Line(msgspec.Struct):
    """What is read of a line; the rest of it is for people."""

    stage: str
    status: str
    item_id: str
    parent_item_id: str | None = None
    chunk_index: int | None = None


_READ: Final = msgspec.json.Decoder(_Line).decode


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
        stage = _checked(stage)
        path = Path(jsonl_path)
        try:
            with path.open("rb") as file:
                return cls(*_done(path, _lines(file, until), stage.value))
        except FileNotFoundError:
            return cls(set(), stage)
        except OSError as error:
            logger.warning("%s cannot be read (%s): every item counts as not done", path, error)
            return cls(set(), stage)

    def is_completed(self, item_id: str) -> bool:
        """Tells whether an item is done."""
        return item_id in self.items

    def is_parent_completed(self, parent_item_id: str, total_chunks: int) -> bool:
        """Tells whether all chunks of an item are done; one that is missing counts as not done."""
        return len(self.chunks.get(parent_item_id, ())) >= total_chunks > 0

    def __len__(self) -> int:
        return len(self.items)


def _checked(stage: Any) -> StageType:
    found = StageType(stage)
    if found is StageType.EXTRACT:
        raise ValueError("extract is passed over as a whole stage: a cache is for transform or load")
    return found


def _done(path: Path, lines: Iterator[bytes], stage: str) -> tuple[set[str], StageType, dict[str, set[int]]]:
    items: set[str] = set()
    chunks: dict[str, set[int]] = {}
    for line in _records(path, lines):
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
                (pieces.add if done else pieces.discard)(line.chunk_index)
            if not done:  # a whole that was made of an earlier success is not whole any more
                items.discard(line.parent_item_id)
    return items, StageType(stage), chunks


def _lines(file: IO[bytes], until: int | None) -> Iterator[bytes]:
    """Gives the lines of a file, or of its first bytes, one after the other: a log may be larger than memory likes."""
    if until is None:
        yield from file
        return
    for line in file:
        yield line[:until]
        until -= len(line)
        if until <= 0:
            return


def _records(path: Path, lines: Iterator[bytes]) -> Iterator[_Line]:
    bad = 0
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        try:
            yield _READ(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            bad += 1
            if bad <= _MOST_WARNINGS:
                logger.warning("%s, line %d is passed over: %s", path, number, error)
    if bad > _MOST_WARNINGS:
        logger.warning("%s: %d lines are passed over", path, bad)
