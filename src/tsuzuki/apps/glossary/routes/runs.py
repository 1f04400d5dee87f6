"""`/api/projects/{id}/runs`: start, list, look, cancel, and the log as it is written."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any, Final

from fastapi import APIRouter, Response

from tsuzuki import settings
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.records import PipelineScope
from tsuzuki.apps.glossary.routes.shared import AtDesk, Id, Message, ProjectId, Shape, Visiting
from tsuzuki.apps.glossary.runs_repository import RunRow

router: Final = APIRouter(prefix="/{project_id}/runs")
QUIET: Final = 3.0
"""After so many seconds without news a comment says that the stream lives."""


class RunStartRequest(Shape):
    """What a run is to do."""

    scope: PipelineScope
    """What the run is to do."""


class RunResponse(Shape):
    """A run."""

    id: int
    """The number of the run inside its project."""
    scope: str
    """What it does: `full`, `extract`, `generate`, `review` or `refine`."""
    status: str
    """Where it stands: `pending`, `running`, `completed`, `failed` or `cancelled`."""
    started_at: str | None
    """When it began (UTC, ISO 8601); null until then."""
    finished_at: str | None
    """When it ended (UTC, ISO 8601); null until then."""
    triggered_by: str
    """What started it: `api`, `auto` (documents were added) or `manual` (a command)."""
    error_message: str | None
    """What it failed of; null where it did not fail."""
    progress_current: int | None
    """How much of the step is done; null until it is told."""
    progress_total: int | None
    """How much the step has to do; null until it is told."""
    current_step: str | None
    """The step: `extract`, `provisional`, `issues` or `refined`; null before the first."""
    created_at: str
    """When it was asked for (UTC, ISO 8601)."""


class PartialEntry(Shape):
    """A definition that a run has made so far."""

    step: str
    """The glossary that it is for: `provisional` or `refined`."""
    term: str
    """The term."""
    definition: str
    """What it means."""
    confidence: float
    """How sure the definition is, from 0 to 1."""


def _shown(row: RunRow) -> RunResponse:
    return RunResponse(**asdict(row))


@router.post("", summary="Start a run", status_code=201)
async def start_run(project_id: ProjectId, asked: RunStartRequest, desk: AtDesk) -> RunResponse:
    """Starts a run; 409 while one of this project is active. One of the same scope that was stopped is continued."""
    debug = bool(settings.value("TSUZUKI_GLOSSARY_LLM_DEBUG"))
    return _shown(await desk.start(project_id, asked.scope, llm_debug=debug))


@router.get("", summary="List runs")
async def list_runs(project_id: ProjectId, desk: AtDesk) -> list[RunResponse]:
    """Lists runs, the newest first."""
    return [_shown(row) for row in await desk.runs(project_id)]


@router.get("/current", summary="The active run, or the last one")
async def current_run(project_id: ProjectId, desk: AtDesk) -> RunResponse:
    """Gives the run that is active; where none is, the last one, whatever became of it."""
    return _shown(await desk.current(project_id))


@router.get("/{run_id}", summary="Look at a run")
async def get_run(project_id: ProjectId, run_id: Id, desk: AtDesk) -> RunResponse:
    """Gives a run."""
    return _shown(await desk.run(project_id, run_id))


@router.delete("/{run_id}", summary="Cancel a run")
async def cancel_run(project_id: ProjectId, run_id: Id, desk: AtDesk) -> Message:
    """Asks for the end of a run; what is finished stays, one that has ended is not changed."""
    before = await desk.run(project_id, run_id)
    row = await desk.cancel(project_id, run_id)
    if not before.active:
        return Message(message=f"Run {run_id} has ended already: {row.status}")
    return Message(message=f"Run {run_id} cancelled" if row.status == "cancelled" else "Cancel requested")


@router.get("/{run_id}/partial", summary="What a run has defined so far")
async def partial(project_id: ProjectId, run_id: Id, desk: AtDesk) -> list[PartialEntry]:
    """Gives finished definitions of a run that is active or was stopped."""
    return [PartialEntry(**each) for each in await desk.partial(project_id, run_id)]


@router.get(
    "/{run_id}/logs",
    summary="The log of a run as it is written",
    response_class=Response,
    responses={200: {"description": "Entries as events, and at last `complete`", "content": {"text/event-stream": {}}}},
)
async def stream_run_logs(
    project_id: ProjectId, run_id: Id, desk: AtDesk, visit: Visiting, *, history: bool = False
) -> Response:
    """Sends each entry as `data: {json}` and at last `event: complete`; of a run that has ended only that.

    With `history` the entries of an ended run come first.
    """
    await desk.run(project_id, run_id)
    return visit.stream(_frames(desk, project_id, run_id, history=history))


async def _frames(desk: Desk, project_id: int, run_id: int, *, history: bool) -> AsyncGenerator[bytes, None]:
    entries = desk.logs(project_id, run_id, history=history)
    waiting: asyncio.Task[dict[str, Any]] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(entries))
            await asyncio.wait([waiting], timeout=QUIET)
            if not waiting.done():
                yield b": still there\n\n"
                continue
            entry, waiting = waiting.result(), None
            if entry.get("complete"):
                yield b"event: complete\ndata: {}\n\n"
                return
            yield f"data: {json.dumps(entry, ensure_ascii=False)}\n\n".encode()
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        await entries.aclose()
