"""`ProcessingItem`: what flows through the three stages, one for each note."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tsuzuki.errors import BadUsage


class StageType(StrEnum):
    """The three stages."""

    EXTRACT = "extract"
    TRANSFORM = "transform"
    LOAD = "load"


class ItemStatus(StrEnum):
    """The states of an item; SKIPPED is what a step itself filters out, never what a resume passes over."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


path_of: Final = lru_cache(maxsize=256)(Path)
"""Most items of an export come from the same few files."""
TOO_LARGE: Final = "too_large"
"""Why a conversation is passed over that is longer than a note takes, unless it is cut."""
COST: Final = "cost"
"""Under what the metadata of an item says what was paid for it so far (US dollars)."""
PLACES: Final = 10
"""To how many places sums of these are rounded: floats add what nobody paid."""
NOTE: Final = "note"
"""Under what the metadata of an item has the note that a model made of it, until that is translated."""
CHUNK_KEYS: Final = ("is_chunked", "chunk_index", "total_chunks", "parent_item_id", "chunk_filename")
"""What the metadata of a chunk says."""


@dataclass(slots=True)
class ProcessingItem:
    """One unit of work: a conversation, a chunk of one, or the parent that chunks are merged into."""

    item_id: str
    source_path: Path
    current_step: str = ""
    status: ItemStatus = ItemStatus.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)
    content: str | None = None
    transformed_content: str | None = None
    output_path: Path | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        given: Any = self.source_path
        self.source_path = given if isinstance(given, Path) else path_of(given)  # plain JSON has a text
        self.status = ItemStatus(self.status)
        self.output_path = None if self.output_path is None else Path(self.output_path)
        if not self.item_id:
            raise BadUsage("an item needs an id")
        if self.metadata.get("is_chunked"):
            _check_chunk(self.metadata)

    @property
    def is_chunk(self) -> bool:
        """Whether it is a piece of a longer conversation."""
        return bool(self.metadata.get("is_chunked"))

    @property
    def is_parent(self) -> bool:
        """Whether it is what chunks are merged into."""
        return bool(self.metadata.get("chunk_item_ids"))

    def to_dict(self) -> dict[str, Any]:
        """Gives it as plain JSON."""
        return {
            "item_id": self.item_id,
            "source_path": self.source_path.as_posix(),
            "current_step": self.current_step,
            "status": self.status.value,
            "metadata": dict(self.metadata),
            "content": self.content,
            "transformed_content": self.transformed_content,
            "output_path": None if self.output_path is None else self.output_path.as_posix(),
            "error": self.error,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "ProcessingItem":
        """Reads it from plain JSON; fields that a newer version may add are ignored."""
        return cls(**{name: plain[name] for name in cls.__dataclass_fields__ if name in plain})


def _check_chunk(metadata: dict[str, Any]) -> None:
    """Refuses a chunk that does not say which piece of what it is."""
    missing = [name for name in ("chunk_index", "total_chunks", "parent_item_id") if metadata.get(name) in (None, "")]
    if missing:
        raise BadUsage(f"a chunk says {', '.join(CHUNK_KEYS)}: {', '.join(missing)} is missing")
    index, total = metadata["chunk_index"], metadata["total_chunks"]
    if not all(type(number) is int for number in (index, total)) or not 0 <= index < total:
        raise BadUsage(f"chunk_index is between 0 and total_chunks - 1, not {index!r} of {total!r}")
