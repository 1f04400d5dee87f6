"""Exports sent over HTTP, piece by piece: what was cut off goes on, and nobody's path is believed."""

import re
import secrets
import shutil
from pathlib import Path
from typing import Final

from tsuzuki import privacy, settings
from tsuzuki.apps.notes.refusals import TooManyUploads, UploadGap, UploadNotFound, both
from tsuzuki.apps.notes.room import room
from tsuzuki.apps.notes.times import CLOCK
from tsuzuki.errors import BadUsage, TooLarge

KEPT: Final = 24 * 3600.0
"""How long an upload may lie without anybody sending more (seconds)."""
MOST: Final = 8
"""How many uploads of a tenant there are at once: each may fill the disk with as much as an export may have."""
IDLE: Final = 600.0
"""How long after its last piece an upload makes room for another, where there are too many (seconds)."""
_ID: Final = re.compile(r"[0-9a-f]{32}")
_BAD: Final = re.compile(r"[\x00-\x1f/\\\\:]")
_LONGEST_NAME: Final = 200


class Uploads:
    """The uploads of a tenant; each is a folder with one file."""

    def __init__(self, root: Path) -> None:
        self._root = root / "uploads"

    def begin(self, name: str) -> str:
        """Makes room for an export of that name; gives the id of the upload. What others left behind is removed."""
        if not name.strip(". ") or _BAD.search(name) or len(name.encode()) > _LONGEST_NAME:
            raise BadUsage(
                both(
                    f"{name[:80]!r} はファイル名として使えません。フォルダーを含まない 200 バイト以内の名前にして"
                    "ください",
                    f"{name[:80]!r} is no name of a file: it has no folder in it, and at most 200 bytes",
                )
            )
        if self._sweep() >= MOST:
            raise TooManyUploads
        upload_id = secrets.token_hex(16)
        with room():
            privacy.make_folder(self._root)
            (self._root / upload_id).mkdir()
            (self._root / upload_id / name).touch()
        return upload_id

    def add(self, upload_id: str, offset: int, piece: bytes) -> int:
        """Writes a piece; one that is sent again takes the place of itself. Gives how many bytes are there."""
        path = self.file(upload_id)
        most = int(settings.value("TSUZUKI_NOTES_MAX_UPLOAD_BYTES"))
        if offset + len(piece) > most:
            raise TooLarge(
                f"送信できるエクスポートは {most:,} バイトまでです（TSUZUKI_NOTES_MAX_UPLOAD_BYTES） / "
                f"an export that is sent has at most {most:,} bytes (TSUZUKI_NOTES_MAX_UPLOAD_BYTES)"
            )
        size = path.stat().st_size
        if offset > size:
            raise UploadGap(
                f"途中のデータがありません。{offset:,} ではなく、受信済みの {size:,} バイトの続きから送ってください / "
                f"{size} bytes are there: go on from there, not from {offset}"
            )
        with room(), path.open("r+b") as file:
            file.seek(offset)
            file.write(piece)
            file.truncate()
        return offset + len(piece)

    def file(self, upload_id: str) -> Path:
        """Finds the file of an upload."""
        place = self._root / upload_id
        found = list(place.iterdir()) if _ID.fullmatch(upload_id) and place.is_dir() else []
        if not found:
            shown = repr(upload_id[:40])
            raise UploadNotFound(
                both(
                    f"アップロード {shown} はありません。最初からやり直してください",
                    f"there is no upload {shown}: begin a new one",
                )
            )
        return found[0]

    def drop(self, upload_id: str) -> None:
        """Removes an upload."""
        shutil.rmtree(self.file(upload_id).parent, ignore_errors=True)

    def _sweep(self) -> int:
        """Removes what was left behind, and what is idle where there are too many; gives how many there are."""
        places = list(self._root.iterdir()) if self._root.is_dir() else []
        idle = sorted(((CLOCK.now() - _touched(place), place) for place in places), reverse=True)
        there = len(places)
        for seconds, place in idle:
            if seconds > KEPT or (there >= MOST and seconds > IDLE):
                shutil.rmtree(place, ignore_errors=True)
                there -= 1
        return there


def _touched(place: Path) -> float:
    """Gives when an upload got its last piece, or began."""
    try:
        return max(path.stat().st_mtime for path in (place, *place.glob("*")))
    except FileNotFoundError:  # it was imported or removed this very moment
        return 0.0
