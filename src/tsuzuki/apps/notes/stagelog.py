"""The two logs of a phase: `pipeline_stages.jsonl`, a line for each item and stage, and `error_details.jsonl`."""

import os
import re
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from tsuzuki.apps.notes.items import ProcessingItem, StageType
from tsuzuki.apps.notes.times import CLOCK, now
from tsuzuki.errors import StepFailure, StoreClosed
from tsuzuki.redact import redact

SYNC_EVERY: Final = 0.5
"""How long lines may be written and not yet synced to the disk (seconds); a kill loses none of them."""
STATUSES: Final = ("success", "failed", "skipped")
_LONGEST_MESSAGE: Final = 2000


@dataclass(slots=True)
class StageLogRecord:
    """A line of `pipeline_stages.jsonl`; what is None is left out."""

    timestamp: str
    session_id: str
    filename: str
    stage: str
    step: str
    timing_ms: int
    status: str
    item_id: str | None = None
    file_id: str | None = None
    skipped_reason: str | None = None
    before_chars: int | None = None
    after_chars: int | None = None
    diff_ratio: float | None = None
    is_chunked: bool | None = None
    parent_item_id: str | None = None
    chunk_index: int | None = None
    error_message: str | None = None

    def __post_init__(self) -> None:
        self.stage = StageType(self.stage).value
        if self.status not in STATUSES or type(self.timing_ms) is not int or self.timing_ms < 0:
            raise ValueError(f"a record is one of {', '.join(STATUSES)} and took at least 0 ms: {self}")

    def to_dict(self) -> dict[str, Any]:
        """Gives it as plain JSON, without what is not set."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "StageLogRecord":
        """Reads it from plain JSON; fields that a newer version may add are ignored."""
        return cls(**{name: plain[name] for name in cls.__dataclass_fields__ if name in plain})


_FIELDS: Final = tuple(StageLogRecord.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something happens: in which session, stage and step."""

    session_id: str
    stage: StageType
    step: str


def line_of(item: ProcessingItem, at: Place, status: str, took: float, **more: Any) -> dict[str, Any]:
    """Makes the line of what a step did with an item: the plain form of a `StageLogRecord`, in its order."""
    metadata = item.metadata
    line: dict[str, Any] = {
        "timestamp": now(),
        "session_id": at.session_id,
        "filename": item.source_path.name,
        "stage": at.stage.value,
        "step": at.step,
        "timing_ms": max(round(took * 1000), 0),
        "status": status,
        "item_id": item.item_id,
    }
    if (file_id := metadata.get("file_id")) is not None:
        line["file_id"] = file_id
    before, after = more.get("before_chars"), more.get("after_chars")
    line.update(more)
    if before and after is not None:
        line["diff_ratio"] = round(after / before, 3)
    if item.is_chunk:
        line |= {
            "is_chunked": True,
            "parent_item_id": metadata["parent_item_id"],
            "chunk_index": metadata["chunk_index"],
        }
    return line


def error_detail(item: ProcessingItem, at: Place, error: Exception) -> dict[str, Any]:
    """Makes the line of `error_details.jsonl` for a failure; secrets are hidden."""
    return {
        "timestamp": now(),
        "session_id": at.session_id,
        "item_id": item.item_id,
        "stage": at.stage.value,
        "step": at.step,
        "error_type": type_of(error),
        "error_message": message_of(error),
        "backtrace": redact("".join(traceback.format_exception(error))),
        "metadata": {name: value for name, value in item.metadata.items() if name != "messages"},
    }


class _Piece:
    """Lines of one caller on their way; `begins` is below 0 until they are written."""

    __slots__ = ("begins", "error", "text")

    def __init__(self, text: bytes) -> None:
        self.text, self.begins = text, -1
        self.error: OSError | StoreClosed | None = None


def type_of(error: Exception) -> str:
    """Names the kind of an error: that of the step where one failed inside."""
    return str(getattr(error, "error_type", "")) or type(error).__name__


def message_of(error: Exception) -> str:
    """Says what went wrong, without secrets."""
    text = str(error)
    if isinstance(error, StepFailure):  # which step it was is known; what went wrong there is to be told
        step = (
            rf"{re.escape(error.task)}(?:\[.*?\])? failed(?: after \d+ tries)?: {re.escape(error.error_type)}(?:: |$)"
        )
        text = re.sub(rf"\A{step}", "", text, count=1, flags=re.DOTALL) or error.error_type
    return redact(text or type(error).__name__)[:_LONGEST_MESSAGE]


class Lines:
    """A file of lines that is only appended to: each is written at once, whole, and synced soon.

    Who comes while somebody writes waits, and what has gathered goes into one write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)  # somebody may have removed what a stage put out
        self._turn, self._syncing = threading.Lock(), threading.Lock()
        self._waiting: deque[_Piece] = deque()
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._synced = CLOCK.monotonic()
        self._dirty = self._torn = False
        """Whether something was written since the last sync; whether half a line may stand at the end."""
        self.size = os.fstat(self._descriptor).st_size
        if self.size and os.pread(self._descriptor, 1, self.size - 1) != b"\n":
            self._write(b"\n")  # whoever was killed while it wrote left half a line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, plain: dict[str, Any]) -> tuple[int, int]:
        """Writes a line; gives where it begins, and its length."""
        [place] = self.extend([msgspec.json.encode(plain)])
        return place

    def extend(self, encoded: Sequence[bytes]) -> list[tuple[int, int]]:
        """Writes lines in one piece; gives where each begins, and its length."""
        if not encoded:
            return []
        own = _Piece(b"\n".join((*encoded, b"")))
        self._waiting.append(own)
        with self._turn:
            if own.begins < 0 and own.error is None:
                self._write_waiting()
        if CLOCK.monotonic() - self._synced >= SYNC_EVERY and self._syncing.acquire(blocking=False):
            try:
                self._sync()
            finally:
                self._syncing.release()
        if own.error is not None:
            raise own.error
        lengths = [len(line) + 1 for line in encoded]
        return list(zip(accumulate(lengths[:-1], initial=own.begins), lengths, strict=True))

    def _write_waiting(self) -> None:
        group = [self._waiting.popleft() for _ in range(len(self._waiting))]
        text = b"".join(piece.text for piece in group)
        try:
            self._write(b"\n" + text if self._torn else text)
        except (OSError, StoreClosed) as error:
            self._torn = True
            for piece in group:
                piece.error = error
            return
        self._torn, begins = False, self.size - len(text)
        for piece in group:
            piece.begins, begins = begins, begins + len(piece.text)

    def read(self, begins: int, length: int) -> bytes:
        """Reads a line."""
        return os.pread(self._opened(), length, begins)

    def _opened(self) -> int:
        """Gives the file. Once closed, its number may be that of another, which nothing of ours may reach."""
        if self._descriptor < 0:
            raise StoreClosed(f"{self.path.name} is closed: whoever works on the session has stopped")
        return self._descriptor

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            written = os.write(self._opened(), left)
            self.size += written
            left = left[written:]
        self._dirty = True

    def _sync(self) -> None:
        """Syncs what was written before; who writes need not wait for it."""
        self._dirty = False
        os.fsync(self._opened())
        self._synced = CLOCK.monotonic()

    def sync(self) -> None:
        """Waits until what was written is on the disk."""
        with self._syncing:
            if self._dirty:
                self._sync()

    def close(self) -> None:
        """Syncs, and closes the file, also where the disk does not sync it."""
        try:
            self.sync()
        finally:
            with self._turn, self._syncing:
                descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
