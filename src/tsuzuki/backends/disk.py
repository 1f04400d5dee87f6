"""Files and folders on a disk that others use too: made durable, measured, removed."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path


def sync_file(path: Path) -> None:
    """Makes what a file holds durable."""
    _sync(path, os.O_RDONLY)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def size(files: Iterable[Path]) -> int:
    """Gives how many bytes files have together; one that is gone meanwhile has none."""
    return sum(_state(file)[0] for file in files)


def age(path: Path, now: float) -> float:
    """Tells how long ago a file was last changed; one that is gone meanwhile counts as new."""
    return now - (_state(path)[1] or now)


def _state(path: Path) -> tuple[int, float]:
    try:
        found = path.stat()
    except OSError:  # gone meanwhile
        return 0, 0.0
    return found.st_size, found.st_mtime


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it, as far as that can be."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
