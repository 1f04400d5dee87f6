"""The values that this application speaks of: projects, documents, terms, entries, issues, and what a run was given."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tsuzuki import llm


class PipelineScope(StrEnum):
    """What a run does."""

    FULL = "full"
    """Generate, review, refine; terms are there already."""
    EXTRACT = "extract"
    GENERATE = "generate"
    REVIEW = "review"
    REFINE = "refine"


class Category(StrEnum):
    """What kind of term it is."""

    PERSON_NAME = "person_name"
    PLACE_NAME = "place_name"
    ORGANIZATION = "organization"
    TITLE = "title"
    TECHNICAL_TERM = "technical_term"
    COMMON_NOUN = "common_noun"


class IssueType(StrEnum):
    """What is wrong with an entry."""

    UNCLEAR = "unclear"
    CONTRADICTION = "contradiction"
    MISSING_RELATION = "missing_relation"
    UNNECESSARY = "unnecessary"


@dataclass(frozen=True, slots=True)
class Project:
    """A project: its name and whom it asks; what is empty is as it is set for the process."""

    id: int
    name: str
    doc_root: str
    llm_provider: str
    llm_model: str
    llm_base_url: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a project has of everything."""

    documents: int = 0
    terms: int = 0
    provisional: int = 0
    issues: int = 0
    refined: int = 0
    damaged: str | None = None
    """Why nothing can be counted: its file is damaged or missing."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document without its text."""

    id: int
    file_name: str
    content_hash: str
    size: int
    created_at: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document as the pipeline reads it: its relative path and its text."""

    file_name: str
    content: str


@dataclass(frozen=True, slots=True)
class Term:
    """A term; one that is only required has a negative id."""

    id: int
    term_text: str
    category: str | None = None
    user_notes: str = ""
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class ListedTerm:
    """A term that is left out, or always there."""

    id: int
    term_text: str
    source: str
    created_at: str


@dataclass(frozen=True, slots=True)
class SynonymMember:
    """A term of a group."""

    id: int
    term_text: str


@dataclass(frozen=True, slots=True)
class SynonymGroup:
    """Terms that mean the same; the primary one stands in the glossary."""

    id: int
    primary_term_text: str
    members: tuple[SynonymMember, ...]

    @property
    def aliases(self) -> list[str]:
        """The other members."""
        return [member.term_text for member in self.members if member.term_text != self.primary_term_text]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a term stands: the line counts from 1; the context is that line with its neighbours."""

    document_path: str
    line_number: int
    context: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a glossary."""

    term_name: str
    definition: str
    confidence: float
    aliases: list[str] = field(default_factory=list)
    occurrences: list[Occurrence] = field(default_factory=list)
    id: int = 0
    by_person: bool = False
    """Whether a person wrote the definition: runs leave it alone."""
    kept: bool = False
    """Whether its question failed in the last run, so that this is still the former definition."""


@dataclass(frozen=True, slots=True)
class Glossary:
    """Entries in their order."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def term_count(self) -> int:
        """How many entries there are."""
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class GlossaryIssue:
    """Something that the review found."""

    term_name: str
    issue_type: str
    description: str
    should_exclude: bool = False
    exclusion_reason: str | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Which run of the engine a run stands for, and what it was started with."""

    engine_run: str
    llm_provider: str = ""
    llm_model: str = ""
    llm_base_url: str = ""
    llm_debug: bool = False
    review_batch_size: int = 10
    documents: str = ""
    """The digest of the documents, as they were when it was started."""

    @property
    def cells(self) -> tuple[Any, ...]:
        """Its values in the order of the table."""
        return (
            self.engine_run,
            self.llm_provider,
            self.llm_model,
            self.llm_base_url,
            int(self.llm_debug),
            self.review_batch_size,
            self.documents,
        )

    @property
    def address(self) -> "llm.Address":
        """Whom it asks."""
        return llm.Address(self.llm_provider, self.llm_base_url, self.llm_model)
