"""A file that is there whole or not at all: written aside, synced, and only then named.

A kill at any moment leaves what was there before or what is there now; a power cut after `write` has returned takes
nothing back. What is half written has a name of its own, for whoever sweeps the folder.
"""

import errno
import os
from pathlib import Path
from typing import IO, Final

_BINARY: Final = getattr(os, "O_BINARY", 0)
_UNABLE: Final = (errno.EINVAL, errno.ENOTSUP)
"""What a disk answers that cannot sync a folder."""


def write(path: Path, content: bytes, *, mode: int = 0o666, aside: Path | None = None) -> None:
    """Writes a file, or writes it anew; blocks. `aside` tells writers apart where several may write at once."""
    part = aside or path.with_name(f"{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, mode), "wb") as file:
            file.write(content)
            sync(file)
        name(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def sync(file: IO[bytes]) -> None:
    """Makes what was written to an open file durable."""
    file.flush()
    os.fsync(file.fileno())


def name(part: Path, path: Path) -> None:
    """Gives a file that was written aside its name, durably; one that had the name is gone."""
    part.replace(path)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Makes what a file holds durable, whoever has written it."""
    _sync(path, os.O_RDONLY)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        _sync(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise


def _sync(path: Path, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
