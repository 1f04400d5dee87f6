"""`/api/projects/{id}/terms`, `/excluded-terms`, `/required-terms`, `/synonym-groups`."""

from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Response
from pydantic import Field

from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.records import SynonymGroup, Term
from tsuzuki.apps.glossary.routes.shared import MOST, Id, InProject, Shape, TermText
from tsuzuki.apps.glossary.terms import Listed

router: Final = APIRouter(prefix="/{project_id}")
TermId = Annotated[int, Path(ge=-MOST, le=MOST, description="Negative for a term that is only required.")]


class NewTerm(TermText):
    """A term that a person names."""

    category: str | None = Field(default=None, max_length=40)
    """What kind of term it is; null: not said."""
    user_notes: str = Field(default="", max_length=10_000)
    """What people say of it; the language model reads it too."""


class ChangedTerm(Shape):
    """What is to change."""

    term_text: str | None = Field(default=None, min_length=1, max_length=200)
    """The term as it is written; null: it stays."""
    category: str | None = Field(default=None, max_length=40)
    """What kind of term it is; null takes it away."""
    user_notes: str | None = Field(default=None, max_length=10_000)
    """What people say of it; null: it stays."""


class TermView(Shape):
    """A term."""

    id: int
    """The number of the term; negative for one that is only required."""
    term_text: str
    """The term as it is written."""
    category: str | None
    """What kind of term it is; null: not said."""
    user_notes: str
    """What people say of it; the language model reads it too."""
    required: bool
    """Whether it is always there."""


class ListedView(Shape):
    """A term of a list."""

    id: int
    """Its number in the list."""
    term_text: str
    """The term as it is written."""
    source: str
    """Who put it there: `manual` (a person) or `auto` (an extraction)."""
    created_at: str
    """When it came into the list (UTC, ISO 8601)."""


class ListedTerms(Shape):
    """A list of terms."""

    items: list[ListedView]
    """The terms."""
    total: int
    """How many there are."""


class NewGroup(Shape):
    """A group of synonyms; the primary term is one of them."""

    primary_term_text: str = Field(min_length=1, max_length=200)
    """The term of the group that stands in the glossary."""
    member_texts: list[str] = Field(min_length=1, max_length=100)
    """All terms of the group, the primary one among them."""


class Primary(Shape):
    """Which member is the primary term."""

    primary_term_text: str = Field(min_length=1, max_length=200)
    """The member that stands in the glossary from now on."""


class MemberView(Shape):
    """A member of a group."""

    id: int
    """The number of the member."""
    term_text: str
    """The term as it is written."""


class GroupView(Shape):
    """A group of synonyms."""

    id: int
    """The number of the group."""
    primary_term_text: str
    """The term of the group that stands in the glossary."""
    members: list[MemberView]
    """All terms of the group, the primary one among them."""


class Groups(Shape):
    """All groups."""

    items: list[GroupView]
    """The groups."""
    total: int
    """How many there are."""


def _view(term: Term, project: ProjectFile) -> TermView:
    required = term.id < 0 or term.term_text in project.terms.required.texts()
    return _viewed(term, required=required)


def _viewed(term: Term, *, required: bool) -> TermView:
    return TermView(
        id=term.id, term_text=term.term_text, category=term.category, user_notes=term.user_notes, required=required
    )


@router.get("/terms", summary="List terms")
def list_terms(project: InProject) -> list[TermView]:
    """Lists terms; excluded ones are left out unless they are required, only required ones have negative ids."""
    required = set(project.terms.required.texts())
    return [_viewed(term, required=term.term_text in required) for term in project.terms.list()]


@router.post("/terms", summary="Add a term", status_code=201)
def add_term(asked: NewTerm, project: InProject) -> TermView:
    """Adds a term; it survives extractions."""
    return _view(project.terms.add(asked.term_text, asked.category, asked.user_notes), project)


@router.get("/terms/{term_id}", summary="Look at a term")
def get_term(term_id: TermId, project: InProject) -> TermView:
    """Gives a term."""
    return _view(project.terms.get(term_id), project)


@router.patch("/terms/{term_id}", summary="Change a term")
def change_term(term_id: TermId, asked: ChangedTerm, project: InProject) -> TermView:
    """Changes text, category or notes; a category of null takes it away."""
    changed: dict[str, Any] = asked.model_dump(exclude_unset=True)
    for name in ("term_text", "user_notes"):
        if changed.get(name, "") is None:
            changed.pop(name)
    return _view(project.terms.change(term_id, changed), project)


@router.delete("/terms/{term_id}", summary="Remove a term", status_code=204)
def remove_term(term_id: TermId, project: InProject) -> None:
    """Removes a term."""
    project.terms.remove(term_id)


# Excluded and required


def _listed(terms: Listed) -> ListedTerms:
    items = [ListedView(**asdict(each)) for each in terms.list()]
    return ListedTerms(items=items, total=len(items))


def _added(terms: Listed, text: str, response: Response) -> ListedView:
    term, new = terms.add(text)
    response.status_code = 201 if new else 200
    return ListedView(**asdict(term))


_ALREADY: Final[dict[int | str, dict[str, Any]]] = {200: {"description": "It was there already", "model": ListedView}}


@router.get("/excluded-terms", summary="List excluded terms")
def list_excluded(project: InProject) -> ListedTerms:
    """Lists terms that are left out; those with source auto were found to be common nouns."""
    return _listed(project.terms.excluded)


@router.post("/excluded-terms", summary="Exclude a term", status_code=201, responses=_ALREADY)
def add_excluded(asked: TermText, project: InProject, response: Response) -> ListedView:
    """Leaves a term out."""
    return _added(project.terms.excluded, asked.term_text, response)


@router.delete("/excluded-terms/{term_id}", summary="Do not exclude a term", status_code=204)
def remove_excluded(term_id: Id, project: InProject) -> None:
    """Does not leave a term out any more."""
    project.terms.excluded.remove(term_id)


@router.get("/required-terms", summary="List required terms")
def list_required(project: InProject) -> ListedTerms:
    """Lists terms that are always there."""
    return _listed(project.terms.required)


@router.post("/required-terms", summary="Require a term", status_code=201, responses=_ALREADY)
def add_required(asked: TermText, project: InProject, response: Response) -> ListedView:
    """Lets a term be always there."""
    return _added(project.terms.required, asked.term_text, response)


@router.delete("/required-terms/{term_id}", summary="Do not require a term", status_code=204)
def remove_required(term_id: Id, project: InProject) -> None:
    """Does not require a term any more."""
    project.terms.required.remove(term_id)


# Synonyms


def _group(group: SynonymGroup) -> GroupView:
    members = [MemberView(**asdict(member)) for member in group.members]
    return GroupView(id=group.id, primary_term_text=group.primary_term_text, members=members)


@router.get("/synonym-groups", summary="List groups of synonyms")
def list_groups(project: InProject) -> Groups:
    """Lists the groups."""
    items = [_group(group) for group in project.synonyms.list()]
    return Groups(items=items, total=len(items))


@router.post("/synonym-groups", summary="Make a group of synonyms", status_code=201)
def add_group(asked: NewGroup, project: InProject) -> GroupView:
    """Makes a group; a term is in one group at most."""
    return _group(project.synonyms.add(asked.primary_term_text, asked.member_texts))


@router.patch("/synonym-groups/{group_id}", summary="Choose the primary term")
def rename_group(group_id: Id, asked: Primary, project: InProject) -> GroupView:
    """Lets another member be the primary term."""
    return _group(project.synonyms.rename(group_id, asked.primary_term_text))


@router.delete("/synonym-groups/{group_id}", summary="Remove a group of synonyms", status_code=204)
def remove_group(group_id: Id, project: InProject) -> None:
    """Removes a group; its terms stay."""
    project.synonyms.remove(group_id)


@router.post("/synonym-groups/{group_id}/members", summary="Add a synonym", status_code=201)
def join_group(group_id: Id, asked: TermText, project: InProject) -> GroupView:
    """Adds a member to a group."""
    return _group(project.synonyms.join(group_id, asked.term_text))


@router.delete("/synonym-groups/{group_id}/members/{member_id}", summary="Remove a synonym", status_code=204)
def leave_group(group_id: Id, member_id: Id, project: InProject) -> None:
    """Removes a member; without its primary term there is no group any more."""
    project.synonyms.leave(group_id, member_id)
