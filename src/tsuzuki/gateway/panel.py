"""The routes of the whole at a glance: how many runs of each status, and which settings hold."""

from typing import Annotated, Final

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tsuzuki import settings
from tsuzuki.crew import ALIVE
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.letters import Letters
from tsuzuki.lifecycle import Status

router: Final = APIRouter(tags=["overview"])

MOST_COUNTED: Final = 1000
"""Of a tenant's dead letters the newest so many are counted."""


class Glance(BaseModel):
    """The store in a few numbers."""

    runs: Annotated[dict[str, int], Field(description="How many runs there are, by status.")]
    at_least: Annotated[bool, Field(description="Whether there are more runs: no, they are all counted.")]
    workers_alive: int
    dead_letters: int
    queue_age: Annotated[float, Field(description="For how long the run that waits longest has waited (seconds).")]
    tenant: str | None
    now: Annotated[float, Field(description="The time of this gateway (Unix seconds).")]


class SettingView(BaseModel):
    """A setting with the value that holds; secrets are masked."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    value: str
    origin: Annotated[str, Field(alias="from", description="`environment`, the `.env` file, or `default`.")]
    means: str
    refusal: str | None


@router.get("/overview", summary="The store at a glance", response_model=Glance, responses=problems())
async def overview(session: InSession) -> Response:
    """Counts runs, workers and dead letters; with a key the runs and letters of its tenant."""
    figures = await session.overview.figures()
    counts = figures.runs if session.tenant is None else await session.overview.counts(tenant=session.tenant)
    return answer(
        {
            "runs": {status.value: counts.get(status.value, 0) for status in Status},
            "at_least": False,
            "workers_alive": sum(worker.state in ALIVE for worker in figures.workers),
            "dead_letters": figures.letters if session.tenant is None else await _letters(session),
            "queue_age": figures.queue_age,
            "tenant": session.tenant,
            "now": session.runs.now(),
        }
    )


async def _letters(session: Session) -> int:
    return len(await Letters(session.runs).list(limit=MOST_COUNTED, tenant=session.tenant))


@router.get("/config", summary="Which settings hold", response_model=list[SettingView], responses=problems())
async def config(session: InSession) -> Response:
    """Lists every setting of this gateway's process, and where its value came from. Secrets are masked."""
    del session  # it is asked for so that a key is
    return answer(
        [
            {
                "name": found.setting.name,
                "value": found.shown,
                "from": found.origin,
                "means": found.setting.means.replace("`", ""),
                "refusal": found.refusal or None,
            }
            for found in settings.effective()
        ]
    )
