"""What stands in the vault as a run begins to write: which note is whose, and which names are taken in any case.

Read once, when the first note is to be written. A first import finds an empty folder, and nothing to read.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from tsuzuki.apps.notes.markdown import scalar
from tsuzuki.apps.notes.names import folded
from tsuzuki.apps.notes.vault import Sheet

_FRONT: Final = 16 * 1024
"""How much of a file is read: front matter that is longer is not looked through."""
_ITEM: Final = re.compile(rb"^item_id: (.+?)\r?$", re.MULTILINE)
_PROVIDER: Final = re.compile(rb"^source_provider: (.+?)\r?$", re.MULTILINE)
Writer = Callable[[Path, Sequence[Sheet]], Sequence[str | Exception]]


class Shelf:
    """The vault of a run; only notes of the run's own items are remembered."""

    def __init__(self, vault: Path, items: Collection[str] = ()) -> None:
        self._vault, self._items = vault, items
        self._turn = threading.Lock()
        self._read = False
        self._taken: set[int] = set()
        """Hashes of names as every system takes them: of a hundred thousand names they are a third of the memory."""
        self._notes: dict[str, list[tuple[str, str]]] = {}
        """The notes that items have already: where each came from, and its name."""

    def written(self, writer: Writer, sheets: Sequence[Sheet]) -> Sequence[str | Exception]:
        """Has notes written where each belongs."""
        with self._turn:
            places = (
                [self._placed(sheet) for sheet in sheets] if self._looked() else [(sheet, None) for sheet in sheets]
            )
        outcomes = writer(self._vault, [sheet for sheet, _ in places])
        with self._turn:
            for (_, reserved), outcome in zip(places, outcomes, strict=True):
                if isinstance(outcome, str):
                    self._taken.add(_key(outcome))
                elif reserved is not None:
                    self._taken.discard(reserved)
        return outcomes

    def _placed(self, sheet: Sheet) -> tuple[Sheet, int | None]:
        """Says where a note may go, and what is reserved for it: others are given their places meanwhile."""
        provider = scalar(str(sheet.metadata.get("source_provider", "")))
        own = tuple(name for origin, name in self._notes.get(sheet.item_id, ()) if origin == provider)
        plain = f"{sheet.stem}.md"
        key = _key(plain)
        if key not in self._taken:
            if own:
                return sheet._replace(own=own), None
            self._taken.add(key)
            return sheet, key
        just_so = os.path.lexists(self._vault / plain)  # it may be its own, which is looked at then
        return sheet._replace(own=own, plain=just_so), None

    def _looked(self) -> bool:
        """Looks through the vault, once; gives whether it is there."""
        if not self._read:
            try:
                with os.scandir(self._vault) as entries:
                    for entry in entries:
                        self._look(entry)
            except OSError:  # whoever writes tells why
                return False
            for names in self._notes.values():
                names.sort()
            self._read = True
        return True

    def _look(self, entry: "os.DirEntry[str]") -> None:
        if not entry.name.lower().endswith(".md"):
            return
        self._taken.add(_key(entry.name))
        if self._items and entry.is_file(follow_symlinks=False) and (found := _origin(entry.path)) is not None:
            item_id, provider = found
            if item_id in self._items and (provider, entry.name) not in self._notes.get(item_id, ()):
                self._notes.setdefault(item_id, []).append((provider, entry.name))


def _key(name: str) -> int:
    return hash(folded(name))


def _origin(path: str) -> tuple[str, str] | None:
    """Gives the item that a file says to be the note of, and where that came from; None where it says nothing."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - vaults have thousands of files
            head = file.read(_FRONT)
        if not head.startswith(b"---"):
            return None
        front = head[: head.find(b"\n---", 3)]
        item, provider = _ITEM.search(front), _PROVIDER.search(front)
        if item is None or provider is None:
            return None
        said = item[1].decode()
        return (str(json.loads(said)) if said.startswith('"') else said), provider[1].decode()
    except (OSError, ValueError):
        return None
