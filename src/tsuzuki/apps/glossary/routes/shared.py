"""What all routes of this application take: the desk of whoever asks, a project, numbers."""

from typing import Annotated, Any, Final

from fastapi import Depends, Path
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki import Run, settings
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.visits import Visit, visit

PROBLEM: Final[dict[str, Any]] = {"application/problem+json": {}}
MOST: Final = 2**53
ProjectId = Annotated[int, Path(ge=1, le=MOST)]
Id = Annotated[int, Path(ge=1, le=MOST)]
Visiting = Annotated[Visit, Depends(visit)]


async def desk(visit: Visiting) -> Desk:
    """Gives the desk of the caller's tenant; what it starts is carried out by workers."""

    async def submit(flow: Any, params: dict[str, Any], **options: Any) -> Run:
        return await visit.submit(flow, params, tag=settings.value("TSUZUKI_GLOSSARY_TAG"), **options)

    return Desk(visit.runs, submit, tenant=visit.tenant, folder=visit.data_dir)


AtDesk = Annotated[Desk, Depends(desk)]


def project_file(project_id: ProjectId, desk: AtDesk) -> ProjectFile:
    """Gives the project that the path names."""
    return desk.project(project_id)


InProject = Annotated[ProjectFile, Depends(project_file)]


class Shape(BaseModel):
    """What a request brings, or an answer; what is said of each field here is told over HTTP too."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Message(Shape):
    """A sentence for people."""

    message: str
    """The sentence."""


class TermText(Shape):
    """The text of a term."""

    term_text: str = Field(min_length=1, max_length=200)
    """The term as it is written."""
