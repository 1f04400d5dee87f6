"""The files of an export, in a ZIP or a folder, opened carefully: nothing is ever unpacked onto the disk."""

import io
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol

from tsuzuki.apps.notes.refusals import BadExport, NoInput

MOST_MEMBERS: Final = 1_000_000
MOST_RATIO: Final = 100
"""How much larger a file may be than its compressed form, beyond the first `FREE` bytes."""
FREE: Final = 64 * 1024 * 1024
LONGEST_NAME: Final = 1024
_ABSURD: Final = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")


class Readable(Protocol):
    """An open file, read from its beginning to its end."""

    def read(self, size: int = -1, /) -> bytes:
        """Reads so many bytes."""
        ...

    def close(self) -> None:
        """Closes it."""
        ...


class Files(Protocol):
    """The files of an export, by their names."""

    def names(self) -> list[str]:
        """Lists them, sorted."""
        ...

    def open(self, name: str) -> Readable:
        """Opens one of them."""
        ...


class Folder:
    """The files below a folder, or one file; what leads out of it is not there."""

    def __init__(self, path: Path) -> None:
        self._root = path if path.is_dir() else path.parent
        self._only = None if path.is_dir() else path.name

    def names(self) -> list[str]:
        """Lists them."""
        if self._only is not None:
            return [self._only]
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if self._belongs(path))

    def _belongs(self, path: Path) -> bool:
        hidden = any(part.startswith(".") for part in path.relative_to(self._root).parts)
        return not hidden and path.is_file() and path.resolve().is_relative_to(self._root.resolve())

    def open(self, name: str) -> Readable:
        """Opens one of them."""
        try:
            return (self._root / name).open("rb")
        except OSError as error:
            raise BadExport(f"{name} を開けません / {name} cannot be opened: {error.strerror}") from error


class Archive:
    """The files in a ZIP."""

    def __init__(self, archive: zipfile.ZipFile, label: str) -> None:
        self._archive = archive
        self._label = label
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise self._refused(f"it has {len(members):,} files")
        if sum(member.compress_size for member in members) > _bytes_of(archive):
            raise self._refused("files of it share the same bytes: a ZIP bomb")
        checked = [_checked(member, label) for member in members]  # first of all: a name may be empty
        self._members = {member.filename: member for member in checked if not member.is_dir()}

    def names(self) -> list[str]:
        """Lists them."""
        return sorted(self._members)

    def open(self, name: str) -> Readable:
        """Opens one of them; what comes out is counted, whatever its header says."""
        member = self._members[name]
        if member.flag_bits & 1:
            raise self._refused(f"{name} is encrypted")
        try:
            return _Counted(self._archive.open(member), member, self._label)
        except Exception as error:  # whatever zipfile makes of a header that says what it likes
            raise self._refused(f"{name} cannot be opened ({error})") from error

    def _refused(self, why: str) -> BadExport:
        return _refused(self._label, why)


def _bytes_of(archive: zipfile.ZipFile) -> int:
    return 0 if archive.fp is None else archive.fp.seek(0, io.SEEK_END)


def _refused(label: str, why: str) -> BadExport:
    return BadExport(f"{label} は読み取れません / {label} is refused: {why}")


def _checked(member: zipfile.ZipInfo, label: str) -> zipfile.ZipInfo:
    """Refuses an archive with a name that leads out of it, or that nobody gives a file."""
    raw = member.orig_filename
    name = PurePosixPath(raw.replace("\\", "/"))
    shown = ascii(raw[:60])
    if name.is_absolute() or ".." in name.parts or _DRIVE.match(raw):
        raise _refused(label, f"the name {shown} leads out of it")
    if not raw or len(raw) > LONGEST_NAME or _ABSURD.search(raw):
        raise _refused(label, f"it has a file with the absurd name {shown}")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise _refused(label, f"{shown} is a link")
    return member


class _Counted:
    """A file in a ZIP that is given up when more comes out of it than an honest one would have."""

    def __init__(self, file: IO[bytes], member: zipfile.ZipInfo, label: str) -> None:
        self._file = file
        self._label = label
        self._name = member.filename
        self._most = max(FREE, member.compress_size * MOST_RATIO)
        self._got = 0

    def read(self, size: int = -1) -> bytes:
        """Reads so many bytes."""
        try:
            raw = self._file.read(size)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            raise _refused(self._label, f"{self._name} is broken ({error})") from error
        except Exception as error:
            raise _refused(self._label, f"{self._name} is broken ({type(error).__name__}: {error})") from error
        self._got += len(raw)
        if self._got > self._most:
            raise _refused(self._label, f"{self._name} grows to more than {MOST_RATIO} times its size: a ZIP bomb")
        return raw

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@contextmanager
def opened(path: Path) -> Iterator[Files]:
    """Opens an export: a ZIP, a folder or a file."""
    if not path.exists():
        raise NoInput(f"[Error] No input files: {path} is not there")
    if path.is_dir() or not _is_zip(path):
        yield Folder(path)
        return
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise _refused(path.name, f"it is a broken ZIP file ({error})") from error
    with archive:
        yield Archive(archive, path.name)


def _is_zip(path: Path) -> bool:
    """Tells a ZIP by its name or its first bytes: one without its end is a broken ZIP, not something else."""
    if path.suffix.lower() == ".zip":
        return True
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise BadExport(f"{path.name} を開けません / {path.name} cannot be opened: {error.strerror}") from error
