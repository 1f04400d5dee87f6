"""The routes of language models: what was used of each, by which runs; and the job queue of this machine."""

import asyncio
from socket import gethostname
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.models import RunSummary
from tsuzuki.gateway.session import InSession
from tsuzuki.gateway.snapshots import summary
from tsuzuki.gateway.usage import Usage
from tsuzuki.llm.queue import looking
from tsuzuki.spending import usage

router: Final = APIRouter(tags=["language models"])


class UsageView(BaseModel):
    """What runs have used of language models."""

    usage: Annotated[Usage | None, Field(description="All together, and by model; null: no run asked any.")]
    runs: Annotated[int, Field(description="Of how many runs.")]
    at_least: Annotated[bool, Field(description="Whether there are more: only the newest 20,000 are added up.")]
    latest: Annotated[list[RunSummary], Field(description="Those that changed last.")]


class ProcessView(BaseModel):
    """The jobs of one process in the queue, by status."""

    process_id: str
    pending: int
    in_progress: int
    completed: int
    failed: int
    batch_job_id: str | None
    open_batches: Annotated[list[str], Field(description="Batches that are not over; jobs that wait may be in them.")]
    unclear_batches: Annotated[int, Field(description="Batches of which is not known whether they were created.")]
    created_at: str
    updated_at: str


class JobView(BaseModel):
    """A job, without what is asked and answered."""

    id: str
    status: str
    batch_job_id: str | None
    batch_state: Annotated[
        Literal["open", "unclear"] | None,
        Field(description="Whether the batch that has the job is still open, or may have been created; null: neither."),
    ]
    error_message: str | None
    created_at: str
    updated_at: str


class QueueView(BaseModel):
    """The queue of the machine on which the gateway stands: jobs that were not handed over yet."""

    host: Annotated[str, Field(description="The machine whose queue this is.")]
    hidden: Annotated[bool, Field(description="With a key nothing is shown: the queue belongs to no tenant.")]
    processes: list[ProcessView]


class JobsView(BaseModel):
    """Jobs of a process, in the order in which they were asked for."""

    host: str
    items: list[JobView]


@router.get("/llm/usage", summary="What language models were used", response_model=UsageView, responses=problems())
async def used(
    session: InSession,
    updated_after: Annotated[
        float | None, Query(allow_inf_nan=False, description="Only runs that changed after this time (Unix seconds).")
    ] = None,
    limit: Annotated[int, Query(ge=0, le=200, description="How many of the latest runs are listed.")] = 50,
) -> Response:
    """Adds up what runs have used of models and what that cost, from their journals; with a key those of its tenant."""
    found = await session.overview.spenders(tenant=session.tenant, updated_after=updated_after)
    return answer(
        {
            "usage": usage(spent for row in found.rows for spent in row.spent),
            "runs": len(found.rows),
            "at_least": found.more,
            "latest": [summary(row) for row in found.rows[:limit]],
        }
    )


@router.get("/llm/jobs", summary="The job queue of this machine", response_model=QueueView, responses=problems())
async def processes(session: InSession) -> Response:
    """Lists the processes in the queue of the machine on which this gateway stands; other machines have their own."""
    hidden = session.tenant is not None
    found: list[dict[str, Any]] = []
    if not hidden:
        found = await asyncio.to_thread(looking.processes, session.gateway.data_dir)
    return answer({"host": gethostname(), "hidden": hidden, "processes": found})


@router.get("/llm/jobs/{process_id}", summary="The jobs of a process", response_model=JobsView, responses=problems())
async def jobs(
    process_id: Annotated[str, Path(description="The id of a process.")],
    session: InSession,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 200,
) -> Response:
    """Lists the jobs of a process that were not handed over yet, without what is asked and answered."""
    found: list[dict[str, Any]] = []
    if session.tenant is None:
        found = await asyncio.to_thread(looking.jobs, session.gateway.data_dir, process_id, limit)
    return answer({"host": gethostname(), "items": found})
