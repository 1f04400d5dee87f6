"""The routes of workers and of the flows that they know."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import WithJsonSchema
from starlette.responses import Response

from tsuzuki import settings
from tsuzuki.backends import WorkerState
from tsuzuki.crew import ALIVE, SeenWorker
from tsuzuki.errors import BadWorkersRequest
from tsuzuki.gateway.answers import answer, problems, read, takes
from tsuzuki.gateway.bodies import PatchWorker
from tsuzuki.gateway.problems import SHORT, Invalid, fields_told, no_word
from tsuzuki.gateway.session import InSession
from tsuzuki.gateway.wheel_models import NO_WHEELS
from tsuzuki.gateway.worker_models import FlowView, PatchedWorker, WorkerView

router: Final = APIRouter(tags=["workers"])

WorkerId = Annotated[str, Path(description="The name of a worker.")]
StateWord = Annotated[str, WithJsonSchema({"type": "string", "enum": [state.value for state in WorkerState]})]


@router.get("/workers", summary="List workers", response_model=list[WorkerView], responses=problems())
async def list_workers(
    session: InSession,
    scope: Annotated[Literal["active", "all"], Query(description="`active`: only those that live.")] = "active",
    state: Annotated[
        StateWord | None, Query(max_length=32, description="A state, whatever its case; looks at all.")
    ] = None,
    include_hidden: Annotated[bool, Query(description="Also those that are hidden.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many.")] = 500,
) -> Response:
    """Lists workers, the last seen first."""
    wanted = _state(state)
    seen = [
        worker
        for worker in await session.overview.workers()
        if (wanted is None or worker.state is wanted)
        and (scope == "all" or wanted is not None or worker.state in ALIVE)
        and (include_hidden or not worker.record.hidden)
    ]
    seen.sort(key=lambda worker: -worker.record.heartbeat_at)
    return answer([_shown(worker, session.tenant) for worker in seen[:limit]])


def _state(text: str | None) -> WorkerState | None:
    if not text:
        return None
    if (word := text.strip().upper()) not in WorkerState.__members__:
        raise no_word(BadWorkersRequest, "state", text, WorkerState)
    return WorkerState(word)


def _shown(worker: SeenWorker, tenant: str | None) -> dict[str, Any]:
    record = worker.record
    seen = record.heartbeat_at
    current, last = (tenant in (None, owner) for owner in (record.current_tenant, record.last_tenant))
    return {
        "worker_id": record.id,
        "instance_id": record.instance_id,
        "state": worker.state.value,
        "hidden": record.hidden,
        "tags": record.tags,
        "flows": record.flows,
        "resolves": record.resolves,
        "last_seen_at": seen,
        "last_heartbeat_at": seen,
        "heartbeat_at": seen,
        "started_at": record.started_at,
        "current_run_id": record.current_run_id if current else None,  # the runs of other tenants stay hidden
        "last_run_id": record.last_run_id if last else None,
        "last_run_status": record.last_run_status,
        "last_run_started_at": record.last_run_started_at,
        "last_run_finished_at": record.last_run_finished_at,
        "stopped_at": record.stopped_at,
        "stop_reason": record.stop_reason,
        "updated_at": max(seen, record.stopped_at or 0.0),
        "wheel_sync": {**NO_WHEELS, **(record.wheel_sync or {})},
    }


@router.patch(
    "/workers/{worker_id:path}",
    summary="Hide or show a worker",
    response_model=PatchedWorker,
    responses=problems(404, 413),
    openapi_extra=takes(PatchWorker),
)
async def patch(worker_id: WorkerId, request: Request, session: InSession) -> Response:
    """Sets whether a worker is shown; nothing else about it changes, and its heartbeats keep it."""
    try:
        asked = await read(request, PatchWorker, session.gateway.options.max_request_bytes)
    except Invalid as error:
        raise _refused(error) from None
    await session.overview.hide(worker_id, hidden=asked.hidden)
    return answer({"worker_id": worker_id, "hidden": asked.hidden, "updated_at": session.runs.now()})


def _refused(error: Invalid) -> BadWorkersRequest:
    return BadWorkersRequest(f"{SHORT[BadWorkersRequest]}: {fields_told(error.problems)}", error.problems)


@router.get("/flows", summary="List flows", response_model=list[FlowView], responses=problems())
async def list_flows(session: InSession) -> Response:
    """Lists the flows that live workers have published, with the schemas of their parameters."""
    shown = []
    for name, flow in (await session.gateway.catalogue.flows()).items():
        tags = sorted({tag for worker in flow.workers for tag in worker.tags})
        workers = [worker.id for worker in flow.workers]
        tag = flow.tag or settings.default_tag()
        known = {"doc": "", "params": None, **flow.record}
        shown.append({**known, "name": name, "tag": tag, "tags": tags, "workers": workers})
    return answer(shown)
