"""The routes that stay open: snapshots of a run as it changes, and the facts of its journal as they come."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from tsuzuki import facts as f
from tsuzuki.backends import Entry
from tsuzuki.clock import Clock
from tsuzuki.gateway.answers import problems
from tsuzuki.gateway.options import HEARTBEAT
from tsuzuki.gateway.problems import Invalid
from tsuzuki.gateway.runs import RECORDS, Include, RunId, included
from tsuzuki.gateway.scenes import Picture
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.gateway.streams import event
from tsuzuki.lifecycle import TERMINAL, Run

router: Final = APIRouter(tags=["watching"])

POSITION: Final = re.compile(r"[0-9]{1,16}")
"""How a position is written; Python refuses to read a number of thousands of digits."""
_PAGE: Final = 500
_FIRST_PAGE: Final = 16
LUMP: Final = 131_072
"""About so many bytes of facts are sent at a time: whoever does not take them costs no more than that."""

STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/runs/{run_id}/watch", summary="Watch a run", responses=STREAM | problems(404), response_class=Response)
async def watch(
    run_id: RunId,
    session: InSession,
    include: Include = None,
    since: Annotated[
        float | None, Query(allow_inf_nan=False, description="Only snapshots with `updated_at` at or after this.")
    ] = None,
    timeout_sec: Annotated[int, Query(ge=1, le=600, description="Ends after so many seconds.")] = 60,
) -> Response:
    """Sends the run as it is (`event: snapshot`), then each change; `event: heartbeat` when there is none."""
    row = await session.run(run_id)
    records = bool(included(include) & RECORDS)
    return session.gateway.streams.answer(
        _snapshots(session, row, records=records, since=since or 0.0, seconds=timeout_sec), session.key_id
    )


async def _snapshots(
    session: Session, row: Run, *, records: bool, since: float, seconds: float
) -> AsyncGenerator[bytes, None]:
    clock = session.runs.backend.clock
    end, version, told = clock.monotonic() + seconds, 0, clock.monotonic()
    async with session.gateway.scenes.watching(row) as scene:
        await scene.told()  # never less than who asks could have read before
        while (now := clock.monotonic()) < end:
            changed = scene.changed
            if scene.version != version:
                picture = await scene.picture(scene.version, records=records)
                version = picture.version
                if picture.updated_at >= since:
                    told = now
                    yield _snapshot(row.id, picture, clock)
                continue
            if now - told >= HEARTBEAT:
                told = now
                yield event("heartbeat", _with_time(row.id, clock))
            await _waited(changed, min(end - now, told + HEARTBEAT - now))


async def _waited(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(seconds, 0.001)):
            await changed.wait()
    except TimeoutError:
        return


def _snapshot(run_id: str, picture: Picture, clock: Clock) -> bytes:
    start, _, rest = _with_time(run_id, clock).partition(b',"ts"')
    return event("snapshot", b'%s,"snapshot":%s,"ts"%s' % (start, picture.document, rest))


def _with_time(run_id: str, clock: Clock) -> bytes:
    return msgspec.json.encode({"run_id": run_id, "ts": clock.now()})


@router.get(
    "/runs/{run_id}/events",
    summary="Follow the journal of a run",
    responses=STREAM | problems(404),
    response_class=Response,
)
async def events(
    run_id: RunId,
    session: InSession,
    after: Annotated[int, Query(ge=0, le=2**53, description="Begins after this position.")] = 0,
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", description="The id of the last event that came; wins over `after`.")
    ] = None,
) -> Response:
    """Sends every fact (`event: fact`, its position as id), then those that come; last comes `event: end`.

    Whoever comes late gets everything from where they ask.
    """
    row = await session.run(run_id)
    if last_event_id:
        if not POSITION.fullmatch(last_event_id) or int(last_event_id) > 2**53:
            place, why = ("header", "Last-Event-ID"), "it is the position of a fact, the id of the last event that came"
            raise Invalid([{"type": "int_parsing", "loc": place, "msg": why}])
        after = int(last_event_id)
    after = min(after, row.position)  # nobody can have seen more than there is: what comes from now on is sent
    return session.gateway.streams.answer(_facts(session, row, after), session.key_id)


async def _facts(session: Session, row: Run, position: int) -> AsyncGenerator[bytes, None]:
    clock, overview, run_id = session.runs.backend.clock, session.overview, row.id
    told = clock.monotonic()
    current: Run | None = row
    page = _FIRST_PAGE
    while current is not None:
        entries = await overview.facts(run_id, after=position, limit=page)
        if entries:
            position, told = entries[-1].position, clock.monotonic()
            lump, count = b"".join(map(_fact, entries)), len(entries)
            del entries  # nothing but what is being sent is kept while the client takes its time
            page = min(max(LUMP * count // len(lump), 1), _PAGE)
            yield lump
            await asyncio.sleep(0)  # others have their turn, also where neither the store nor the client is waited for
            continue
        if current.status in TERMINAL and current.position <= position:
            end = {"run_id": run_id, "status": current.status.value, "position": position}
            yield event("end", msgspec.json.encode(end))
            return
        if clock.monotonic() - told >= HEARTBEAT:
            told = clock.monotonic()
            yield event("heartbeat", _with_time(run_id, clock))
        seen = msgspec.structs.replace(current, position=position)
        current = await overview.news(seen, HEARTBEAT)
    yield event("end", msgspec.json.encode({"run_id": run_id, "status": None, "position": position}))


def _fact(entry: Entry) -> bytes:
    body = bytes(entry.fact.raw) if isinstance(entry.fact, f.Unknown) else f.encode(entry.fact)
    return event("fact", b'{"position":%d,%s' % (entry.position, body[1:]), entry.position)
