"""What the name of a wheel says, which version may come, and which wheels a worker takes. No files, no store."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from tsuzuki.backends.shelf import Admit, Wheel
from tsuzuki.wheelerrors import BadWheel, WheelConflict

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,249}\.whl")
_TAG: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
OURSELVES: Final = "tsuzuki"


class WheelName(NamedTuple):
    """What the name of a wheel says."""

    package: str
    version: Version
    fits: frozenset[Tag]
    """The Pythons and systems it is for."""


def checked_name(name: str) -> str:
    """Refuses what cannot name a wheel, above all what leads elsewhere."""
    if not _NAME.fullmatch(name):
        raise BadWheel("invalid wheel name")
    return name


def parse_name(name: str) -> WheelName:
    """Reads the name of a wheel (PEP 427)."""
    try:
        package, version, _, fits = parse_wheel_filename(checked_name(name))
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise BadWheel(f"invalid wheel filename: {error}") from None
    return WheelName(canonicalize_name(package), version, fits)


def parse_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Reads tags, separated by commas; each counts once."""
    tags = {tag.strip() for text in texts for tag in text.split(",")} - {""}
    if not all(_TAG.fullmatch(tag) for tag in tags):
        raise BadWheel("invalid wheel tags")
    return tuple(sorted(tags))


def only_upwards(name: WheelName) -> Admit:
    """Gives the rule that versions of a package only go up, over what is kept at the moment."""

    def admit(kept: Sequence[Wheel]) -> None:
        versions = [version for wheel in kept if wheel.package == name.package and (version := version_of(wheel))]
        if name.version in versions:
            raise WheelConflict("wheel version already exists; bump version")
        if versions and max(versions) > name.version:
            raise WheelConflict("wheel version must be greater than existing latest version")

    return admit


def version_of(wheel: Wheel) -> Version | None:
    """Reads the version of a kept wheel; None: somebody else put it there, and it says none."""
    try:
        return Version(wheel.version)
    except ValueError:
        return None


class Selection(NamedTuple):
    """Which wheels a worker takes, and which it would if it could."""

    chosen: tuple[Wheel, ...]
    incompatible: tuple[str, ...]


def select(
    kept: Iterable[Wheel], tags: Collection[str], fits: Collection[Tag], python: str, own: Collection[str] = ()
) -> Selection:
    """Selects the wheels for a worker: without tags or with one of its own, of each package the newest that it can run.

    `own` are the packages that the worker itself runs on: they cannot be replaced under it.
    """
    ours = [wheel for wheel in kept if not wheel.tags or set(wheel.tags) & set(tags)]
    newest: dict[str, tuple[Version, Wheel]] = {}
    incompatible: list[str] = []
    for wheel in ours:
        version = version_of(wheel)
        if version is None or wheel.package in own or not _runs(wheel, fits, python):
            incompatible.append(wheel.name)
        elif wheel.package not in newest or newest[wheel.package][0] < version:
            newest[wheel.package] = version, wheel
    chosen = sorted((wheel for _, wheel in newest.values()), key=lambda wheel: wheel.name)
    return Selection(tuple(chosen), tuple(sorted(incompatible)))


def _runs(wheel: Wheel, fits: Collection[Tag], python: str) -> bool:
    try:
        return not parse_name(wheel.name).fits.isdisjoint(fits) and accepts_python(wheel.requires_python, python)
    except BadWheel:
        return False


def accepts_python(requires: str, python: str) -> bool:
    """Tell whether Requires-Python of a wheel allows a version."""
    try:
        return SpecifierSet(requires).contains(python, prereleases=True)
    except ValueError:  # also of a number that is too long to be read
        return True  # what makes no sense forbids nothing
