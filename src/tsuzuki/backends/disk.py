"""Files and folders on a disk that others use too: measured, removed."""

import shutil
from collections.abc import Iterable
from pathlib import Path


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
