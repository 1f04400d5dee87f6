"""What stands in the vault as a run begins to write: which note is whose, and which names are taken in any case.

Read when the first note is to be written, and then once a second at most, for what is new. A first import finds an
empty folder, and nothing to read.
"""

import os
import re
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from tsuzuki.apps.notes.markdown import fields_of, is_edited, said_in
from tsuzuki.apps.notes.names import candidates, folded
from tsuzuki.apps.notes.times import CLOCK
from tsuzuki.apps.notes.vault import Sheet, text_of

LEDGER: Final = ".tsuzuki-notes.jsonl"
"""The file in a vault that lists each note ever written into it: one that is gone from the vault was deleted."""
UNCHANGED: Final = "unchanged"
DELETED: Final = "deleted"
AGAIN: Final = 1.0
"""How often it is looked what others have put into the vault (seconds): another import may make the same notes."""
SELDOM: Final = 20
"""Looking takes a twentieth of the time at most."""
_FRONT: Final = 16 * 1024
"""How much of a file is read: front matter that is longer is not looked through."""
_NUMBER: Final = re.compile(r"_\d{3,}\Z")
Writer = Callable[[Path, Sequence[Sheet]], Sequence[str | Exception]]


class Known(NamedTuple):
    """A note in the vault that an import has written."""

    path: str
    """Where it is, relative to the vault."""
    provider: str
    item_id: str
    conversation: str
    digest: str
    """The digest of what was said when it was written."""
    paid: bool
    """Whether a model made it."""


class _Entry(msgspec.Struct):
    """A line of the ledger."""

    provider: str
    item_id: str


_ENTRY: Final = msgspec.json.Decoder(_Entry).decode


def notes_in(vault: Path) -> Iterator[Known]:
    """Find the notes that imports have written, anywhere in the vault but in its hidden folders."""
    for folder, below, names in os.walk(vault):
        below[:] = [name for name in below if not name.startswith(".")]
        place = "" if folder == str(vault) else f"{Path(folder).relative_to(vault).as_posix()}/"
        for name in names:
            if name.lower().endswith(".md") and (known := _known(os.path.join(folder, name), place + name)) is not None:  # noqa: PTH118 - vaults have thousands of files
                yield known


class Remembered:
    """Tells which conversations of an export need no new note, by what is in the vault and what was deleted from it."""

    def __init__(self, vault: Path, provider: str, *, paid: bool, leave: Collection[str] = ()) -> None:
        self._vault, self._provider, self._paid, self._leave = vault, provider, paid, leave
        self._notes: dict[str, list[Known]] = {}
        for known in notes_in(vault):
            if known.provider == provider:
                self._notes.setdefault(known.item_id, []).append(known)
        self._written = set(_written_into(vault, provider))

    def reason(self, item_id: str, said: str) -> str:
        """Return why a conversation gets no new note: unchanged or deleted; "" where it gets one."""
        if item_id in self._leave:
            return ""
        notes = self._notes.get(item_id, ())
        if not notes:
            return DELETED if item_id in self._written else ""
        digest = said_in({"file_id": said})
        alike = [note for note in notes if note.digest == digest]
        if alike and (not self._paid or any(note.paid or _edited(self._vault / note.path) for note in alike)):
            return UNCHANGED
        return ""


def ledger_entry(metadata: dict[str, Any], item_id: str) -> dict[str, str]:
    """Make the line of the ledger for a note that was written."""
    return {"provider": str(metadata.get("source_provider", "")), "item_id": item_id}


def _written_into(vault: Path, provider: str) -> Iterator[str]:
    try:
        with (vault / LEDGER).open("rb") as lines:
            for line in lines:
                try:
                    found = _ENTRY(line)
                except (msgspec.MsgspecError, UnicodeDecodeError):  # half a line
                    continue
                if found.provider == provider:
                    yield found.item_id
    except OSError:
        return


def _edited(path: Path) -> bool:
    text = text_of(str(path))
    return text is not None and is_edited(text)


class _Place(NamedTuple):
    """Where a note goes."""

    sheet: Sheet
    reserved: int | None = None
    """What no other may have meanwhile."""
    stays: str = ""
    """The name of the note that stays instead."""


class Shelf:
    """The vault of a run; only notes of the run's own items are remembered."""

    def __init__(self, vault: Path, items: Collection[str] = ()) -> None:
        self._vault, self._items = vault, items
        self._turn = threading.Lock()
        self._read = False
        self._again_at = 0.0
        self._taken: set[int] = set()
        """Hashes of names as every system takes them: of a hundred thousand names they are a third of the memory."""
        self._notes: dict[tuple[str, str], list[Known]] = {}
        """The notes that items have already, by where each came from and its item."""
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
        provider = str(sheet.metadata.get("source_provider", ""))
        known = self._notes.get((provider, sheet.item_id), [])
        if (staying := self._staying(sheet, known)) is not None:
            return _Place(sheet, stays=staying.path)
        sheet = sheet._replace(own=tuple(note.path for note in known))
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

    def _staying(self, sheet: Sheet, known: list[Known]) -> Known | None:
        """Return the note that stays in place of a new one: a model was paid for it, or its text is its owner's.

        A note that was edited gets no second one beside it as long as the conversation is the same.
        """
        said = said_in(sheet.metadata)
        for note in known:
            path = self._vault / note.path
            if note.paid and not sheet.note.model and os.path.lexists(path):
                return note
            if said and note.digest == said and not sheet.again and _edited(path):
                return note
        return None

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
        others = (_known(str(self._vault / name), name) for name in there)
        plainly = any(each and (each.conversation, each.provider) == (sheet.whole, provider) for each in others)
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
                    new = [
                        entry for entry in entries if entry.name.lower().endswith(".md") and self._is_new(entry.name)
                    ]
            except OSError:  # whoever writes tells why
                return False
            if self._items:
                for known in self._found(new) if self._read else notes_in(self._vault):
                    self._remember(known)
            self._read, now = True, CLOCK.monotonic()
            self._again_at = now + max(AGAIN, SELDOM * (now - began))
        return True

    def _is_new(self, name: str) -> bool:
        """Note that a name is taken; tell whether that was not known."""
        key = _key(name)
        new = key not in self._taken
        self._taken.add(key)
        return new

    def _found(self, entries: "Sequence[os.DirEntry[str]]") -> Iterator[Known]:
        for entry in entries:
            if (known := _known(entry.path, entry.name)) is not None:
                yield known

    def _remember(self, known: Known) -> None:
        notes = self._notes.setdefault((known.provider, known.item_id), []) if known.item_id in self._items else None
        if notes is not None and known not in notes:
            notes.append(known)
            notes.sort()


def _key(name: str) -> int:
    return hash(folded(name))


def _known(path: str, name: str) -> Known | None:
    """Return what a file says of itself as a note; None where it is none of an import."""
    fields = fields_of(_front(path))
    item_id, provider = fields.get("item_id"), fields.get("source_provider")
    if not item_id or provider is None:
        return None
    conversation, said = fields.get("source_conversation", ""), fields.get("source_hash", "")
    return Known(name, provider, item_id, conversation, said, "model" in fields)


def _front(path: str) -> str:
    """Reads the front matter of a file; nothing where it has none, or cannot be read."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - vaults have thousands of files
            head = file.read(_FRONT)
    except OSError:
        return ""
    front = head[: head.find(b"\n---", 3)] if head.startswith(b"---") else b""
    return front.decode(errors="replace").replace("\r\n", "\n")
