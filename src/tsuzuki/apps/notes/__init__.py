"""Notes: a chat export of years becomes Markdown notes, over a night, with interruptions; nothing is paid for twice.

An ordinary user of the public API: it comes in through the entry point group `tsuzuki.apps`. What the requirement
names can be imported from here: `from tsuzuki.apps.notes import CompletedItemsCache, StageType`.
"""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tsuzuki.application import Application, Pages

if TYPE_CHECKING:
    import click
    from fastapi import APIRouter

    from tsuzuki.apps.notes.completed import CompletedItemsCache
    from tsuzuki.apps.notes.items import ItemStatus, ProcessingItem, StageType
    from tsuzuki.apps.notes.phases import Phase, PhaseStatistics, PhaseStatus, Stage, StageContext
    from tsuzuki.apps.notes.stagelog import StageLogRecord
    from tsuzuki.flow import Flow

__all__ = [
    "CompletedItemsCache",
    "ItemStatus",
    "Phase",
    "PhaseStatistics",
    "PhaseStatus",
    "ProcessingItem",
    "Stage",
    "StageContext",
    "StageLogRecord",
    "StageType",
    "application",
]

_PLACES: Final = {
    "CompletedItemsCache": "completed",
    "ItemStatus": "items",
    "Phase": "phases",
    "PhaseStatistics": "phases",
    "PhaseStatus": "phases",
    "ProcessingItem": "items",
    "Stage": "phases",
    "StageContext": "phases",
    "StageLogRecord": "stagelog",
    "StageType": "items",
}
"""Where each name is; imported when it is asked for, so that looking for applications stays quick."""


def __getattr__(name: str) -> Any:
    """Imports a name when it is asked for."""
    if name in _PLACES:
        return getattr(import_module(f"tsuzuki.apps.notes.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _flows() -> "Iterable[Flow[..., Any]]":
    from tsuzuki.apps.notes.flows import flows  # noqa: PLC0415 - looking for applications stays quick

    return flows()


def _routes() -> "APIRouter":
    from tsuzuki.apps.notes.routes import router  # noqa: PLC0415 - only a gateway needs them

    return router


def _command() -> "click.Command":
    from tsuzuki.apps.notes.command import notes  # noqa: PLC0415 - only the command line needs it

    return notes


application: Final = Application(
    name="notes",
    title={"en": "Notes", "ja": "ノート"},
    flows=_flows,
    routes=_routes,
    command=_command,
    pages=Pages(Path(__file__).parent / "pages"),
    keeps=("notes",),
)
