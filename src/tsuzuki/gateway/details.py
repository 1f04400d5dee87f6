"""The routes of a run seen closely: one outcome with its value, pages of its journal, the graph of its YAML flow."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from tsuzuki import facts as f
from tsuzuki.errors import BadRequest, ItemNotFound
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.models import Item
from tsuzuki.gateway.runs import RunId
from tsuzuki.gateway.session import InSession
from tsuzuki.overview import shown_item
from tsuzuki.yamlflow import Workflow, parse

router: Final = APIRouter(tags=["items"])

Position = Annotated[int, Path(ge=1, le=2**53, description="Its position in the journal.")]
MOST_VALUE: Final = 262_144
"""A value above so many bytes is left out: it is too large to look at."""


class Outcome(Item):
    """A step or an item with all that is recorded of it."""

    output: Any
    output_bytes: int
    output_truncated: Annotated[bool, Field(description="Whether it is too large to be shown.")]
    traceback: str | None
    artifacts: list[dict[str, Any]]


class FactPage(BaseModel):
    """Facts of a journal, and the position to go on from."""

    items: list[dict[str, Any]]
    next_after: int | None


class Node(BaseModel):
    """A task of a graph, and those it waits for."""

    name: str
    callable: str
    needs: list[str]
    stage: int
    mapped: bool


class GraphView(BaseModel):
    """The graph of a YAML flow; without nodes where the run has none."""

    nodes: list[Node]
    workflow: Annotated[str | None, Field(description="The YAML text.")]


@router.get(
    "/runs/{run_id}/items/{position}", summary="Get one outcome", response_model=Outcome, responses=problems(404)
)
async def outcome(run_id: RunId, session: InSession, position: Position) -> Response:
    """Gives a step or an item with its value, or what it failed of; by its position in the journal."""
    row = await session.run(run_id)
    entries = await session.overview.facts(row.id, after=position - 1, limit=1)
    if not entries or entries[0].position != position or not isinstance(entries[0].fact, f.Outcome):
        raise ItemNotFound(
            f"item not found: no step or item of run {row.number} ended at position {position}; its items name theirs"
        )
    fact = entries[0].fact
    fold = await session.gateway.snapshots.fold(row)
    shown = shown_item(entries[0], fact, fold.maps().get(fact.step), MOST_VALUE)
    value = bytes(getattr(fact, "result", b"null"))
    if blob := getattr(fact, "blob", ""):
        value = await session.overview.blob(row.id, blob)
    error = getattr(fact, "error", None)
    return answer(
        shown
        | {
            "output": msgspec.Raw(value if len(value) <= MOST_VALUE else b"null"),
            "output_bytes": len(value),
            "output_truncated": len(value) > MOST_VALUE,
            "traceback": None if error is None else error.traceback or None,
            "artifacts": [{"name": a.name, "blob": a.blob, "size": a.size} for a in getattr(fact, "artifacts", ())],
        }
    )


@router.get(
    "/runs/{run_id}/facts", summary="Read the journal of a run", response_model=FactPage, responses=problems(404)
)
async def facts(
    run_id: RunId,
    session: InSession,
    after: Annotated[int, Query(ge=0, le=2**53, description="Begins after this position.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 200,
) -> Response:
    """Gives facts in order, a page at a time; `/events` sends the same as they come. Values are left out."""
    row = await session.run(run_id)
    entries = await session.overview.facts(row.id, after=after, limit=limit)
    shown = [{"position": entry.position} | _without_value(f.plain(entry.fact)) for entry in entries]
    return answer({"items": shown, "next_after": entries[-1].position if len(entries) == limit else None})


def _without_value(fact: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fact.items() if name not in ("result", "params", "workflow", "inputs")}


@router.get("/runs/{run_id}/graph", summary="Get the graph of a run", response_model=GraphView, responses=problems(404))
async def graph(run_id: RunId, session: InSession) -> Response:
    """Gives the tasks of a run's YAML flow, with what each waits for and the stage in which it can begin at first."""
    row = await session.run(run_id)
    if not row.workflow:
        return answer({"nodes": [], "workflow": None})
    entries = await session.overview.facts(row.id, after=0, limit=1)
    text = str(getattr(entries[0].fact, "workflow", "")) if entries else ""
    try:
        return answer({"nodes": _nodes(parse(text)), "workflow": text})
    except BadRequest:  # a newer version accepted it
        return answer({"nodes": [], "workflow": text})


def _nodes(workflow: Workflow) -> list[dict[str, Any]]:
    stages: dict[str, int] = {}
    nodes = []
    for name in workflow.nodes:
        needs = sorted(workflow.graph.needs[name].names, key=workflow.graph.number)
        stages[name] = 1 + max((stages[needed] for needed in needs), default=-1)
        said = workflow.tasks[name]
        node = {"name": name, "callable": said.callable, "needs": needs, "stage": stages[name]}
        nodes.append(node | {"mapped": said.map is not None})
    return nodes
