"""An application: flows, routes, commands and pages that a package adds, found by the entry point group `tsuzuki.apps`.

An entry point names an `Application`. Gateway, command line and dashboard know applications only through it: they
import none. What is heavy is given as a function and called only where it is needed, so that looking for applications
stays light.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tsuzuki.flow import Flow

if TYPE_CHECKING:
    import click
    from fastapi import APIRouter

ENTRY_POINTS: Final = "tsuzuki.apps"
"""The group of entry points by which an installed package offers an application."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of an application: a folder of ES modules, served as it is under `/apps/NAME/`."""

    folder: Path
    module: str = "main.js"
    """The module that the dashboard imports; it registers the pages."""


def _no_flows() -> Iterable[Flow[..., Any]]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What an application gives; all but its name and title is optional."""

    name: str
    """Letters, digits and -; its routes are under `/api/NAME`, its commands are `tsuzuki NAME …`."""
    title: Mapping[str, str] = field(default_factory=dict)
    """How people call it, by language: `{"en": "Commits", "ja": "コミット"}`."""
    flows: Callable[[], Iterable[Flow[..., Any]]] = _no_flows
    """Gives the flows that every worker here executes."""
    routes: "Callable[[], APIRouter] | None" = None
    """Gives the routes, which stand behind the same door as the gateway's own: who comes in has a tenant."""
    paths: "Mapping[str, Callable[[], APIRouter]]" = field(default_factory=dict)
    """Further names directly under `/api` that belong to it, each with the routes below it."""
    command: "Callable[[], click.Command] | None" = None
    """Gives the command, mostly a group of commands."""
    pages: Pages | None = None
    keeps: tuple[str, ...] = ()
    """What it keeps in the data folder, files or folders by name: they go into backups."""


def names() -> list[str]:
    """Gives the names that the installed packages offer; nothing is loaded."""
    return sorted(_offered())


def applications() -> list[tuple[str, "Application | Exception"]]:
    """Gives what the installed packages offer, by name; one that cannot be loaded as its error."""
    return [(name, _one(entries)) for name, entries in sorted(_offered().items())]


def application(name: str) -> "Application | Exception | None":
    """Gives one application, or why it cannot be loaded; None where nobody offers that name. Others are not loaded."""
    entries = _offered().get(name)
    return None if entries is None else _one(entries)


def told(name: str, error: Exception) -> str:
    """Says that an application cannot be used, and what to do."""
    why = f"{type(error).__name__}: {error}"
    return f"the application {name} cannot be used: {why}; mend, upgrade or remove the package that brings it"


def _offered() -> dict[str, list[metadata.EntryPoint]]:
    """Gives the entry points by name: to look for them is to read a file of every package that is installed."""
    found: dict[str, list[metadata.EntryPoint]] = {}
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        found.setdefault(entry.name, []).append(entry)
    return found


def _one(entries: list[metadata.EntryPoint]) -> "Application | Exception":
    if len({entry.value for entry in entries}) > 1:
        places = " and ".join(sorted(entry.value for entry in entries))
        return ValueError(f"two packages offer an application of that name ({places})")
    return _loaded(entries[0])


def _loaded(entry: metadata.EntryPoint) -> "Application | Exception":
    try:
        found = entry.load()
    except Exception as error:  # noqa: BLE001 - a package of somebody else: it must not stop the rest
        return error
    except SystemExit as error:
        return ImportError(f"{entry.value} leaves while it is imported ({error})")
    if not isinstance(found, Application):
        return TypeError(f"its entry point {entry.value} names {found!r}, which is no Application")
    if found.name != entry.name or not _NAME.fullmatch(found.name):
        return ValueError(
            f"its entry point is called {entry.name!r} and it {found.name!r}: "
            "both must be the same, of letters, digits and -"
        )
    if wrong := [path for path in found.paths if not _NAME.fullmatch(path)]:
        return ValueError(f"its path {wrong[0]!r} is no name of letters, digits and -")
    return found
