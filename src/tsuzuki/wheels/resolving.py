"""What a wheel needs and nobody here has: found out here, and installed by pip, from the index that pip is set to."""

import tempfile
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec
from packaging.requirements import Requirement

from tsuzuki.wheelerrors import WheelSyncFailed
from tsuzuki.wheels.checking import run_python

LAUNCH: Final = (
    "import runpy, sys; n = int(sys.argv[1]); sys.path += sys.argv[2:2 + n]; "
    "sys.argv[1:] = sys.argv[2 + n:]; runpy.run_module('pip', run_name='__main__', alter_sys=True)"
)
"""Runs pip so that what lies in some folders counts as installed."""
OPTIONS: Final = ("--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", "10")
"""An index that cannot be reached is given up soon: the next sync tries again."""
_SAID: Final = 300


class _Download(msgspec.Struct):
    url: str = ""


class _About(msgspec.Struct):
    name: str
    version: str


class _Item(msgspec.Struct):
    metadata: _About
    download_info: _Download
    is_direct: bool = False

    @property
    def pin(self) -> str:
        return f"{self.metadata.name} @ {self.download_info.url}" if self.is_direct else self._exactly

    @property
    def _exactly(self) -> str:
        return f"{self.metadata.name}=={self.metadata.version}"


class _Report(msgspec.Struct):
    install: list[_Item]


def missing(requires: Iterable[str], paths: Sequence[str]) -> list[str]:
    """Gives the requirements that nothing in these folders meets."""
    return [text for text in requires if not _met(text, paths)]


def _met(text: str, paths: Sequence[str]) -> bool:
    try:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            return True
        found = next(iter(metadata.distributions(name=wanted.name, path=list(paths))), None)
        return found is not None and wanted.specifier.contains(found.version, prereleases=True)
    except ValueError as error:  # no requirement, an unknown variable, a number that is too long to be read
        raise WheelSyncFailed(f"it requires {text[:200]!r}, which makes no sense: {error}") from None


async def provide(required: Sequence[str], paths: Sequence[str], target: Path) -> None:
    """Lets pip find what is required, with all that it needs in turn, and puts what is not here into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        await _pip(paths, "--dry-run", "--report", str(report), *required)
        found = msgspec.json.decode(report.read_bytes(), type=_Report).install
    await _pip(paths, "--no-deps", "--target", str(target), *(item.pin for item in found))


async def _pip(paths: Sequence[str], *arguments: str) -> None:
    code, said = await run_python("-c", LAUNCH, str(len(paths)), *paths, "install", *OPTIONS, *arguments)
    if code:
        raise WheelSyncFailed(_shortened(said.decode(errors="replace")))


def _shortened(said: str) -> str:
    """Gives what pip says in the end."""
    lines = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if "notice" not in line] or ["it says nothing"]
    return f"pip cannot install what it requires: {told[-1]}"[:_SAID]
