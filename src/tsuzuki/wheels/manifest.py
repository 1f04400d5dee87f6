"""What a worker has installed, in `.installed.json` of its folder; what cannot be read counts as nothing."""

import contextlib
import os
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from tsuzuki import privacy, wholefile
from tsuzuki.backends.shelf import Wheel
from tsuzuki.wheelerrors import WheelSyncFailed

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # no advisory locks on this system: give every worker a folder of its own
    fcntl = None

FILE: Final = ".installed.json"
DEPENDENCIES: Final = ".dependencies"
"""The folder, in that of a wheel, with what it needs and nobody else had."""
_LOCK: Final = ".lock"
_MOST: Final = 1000


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel that is installed, and in which folder."""

    wheel_name: str
    package_name: str
    package_version: str
    nuid: str
    size_bytes: int
    sha256_hex: str
    tags: tuple[str, ...]
    installed_at: float
    folder: str


class _Manifest(msgspec.Struct):
    wheels: dict[str, Installed] = {}


_decode: Final = msgspec.json.Decoder(_Manifest).decode


def installed(wheel: Wheel, folder: str, at: float) -> Installed:
    """Says that a wheel is installed."""
    return Installed(
        wheel_name=wheel.name,
        package_name=wheel.package,
        package_version=wheel.version,
        nuid=wheel.nuid,
        size_bytes=wheel.size,
        sha256_hex=wheel.sha256,
        tags=wheel.tags,
        installed_at=at,
        folder=folder,
    )


class Place:
    """The folder of one worker: nobody else changes it while the worker lives."""

    def __init__(self, wanted: Path) -> None:
        self.folder, self._lock = _own(wanted.absolute())

    def read(self) -> dict[str, Installed]:
        """Gives what is installed, by the name of the wheel."""
        try:
            found = _decode((self.folder / FILE).read_bytes()).wheels
        except (OSError, msgspec.MsgspecError):
            return {}
        return {name: each for name, each in found.items() if Path(each.folder).name == each.folder and self._has(each)}

    def _has(self, each: Installed) -> bool:
        return (self.folder / each.folder).is_dir()

    def write(self, wheels: dict[str, Installed]) -> None:
        """Writes down what is installed."""
        wholefile.write(self.folder / FILE, msgspec.json.format(msgspec.json.encode(_Manifest(wheels))))

    def paths(self, wheels: dict[str, Installed]) -> list[str]:
        """Gives the folders that Python looks for modules in."""
        folders = [self.folder / each.folder for _, each in sorted(wheels.items())]
        needed = [folder / DEPENDENCIES for folder in folders]
        return [str(path) for path in (*folders, *needed) if path.is_dir()]

    def leftovers(self, wheels: dict[str, Installed]) -> list[Path]:
        """Gives what belongs to no wheel any more: of old versions, and of installations that never ended."""
        known = {each.folder for each in wheels.values()} | {FILE, _LOCK}
        return [path for path in self.folder.iterdir() if path.name not in known]

    def close(self) -> None:
        """Lets another worker have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _own(wanted: Path) -> tuple[Path, Any]:
    """Takes the folder, or, where another worker has it, the next one of that name."""
    for number in range(1, _MOST):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            privacy.make_folder(folder)  # who could write there would bring code to the worker
            lock = (folder / _LOCK).open("a", encoding="ascii")
        except OSError as error:
            raise WheelSyncFailed(f"wheel sync failed: {folder} cannot be used: {error.strerror}") from error
        if fcntl is None:
            return folder, lock
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(lock.fileno(), 0)
            return folder, lock
        lock.close()
    raise WheelSyncFailed(f"wheel sync failed: {wanted} and all folders named like it belong to other workers")
