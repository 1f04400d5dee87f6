"""`/api/commits/…`: connections, projects and branches, collections, bulk runs, results and statistics."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tsuzuki import Run, settings
from tsuzuki.apps.commits.desk import Desk, Standing, Started
from tsuzuki.apps.commits.plot import drawn
from tsuzuki.apps.commits.records import Connection, Project, Summary, Target, TargetResult
from tsuzuki.apps.commits.refusals import NotThere
from tsuzuki.apps.commits.statistics import Asked, author_names, closely, statistics
from tsuzuki.apps.commits.tables import plain, separated
from tsuzuki.apps.commits.times import CLOCK
from tsuzuki.errors import BadUsage
from tsuzuki.visits import Visit, visit

_PROBLEM: Final[dict[str, Any]] = {"application/problem+json": {}}
router: Final = APIRouter(responses={502: {"description": "The source could not be asked", "content": _PROBLEM}})
_TEXTS: Final = ("text/csv", "text/tab-separated-values", "image/svg+xml")
_LOOK: Final = 0.25
_HEARTBEAT: Final = 3.0
Number = Annotated[int, Field(ge=1, le=2**53)]
Count = Annotated[int, Field(ge=0, le=2**53)]
PageLimit = Annotated[int, Query(ge=1, le=1000)]


Visiting = Annotated[Visit, Depends(visit)]


async def desk(visit: Visiting) -> Desk:
    """Gives the desk of the caller's tenant; what it starts is carried out by workers."""

    async def submit(flow: Any, params: dict[str, Any]) -> Run:
        return await visit.submit(flow, params, tag=settings.value("TSUZUKI_COMMITS_TAG"))

    return Desk(visit.runs, submit, tenant=visit.tenant, folder=visit.data_dir)


AtDesk = Annotated[Desk, Depends(desk)]


class Body(BaseModel):
    """What a request brings; what is said of each field here is told over HTTP too."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class NewConnection(Body):
    """A GitLab server by its `base_url`, or a local repository by its `path`."""

    base_url: str = ""
    """The address of a GitLab server."""
    path: str = ""
    """The path of a local repository."""
    token: SecretStr | None = None
    """The token for the server; it is kept in a file that only its owner reads. Without one, the one that is kept
    stays; an empty one forgets it."""


class Collection(Body):
    """Which branches to collect: those that are named, all, or the default one."""

    project_id: Number
    """The number of the project."""
    branches: list[str] = Field(default_factory=list, max_length=10_000)
    """The branches to collect."""
    all: bool = False
    """All branches instead."""
    since: str = ""
    """Only commits from this time on."""
    until: str = ""
    """Only commits up to this time."""
    concurrency: int = Field(default=1, ge=1, le=64)
    """How many at a time."""


class Politeness(Body):
    """How gently a bulk run asks."""

    pause: float = Field(default=0.1, ge=0, le=60)
    """How long to wait between two requests (seconds)."""
    concurrency: int = Field(default=1, ge=1, le=64)
    """How many targets at a time."""


class BulkStart(Politeness):
    """A bulk run; `fresh` starts anew where a cancelled one could go on."""

    fresh: bool = False
    """Start anew where a cancelled one could go on."""


class Retry(Politeness):
    """A retry of what failed in a bulk run, the last one unless named."""

    run_id: str = ""
    """The bulk run whose failures are tried again; empty: the last one."""


class Cancel(Body):
    """A cancel of the bulk run that is running; with an id, of that one and no other."""

    run_id: str = ""
    """The bulk run; empty: the one that is running."""


# Connections and projects


@router.get("/connections", summary="List connections")
def list_connections(desk: AtDesk) -> list[Connection]:
    """Lists where commits come from; tokens are never shown, only where they are kept."""
    return desk.projects.connections()


@router.post("/connections", summary="Register a connection", status_code=201)
def add_connection(asked: NewConnection, desk: AtDesk) -> Connection:
    """Registers a server or a local repository; once more for the same address, it gets its new token."""
    if bool(asked.base_url) == bool(asked.path):
        raise BadUsage(
            "base_url (GitLab) か path (ローカルリポジトリ) のどちらか一方を指定してください / "
            "say either base_url (a GitLab server) or path (a local repository)"
        )
    if not asked.path:
        return desk.connect("gitlab", asked.base_url, asked.token.get_secret_value() if asked.token else None)
    if desk.tenant:  # a path reaches whatever this machine can read
        raise BadUsage(
            "API キーを求めるサーバーではローカルリポジトリを登録できません。GitLab の URL を指定してください / "
            "local repositories can be connected only where no API keys are asked for: name a GitLab server"
        )
    return desk.connect("git", asked.path)


@router.delete("/connections/{connection_id}", summary="Remove a connection", status_code=204)
def remove_connection(connection_id: Number, desk: AtDesk) -> None:
    """Removes a connection and its token; projects and commits stay."""
    desk.disconnect(connection_id)


@router.post("/connections/{connection_id}/sync", summary="Ask a connection for its projects")
async def sync_projects(connection_id: Number, desk: AtDesk, project: str = "") -> list[Project]:
    """Asks for all projects, or for one by its path, and keeps what is told."""
    return await desk.sync(await asyncio.to_thread(desk.projects.connection, connection_id), project)


@router.get("/projects", summary="List projects")
def list_projects(desk: AtDesk, connection_id: Number | None = None) -> list[Project]:
    """Lists the projects that are known."""
    return desk.projects.projects(connection_id)


@router.get("/projects/{project_id}/branches", summary="List branches")
async def list_branches(project_id: Number, desk: AtDesk, *, stored_only: bool = False) -> list[dict[str, Any]]:
    """Lists the branches that the source has and those that are stored; `exists` is false where only we have it.

    With `stored_only` the source is not asked, and `exists` is null. `gone_at_utc` tells when a collection found that
    the source does not have a branch any more: bulk runs leave it out.
    """
    project = await asyncio.to_thread(desk.projects.project, project_id)
    stored = {branch.branch_name: branch for branch in await asyncio.to_thread(desk.projects.branches, project_id)}
    there = set[str]() if stored_only else {branch.name for branch in await desk.branches(project)}
    return [
        {
            "branch_name": name,
            "exists": None if stored_only else name in there,
            "commits": stored[name].commits if name in stored else 0,
            "last_collect_time": stored[name].last_collect_time if name in stored else None,
            "gone_at_utc": stored[name].gone_at_utc if name in stored else None,
        }
        for name in sorted(there | stored.keys())
    ]


@router.delete("/projects/{project_id}/branches", summary="Remove what is stored of a branch")
async def remove_branch(project_id: Number, name: str, desk: AtDesk, confirm: Count | None = None) -> dict[str, Any]:
    """Removes the commits of a branch, once `confirm` says how many they are; without it, tells the number."""
    target = Target(project_id, name)
    await asyncio.to_thread(desk.projects.project, project_id)
    stored = await asyncio.to_thread(desk.projects.stored, target)
    if confirm is None:
        return {"commits": stored, "removed": False}
    if confirm != stored:
        raise BadUsage(f"確認の件数が違います / the branch has {stored} stored commits: send confirm={stored}")
    return {"commits": await desk.remove_branch(target), "removed": True}


@router.post("/collect", summary="Collect branches", status_code=202)
async def collect(asked: Collection, desk: AtDesk) -> dict[str, Any]:
    """Starts a run that collects branches of a project; `/runs/{run_id}` tells how it goes."""
    project = await asyncio.to_thread(desk.projects.project, asked.project_id)
    params = await desk.collection(project, asked.branches, every=asked.all, since=asked.since, until=asked.until)
    run = await desk.collect({**params, "concurrency": asked.concurrency})
    return {"run_id": run.id, "project_id": asked.project_id, "branches": params["branches"]}


# Bulk runs


@router.post("/bulk", summary="Start a bulk run, or let a cancelled one go on", status_code=202)
async def start_bulk(desk: AtDesk, asked: BulkStart | None = None) -> Started:
    """Answers at once; workers collect every branch that has a history."""
    asked = asked or BulkStart()
    return await desk.start(pause=asked.pause, concurrency=asked.concurrency, fresh=asked.fresh)


@router.post("/bulk/retry", summary="Collect again what failed", status_code=202)
async def retry_bulk(desk: AtDesk, asked: Retry | None = None) -> Started:
    """Starts a new bulk run of exactly the targets that failed."""
    asked = asked or Retry()
    return await desk.retry(asked.run_id, pause=asked.pause, concurrency=asked.concurrency)


@router.post("/bulk/cancel", summary="Cancel the bulk run")
async def cancel_bulk(desk: AtDesk, asked: Cancel | None = None) -> dict[str, Any] | None:
    """Cancels; what was collected stays, the rest stays pending."""
    return await _told(desk, await desk.cancel((asked or Cancel()).run_id))


@router.get("/bulk/status", summary="How the bulk run stands")
async def bulk_status(desk: AtDesk, run_id: str = "") -> dict[str, Any] | None:
    """Tells how the last bulk run stands, or the named one; null where there was none."""
    return await _told(desk, await desk.standing(run_id))


@router.get(
    "/bulk/events",
    summary="Progress as it happens",
    response_class=Response,
    responses={200: {"description": "Progress as events", "content": {"text/event-stream": {}}}},
)
async def bulk_events(
    desk: AtDesk, visit: Visiting, run_id: str = "", timeout_sec: Annotated[int, Query(ge=1, le=600)] = 60
) -> Response:
    """Sends an event for every finished target; the last one, also of a cancelled run, has `current_target` null."""
    first = await desk.standing(run_id)
    if first is None:
        raise NotThere("一括収集の履歴がありません / there is no bulk run yet: start one with POST /bulk")
    return visit.stream(_events(desk, first, timeout_sec))


async def _events(desk: Desk, first: Standing, seconds: float) -> AsyncGenerator[bytes, None]:
    stands, sent = first, None
    until, beat = CLOCK.monotonic() + seconds, CLOCK.monotonic()
    while True:
        told = _progress(stands)
        if told != sent:
            yield _event("progress", told)
            sent, beat = told, CLOCK.monotonic()
        if stands.summary.run_status != "running" or CLOCK.monotonic() > until:
            return
        if CLOCK.monotonic() - beat > _HEARTBEAT:
            yield _event("heartbeat", {"run_id": stands.summary.run_id})
            beat = CLOCK.monotonic()
        await asyncio.sleep(_LOOK)
        stands = await desk.standing(stands.summary.run_id) or stands


def _event(name: str, told: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n".encode()


def _progress(stands: Standing) -> dict[str, Any]:
    summary = stands.summary
    return {
        "run_id": summary.run_id,
        "run_status": summary.run_status,
        "total": summary.total_targets,
        "completed": summary.success_count + summary.failed_count,
        "success": summary.success_count,
        "failed": summary.failed_count,
        "current_target": None if stands.current_target is None else asdict(stands.current_target),
    }


async def _told(desk: Desk, stands: Standing | None) -> dict[str, Any] | None:
    if stands is None:
        return None
    known = {"error": stands.error, "number": stands.number}
    left = stands.summary.run_status == "running" and await desk.left(stands)
    return {**asdict(stands.summary), **_progress(stands), **known, "interrupted": left}


@router.get("/runs", summary="History of bulk runs")
async def list_runs(desk: AtDesk, limit: PageLimit = 50) -> list[Summary]:
    """Lists bulk runs, the newest first."""
    await desk.reconcile()
    return await asyncio.to_thread(desk.bulk_runs.history, limit)


@router.get("/runs/{run_id}", summary="Summary of a bulk run")
async def get_run(run_id: str, desk: AtDesk) -> dict[str, Any] | None:
    """Sums a bulk run up."""
    return await _told(desk, await desk.standing(run_id))


@router.get("/runs/{run_id}/results", summary="Results of a bulk run")
async def list_results(
    run_id: str, desk: AtDesk, status: Literal["pending", "success", "failed"] | None = None
) -> list[TargetResult]:
    """Lists how each target went, and why one failed."""
    return await asyncio.to_thread(desk.bulk_runs.results, run_id, status)


# Statistics


@router.get("/authors", summary="List authors")
def list_authors(desk: AtDesk, project_id: Number | None = None) -> list[str]:
    """Lists the names of everybody who has written something."""
    return author_names(desk.ledger, project_id)


Month = Annotated[
    str | None,
    Query(
        description="A month: 2026-01.",
        json_schema_extra={"anyOf": [{"type": "string", "pattern": "^20[0-9]{2}-(0[1-9]|1[0-2])$"}, {"type": "null"}]},
    ),
]


@router.get(
    "/statistics",
    summary="Additions and deletions by month and author",
    response_model=None,
    responses={200: {"content": {kind: {"schema": {"type": "string"}} for kind in _TEXTS}}},
)
def get_statistics(
    desk: AtDesk,
    *,
    project_id: Number | None = None,
    branch_name: str | None = None,
    author: Annotated[list[str] | None, Query()] = None,
    merges: bool = True,
    since: Month = None,
    until: Month = None,
    format: Literal["json", "csv", "tsv", "svg"] = "json",  # noqa: A002 - the word that callers write
) -> Response | dict[str, Any]:
    """Sums over everything, over a project or over a branch of it; a commit counts once."""
    asked = Asked(project_id, branch_name, tuple(author or ()), merges=merges, since=since, until=until)
    project = None if project_id is None else desk.projects.project(project_id)
    found = statistics(desk.ledger, asked)
    if format == "svg":
        found = closely(desk.ledger, asked, found)
        return Response(drawn(found, project.name if project else "commits"), media_type="image/svg+xml")
    if format != "json":
        separator, kind = (",", "text/csv") if format == "csv" else ("\t", "text/tab-separated-values")
        return PlainTextResponse(separated(found, separator), media_type=kind)
    return plain(found)
