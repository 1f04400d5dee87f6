"""The routes of what a run did: its items, and its log."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from tsuzuki.backends import Line
from tsuzuki.errors import BadRequest
from tsuzuki.gateway import cursors
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.models import ItemPage, LogPage
from tsuzuki.gateway.problems import no_word
from tsuzuki.gateway.runs import RunId
from tsuzuki.gateway.session import InSession
from tsuzuki.overview import OUTCOMES, ItemFilter

router: Final = APIRouter(tags=["items"])

STATUSES: Final = tuple(dict.fromkeys(OUTCOMES.values()))
ItemStatus = Annotated[str, WithJsonSchema({"type": "string", "enum": STATUSES})]


@router.get("/runs/{run_id}/items", summary="List the items of a run", response_model=ItemPage, responses=problems(404))
async def items(
    *,
    run_id: RunId,
    session: InSession,
    status: Annotated[
        ItemStatus | None, Query(max_length=16, description="`done`, `failed` (and not tried again) or `skipped`.")
    ] = None,
    error: Annotated[str | None, Query(max_length=256, description="Part of an error, whatever its case.")] = None,
    step: Annotated[str | None, Query(max_length=512, description="The name of a task, or the id of a step.")] = None,
    key: Annotated[str | None, Query(max_length=256, description="Part of an item's key, whatever its case.")] = None,
    spent: Annotated[bool, Query(description="Only those that have used a language model.")] = False,
    cursor: Annotated[str | None, Query(max_length=128, description="`next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 100,
) -> Response:
    """Lists the steps and items that have an outcome, in the order in which they were recorded.

    A page may be short, even empty, and still have a cursor: rare ones are looked for a piece of the journal at a time.
    """
    row = await session.run(run_id)
    if status and status.lower() not in STATUSES:
        raise no_word(BadRequest, "status", status, STATUSES)
    fold = await session.gateway.snapshots.fold(row)
    wanted = ItemFilter(
        status=status.lower() if status else None,
        error=error or None,
        step=step or None,
        key=key or None,
        failed_after=fold.retried_from,
        spent=spent,
    )
    found, position = await session.overview.items(
        row, wanted, after=cursors.position(cursor or ""), limit=limit, maps=fold.maps()
    )
    return answer({"items": found, "next_cursor": None if position is None else cursors.after_position(position)})


@router.get("/runs/{run_id}/logs", summary="Read the log of a run", response_model=LogPage, responses=problems(404))
async def logs(
    run_id: RunId,
    session: InSession,
    after: Annotated[int, Query(ge=0, le=2**53, description="Begins after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 200,
) -> Response:
    """Gives log lines in order. The log is lossy: of a very long one the oldest lines go."""
    row = await session.run(run_id)
    lines = await session.overview.lines(row.id, after=after, limit=limit)
    return answer({"items": [_shown(line) for line in lines], "next_after": lines[-1].number if lines else after})


def _shown(line: Line) -> dict[str, Any]:
    return {
        "number": line.number,
        "at": line.at,
        "level": line.level,
        "text": line.text,
        "name": line.name,
        "key": line.key,
        "step": line.step,
        "logger": line.logger,
        "position": line.position,
    }
