"""What is asked of a desk and what it answers, and what an import would do, which nobody has to be asked for."""

from dataclasses import dataclass, field
from pathlib import Path

from tsuzuki import Run
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.chunking import SIZE
from tsuzuki.apps.notes.extracting import Ids, items_of
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.shelf import Remembered
from tsuzuki.apps.notes.sources.conversation import Unreadable


@dataclass(frozen=True, slots=True)
class Asked:
    """What an import is asked for."""

    export: Path
    vault: Path | None
    """Where the notes go; None: into the session itself."""
    provider: str = ""
    llm: str = ""
    base_url: str = ""
    model: str = ""
    translate: str = ""
    chunk: bool = False
    chunk_size: int = SIZE
    concurrency: int = 0
    strategy: str = "sync"
    """How a model is asked: sync (directly), batch (the provider's batches), auto (batch where there are some)."""
    failure_threshold: float | None = None
    """The share of failures, in percent, above which the import stops."""
    again: bool = False
    """Whether notes are also made of conversations that have not changed, or whose notes were deleted."""


@dataclass(frozen=True, slots=True)
class Started:
    """A session that is being worked on."""

    session_id: str
    run: Run
    resumed: bool = False
    unfinished: str = ""
    """An earlier session of the same export and vault that has not made all of its notes; empty: there is none."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run that has completed came to."""

    counts: PhaseStatistics
    status: PhaseStatus


@dataclass(slots=True)
class Preview:
    """What an import would do."""

    provider: str
    items: int = 0
    made: int = 0
    """How many of these would be made at once: all, or as many as the limit allows."""
    chunks: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    characters: int = 0


def previewed(asked: Asked, limit: int = 0, *, paid: bool = False) -> Preview:
    """Says what an import would do, with a model that is `paid` or without one; nothing is changed."""
    told, ids = Preview(sources.recognized(asked.export, asked.provider)), Ids()
    remembered = None
    if asked.vault is not None and not asked.again:
        remembered = Remembered(asked.vault, told.provider, paid=paid)
    for found in sources.conversations(asked.export, told.provider):
        if isinstance(found, Unreadable):
            told.unreadable += 1
            continue
        size = asked.chunk_size
        for item in items_of(ids.told(found), told.provider, chunk=asked.chunk, size=size, remembered=remembered):
            reason = item.metadata.get("skipped_reason")
            if reason:
                told.skipped[reason] = told.skipped.get(reason, 0) + 1
            else:
                told.items += 1
                told.chunks += item.is_chunk
                told.characters += len(item.content or "")
    told.made = min(told.items, limit or told.items)
    return told
