"""What stands in the vault as a run begins to write: which note is whose, and which names are taken in any case.

Read when the first note is to be written, and then once a second at most, for what is new. A first import finds an
empty folder, and nothing to read.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tsuzuki.apps.notes.markdown import scalar
from tsuzuki.apps.notes.names import candidates, folded
from tsuzuki.apps.notes.times import CLOCK
from tsuzuki.apps.notes.vault import Sheet

AGAIN: Final = 1.0
"""How often it is looked what others have put into the vault (seconds): another import may make the same notes."""
SELDOM: Final = 20
"""Looking takes a twentieth of the time at most."""
_FRONT: Final = 16 * 1024
"""How much of a file is read: front matter that is longer is not looked through."""
_ITEM: Final = re.compile(rb"^item_id: (.+?)\r?$", re.MULTILINE)
_PROVIDER: Final = re.compile(rb"^source_provider: (.+?)\r?$", re.MULTILINE)
_CONVERSATION: Final = re.compile(rb"^source_conversation: (.+?)\r?$", re.MULTILINE)
_MODEL: Final = re.compile(rb"^model: ", re.MULTILINE)
_NUMBER: Final = re.compile(r"_\d{3,}\Z")
Writer = Callable[[Path, Sequence[Sheet]], Sequence[str | Exception]]


class _Place(NamedTuple):
    """Where a note goes."""

    sheet: Sheet
    reserved: int | None = None
    """What no other may have meanwhile."""
    stays: str = ""
    """The name of the note that stays instead: a model was paid for it."""


class Shelf:
    """The vault of a run; only notes of the run's own items are remembered."""

    def __init__(self, vault: Path, items: Collection[str] = ()) -> None:
        self._vault, self._items = vault, items
        self._turn = threading.Lock()
        self._read = False
        self._again_at = 0.0
        self._taken: set[int] = set()
        """Hashes of names as every system takes them: of a hundred thousand names they are a third of the memory."""
        self._notes: dict[str, list[tuple[str, str, bool]]] = {}
        """The notes that items have already: where each came from, its name, and whether a model made it."""
        self._wholes: dict[str, frozenset[str]] = {}
        """The plain names that the pieces of a conversation, and what they are merged into, may have."""

    def written(self, writer: Writer, sheets: Sequence[Sheet]) -> Sequence[str | Exception]:
        """Has notes written where each belongs; gives the name of each, be it that of one that stays in its place."""
        with self._turn:
            places = (
                [self._placed(sheet) for sheet in sheets] if self._looked() else [_Place(sheet) for sheet in sheets]
            )
        wanted = [place for place in places if not place.stays]
        outcomes = writer(self._vault, [place.sheet for place in wanted]) if wanted else ()
        with self._turn:
            for place, outcome in zip(wanted, outcomes, strict=True):
                if isinstance(outcome, str):
                    self._taken.add(_key(outcome))
                elif place.reserved is not None:
                    self._taken.discard(place.reserved)
        following = iter(outcomes)
        return [place.stays or next(following) for place in places]

    def _placed(self, sheet: Sheet) -> _Place:
        """Says where a note may go, and what is reserved for it: others are given their places meanwhile."""
        provider = scalar(str(sheet.metadata.get("source_provider", "")))
        known = [(name, paid) for origin, name, paid in self._notes.get(sheet.item_id, ()) if origin == provider]
        if known and sheet.note.model:
            sheet = sheet._replace(own=tuple(name for name, _ in known))
        for name, paid in () if sheet.note.model else known:
            # One that names no model, and has another name, stays too: it may be from before models were named.
            if paid and os.path.lexists(self._vault / name):
                return _Place(sheet, stays=name)
        if sheet.whole:
            return _Place(sheet._replace(plain=f"{sheet.stem}.md" in self._plain_names(sheet, provider)))
        plain = f"{sheet.stem}.md"
        key = _key(plain)
        if key not in self._taken:
            if sheet.own:
                return _Place(sheet)
            self._taken.add(key)
            return _Place(sheet, key)
        just_so = os.path.lexists(self._vault / plain)  # it may be its own, which is looked at then
        return _Place(sheet._replace(plain=just_so))

    def _plain_names(self, sheet: Sheet, provider: str) -> frozenset[str]:
        """Gives the plain names that a conversation in pieces may have: all that are free, or none.

        It is decided for all at once, so that no two conversations share a row of numbers; what of it is in the vault
        already has decided it, also for a run that goes on with it.
        """
        if (found := self._wholes.get(sheet.whole)) is not None:
            return found
        base = sheet.stem if sheet.item_id == sheet.whole else _NUMBER.sub("", sheet.stem)
        stems = [base, *(f"{base}_{number:03d}" for number in range(1, sheet.pieces + 1))]
        names = [f"{stem}.md" for stem in stems]
        free = [name for name in names if _key(name) not in self._taken]
        there = [name for name in names if os.path.lexists(self._vault / name)]
        plainly = any(_conversation(str(self._vault / name)) == (sheet.whole, provider) for name in there)
        if not plainly:
            suffixed = (name for stem in stems for name in islice(candidates(stem, sheet.whole), 1, 2))
            plainly = len(free) == len(names) and not any(_key(name) in self._taken for name in suffixed)
        allowed = self._wholes[sheet.whole] = frozenset([*free, *there] if plainly else ())
        self._taken.update(map(_key, allowed))
        return allowed

    def _looked(self) -> bool:
        """Looks through the vault, and later at what others have put there meanwhile; gives whether it is there."""
        began = CLOCK.monotonic()
        if began >= self._again_at:
            try:
                with os.scandir(self._vault) as entries:
                    for entry in entries:
                        self._look(entry)
            except OSError:  # whoever writes tells why
                return False
            for names in self._notes.values():
                names.sort()
            self._read, now = True, CLOCK.monotonic()
            self._again_at = now + max(AGAIN, SELDOM * (now - began))
        return True

    def _look(self, entry: "os.DirEntry[str]") -> None:
        if not entry.name.lower().endswith(".md"):
            return
        key = _key(entry.name)
        if self._read and key in self._taken:  # it was there, or is our own
            return
        self._taken.add(key)
        if self._items and entry.is_file(follow_symlinks=False) and (found := _origin(entry.path)) is not None:
            item_id, provider, paid = found
            if item_id in self._items and (provider, entry.name, paid) not in self._notes.get(item_id, ()):
                self._notes.setdefault(item_id, []).append((provider, entry.name, paid))


def _key(name: str) -> int:
    return hash(folded(name))


def _origin(path: str) -> tuple[str, str, bool] | None:
    """Gives the item that a file says to be the note of, where that came from, and whether a model made it.

    None where it says nothing.
    """
    front = _front(path)
    item, provider = _said(_ITEM, front), _PROVIDER.search(front)
    if item is None or provider is None:
        return None
    return item, provider[1].decode(errors="replace"), _MODEL.search(front) is not None


def _conversation(path: str) -> tuple[str, str] | None:
    """Gives the conversation that a file says to be a note of, and where that came from; None: it says nothing."""
    front = _front(path)
    conversation, provider = _said(_CONVERSATION, front), _PROVIDER.search(front)
    return None if conversation is None or provider is None else (conversation, provider[1].decode(errors="replace"))


def _front(path: str) -> bytes:
    """Reads the front matter of a file; nothing where it has none, or cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - vaults have thousands of files
            head = file.read(_FRONT)
    except OSError:
        return b""
    return head[: head.find(b"\n---", 3)] if head.startswith(b"---") else b""


def _said(pattern: re.Pattern[bytes], front: bytes) -> str | None:
    """Gives what front matter says, as we write it; None where it says nothing that makes sense."""
    found = pattern.search(front)
    try:
        said = found[1].decode() if found else ""
        return (str(json.loads(said)) if said.startswith('"') else said) or None
    except ValueError:
        return None
