"""The export as a session keeps it: copied, or linked where the disk allows it, and known again by a mark."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tsuzuki import wholefile
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.sources.archive import Folder
from tsuzuki.apps.notes.sources.spelling import spelled

_PIECE: Final = 1 << 16
_PIECES: Final = 64
"""So many pieces of a large file are looked at, from its beginning to its end: another export has others."""


def kept(export: Path, provider: str, place: Path) -> dict[str, Any]:
    """Keeps an export in a folder, durably, and says what it is: linked where nobody edits such files, else copied.

    A file that is linked changes with the one it was linked to, which whoever writes over that means by no means: its
    mark tells. What is lost of copies in a folder, of which there may be thousands, is told by their size.
    """
    one = not export.is_dir()
    told = {"kind": "file" if one else "folder", "name": spelled(export.name)}
    marks = {}
    for name, source, target in _files(export, provider):
        (place / target).parent.mkdir(parents=True, exist_ok=True)
        linked = name == target and _linked(source, place / target)
        if not (place / target).exists():  # also where its name is no text, by which a mark could be kept
            shutil.copyfile(source, place / target)
        wholefile.sync_file(place / target)  # a link too: its file may have been sent or written a moment ago
        if linked or one:
            marks[name] = _mark(place / target)
    for folder in {path.parent for path in place.rglob("*")} | {place}:
        wholefile.sync_folder(folder)
    return {**told, "bytes": size_of(export, provider), "kept": _size(place), "marks": marks}


def _files(export: Path, provider: str) -> Iterator[tuple[str, Path, str]]:
    """Gives the files of an export that are read: each by its name as a text, where it is, and its name on the disk."""
    if not export.is_dir():
        yield spelled(export.name), export, spelled(export.name)
        return
    files = Folder(export)
    for name in sources.chosen(files.names(), provider):
        yield name, files.place(name), files.real(name)


def size_of(export: Path, provider: str) -> int:
    """Gives how large the files of an export are that are read (bytes)."""
    return sum(source.stat().st_size for _, source, _ in _files(export, provider))


def changed(place: Path, told: Mapping[str, Any]) -> Path | None:
    """Gives a file or folder of a kept export that is not what was kept; None where all are, or files are gone."""
    marks: dict[str, str] = told.get("marks", {})
    for path, mark in ((place / name, mark) for name, mark in marks.items()):
        if path.is_file() and _mark(path) != mark:
            return path
    return place if _size(place) < told.get("kept", 0) else None


def marked_anew(place: Path, told: Mapping[str, Any]) -> dict[str, Any]:
    """Says what a kept export is whose files are others now."""
    marks = {name: _mark(place / name) for name in told.get("marks", {}) if (place / name).is_file()}
    return {**told, "kept": _size(place), "marks": marks}


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _mark(path: Path) -> str:
    """Tells a file from others by its size and some of its bytes: a gigabyte is not read for that."""
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    step = max((size - _PIECE) // (_PIECES - 1), _PIECE)
    with path.open("rb") as file:
        for begins in range(0, max(size, 1), step):
            file.seek(begins)
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def _linked(source: Path, target: Path) -> bool:
    """Links a file, where people do not edit such ones and the disk can; tells whether it did."""
    if source.suffix.lower() not in (".zip", ".json"):
        return False
    try:
        os.link(source.resolve(), target)
    except OSError:  # another disk, or one that knows no links
        return False
    return True
