"""The export as a session keeps it: copied, or linked where the disk allows it, and known again by a mark."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.sources.archive import Folder

_PIECE: Final = 1 << 16
_PIECES: Final = 64
"""So many pieces of a large file are looked at, from its beginning to its end: another export has others."""


def kept(export: Path, provider: str, place: Path) -> dict[str, Any]:
    """Keeps an export in a folder, and says what it is: linked where nobody edits such files, else copied.

    A file that is linked changes with the one it was linked to, which whoever writes over that means by no means: its
    mark tells.
    """
    told = {"kind": "folder" if export.is_dir() else "file", "name": export.name, "bytes": size_of(export, provider)}
    marks = {}
    for name in _names(export, provider):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if _linked(export / name if export.is_dir() else export, place / name):
            marks[name] = _mark(place / name)
    return {**told, "marks": marks}


def _names(export: Path, provider: str) -> list[str]:
    return list(sources.chosen(Folder(export).names(), provider)) if export.is_dir() else [export.name]


def size_of(export: Path, provider: str) -> int:
    """Gives how large the files of an export are that are read (bytes)."""
    if not export.is_dir():
        return export.stat().st_size
    return sum((export / name).stat().st_size for name in _names(export, provider))


def changed(place: Path, told: Mapping[str, Any]) -> Path | None:
    """Gives a file of a kept export that is not what was kept; None where all are, or are gone."""
    marks: dict[str, str] = told.get("marks", {})
    for path, mark in ((place / name, mark) for name, mark in marks.items()):
        if path.is_file() and _mark(path) != mark:
            return path
    return None


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
    """Links a file, or copies it; tells which."""
    if source.suffix.lower() in (".zip", ".json"):
        try:
            os.link(source.resolve(), target)
            return True
        except OSError:  # another disk, or one that knows no links
            pass
    shutil.copyfile(source, target)
    return False
