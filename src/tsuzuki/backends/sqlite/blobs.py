"""Large values in a folder beside the file: written whole and synced before the fact that refers to them."""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from uuid import uuid4

from tsuzuki import privacy, wholefile
from tsuzuki.backends import disk
from tsuzuki.backends.sqlite.faults import file_fault
from tsuzuki.errors import StoreError

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
PART: Final = ".part-"
ABANDONED: Final = 3600.0
"""After so many seconds a file that is half written, or that no record names, belongs to a process that is gone."""


class Blobs:
    """The blobs of all runs, a folder for each run; every method blocks, for a thread to call."""

    def __init__(self, store: Path) -> None:
        self.folder = store.with_name(f"{store.name}-blobs")

    def put(self, run_id: str, data: bytes) -> str:
        """Keeps a value durably and gives its name, the digest of its content."""
        blob = _digest(data)
        folder = self._of(run_id)
        target = folder / blob
        part = folder / f"{PART}{uuid4().hex}"  # which `sweep` finds after a crash
        try:
            _make(folder)
            wholefile.write(target, data, aside=part)
        except OSError as error:
            raise file_fault(error, target) from error
        return blob

    def get(self, run_id: str, blob: str) -> bytes:
        """Reads a value, and makes sure that it is the one that was kept."""
        path = self._of(run_id) / _checked(blob)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(f"blob {blob} of run {run_id} is not there; was the run purged?") from None
        except OSError as error:
            raise file_fault(error, path) from error
        if _digest(data) != blob:
            raise StoreError(f"{path} is damaged: its content is not what was written; restore it from a copy")
        return data

    def has(self, run_id: str, blob: str) -> bool:
        """Tells whether a value is there."""
        return (self._of(run_id) / _checked(blob)).is_file()

    def remove(self, run_ids: Iterable[str]) -> None:
        """Removes the folders of purged runs; what a crash leaves here, `sweep` finds."""
        for run_id in run_ids:
            shutil.rmtree(self._of(run_id), ignore_errors=True)

    def sweep(self, known: Callable[[list[str]], set[str]], now: float) -> int:
        """Removes the folders of unknown runs and abandoned parts; gives how many."""
        # The folders are listed before the runs are asked for: a run is there before its first blob.
        folders = [path for path in self.folder.glob("*") if path.is_dir()]
        runs = known([path.name for path in folders])
        unknown = [path for path in folders if path.name not in runs]
        for path in unknown:
            shutil.rmtree(path, ignore_errors=True)
        parts = [path for path in self.folder.glob(f"*/{PART}*") if disk.age(path, now) > ABANDONED]
        for part in parts:
            part.unlink(missing_ok=True)
        return len(unknown) + len(parts)

    def size(self) -> int:
        """Gives how many bytes all blobs take."""
        return disk.size(self.folder.glob("*/*"))

    def _of(self, run_id: str) -> Path:
        return self.folder / _checked(run_id)


def _checked(name: str) -> str:
    """Refuses a name that would lead out of the folder."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a blob or its run; letters, digits, '-', '_' and '.' can")
    return name


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _make(folder: Path) -> None:
    """Makes the folder of a run; its entry, and that of the folder of all blobs, are synced too."""
    if folder.is_dir():
        return
    privacy.make_folder(folder.parent)
    privacy.make_folder(folder)
    wholefile.sync_folder(folder.parent)
    wholefile.sync_folder(folder.parent.parent)
