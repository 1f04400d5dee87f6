"""The public names of the package are a promise: a change of this list is a change for every user."""

import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import tsuzuki

PUBLIC = [
    "AsyncClient",
    "Client",
    "GiveUp",
    "Later",
    "Retry",
    "Run",
    "RunUpdateResult",
    "Runs",
    "Status",
    "TsuzukiError",
    "Worker",
    "__version__",
    "current",
    "flow",
    "llm",
    "task",
]


def test_the_public_names_are_exactly_these() -> None:
    assert tsuzuki.__all__ == PUBLIC, "tell users in CHANGELOG.md when you change the public names"


def test_every_public_name_exists() -> None:
    missing = [name for name in PUBLIC if not hasattr(tsuzuki, name)]
    assert not missing, f"in tsuzuki.__all__, but not in the package: {missing}"


def test_public_classes_and_functions_say_what_they_are() -> None:
    silent = [name for name in PUBLIC if name != "__version__" and not getattr(tsuzuki, name).__doc__]
    assert not silent, f"public, but without a docstring: {silent}"


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert tsuzuki.__version__ == project["version"]
    assert version("tsuzuki") == project["version"], "run `make test` again: the installed package is an older one"


def test_the_package_is_marked_as_typed() -> None:
    assert files("tsuzuki").joinpath("py.typed").is_file()
