"""The routes of how many: runs by status where filters hold, and what ended in the last hours, in bars of time."""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, pairwise
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tsuzuki.backends import Query as RunQuery
from tsuzuki.gateway import cursors, examples
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.runs import INTERRUPTED, StatusWord, by_status, status_words
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.lifecycle import ACTIVE, TERMINAL, Run, Status, stamp

router: Final = APIRouter(tags=["overview"])

BARS: Final = 48
MOST_COUNTED: Final = 1000
"""Where filters hold, runs are counted up to so many."""
LOOKED_AT: Final = 40
"""How long runs took is told by the last so many of each bar."""


class Counted(BaseModel):
    """How many runs fit, by status."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.COUNTED]})

    runs: Annotated[dict[str, int], Field(description="How many runs fit, by status.")]
    at_least: Annotated[bool, Field(description="Whether there are more of any status: see `more`.")]
    more: Annotated[
        list[str],
        Field(description="The statuses of which there are more: with a label, a text or a time 1,000 of each count."),
    ]


class Bar(BaseModel):
    """What ended in a stretch of time."""

    start: Annotated[float, Field(description="Unix seconds.")]
    ended: Annotated[dict[str, int], Field(description="How many runs ended, by status.")]
    took: Annotated[
        list[float] | None, Field(description="Median and 95th percentile of how long they took (seconds).")
    ]
    waited: Annotated[list[float] | None, Field(description="The same of how long they waited to be begun.")]
    queue_age: Annotated[
        float, Field(description="For how long the run that waited longest by then had waited (seconds).")
    ]


class History(BaseModel):
    """The last hours or days in bars of the same width."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.HISTORY]})

    width: Annotated[float, Field(description="How many seconds each bar stands for.")]
    bars: Annotated[list[Bar], Field(description="Bars, the oldest first.")]
    at_least: Annotated[bool, Field(description="Whether more ended: of a tenant so many runs of each bar count.")]


@router.get("/runs/counts", summary="Count runs by status", response_model=Counted, responses=problems())
async def counts(
    *,
    session: InSession,
    status: Annotated[
        list[StatusWord] | None, Query(description="Count only runs with one of these statuses, as in a list.")
    ] = None,
    flow: Annotated[str | None, Query(max_length=512, description="The name of a flow.")] = None,
    tag: Annotated[str | None, Query(max_length=128, description="The tag that routes runs.")] = None,
    label: Annotated[str | None, Query(max_length=256, description="One of a run's `tags`.")] = None,
    text: Annotated[str | None, Query(max_length=256, description="Part of an id, a flow's name or an error.")] = None,
    updated_after: Annotated[
        float | None, Query(allow_inf_nan=False, description="Only runs that changed after this (Unix seconds).")
    ] = None,
    updated_before: Annotated[
        float | None, Query(allow_inf_nan=False, description="Only runs that did not change since (Unix seconds).")
    ] = None,
) -> Response:
    """Counts the runs that fit the same filters as a list."""
    words = status_words(status)
    wanted = RunQuery(
        **by_status(words),
        flow=flow or None,
        tag=tag or None,
        label=label or None,
        text=text or None,
        tenant=session.tenant,
        updated_after=updated_after,
        before=None if updated_before is None else cursors.until(updated_before),
        limit=MOST_COUNTED + 1,
        params=False,
    )
    if INTERRUPTED in words:
        found = Counter(row.status.value for row in await session.runs.holders.with_interrupted(wanted))
    elif words or wanted.label or wanted.text or updated_after is not None or updated_before is not None:
        found = Counter({status.value: await _count(session, wanted, status) for status in wanted.status or Status})
    else:
        found = Counter(await session.overview.counts(flow=wanted.flow, tag=wanted.tag, tenant=session.tenant))
        return answer({"runs": _shown(found), "at_least": False, "more": []})
    more = [status for status, count in found.items() if count > MOST_COUNTED]
    return answer({"runs": _shown(found) | dict.fromkeys(more, MOST_COUNTED), "at_least": bool(more), "more": more})


def _shown(found: Counter[str]) -> dict[str, int]:
    return {status.value: found[status.value] for status in Status}


async def _count(session: Session, wanted: RunQuery, status: Status) -> int:
    """Count the runs of one status, up to one more than is shown."""
    await asyncio.sleep(0)  # others are answered between two statuses
    return len(await session.runs.list(replace(wanted, status=(status,))))


@router.get("/overview/history", summary="What ended when", response_model=History, responses=problems())
async def history(
    session: InSession,
    seconds: Annotated[int, Query(ge=60, le=2_678_400, description="How far back to look.")] = 86_400,
) -> Response:
    """Tells in 48 bars how many runs ended, how long they took and how long they waited."""
    width = seconds / BARS
    last = (session.runs.now() // width + 1) * width
    edges = [last - (BARS - place) * width for place in range(BARS + 1)]
    ended = await _ended(session, edges) if session.tenant is None else None
    seen = [await _seen(session, edges[place], edges[place + 1], ended, place) for place in range(BARS)]
    ages = _ages(await _waits(session, seen), edges)
    bars = [
        {
            "start": edges[place],
            "ended": _by_status(rows) if ended is None else ended[place],
            "took": _spread([_took(row) for row in rows]),
            "waited": _spread([_between(row.created_at, row.started_at) for row in rows if row.attempt == 1]),
            "queue_age": ages[place],
        }
        for place, rows in enumerate(seen)
    ]
    full = session.tenant is not None and any(len(rows) >= LOOKED_AT for rows in seen)
    return answer({"width": width, "bars": bars, "at_least": full})


async def _ended(session: Session, edges: Sequence[float]) -> list[dict[str, int]]:
    """Counts what ended between edges: an ended run changed last when it ended."""
    counted = []
    for start, end in pairwise(edges):
        found = await session.overview.counts(updated_after=start, updated_by=end)
        counted.append({status.value: found.get(status.value, 0) for status in Status if status in TERMINAL})
        await asyncio.sleep(0)  # others are answered between two bars
    return counted


async def _seen(
    session: Session, start: float, end: float, ended: list[dict[str, int]] | None, place: int
) -> list[Run]:
    if ended is not None and not any(ended[place].values()):
        return []
    await asyncio.sleep(0)
    found = RunQuery(
        status=tuple(sorted(TERMINAL)),
        tenant=session.tenant,
        updated_after=start,
        before=cursors.until(end),
        limit=LOOKED_AT,
        params=False,
    )
    return await session.runs.list(found)


async def _waits(session: Session, seen: Sequence[Sequence[Run]]) -> list[tuple[float, float]]:
    """Gives from when until when runs waited: those that ended, those under way, and those that wait still."""
    now = session.runs.now()
    active = RunQuery(status=tuple(sorted(ACTIVE)), tenant=session.tenant, limit=MOST_COUNTED, params=False)
    rows = [*chain.from_iterable(seen), *await session.runs.list(active)]
    waits = [
        (max(_moment(row.created_at), row.not_before), _moment(row.started_at or row.finished_at, now))
        for row in rows
        if not row.private  # a script's own: no worker is waited for
    ]
    oldest = await session.overview.waiting_since() if session.tenant is None else None
    return waits if oldest is None else [*waits, (oldest, now)]


def _ages(waits: Sequence[tuple[float, float]], edges: Sequence[float]) -> list[float]:
    """Tells how old the queue became between each two edges."""
    ages = [0.0] * (len(edges) - 1)
    for begun, over in waits:
        for place in range(max(bisect_right(edges, begun) - 1, 0), len(ages)):
            if edges[place] >= over:
                break
            ages[place] = max(ages[place], min(over, edges[place + 1]) - begun)
    return ages


def _moment(at: str | None, otherwise: float = 0.0) -> float:
    return otherwise if at is None else datetime.fromisoformat(at).timestamp()


def _by_status(rows: Sequence[Run]) -> dict[str, int]:
    counted = Counter(row.status.value for row in rows)
    return {status.value: counted.get(status.value, 0) for status in Status if status in TERMINAL}


def _took(row: Run) -> float | None:
    """Return how long a run took: exactly if its first claim was its last, else in whole seconds."""
    if row.heartbeat_at is not None and stamp(row.heartbeat_at) == row.started_at:
        return max(row.updated_at - row.heartbeat_at, 0.0)
    return _between(row.started_at, row.finished_at)


def _between(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 0.0)


def _spread(found: Sequence[float | None]) -> list[float] | None:
    values: list[Any] = sorted(value for value in found if value is not None)
    if not values:
        return None
    return [values[int(part * (len(values) - 1) + 0.5)] for part in (0.5, 0.95)]
