"""Whether a file is really the wheel that its name says: it opens, leads nowhere else, and agrees with itself.

Every function blocks, for a thread to call, and reads what it looks at in pieces.
"""

import base64
import binascii
import csv
import hashlib
import hmac
import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import compat32
from pathlib import PurePosixPath
from typing import IO, Final, NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from tsuzuki.wheelerrors import BadWheel
from tsuzuki.wheels.naming import WheelName

PIECE: Final = 1 << 20
MOST_FILES: Final = 100_000
SMALL: Final = 64 << 20
"""So much may come out of a wheel, however small it is."""
DENSEST: Final = 100
"""A larger one may not be more than so many times as large when it is unpacked: code and data pack 3 to 20 times."""
LONGEST_PART: Final = 255
"""How many bytes the name of a file or a folder may have."""
MOST_TEXT: Final = 32 << 20
"""How large METADATA, WHEEL or RECORD may be."""
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_UNSIGNED: Final = ("RECORD", "RECORD.jws", "RECORD.p7s")
"""Files of the folder of metadata that have no digest."""
_ALGORITHMS: Final = frozenset({"sha256", "sha384", "sha512"})
_BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, csv.Error),
    *(EOFError, NotImplementedError, RuntimeError, OSError, ValueError, OverflowError, IndexError),
)
"""What zipfile raises on an archive that is damaged or of a kind that it does not know."""


class Found(NamedTuple):
    """What a wheel says of itself."""

    requires_python: str
    requires: tuple[str, ...]


def examine(file: IO[bytes], name: WheelName) -> Found:
    """Examines a wheel; raises `BadWheel` that says what is wrong."""
    try:
        with zipfile.ZipFile(file) as archive:
            files = members(archive)
            folder = _metadata_folder(files, name)
            found = _metadata(archive, files, folder, name)
            _format(archive, files, folder)
            _record(archive, files, folder)
    except _BROKEN as error:
        raise bad(f"it is no archive that can be read: {error}") from None
    return found


def bad(why: str) -> BadWheel:
    """Says what is wrong with a file."""
    return BadWheel(f"invalid wheel file: {why}")


def members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Gives the files of an archive by name, or refuses it: names that lead elsewhere, links, doubles, bombs."""
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise bad(f"it has more than {MOST_FILES} files")
    files: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        _check_entry(entry)
        if entry.filename in files:
            raise bad(f"{entry.filename!r} is in it twice")
        files[entry.filename] = entry
    unpacked, packed = sum(entry.file_size for entry in entries), _bytes_of(archive)
    if sum(entry.compress_size for entry in entries) > packed:
        raise bad("files of it share the same bytes")  # so that each is honest, and all together explode
    if unpacked > max(SMALL, DENSEST * packed):
        raise bad(f"it would be {unpacked} bytes when unpacked, out of {packed}")
    found = {path: entry for path, entry in files.items() if not entry.is_dir()}
    for path in files:
        if inside := next((str(up) for up in PurePosixPath(path).parents if str(up) in found), None):
            raise bad(f"{inside!r} is a file and a folder in it")
    return found


def _bytes_of(archive: zipfile.ZipFile) -> int:
    if archive.fp is None:
        return 0
    return archive.fp.seek(0, io.SEEK_END)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    path = entry.filename
    parts = path.rstrip("/").split("/")
    if not path or "\\" in path or "\0" in path or _DRIVE.match(path) or {"", ".", ".."} & set(parts):
        raise bad(f"the name {path!r} leads elsewhere")
    if not path.isprintable() or max(len(part.encode("utf-8", "replace")) for part in parts) > LONGEST_PART:
        raise bad(f"no file can have the name {path[:80]!r}")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise bad(f"{path!r} is a link or a device")
    if entry.flag_bits & 0x1:
        raise bad(f"{path!r} is encrypted")


def _metadata_folder(files: dict[str, zipfile.ZipInfo], name: WheelName) -> str:
    folders = {path.partition("/")[0] for path in files if path.partition("/")[0].endswith(".dist-info")}
    if len(folders) != 1:
        raise bad(f"it has {len(folders)} folders of metadata (.dist-info), not one")
    (folder,) = folders
    package, _, version = folder.removesuffix(".dist-info").partition("-")
    if canonicalize_name(package) != name.package or not _same(version, name.version):
        raise bad(f"its folder {folder} does not agree with its name")
    return folder


def _metadata(archive: zipfile.ZipFile, files: dict[str, zipfile.ZipInfo], folder: str, name: WheelName) -> Found:
    said = BytesParser(policy=compat32).parsebytes(_text(archive, files, f"{folder}/METADATA"), headersonly=True)
    if canonicalize_name(str(said["Name"] or "")) != name.package:
        raise bad(f"its METADATA is that of {said['Name']!r}")
    if not _same(str(said["Version"] or ""), name.version):
        raise bad(f"its METADATA says version {said['Version']!r}")
    return Found(str(said["Requires-Python"] or ""), tuple(map(str, said.get_all("Requires-Dist", []))))


def _same(text: str, version: Version) -> bool:
    try:
        return Version(text) == version
    except ValueError:  # also of a number that is too long to be read
        return False


def _format(archive: zipfile.ZipFile, files: dict[str, zipfile.ZipInfo], folder: str) -> None:
    said = BytesParser(policy=compat32).parsebytes(_text(archive, files, f"{folder}/WHEEL"), headersonly=True)
    written = str(said["Wheel-Version"] or "")
    if written.partition(".")[0] != "1":
        raise bad(f"its format is {written or 'not told'}; only 1.x is known")


def _text(archive: zipfile.ZipFile, files: dict[str, zipfile.ZipInfo], path: str) -> bytes:
    if path not in files:
        raise bad(f"it has no {path}")
    if files[path].file_size > MOST_TEXT:
        raise bad(f"{path} is too large")
    return archive.read(path)


def _record(archive: zipfile.ZipFile, files: dict[str, zipfile.ZipInfo], folder: str) -> None:
    """Compares every file with its line in RECORD, both ways."""
    listed = dict(_lines(_text(archive, files, f"{folder}/RECORD")))
    unsigned = {f"{folder}/{each}" for each in _UNSIGNED}
    if missing := sorted(listed.keys() - files.keys()):
        raise bad(f"RECORD lists {missing[0]!r}, which is not in it")
    if unlisted := sorted(files.keys() - listed.keys() - unsigned):
        raise bad(f"{unlisted[0]!r} is not in RECORD")
    for path in sorted(files.keys() - unsigned):
        algorithm, _, told = listed[path].partition("=")
        if algorithm not in _ALGORITHMS:
            raise bad(f"RECORD has no sha256 digest of {path!r}")
        if not hmac.compare_digest(_digest(archive, path, algorithm), _decoded(told)):
            raise bad(f"{path!r} is not what RECORD says")


def _lines(text: bytes) -> Iterator[tuple[str, str]]:
    for row in csv.reader(io.StringIO(text.decode("utf-8"))):
        if row:
            yield row[0], row[1] if len(row) > 1 else ""


def _decoded(told: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(told + "=" * (-len(told) % 4))
    except binascii.Error:
        return b""


def _digest(archive: zipfile.ZipFile, path: str, algorithm: str) -> bytes:
    digest = hashlib.new(algorithm)
    with archive.open(path) as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.digest()
