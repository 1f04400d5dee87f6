"""Notes written into the vault: whole or not at all, under names of their own, and nobody's file overwritten."""

import contextlib
import os
import threading
from pathlib import Path
from typing import Final

from tsuzuki.apps.notes.items import ProcessingItem
from tsuzuki.apps.notes.markdown import Note, is_own, rendered
from tsuzuki.apps.notes.names import candidates, safe
from tsuzuki.errors import StoreUnavailable

_LARGEST: Final = 64 * 1024 * 1024


class WriteFile:
    """The step of the load stage."""

    name = "write_file"

    def __init__(self, vault: Path, created: str) -> None:
        self._vault = vault
        self._created = created
        self._names = Names(vault)

    def run(self, item: ProcessingItem, note: Note) -> ProcessingItem:
        """Writes the note of an item; its own file is written anew, any other is left alone."""
        text = rendered(item, note, created=self._created)
        name = str(item.metadata.get("chunk_filename", "")).removesuffix(".md") or safe(note.title)
        item.output_path = Path(written(self._vault, name, item.item_id, text, self._names))
        return item


class Names:
    """The names in a vault on their way to the disk: one sync is enough for all that were given before it began."""

    def __init__(self, vault: Path) -> None:
        self._vault = vault
        self._counting, self._turn = threading.Lock(), threading.Lock()
        self._given = self._synced = 0

    def sync(self) -> None:
        """Waits until the names that were given so far are on the disk: a note without one would be lost."""
        with self._counting:
            self._given += 1
            own = self._given
        with self._turn:
            if self._synced >= own:  # whoever had the turn before began after this name was given
                return
            with self._counting:
                given = self._given
            _synced(self._vault)
            self._synced = given


def written(vault: Path, stem: str, item_id: str, text: str, names: Names | None = None) -> str:
    """Writes a note under the first name that is free or its own; gives the name."""
    folder = f"{vault}{os.sep}"  # thousands of notes: paths as texts cost little
    fresh = f"{folder}.{os.getpid()}-{abs(hash((stem, item_id))):x}.part"
    _write(fresh, text)
    try:
        for name in candidates(stem, item_id):
            if _placed(fresh, folder + name, item_id, text):
                (names or Names(vault)).sync()
                return name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(fresh)  # noqa: PTH107 - as above
    raise StoreUnavailable(f"every name for the note {stem!r} is taken in {vault}: move some of these files")


def _write(path: str | Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(text.encode())
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _placed(fresh: str, place: str, item_id: str, text: str) -> bool:
    """Puts a note in its place, unless a file is there that is not its own."""
    try:
        os.link(fresh, place)
        return True
    except FileExistsError:
        pass
    except OSError:  # a disk that knows no links
        return _created(Path(place), item_id, text)
    if not _own(Path(place), item_id):
        return False
    Path(fresh).replace(place)
    return True


def _created(place: Path, item_id: str, text: str) -> bool:
    try:
        with place.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            os.fsync(file.fileno())
    except FileExistsError:
        if not _own(place, item_id):
            return False
        _write(place, text)
    return True


def _own(place: Path, item_id: str) -> bool:
    try:
        if place.is_symlink() or place.stat().st_size > _LARGEST:
            return False
        return is_own(place.read_text(encoding="utf-8"), item_id)
    except (OSError, UnicodeDecodeError):
        return False


def _synced(vault: Path) -> None:
    with contextlib.suppress(OSError):  # some systems cannot sync a folder
        descriptor = os.open(vault, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
