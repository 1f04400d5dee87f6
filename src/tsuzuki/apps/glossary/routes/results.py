"""`/api/projects/{id}/provisional`, `/issues`, `/refined`: what runs have come to."""

from dataclasses import asdict
from typing import Final, Literal
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response
from pydantic import Field

from tsuzuki.apps.glossary.exports import FORMATS, export, markdown
from tsuzuki.apps.glossary.glossaries import Entries
from tsuzuki.apps.glossary.records import Entry, GlossaryIssue, IssueType
from tsuzuki.apps.glossary.routes.shared import PROBLEM, AtDesk, Id, InProject, ProjectId, Shape

router: Final = APIRouter(prefix="/{project_id}")
Format = Literal["md", "csv", "json", "tbx"]


class OccurrenceView(Shape):
    """Where a term stands."""

    document_path: str
    """The document, by its path inside the project."""
    line_number: int
    """The line; the first is 1."""
    context: str
    """That line with its neighbours."""


class EntryView(Shape):
    """An entry of a glossary."""

    id: int
    """The number of the entry."""
    term_name: str
    """The term."""
    definition: str
    """What it means."""
    confidence: float
    """How sure the definition is, from 0 to 1."""
    aliases: list[str]
    """The synonyms of the term."""
    occurrences: list[OccurrenceView]
    """Where it stands in the documents."""
    by_person: bool
    """Whether a person wrote the definition: runs leave it alone."""
    kept: bool
    """Whether its question failed in the last run, so that this is still the former definition."""


class ChangedEntry(Shape):
    """What is to change."""

    definition: str | None = Field(default=None, min_length=1, max_length=10_000)
    """What the term means; null: it stays."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """How sure that is, from 0 to 1; null: it stays."""


class IssueView(Shape):
    """Something that the review found."""

    id: int
    """The number of the issue."""
    term_name: str
    """The term whose entry it is about."""
    issue_type: IssueType
    """What is wrong with the entry."""
    description: str
    """What is wrong, in words."""
    should_exclude: bool
    """Whether the term should not be in the glossary at all."""
    exclusion_reason: str | None
    """Why it should not; null where nothing is said."""


def _entry(entry: Entry) -> EntryView:
    return EntryView(**asdict(entry))


def _issue(issue: GlossaryIssue) -> IssueView:
    return IssueView(**asdict(issue))


@router.get("/provisional", summary="The provisional glossary")
def list_provisional(project: InProject) -> list[EntryView]:
    """Lists the entries of the provisional glossary."""
    return [_entry(each) for each in project.provisional.list()]


@router.get("/provisional/{entry_id}", summary="An entry of the provisional glossary")
def get_provisional(entry_id: Id, project: InProject) -> EntryView:
    """Gives an entry."""
    return _entry(project.provisional.get(entry_id))


@router.patch("/provisional/{entry_id}", summary="Change an entry")
def change_provisional(entry_id: Id, asked: ChangedEntry, project: InProject) -> EntryView:
    """Change definition or confidence, in the refined glossary as well.

    From then on the definition is a person's: runs leave it alone until it is asked for again.
    """
    return _changed(project.provisional, entry_id, asked)


def _changed(entries: Entries, entry_id: int, asked: ChangedEntry) -> EntryView:
    before = entries.get(entry_id)
    definition = before.definition if asked.definition is None else asked.definition
    confidence = before.confidence if asked.confidence is None else asked.confidence
    return _entry(entries.change(entry_id, definition, confidence))


@router.delete("/provisional/{entry_id}", summary="Remove an entry", status_code=204)
def remove_provisional(entry_id: Id, project: InProject) -> None:
    """Removes an entry."""
    project.provisional.remove(entry_id)


@router.post(
    "/provisional/{entry_id}/regenerate",
    summary="Define a term again",
    responses={503: {"description": "The language model gave no answer", "content": PROBLEM}},
)
async def regenerate(project_id: ProjectId, entry_id: Id, desk: AtDesk) -> EntryView:
    """Asks the language model for the definition of one entry again, and waits for it."""
    return _entry(await desk.regenerate(project_id, entry_id))


@router.get("/issues", summary="What the review found")
def list_issues(project: InProject, issue_type: IssueType | None = None) -> list[IssueView]:
    """Lists issues, or those of a type."""
    return [_issue(each) for each in project.issues.list(issue_type)]


@router.get("/issues/{issue_id}", summary="An issue")
def get_issue(issue_id: Id, project: InProject) -> IssueView:
    """Gives an issue."""
    return _issue(project.issues.get(issue_id))


@router.get("/refined", summary="The refined glossary")
def list_refined(project: InProject) -> list[EntryView]:
    """Lists the entries of the refined glossary."""
    return [_entry(each) for each in project.refined.list()]


@router.get("/refined/export-md", summary="The refined glossary as Markdown", response_class=PlainTextResponse)
def export_markdown(project: InProject) -> Response:
    """Gives the refined glossary as Markdown."""
    return _file(project.project.name, "md", markdown(project.project.name, project.refined.list()))


@router.get("/refined/export", summary="The refined glossary as a file", response_class=PlainTextResponse)
def export_refined(project: InProject, format: Format = "md") -> Response:  # noqa: A002 - the word that callers write
    """Gives the refined glossary as Markdown, CSV, JSON or TBX-Basic."""
    text = export(format, project.project.name, project.refined.list())
    return _file(project.project.name, format, text)


def _file(name: str, kind: str, text: str) -> Response:
    """Gives a text as a file, which a browser saves under the name of the project."""
    named = f"attachment; filename*=UTF-8''{quote(name, safe='')}.{kind}"
    return Response(text, media_type=f"{FORMATS[kind]}; charset=utf-8", headers={"content-disposition": named})


@router.get("/refined/{entry_id}", summary="An entry of the refined glossary")
def get_refined(entry_id: Id, project: InProject) -> EntryView:
    """Gives an entry."""
    return _entry(project.refined.get(entry_id))


@router.patch("/refined/{entry_id}", summary="Change an entry of the refined glossary")
def change_refined(entry_id: Id, asked: ChangedEntry, project: InProject) -> EntryView:
    """Change definition or confidence, in the provisional glossary as well: runs leave the definition alone."""
    return _changed(project.refined, entry_id, asked)


@router.delete("/refined/{entry_id}", summary="Remove an entry of the refined glossary", status_code=204)
def remove_refined(entry_id: Id, project: InProject) -> None:
    """Removes an entry."""
    project.refined.remove(entry_id)
