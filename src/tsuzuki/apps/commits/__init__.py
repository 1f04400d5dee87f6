"""Commits: collects the commits of every branch, goes on tomorrow where it was, and sums them up by month and author.

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
    from tsuzuki.apps.commits.flows import flows  # noqa: PLC0415 - looking for applications stays quick

    return flows()


def _routes() -> "APIRouter":
    from tsuzuki.apps.commits.routes import router  # noqa: PLC0415 - only a gateway needs them

    return router


def _command() -> "click.Command":
    from tsuzuki.apps.commits.command import commits  # noqa: PLC0415 - only the command line needs it

    return commits


application: Final = Application(
    name="commits",
    title={"en": "Commits", "ja": "コミット"},
    flows=_flows,
    routes=_routes,
    command=_command,
    pages=Pages(Path(__file__).parent / "pages"),
    keeps=("commits.db",),
)
