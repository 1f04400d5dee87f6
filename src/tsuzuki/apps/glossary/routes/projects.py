"""`/api/projects`: list, make, look, change, clone, remove."""

import asyncio
from typing import Any, Final

from fastapi import APIRouter
from pydantic import Field

from tsuzuki import llm
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.records import Project
from tsuzuki.apps.glossary.routes.shared import AtDesk, ProjectId, Shape
from tsuzuki.errors import BadUsage

router: Final = APIRouter()


class NewProject(Shape):
    """A project; what is empty is as it is set for the gateway."""

    name: str = Field(min_length=1, max_length=200)
    """What it is called; no other project has that name."""
    llm_provider: str = Field(default="", max_length=40)
    """Who defines its terms; empty: as it is set for the gateway."""
    llm_model: str = Field(default="", max_length=200)
    """Which model is asked; empty: as it is set for the gateway."""
    llm_base_url: str = Field(default="", max_length=1000)
    """The address of that provider; empty: as it is set for the gateway."""


class ChangedProject(Shape):
    """What is to change."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    """What it is called from now on; null: it stays."""
    llm_provider: str | None = Field(default=None, max_length=40)
    """Who defines its terms; empty: as it is set for the gateway; null: it stays."""
    llm_model: str | None = Field(default=None, max_length=200)
    """Which model is asked; empty: as it is set for the gateway; null: it stays."""
    llm_base_url: str | None = Field(default=None, max_length=1000)
    """The address of that provider; empty: as it is set for the gateway; null: it stays."""


class Clone(Shape):
    """The name of a copy."""

    new_name: str = Field(min_length=1, max_length=200)
    """What the copy is called; no other project has that name."""


class ProjectView(Shape):
    """A project with how much it has of everything."""

    id: int
    """The number of the project."""
    name: str
    """What it is called."""
    llm_provider: str
    """Who defines its terms; empty: as it is set for the gateway."""
    llm_model: str
    """Which model is asked; empty: as it is set for the gateway."""
    llm_base_url: str
    """The address of that provider; empty: as it is set for the gateway."""
    asked_provider: str
    """Who the next run asks, with the settings of the gateway; `offline`: no language model, only rules."""
    asked_model: str
    """Which model the next run asks, with the settings of the gateway."""
    created_at: str
    """When it was made (UTC, ISO 8601)."""
    updated_at: str
    """When its name or its language model last changed (UTC, ISO 8601)."""
    document_count: int
    """How many documents it has."""
    term_count: int
    """How many terms were found or added."""
    provisional_count: int
    """How many entries its provisional glossary has."""
    issue_count: int
    """How many issues the review found."""
    refined_count: int
    """How many entries its refined glossary has."""
    damaged: str | None
    """Why the project cannot be opened: its file is damaged or missing; null where all is well."""


def _shown(desk: Desk, project: Project) -> ProjectView:
    counts = desk.registry.counts(project.id)
    try:
        asked = llm.Address(project.llm_provider, project.llm_base_url, project.llm_model).filled()
    except BadUsage:  # the gateway is set to a provider that there is not; a run says so
        asked = llm.Address(project.llm_provider, model=project.llm_model)
    return ProjectView(
        id=project.id,
        name=project.name,
        llm_provider=project.llm_provider,
        llm_model=project.llm_model,
        llm_base_url=project.llm_base_url,
        asked_provider=asked.provider,
        asked_model=asked.model,
        created_at=project.created_at,
        updated_at=project.updated_at,
        document_count=counts.documents,
        term_count=counts.terms,
        provisional_count=counts.provisional,
        issue_count=counts.issues,
        refined_count=counts.refined,
        damaged=counts.damaged,
    )


@router.get("", summary="List projects")
def list_projects(desk: AtDesk) -> list[ProjectView]:
    """Lists projects by name."""
    return [_shown(desk, project) for project in desk.registry.projects()]


@router.post("", summary="Make a project", status_code=201)
def add_project(asked: NewProject, desk: AtDesk) -> ProjectView:
    """Makes a project; its name must be free."""
    made = desk.add_project(asked.name, asked.llm_provider, asked.llm_model, asked.llm_base_url)
    return _shown(desk, made)


@router.get("/{project_id}", summary="Look at a project")
def get_project(project_id: ProjectId, desk: AtDesk) -> ProjectView:
    """Gives a project."""
    return _shown(desk, desk.registry.project(project_id))


@router.patch("/{project_id}", summary="Change a project")
def change_project(project_id: ProjectId, asked: ChangedProject, desk: AtDesk) -> ProjectView:
    """Changes the name or the language model; a run that is active goes on as it was started."""
    changed: dict[str, Any] = asked.model_dump(exclude_none=True)
    return _shown(desk, desk.change_project(project_id, changed))


@router.post("/{project_id}/clone", summary="Clone a project", status_code=201)
def clone_project(project_id: ProjectId, asked: Clone, desk: AtDesk) -> ProjectView:
    """Makes a copy under another name: everything but the runs."""
    return _shown(desk, desk.registry.clone(project_id, asked.new_name))


@router.delete("/{project_id}", summary="Remove a project", status_code=204)
async def remove_project(project_id: ProjectId, desk: AtDesk) -> None:
    """Removes a project with everything in it, unless a run of it is active."""
    await asyncio.to_thread(desk.registry.project, project_id)
    await desk.remove_project(project_id)
