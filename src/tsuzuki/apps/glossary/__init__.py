"""Glossary: out of a folder of documents terms, definitions, a review of the weak ones, and a refined glossary.

An ordinary user of the public API: it comes in through the entry point group `tsuzuki.apps`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tsuzuki.application import Application, Pages

if TYPE_CHECKING:
    import click
    from fastapi import APIRouter

    from tsuzuki.flow import Flow


def _flows() -> "Iterable[Flow[..., Any]]":
    from tsuzuki.apps.glossary.flows import flows  # noqa: PLC0415 - looking for applications stays quick

    return flows()


def _projects() -> "APIRouter":
    from tsuzuki.apps.glossary.routes import projects  # noqa: PLC0415 - only a gateway needs them

    return projects()


def _ollama() -> "APIRouter":
    from tsuzuki.apps.glossary.routes import ollama  # noqa: PLC0415 - only a gateway needs them

    return ollama()


def _command() -> "click.Command":
    from tsuzuki.apps.glossary.command import glossary  # noqa: PLC0415 - only the command line needs it

    return glossary


application: Final = Application(
    name="glossary",
    title={"en": "Glossary", "ja": "用語集"},
    flows=_flows,
    paths={"projects": _projects, "ollama": _ollama},
    command=_command,
    pages=Pages(Path(__file__).parent / "pages"),
    keeps=("glossary",),
)
