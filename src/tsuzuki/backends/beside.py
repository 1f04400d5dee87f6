"""What lies beside a store in the data folder, such as the files of applications: copied into a backup, and back."""

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tsuzuki import privacy, wholefile
from tsuzuki.backends import disk, manifest
from tsuzuki.backends.manifest import Piece
from tsuzuki.backends.sqlite.file import copy_all

FOLDER: Final = "beside"
"""Where it is in a backup."""
_HEAD: Final = b"SQLite format 3\0"
_PASSING: Final = ("-wal", "-shm", "-journal", ".part")
"""How files end that are part of others, or not whole yet."""


class Beside:
    """Files and folders by their names in a data folder."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self._names = tuple(sorted(set(names)))

    def save(self, backup: Path) -> tuple[Piece, ...]:
        """Copies what is there into a backup while others use it; blocks."""
        found = [path.relative_to(self.folder) for name in self._names for path in _files(self.folder / name)]
        copied = [path for path in found if _copied(self.folder / path, backup / FOLDER / path)]
        return tuple(manifest.piece(backup, (Path(FOLDER) / path).as_posix()) for path in copied)

    def bring_back(self, backup: Path, pieces: Sequence[Piece]) -> list[str]:
        """Puts what a backup has where nothing is, each name whole or not at all; names what was left as it is."""
        names = sorted({Path(piece.name).parts[1] for piece in pieces})
        left = [name for name in names if (self.folder / name).exists()]
        for name in sorted(set(names) - set(left)):
            part = self.folder / f"{name}.part"
            disk.remove(part)  # of a restore that was cut off
            if part.exists():
                raise OSError(errno.ENOTEMPTY, f"{part} cannot be removed")
            alone = any(each.name == f"{FOLDER}/{name}" for each in pieces)
            (privacy.make_file if alone else privacy.make_folder)(part)
            for piece in (each for each in pieces if Path(each.name).parts[1] == name):
                target = part.joinpath(*Path(piece.name).parts[2:])
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(backup / piece.name, target)
                wholefile.sync_file(target)
            wholefile.name(part, self.folder / name)
        return left


NOTHING: Final = Beside(Path(), ())


def _files(path: Path) -> Iterator[Path]:
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    yield from (each for each in inside if each.is_file() and not each.name.endswith(_PASSING))


def _copied(source: Path, target: Path) -> bool:
    """Copies a file; one of SQLite as it is at one moment. Tells whether it was still there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with source.open("rb") as file:
            ours = file.read(len(_HEAD)) == _HEAD
        if ours:
            _copy_rows(source, target)
        else:
            shutil.copyfile(source, target)
    except FileNotFoundError:  # removed meanwhile
        return False
    wholefile.sync_file(target)
    return True


def _copy_rows(source: Path, target: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(source)) as live, contextlib.closing(sqlite3.connect(target)) as copy:
            copy_all(live, copy)
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        raise OSError(errno.ENOSPC if full else errno.EIO, f"{source} cannot be copied: {error}") from error
