"""The routes of runs: start, look, list, cancel, resume, remove."""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import ValidationError, WithJsonSchema
from starlette.background import BackgroundTask
from starlette.responses import Response

from tsuzuki import llm, settings
from tsuzuki.backends import Query as RunQuery
from tsuzuki.codec import params_digest, plain_params, short
from tsuzuki.errors import BadListQuery, BadParams, StoreError, StoreUnavailable, TsuzukiError
from tsuzuki.gateway import cursors
from tsuzuki.gateway.answers import answer, problems, raw, read, takes
from tsuzuki.gateway.bodies import CancelRun, ResumeRun, SubmitBatch, SubmitRun
from tsuzuki.gateway.models import Accepted, BatchAnswer, Removed, RunPage, RunSnapshot, RunSummary, RunTasks
from tsuzuki.gateway.problems import Invalid, answer_of, invalid_fields, misplaced, no_word
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.gateway.snapshots import summary
from tsuzuki.lifecycle import WITH_FAILURES, Run, RunUpdateResult, Status
from tsuzuki.outages import for_moments
from tsuzuki.runs import Runs

logger: Final = logging.getLogger("tsuzuki.gateway")

router: Final = APIRouter(tags=["runs"])

NUMBER: Final = re.compile(r"#?([0-9]{1,15})")
"""How people write the number of a run."""
RECORDS: Final = frozenset({"records", "task_records", "full", "all"})
"""The words of `include` that ask for what is recorded of tasks."""
WHOLE: Final = RECORDS | {"snapshot"}
"""Those that ask a list for whole runs."""
PAGE_ROOM: Final = 8_388_608
"""About so many bytes has a page of whole runs; those after that are shortened as far as they can be."""
AT_ONCE: Final = 100
"""So many runs of a batch are written together."""

RESULT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"schema": {}}}, "description": "The JSON that the flow returned."}
}

RunId = Annotated[str, Path(description="The id of a run, or its number.")]
Include = Annotated[
    list[str] | None,
    Query(
        description="`records`, `task_records`, `full` or `all`: also what is recorded of tasks. `params`: of a single "
        "run all params, however large. Repeatable."
    ),
]
INTERRUPTED: Final = "INTERRUPTED"
"""What `status` may ask for beside the statuses: runs that were stopped on the way and wait to be resumed."""
STATUS_WORDS: Final = (*(status.value for status in Status), WITH_FAILURES, INTERRUPTED)
StatusWord = Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATUS_WORDS)})]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=256,
        description="The first run with this key is given instead of a second one, also after a crash of the gateway.",
    ),
]


def included(include: list[str] | None) -> frozenset[str]:
    """Reads what is to be included: repeated, or separated by commas."""
    return frozenset(word.strip().lower() for text in include or () for word in text.split(","))


def refuse_another(accepted: Run, key: str | None, flow: str, params: bytes, workflow: str = "") -> None:
    """Refuses a request whose idempotency key made a run of another one: who sent it would wait for the wrong run."""
    if key is None or (accepted.flow, accepted.digest, accepted.workflow) == (flow, params_digest(params), workflow):
        return
    first = f"run {accepted.number} of {accepted.flow}"
    why = f"{short(key)} has made {first}, with another flow or params; send a new key with another request"
    place = ("header", "Idempotency-Key")
    raise Invalid([{"type": "idempotency_key_reused", "loc": place, "msg": why}])


async def start(
    session: Session, asked: SubmitRun, idempotency_key: str | None = None, place: tuple[str | int, ...] = ("body",)
) -> Run:
    """Starts one run for who asks; where its flow is published, its params must fit, and its tag and key are known."""
    row = None if asked.continues is None else await session.run(asked.continues)
    catalogue, params = session.gateway.catalogue, asked.params or {}
    flow = await catalogue.find(asked.flow_name)
    tag = asked.tag or (None if flow is None else flow.tag) or settings.default_tag()
    key = asked.key
    try:
        if flow is not None:
            await catalogue.checked(flow.name, tag, params)
            key = catalogue.key(flow, params) if key is None else key
        accepted = await session.runs.submit(
            asked.flow_name,
            params,
            tag=tag,
            tags=[tag] if asked.tags is None else asked.tags,
            priority=asked.priority,
            key=key,
            idempotency_key=idempotency_key,
            continues=None if row is None else row.id,
            not_before=asked.not_before,
            source="http",
            tenant=session.tenant or "",
            api_key=session.key_id,
        )
    except BadParams as error:
        raise misplaced(error, (*place, "params")) from None
    if idempotency_key is not None:
        refuse_another(accepted, idempotency_key, asked.flow_name, plain_params(params))
    return accepted


@router.post(
    "/runs",
    summary="Start a run",
    response_model=Accepted,
    responses=problems(404, 409, 413),
    openapi_extra=takes(SubmitRun),
)
async def submit(request: Request, session: InSession, idempotency_key: IdempotencyKey = None) -> Response:
    """Accepts a run. Once this answers 200 it will be executed, even if the gateway dies the next moment."""
    asked = await read(request, SubmitRun, session.gateway.options.max_request_bytes)
    row = await start(session, asked, idempotency_key)
    return answer({"run_id": row.id, "status": row.status.value, "number": row.number})


@router.post(
    "/runs/batch",
    summary="Start many runs",
    response_model=BatchAnswer,
    responses=problems(413),
    openapi_extra=takes(SubmitBatch),
)
async def submit_batch(request: Request, session: InSession, idempotency_key: IdempotencyKey = None) -> Response:
    """Accepts up to 1,000 runs in order; each is accepted or refused on its own.

    With an `Idempotency-Key` each run has the key with its place behind it, so that a
    repeated batch starts nothing twice.
    """
    asked = await read(request, SubmitBatch, session.gateway.options.max_request_bytes)
    items: list[dict[str, Any]] = []
    numbered = list(enumerate(asked.runs))
    for first in range(0, len(numbered), AT_ONCE):  # together: they share one write
        some = numbered[first : first + AT_ONCE]
        items += await asyncio.gather(*(_one_of_many(session, one, number, idempotency_key) for number, one in some))
    refused = sum(item["error"] is not None for item in items)
    return answer({"items": items, "accepted": len(items) - refused, "refused": refused})


async def _one_of_many(session: Session, entry: Any, number: int, key: str | None) -> dict[str, Any]:
    place = ("body", "runs", number)
    try:
        asked = _entry(entry, place)
        row = await start(session, asked, None if key is None else f"{key}#{number}", place)
    except TsuzukiError as error:
        told = msgspec.json.decode(answer_of(error).body)
        refused = {"run_id": told.get("run_id"), "number": None, "status": None}
        return refused | {name: told.get(name) for name in ("error_id", "errors")} | {"error": told["detail"]}
    return {"run_id": row.id, "number": row.number, "status": row.status.value, "error": None, "error_id": None}


def _entry(entry: Any, place: tuple[str | int, ...]) -> SubmitRun:
    try:
        return SubmitRun.model_validate(entry)
    except ValidationError as error:
        raise invalid_fields(error, place) from None


@router.get(
    "/runs",
    summary="List runs",
    response_model=list[RunSnapshot | RunSummary] | RunPage,
    responses=problems(),
)
async def list_runs(
    *,
    session: InSession,
    status: Annotated[
        list[StatusWord] | None,
        Query(
            description=f"A status of runs, whatever its case; may be repeated. `{WITH_FAILURES}` finds completed runs "
            f"with failed items, `{INTERRUPTED}` runs of scripts that were stopped on the way and wait to be resumed."
        ),
    ] = None,
    flow: Annotated[str | None, Query(max_length=512, description="The name of a flow.")] = None,
    tag: Annotated[str | None, Query(max_length=128, description="The tag that routes runs.")] = None,
    label: Annotated[str | None, Query(max_length=256, description="One of a run's `tags`.")] = None,
    key: Annotated[str | None, Query(max_length=512, description="The key that a run holds or held.")] = None,
    text: Annotated[
        str | None, Query(max_length=256, description="A number of a run, or part of an id, a flow's name or an error.")
    ] = None,
    workflow_yaml_sha256: Annotated[str | None, Query(max_length=64, description="Runs of this YAML text.")] = None,
    updated_after: Annotated[
        float | None, Query(allow_inf_nan=False, description="Only runs that changed after this time (Unix seconds).")
    ] = None,
    updated_before: Annotated[
        float | None, Query(allow_inf_nan=False, description="Only runs that did not change since (Unix seconds).")
    ] = None,
    cursor: Annotated[
        str | None, Query(max_length=512, description="`next_cursor` of the page before; may be empty.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="At most so many.")] = 50,
    include: Include = None,
) -> Response:
    """Lists runs, the one that changed last first.

    An array; with `updated_after`, `cursor` (even empty) or `workflow_yaml_sha256` a page with a cursor.
    """
    words, wanted = included(include), status_words(status)
    place = cursors.run_place(cursor or "")
    if updated_before is not None and (place is None or place[0] > updated_before):
        place = cursors.until(updated_before)
    rows = await _found(
        session,
        RunQuery(
            **by_status(wanted),
            flow=flow or None,
            tag=tag or None,
            label=label or None,
            key=key or None,
            text=text or None,
            workflow=workflow_yaml_sha256 or None,
            tenant=session.tenant,
            updated_after=updated_after,
            before=place,
            limit=limit + 1,
            params=bool(words & WHOLE),
        ),
        first=not cursor,
        interrupted=INTERRUPTED in wanted,
    )
    page, more = rows[:limit], len(rows) > limit
    items = await _shown(session, page, words)
    if updated_after is None and cursor is None and workflow_yaml_sha256 is None:
        return answer(items)
    return answer({"items": items, "next_cursor": cursors.after_run(page[-1]) if more else None})


async def _found(session: Session, query: RunQuery, *, first: bool, interrupted: bool) -> list[Run]:
    """Look for runs; where the text is a number, the run of that number comes first."""
    search = session.runs.holders.with_interrupted if interrupted else session.runs.list
    meant = NUMBER.fullmatch((query.text or "").strip())
    if meant is None:
        return await search(query)
    named = msgspec.structs.replace(query, text=None, number=int(meant[1]), before=None, limit=1)
    numbered = await search(named)
    others = [] if meant[0].startswith("#") else await search(query)
    known = {row.id for row in numbered}
    return [*(numbered if first else ()), *(row for row in others if row.id not in known)]


def status_words(words: list[str] | None) -> list[str]:
    """Return the words of `status` in capitals; refuse one that is none."""
    wanted = [word.strip().upper() for text in words or () for word in text.split(",") if word.strip()]
    for word in wanted:
        if word not in STATUS_WORDS:
            raise no_word(BadListQuery, "status", word, STATUS_WORDS)
    return wanted


def by_status(words: list[str]) -> dict[str, Any]:
    """Return the fields of a query that filter runs by the words of `status`."""
    stored = [Status.COMPLETED if word == WITH_FAILURES else Status(word) for word in words if word != INTERRUPTED]
    return {
        "status": tuple(dict.fromkeys(stored)),
        "failures": WITH_FAILURES in words and Status.COMPLETED not in words,
    }


async def _shown(session: Session, rows: list[Run], words: frozenset[str]) -> Sequence[Any]:
    if not words & WHOLE:
        standings = await session.gateway.standings.of(rows)
        return [summary(row) | standing for row, standing in zip(rows, standings, strict=True)]
    records, room = bool(words & RECORDS), PAGE_ROOM
    shown = []
    for row in rows:
        encoded = msgspec.json.encode(await session.gateway.snapshots.document(row, records=records, most=max(room, 0)))
        shown.append(msgspec.Raw(encoded))
        room -= len(encoded)
    return shown


@router.get("/runs/{run_id}", summary="Get a run", response_model=RunSnapshot, responses=problems(404))
async def get(run_id: RunId, session: InSession, include: Include = None) -> Response:
    """Gives a run as it is now, by its id or its number.

    Above `TSUZUKI_MAX_RUN_SNAPSHOT_BYTES` (256 KiB) `task_records` is `{}`, then a large `result` is null and large
    `params` are shortened; `task_records_truncated`, `result_truncated` and `params_truncated` say so.
    """
    words = included(include)
    row = await session.run(run_id)
    return answer(
        await session.gateway.snapshots.document(row, records=bool(words & RECORDS), params="params" in words)
    )


@router.get("/runs/{run_id}/tasks", summary="Get the tasks of a run", response_model=RunTasks, responses=problems(404))
async def tasks(run_id: RunId, session: InSession) -> Response:
    """Gives the tasks of a run with what is recorded of them; over 256 KiB without the records."""
    return answer(await session.gateway.snapshots.tasks(await session.run(run_id)))


@router.get(
    "/runs/{run_id}/result",
    summary="Get the result of a run",
    responses=RESULT | problems(404),
)
async def result(run_id: RunId, session: InSession) -> Response:
    """Gives what the flow returned, however large; `null` while there is none."""
    return raw(await session.runs.result_data(await session.run(run_id)))


@router.post(
    "/runs/{run_id}/cancel",
    summary="Cancel a run",
    response_model=RunSnapshot,
    responses=problems(404, 413),
    openapi_extra=takes(CancelRun, required=False),
)
async def cancel(run_id: RunId, request: Request, session: InSession) -> Response:
    """Asks for a run to be cancelled; where nobody executes it, it is at once. A run that has ended stays as it is.

    Where it waited for a batch of language models, the provider is asked to end that.
    """
    row = await for_moments(session.run, run_id)
    asked = await read(request, CancelRun, session.gateway.options.max_request_bytes, optional=True)
    result, row = await session.runs.cancel(row.id, reason=asked.reason or "", by=session.by)
    answered = await _answered(session, row, "the run is cancelled, or is about to be")
    if result is RunUpdateResult.UPDATED and row.status is Status.CANCELLED:
        answered.background = BackgroundTask(_end_batches, session.runs, row)
    return answered


async def _answered(session: Session, row: Run, done: str) -> Response:
    """Shows a run of which something was asked; where it cannot be read any more, at least that it is done is told."""
    try:
        return answer(await for_moments(session.gateway.snapshots.document, row))
    except StoreUnavailable as error:
        told = f"{done}; only how it stands cannot be read just now"
        raise StoreUnavailable(f"{told}: {error}", f"{told}: {error.advice}") from error


async def _end_batches(runs: Runs, row: Run) -> None:
    """Ends the open batches of a run that was cancelled; who cancelled it has the answer already."""
    try:
        await llm.end_batches(runs, row)
    except StoreError as error:
        logger.warning("run %s was cancelled; whether it had batches open cannot be read: %s", row.number, error)


@router.post(
    "/runs/{run_id}/resume",
    summary="Resume a run",
    response_model=RunSnapshot,
    responses=problems(404, 409, 413),
    openapi_extra=takes(ResumeRun, required=False),
)
async def resume(run_id: RunId, request: Request, session: InSession) -> Response:
    """Lets a run that failed or was cancelled go on, or wakes one that waits; what had finished is not done again."""
    row = await for_moments(session.run, run_id)
    asked = await read(request, ResumeRun, session.gateway.options.max_request_bytes, optional=True)
    row = await session.runs.resume(row.id, failed=asked.failed, by=session.by, share=True)
    return await _answered(session, row, "the run was resumed")


@router.delete("/runs/{run_id}", summary="Remove a run", response_model=Removed, responses=problems(404, 409))
async def remove(run_id: RunId, session: InSession) -> Response:
    """Removes a run that has ended, with its journal, log and results."""
    row = await session.run(run_id)
    await session.overview.remove(row)
    session.gateway.snapshots.forget(row.id)
    return answer({"run_id": row.id, "deleted": True})
