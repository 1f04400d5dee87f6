"""`/api/notes/…`: sessions, how they stand, what failed and why, notes to look at, resume, retry and cancel."""

import asyncio
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki import Run, settings
from tsuzuki.apps.notes import looking
from tsuzuki.apps.notes.chunking import SIZE
from tsuzuki.apps.notes.desk import SMALLEST_CHUNK, Asked, Desk, Standing, Started
from tsuzuki.errors import BadUsage
from tsuzuki.visits import Visit, visit

_PROBLEM: Final[dict[str, Any]] = {"application/problem+json": {}}
router: Final = APIRouter(responses={404: {"description": "There is no such session", "content": _PROBLEM}})
Limit = Annotated[int, Field(ge=0, le=2**31)]


async def desk(visit: Annotated[Visit, Depends(visit)]) -> Desk:
    """Gives the desk of the caller's tenant; what it starts is carried out by workers."""

    async def submit(flow: Any, params: dict[str, Any]) -> Run:
        return await visit.submit(flow, params, tag=str(settings.value("TSUZUKI_NOTES_TAG")))

    return Desk(visit.runs, submit, tenant=visit.tenant, folder=visit.data_dir)


AtDesk = Annotated[Desk, Depends(desk)]


class Shape(BaseModel):
    """What a request brings; what is said of each field here is told over HTTP too."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class NewImport(Shape):
    """An import; `export` and `vault` are paths on the machine of the gateway."""

    export: str = Field(min_length=1, max_length=4096)
    """The absolute path of the export."""
    vault: str = Field(min_length=1, max_length=4096)
    """The absolute path of the folder into which the notes go."""
    provider: str = "auto"
    """Whose export it is: `chatgpt`, `claude`, `jsonl` or `markdown`; `auto` finds out."""
    llm: str = ""
    """Who makes the notes; empty: as it is set for the gateway."""
    model: str = ""
    """Which model is asked; empty: as it is set for the gateway."""
    translate: str = ""
    """The language into which summaries are translated, such as `ja`; empty: none."""
    chunk: bool = False
    """Whether long conversations are cut into pieces; otherwise they are passed over."""
    chunk_size: int = Field(default=SIZE, ge=SMALLEST_CHUNK, le=2**31)
    """A conversation with more characters is long."""
    concurrency: int = Field(default=0, ge=0, le=256)
    """How many conversations are asked about at once; 0: as it is set."""
    failure_threshold: float | None = Field(default=None, ge=0, le=100)
    """The share of failures, in percent, above which the import stops; null: it never does."""
    limit: Limit = 0
    """How many notes are made at most; 0: all."""


class GoOn(Shape):
    """How to go on: with a limit, at most so many notes are made."""

    limit: Limit = 0
    """How many notes are made at most; 0: all."""


@router.get("/sessions", summary="List sessions")
async def list_sessions(desk: AtDesk) -> list[Standing]:
    """Lists sessions, the newest first."""
    return await desk.every()


@router.post("/sessions", summary="Import an export", status_code=202)
async def start(asked: NewImport, desk: AtDesk) -> dict[str, Any]:
    """Makes a session and answers at once; workers make the notes."""
    if desk.tenant:  # a path reaches whatever this machine can read
        raise BadUsage("exports are imported at the machine itself: tsuzuki notes import EXPORT --out VAULT")
    options = asked.model_dump(exclude={"export", "vault", "limit"})
    wanted = Asked(export=_path(asked.export), vault=_path(asked.vault), **options)
    return _told(await desk.start(wanted, limit=asked.limit))


def _path(text: str) -> Path:
    path = Path(text).expanduser() if "\0" not in text else Path()
    if not path.is_absolute():
        raise BadUsage(f"{text!r} is no absolute path: the gateway may be in another folder than you")
    return path


@router.get("/sessions/{session_id}", summary="How a session stands")
async def look(session_id: str, desk: AtDesk) -> Standing:
    """Tells how a session stands."""
    return await desk.standing(await asyncio.to_thread(desk.sessions.find, session_id))


@router.get("/sessions/{session_id}/failed", summary="What failed, and why")
def failed(session_id: str, desk: AtDesk) -> list[looking.Failed]:
    """Lists the conversations that have failed and were not done since."""
    return looking.failed_items(desk.sessions.find(session_id))


@router.get("/sessions/{session_id}/items", summary="The items of a session")
def items(
    session_id: str,
    desk: AtDesk,
    state: Annotated[str, Query(pattern="^(|success|failed|skipped|pending)$")] = "",
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Lists items with what became of each; `state` chooses some."""
    found = [each for each in looking.items(desk.sessions.find(session_id)) if state in ("", each["state"])]
    return {"total": len(found), "items": found[offset : offset + limit]}


@router.get("/sessions/{session_id}/trace", summary="All that happened to one item")
def trace(session_id: str, item: str, desk: AtDesk) -> dict[str, Any]:
    """Tells the records, failures and note of an item, by its id, the beginning of its id, or its title."""
    return looking.traced(desk.sessions.find(session_id), item)


@router.get("/sessions/{session_id}/note", summary="A note")
async def note(session_id: str, item: str, desk: AtDesk) -> dict[str, Any]:
    """Gives the note of an item as it stands in the vault."""
    return await desk.note(await asyncio.to_thread(desk.sessions.find, session_id), item)


@router.post("/sessions/{session_id}/resume", summary="Go on with a session", status_code=202)
async def resume(session_id: str, desk: AtDesk, asked: GoOn | None = None) -> dict[str, Any]:
    """Goes on: what is done is passed over, what failed is tried again."""
    session = await asyncio.to_thread(desk.sessions.find, session_id)
    return _told(await desk.resume(session, limit=asked.limit if asked else 0))


@router.post("/sessions/{session_id}/retry", summary="Try again what failed", status_code=202)
async def retry(session_id: str, desk: AtDesk, asked: GoOn | None = None) -> dict[str, Any]:
    """Tries exactly those conversations again that failed."""
    session = await asyncio.to_thread(desk.sessions.find, session_id)
    return _told(await desk.retry(session, limit=asked.limit if asked else 0))


@router.post("/sessions/{session_id}/cancel", summary="Cancel the work on a session")
async def cancel(session_id: str, desk: AtDesk) -> Standing:
    """Cancels; what was done stays, and `resume` goes on."""
    return await desk.cancel(await asyncio.to_thread(desk.sessions.find, session_id))


def _told(started: Started) -> dict[str, Any]:
    return {"session_id": started.session_id, "run_id": started.run.id, "resumed": started.resumed}
