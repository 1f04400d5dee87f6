"""The parent of chunks: one note made of theirs, without a question to anybody."""

from collections.abc import Callable
from typing import Any

from tsuzuki.apps.notes.items import ProcessingItem
from tsuzuki.apps.notes.markdown import Note
from tsuzuki.apps.notes.refusals import ChunksMissing
from tsuzuki.apps.notes.tags import MOST_TAGS, tags

Part = tuple[Note, str]
"""The note of a chunk, and the file it was written to."""


class MergeChunks:
    """The step of the transform stage for parents."""

    name = "merge_chunks"

    def __init__(self, part: Callable[[str], Part | None]) -> None:
        self._part = part

    async def run(self, item: ProcessingItem) -> tuple[ProcessingItem, Note]:
        """Merges the notes of the chunks; raises where one is not there."""
        ids: list[str] = item.metadata["chunk_item_ids"]
        found = [self._part(item_id) for item_id in ids]
        parts = [part for part in found if part is not None]
        if len(parts) < len(ids):
            missing = len(ids) - len(parts)
            raise ChunksMissing(
                f"分割した {len(ids)} 件のうち {missing} 件がありません。再試行してください / "
                f"{missing} of its {len(ids)} chunks are not there: retry them"
            )
        note = merged(str(item.metadata.get("title", "")), parts)
        item.transformed_content = note.content
        return item, note


def merged(title: str, parts: list[Part]) -> Note:
    """Makes one note of several: what each comes down to, in order, with links to them."""
    notes = [note for note, _ in parts]
    sections = [f"## {number}. {note.title}\n\n{note.summary}" for number, note in enumerate(notes, start=1)]
    return Note(
        title=title,
        summary=" ".join(note.summary.split("\n")[0] for note in notes[:3]),
        content="\n\n".join(sections),
        tags=tags(tag for note in notes for tag in note.tags)[:MOST_TAGS],
        references=_distinct([reference for note in notes for reference in note.references]),
        parts=tuple(name for _, name in parts),
        model=next((note.model for note in notes if note.model), ""),
    )


def _distinct(words: list[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
