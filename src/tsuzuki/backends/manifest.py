"""What a backup says of itself: which files it has, how large they are, and their digests.

The manifest is written last: a folder without one is no backup, however much lies in it.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki import privacy, wholefile
from tsuzuki.backends import disk
from tsuzuki.errors import NotABackup, PlaceTaken

NAME: Final = "manifest.json"
FORMAT: Final = 1
SQLITE: Final = "sqlite"
NATS: Final = "nats"
_PART: Final = f"{NAME}.part"
"""What the manifest is called until it is whole: there from the first moment, it tells that a backup was begun."""
_AT_ONCE: Final = 1 << 20


class Piece(msgspec.Struct, frozen=True):
    """A file of a backup, by its path in the folder."""

    name: str
    size: int
    sha256: str


class Stream(msgspec.Struct, frozen=True):
    """A stream of a NATS store: what it was and held when it was copied, and in which file it is."""

    name: str
    file: str
    config: dict[str, Any]
    state: dict[str, Any]
    after: dict[str, Any] = {}
    """What it held after the last byte of the copy, where others went on in it."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was backed up, when, by which version, and into which files."""

    kind: str
    store: str
    taken_at: str
    version: int
    """Of the schema or layout of the store."""
    pieces: tuple[Piece, ...]
    streams: tuple[Stream, ...] = ()
    counts: dict[str, int] = {}
    beside: tuple[Piece, ...] = ()
    """Files that lie beside a store in the data folder, and are not of it: those of applications."""
    purged: tuple[str, ...] = ()
    """The runs of a NATS store that were purged while it was copied: a restore leaves them out."""
    lacking: tuple[str, ...] = ()
    """What the store itself has lost, and a backup can therefore not have."""
    format: int = FORMAT

    @property
    def size(self) -> int:
        """How many bytes all files have."""
        return sum(piece.size for piece in self.files)

    @property
    def files(self) -> tuple[Piece, ...]:
        """All files."""
        return (*self.pieces, *self.beside)


@contextlib.contextmanager
def making(folder: Path) -> Iterator[None]:
    """Makes the folder of a backup; where that does not become whole, nothing of it stays."""
    _refuse_taken(folder)
    fresh = not folder.exists()
    privacy.make_folder(folder)
    try:
        (folder / _PART).touch()
        yield
    except BaseException:
        _clear(folder)
        if fresh:
            with contextlib.suppress(OSError):  # it is empty, and in nobody's way
                folder.rmdir()
        raise


def _refuse_taken(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if (folder / _PART).exists() and not (folder / NAME).exists():
        raise PlaceTaken(f"{folder} has a backup that is being made, or was cut off; delete it, or name a new folder")
    raise PlaceTaken(f"{folder} is there already and not empty; name a new folder for the backup")


def _clear(folder: Path) -> None:
    for each in folder.iterdir():
        disk.remove(each)


def piece(folder: Path, name: str) -> Piece:
    """Tells of a file in the folder how large it is and what its digest is."""
    size, digest = _digested(folder / name)
    return Piece(name, size, digest)


def write(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest, once everything else is on the disk."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    wholefile.write(folder / NAME, content, aside=folder / _PART)


def read(folder: Path, kind: str = "") -> Manifest:
    """Reads what a backup says of itself; `kind` is the one that is wanted."""
    try:
        manifest = msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise NotABackup(f"{folder} is no backup, or was cut off: it has no {NAME}; name the folder of one") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise NotABackup(f"{folder / NAME} cannot be read ({error}); use another backup") from error
    if manifest.format > FORMAT:
        raise NotABackup(f"{folder} was made by a newer Tsuzuki (format {manifest.format}); upgrade tsuzuki")
    if kind and manifest.kind != kind:
        raise NotABackup(f"{folder} is a backup of a {manifest.kind} store, not of a {kind} one; give such an address")
    for each in manifest.files:
        if Path(each.name).is_absolute() or ".." in Path(each.name).parts:
            raise NotABackup(f"{folder} names {each.name!r}, which leads out of it; use another backup")
    return manifest


def flaws(folder: Path, pieces: Iterable[Piece]) -> list[str]:
    """Compares the files with what the manifest says of them; gives what is wrong."""
    return [flaw for each in pieces if (flaw := _flaw(folder, each))]


def refuse_flawed(folder: Path, manifest: Manifest) -> None:
    """Refuses a backup whose files are not what they were."""
    found = flaws(folder, manifest.files)
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise NotABackup(f"{folder} is damaged: {found[0]}{more}; nothing was restored: use another backup")


def _flaw(folder: Path, each: Piece) -> str:
    try:
        size, digest = _digested(folder / each.name)
    except OSError as error:
        return f"{each.name} cannot be read ({error.strerror})"
    if size != each.size:
        return f"{each.name} has {size} bytes, not {each.size}"
    return "" if digest == each.sha256 else f"{each.name} is not what was written (its digest differs)"


def _digested(path: Path) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while some := file.read(_AT_ONCE):
            digest.update(some)
            size += len(some)
    return size, digest.hexdigest()
