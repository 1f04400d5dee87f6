"""An application: flows, routes, commands and pages that a package adds, found by the entry point group `tsuzuki.apps`.

An entry point names an `Application`. Gateway, command line and dashboard know applications only through it: they
import none. What is heavy is given as a function and called only where it is needed, so that looking for applications
stays light.
"""

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
    command: "Callable[[], click.Command] | None" = None
    """Gives the command, mostly a group of commands."""
    pages: Pages | None = None


def applications() -> list[tuple[str, "Application | Exception"]]:
    """Gives what the installed packages offer, by entry point; one that cannot be loaded as its error."""
    return [(entry.name, _loaded(entry)) for entry in sorted(metadata.entry_points(group=ENTRY_POINTS), key=_name)]


def _name(entry: metadata.EntryPoint) -> str:
    return entry.name


def _loaded(entry: metadata.EntryPoint) -> "Application | Exception":
    try:
        found = entry.load()
    except Exception as error:  # noqa: BLE001 - a package of somebody else: it must not stop the rest
        return error
    if isinstance(found, Application):
        return found
    return TypeError(f"the entry point {entry.name!r} of {ENTRY_POINTS} names {found!r}, which is no Application")
