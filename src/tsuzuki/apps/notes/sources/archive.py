"""The files of an export, in a ZIP or a folder, opened carefully: nothing is ever unpacked onto the disk."""

import io
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Final, Protocol

from tsuzuki.apps.notes.refusals import BadExport, NoInput, both
from tsuzuki.apps.notes.sources.spelling import by_text, spelled, spelled_in_zip

MOST_MEMBERS: Final = 1_000_000
MOST_RATIO: Final = 100
"""How much larger a file may be than its compressed form, beyond the first `FREE` bytes."""
FREE: Final = 64 * 1024 * 1024
LONGEST_NAME: Final = 1024
_ABSURD: Final = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_SAYS_UTF8: Final = 0x800
SHARD: Final = re.compile(r"conversations(?:-\d+)?\.json")
"""What exports are called. One may be a link to anywhere: it has to have the form of an export, as no secret has."""


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
    """The files below a folder, or one file; what leads out of it is not there, but for an export that is linked."""

    def __init__(self, path: Path) -> None:
        self._root = path if path.is_dir() else path.parent
        self._only = None if path.is_dir() else path.name

    def names(self) -> list[str]:
        """Lists them."""
        return sorted(self._real)

    def place(self, name: str) -> Path:
        """Gives where one of them is, by the name that it has on the disk."""
        return self._root / self.real(name)

    def real(self, name: str) -> str:
        """Gives the name that one of them has on the disk, which need not be a text."""
        return self._real[name]

    @cached_property
    def _real(self) -> dict[str, str]:
        if self._only is not None:
            return {spelled(self._only): self._only}
        paths = (path for path in self._root.rglob("*") if self._belongs(path))
        return by_text((name, spelled(name)) for path in paths if (name := path.relative_to(self._root).as_posix()))

    def _belongs(self, path: Path) -> bool:
        if _hidden(path.relative_to(self._root)) or not path.is_file():
            return False
        return path.resolve().is_relative_to(self._root.resolve()) or SHARD.fullmatch(path.name) is not None

    def open(self, name: str) -> Readable:
        """Opens one of them."""
        try:
            return self.place(name).open("rb")
        except OSError as error:
            raise BadExport(_closed(name, error)) from error


def _hidden(name: PurePath) -> bool:
    """Tells what belongs to some program, not to an export: `.git`, `.obsidian`, what macOS adds to a ZIP."""
    return any(part.startswith(".") for part in name.parts)


class Archive:
    """The files in a ZIP."""

    def __init__(self, archive: zipfile.ZipFile, label: str) -> None:
        self._archive = archive
        self._label = label
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise self._refused(f"{len(members):,} 個のファイルがあります", f"it has {len(members):,} files")
        if sum(member.compress_size for member in members) > _bytes_of(archive):
            raise self._refused(
                "ファイルが同じデータを共有しています：ZIP 爆弾です", "files of it share the same bytes: a ZIP bomb"
            )
        checked = [_checked(member, label) for member in members]  # first of all: a name may be empty
        files = [member for member in checked if not member.is_dir()]
        known = {member.filename: member for member in files}
        self._members = {
            text: known[name]
            for text, name in by_text((name, _spelled(member)) for name, member in known.items()).items()
            if not _hidden(PurePosixPath(text))
        }

    def names(self) -> list[str]:
        """Lists them."""
        return sorted(self._members)

    def open(self, name: str) -> Readable:
        """Opens one of them; what comes out is counted, whatever its header says."""
        member = self._members[name]
        if member.flag_bits & 1:
            raise self._refused(
                f"{name} は暗号化されています。パスワードなしの ZIP にしてください",
                f"{name} is encrypted: make a ZIP without a password",
            )
        try:
            return _Counted(self._archive.open(member), member.compress_size, name, self._label)
        except Exception as error:  # whatever zipfile makes of a header that says what it likes
            raise self._refused(f"{name} を開けません：{error}", f"{name} cannot be opened ({error})") from error

    def _refused(self, japanese: str, english: str) -> BadExport:
        return _refused(self._label, japanese, english)


def _closed(name: str, error: OSError) -> str:
    return both(f"{name} を開けません（{error.strerror}）", f"{name} cannot be opened: {error.strerror}")


def _bytes_of(archive: zipfile.ZipFile) -> int:
    return 0 if archive.fp is None else archive.fp.seek(0, io.SEEK_END)


def _refused(label: str, japanese: str, english: str) -> BadExport:
    return BadExport(both(f"{label} は読み取れません（{japanese}）", f"{label} is refused: {english}"))


def _spelled(member: zipfile.ZipInfo) -> str:
    return member.filename if member.flag_bits & _SAYS_UTF8 else spelled_in_zip(member.filename)


def _checked(member: zipfile.ZipInfo, label: str) -> zipfile.ZipInfo:
    """Refuses an archive with a name that leads out of it, or that nobody gives a file."""
    raw = member.orig_filename if member.flag_bits & _SAYS_UTF8 else spelled_in_zip(member.orig_filename)
    name = PurePosixPath(raw.replace("\\", "/"))
    shown = ascii(raw[:60])
    if name.is_absolute() or ".." in name.parts or _DRIVE.match(raw):
        raise _refused(label, f"{shown} という名前は外のフォルダーを指しています", f"the name {shown} leads out of it")
    if not raw or len(raw) > LONGEST_NAME or _ABSURD.search(raw):
        raise _refused(label, f"不正な名前 {shown} のファイルがあります", f"it has a file with the absurd name {shown}")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise _refused(label, f"{shown} はリンクです", f"{shown} is a link")
    return member


class _Counted:
    """A file in a ZIP that is given up when more comes out of it than an honest one would have."""

    def __init__(self, file: IO[bytes], compressed: int, name: str, label: str) -> None:
        self._file = file
        self._label = label
        self._name = name
        self._most = max(FREE, compressed * MOST_RATIO)
        self._got = 0

    def read(self, size: int = -1) -> bytes:
        """Reads so many bytes."""
        try:
            raw = self._file.read(size)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            raise self._broken(error) from error
        except Exception as error:
            raise self._broken(f"{type(error).__name__}: {error}") from error
        self._got += len(raw)
        if self._got > self._most:
            raise _refused(
                self._label,
                f"{self._name} は展開すると {MOST_RATIO} 倍を超えます：ZIP 爆弾です",
                f"{self._name} grows to more than {MOST_RATIO} times its size: a ZIP bomb",
            )
        return raw

    def _broken(self, why: object) -> BadExport:
        return _refused(self._label, f"{self._name} は壊れています：{why}", f"{self._name} is broken ({why})")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@contextmanager
def opened(path: Path) -> Iterator[Files]:
    """Opens an export: a ZIP, a folder or a file."""
    label = spelled(path.name)
    if not path.exists():
        where = spelled(str(path))
        raise NoInput.because(f"{where} がありません", f"{where} is not there")
    if not path.is_dir() and not path.is_file():  # to open a pipe is to wait for whoever writes into it
        raise BadExport(
            f"{label} はファイルでもフォルダーでもありません。ファイルに保存してから指定してください / "
            f"{label} is neither a file nor a folder: save what comes out of it as a file, and name that"
        )
    if path.is_dir() or not _is_zip(path):
        yield Folder(path)
        return
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise _refused(label, f"壊れた ZIP ファイルです：{error}", f"it is a broken ZIP file ({error})") from error
    with archive:
        yield Archive(archive, label)


def _is_zip(path: Path) -> bool:
    """Tells a ZIP by its name or its first bytes: one without its end is a broken ZIP, not something else."""
    if path.suffix.lower() == ".zip":
        return True
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise BadExport(_closed(spelled(path.name), error)) from error
