"""Puts the files of a wheel into a folder of their own, from which Python imports them. It blocks."""

import shutil
import zipfile
from pathlib import Path
from typing import Final

from tsuzuki.wheels import examining
from tsuzuki.wheels.naming import parse_name

_EXECUTABLE: Final = 0o111
_LIBRARIES: Final = ("purelib", "platlib")
"""The folders of `.data` with modules; scripts and headers are of no use to a worker."""


def unpack(path: Path, name: str, folder: Path) -> examining.Found:
    """Examines a wheel and unpacks it, whole or not at all; gives what it says of itself."""
    with path.open("rb") as file:
        found = examining.examine(file, parse_name(name))
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(file) as archive:
            for entry in examining.members(archive).values():
                if (place := _place(entry.filename)) is not None:
                    _write(archive, entry, part / place)
        part.rename(folder)
    return found


def _place(path: str) -> str | None:
    """Gives where a file goes; None: nowhere."""
    top, _, rest = path.partition("/")
    if not top.endswith(".data"):
        return path
    kind, _, below = rest.partition("/")
    return below if kind in _LIBRARIES and below else None


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, examining.PIECE)
    if entry.external_attr >> 16 & _EXECUTABLE:  # a program that a package brings along
        target.chmod(0o755)
