"""The step of the load stage: notes go into the vault, those that come at the same moment together."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from tsuzuki.apps.notes.gathering import Together
from tsuzuki.apps.notes.items import ProcessingItem
from tsuzuki.apps.notes.markdown import ORIGIN, Note
from tsuzuki.apps.notes.names import safe
from tsuzuki.apps.notes.shelf import Shelf, Writer
from tsuzuki.apps.notes.vault import Sheet, written


class WriteFile:
    """The step of the load stage."""

    name = "write_file"

    def __init__(self, vault: Path, created: str, session: str = "", items: Collection[str] = ()) -> None:
        self._shelf, self._created, self._session = Shelf(vault, items), created, session
        self.by(written)

    def by(self, writer: Writer) -> None:
        """Has notes written by somebody else from here on."""
        self._together = Together(partial(self._shelf.written, writer))

    async def run(self, item: ProcessingItem, note: Note) -> ProcessingItem:
        """Writes the note of an item; its own file is written anew, wherever in the vault it is, any other left alone.

        Where a model has made the one that is there, and none has made this one, that stays and is the item's. So does
        one of the same conversation that somebody has edited, unless this one was asked for again.
        """
        stem = str(item.metadata.get("chunk_filename", "")).removesuffix(".md") or safe(note.title)
        origin = {name: item.metadata[name] for name in ORIGIN if name in item.metadata}
        again = bool(item.metadata.get("again"))
        sheet = Sheet(stem, item.item_id, origin, note, self._created, self._session, again=again)
        if item.is_chunk or item.is_parent:
            whole = str(item.metadata["parent_item_id"] if item.is_chunk else item.item_id)
            sheet = sheet._replace(whole=whole, pieces=int(item.metadata.get("total_chunks", 0)))
        item.output_path = Path(await self._together.put(sheet))
        return item
