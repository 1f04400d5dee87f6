"""`/api/projects/{id}/files`: add one or many, list, show, remove; and where terms stand in a document."""

import asyncio
from dataclasses import asdict
from typing import Any, Final

from fastapi import APIRouter
from pydantic import Field

from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.generating import Subjects
from tsuzuki.apps.glossary.occurrences import Place, TermIndex, places
from tsuzuki.apps.glossary.records import Document, StoredDocument
from tsuzuki.apps.glossary.refusals import RunActive
from tsuzuki.apps.glossary.routes.shared import AtDesk, Id, InProject, ProjectId, Shape

router: Final = APIRouter(prefix="/{project_id}/files")
MOST_FILES: Final = 1000


class NewFile(Shape):
    """A document: its path inside the project, and its text."""

    file_name: str = Field(max_length=4096)
    """Its path inside the project."""
    content: str
    """Its text."""


class NewFiles(Shape):
    """Documents that are added together, or not at all."""

    files: list[NewFile] = Field(min_length=1, max_length=MOST_FILES)
    """The documents."""


class FileView(Shape):
    """A document without its text."""

    id: int
    """The number of the document."""
    file_name: str
    """Its path inside the project."""
    content_hash: str
    """The SHA-256 of its text, in hex."""
    size: int
    """How many characters it has."""
    created_at: str
    """When it was added (UTC, ISO 8601)."""


class FileDetail(FileView):
    """A document with its text."""

    content: str
    """Its text."""


class AddedFile(FileView):
    """A document that was added, and whether terms are looked for now."""

    extract_started: bool
    """Whether a run that looks for terms was started."""
    extract_run_id: int | None
    """The number of that run; null where none was started."""
    extract_skipped_reason: str | None
    """Why none was started; null: one was."""


class AddedFiles(Shape):
    """Documents that were added, and whether terms are looked for now."""

    files: list[FileView]
    """The documents that were added."""
    extract_started: bool
    """Whether a run that looks for terms was started."""
    extract_run_id: int | None
    """The number of that run; null where none was started."""
    extract_skipped_reason: str | None
    """Why none was started; null: one was."""


def _view(document: StoredDocument) -> dict[str, Any]:
    return asdict(document)


@router.get("", summary="List documents")
def list_files(project: InProject) -> list[FileView]:
    """Lists documents by name."""
    return [FileView(**_view(each)) for each in project.documents.list()]


@router.post("", summary="Add a document", status_code=201)
async def add_file(
    project_id: ProjectId, asked: NewFile, project: InProject, desk: AtDesk, *, extract: bool = True
) -> AddedFile:
    """Adds a document and starts to look for terms; not with `extract=false`: then more are to come."""
    (added,) = await asyncio.to_thread(project.documents.add, [Document(asked.file_name, asked.content)])
    return AddedFile(**_view(added), **await _extract(desk, project_id, wanted=extract))


@router.post("/bulk", summary="Add documents", status_code=201)
async def add_files(
    project_id: ProjectId, asked: NewFiles, project: InProject, desk: AtDesk, *, extract: bool = True
) -> AddedFiles:
    """Adds documents, all or none, and starts to look for terms; not with `extract=false`: then more are to come."""
    documents = [Document(each.file_name, each.content) for each in asked.files]
    added = await asyncio.to_thread(project.documents.add, documents)
    told = await _extract(desk, project_id, wanted=extract)
    return AddedFiles(files=[FileView(**_view(each)) for each in added], **told)


async def _extract(desk: Desk, project_id: int, *, wanted: bool) -> dict[str, Any]:
    """Starts an extraction; where none can be started, the documents are there all the same."""
    if not wanted:
        told = "追加の文書を待っています / more documents are to come"
        return {"extract_started": False, "extract_run_id": None, "extract_skipped_reason": told}
    try:
        row = await desk.start(project_id, "extract", "auto")
    except RunActive as error:
        return {"extract_started": False, "extract_run_id": None, "extract_skipped_reason": str(error)}
    return {"extract_started": True, "extract_run_id": row.id, "extract_skipped_reason": None}


@router.get("/{file_id}", summary="Show a document")
def get_file(file_id: Id, project: InProject) -> FileDetail:
    """Gives a document with its text."""
    document, content = project.documents.get(file_id)
    return FileDetail(**_view(document), content=content)


@router.get("/{file_id}/occurrences", summary="Where terms stand in a document")
def list_occurrences(file_id: Id, project: InProject) -> list[Place]:
    """Gives where terms and their synonyms stand; lines and columns count from 1, matches do not overlap."""
    _, content = project.documents.get(file_id)
    terms = project.terms
    names = Subjects(terms.list(), project.synonyms.list(), {}, lambda: ()).names()
    return places(TermIndex(names), content)


@router.delete("/{file_id}", summary="Remove a document", status_code=204)
def remove_file(file_id: Id, project: InProject) -> None:
    """Removes a document."""
    project.documents.remove(file_id)
