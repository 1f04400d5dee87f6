"""What is installed with us: open source all of it, and within ranges that say from which version on."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

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
