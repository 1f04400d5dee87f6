"""The values that this application speaks of: connections, projects, branches, commits, targets and how they went."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

DESCRIBED: Final[dict[str, Any]] = {"use_attribute_docstrings": True}
"""Lets pydantic tell over HTTP what is said of each field here."""


class Commit(NamedTuple):
    """A commit as it is stored; without figures it has zeros and `has_stats` is 0."""

    sha: str
    author_name: str
    author_email: str
    committed_date_utc: str
    additions: int
    deletions: int
    is_merge: int
    has_stats: int


@dataclass(frozen=True, slots=True)
class Connection:
    """Where projects come from: a GitLab server by its address, or a local repository by its path."""

    __pydantic_config__: ClassVar[dict[str, Any]] = DESCRIBED

    connection_id: int
    """The number of the connection."""
    kind: str
    """`gitlab` or `git`."""
    address: str
    """The address of the server, or the path of the repository."""
    token_from: str
    """Where its token is kept; the token itself is never shown."""
    created_at_utc: str
    """When it was made (UTC)."""


@dataclass(frozen=True, slots=True)
class FoundProject:
    """A project as a source tells of it."""

    source_key: str
    name: str
    default_branch: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project that is known here; `project_id` is ours, `source_key` its source's."""

    __pydantic_config__: ClassVar[dict[str, Any]] = DESCRIBED

    project_id: int
    """The number of the project here."""
    connection_id: int | None
    """The connection that it came from; null where that is gone."""
    source_key: str
    """What its source calls it."""
    name: str
    """What people call it."""
    default_branch: str
    """The branch that its source names first."""
    synced_at_utc: str
    """When its source last told of it (UTC)."""
    collected_branches: int = 0
    """How many of its branches have been collected."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and the commit it points to."""

    name: str
    head_sha: str


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A branch of a project, to be collected."""

    project_id: int
    branch_name: str

    def __str__(self) -> str:
        return f"{self.project_id}:{self.branch_name}"


@dataclass(frozen=True, slots=True)
class Settled:
    """How a target went: the number of commits that were new, or why it failed."""

    status: str
    new_commits_count: int | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Which commits are asked for: those that `head` reaches and `after` does not, made between two times."""

    head: str
    after: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """How a bulk run stands."""

    __pydantic_config__: ClassVar[dict[str, Any]] = DESCRIBED

    run_id: str
    """The id of the bulk run."""
    started_at_utc: str
    """When it began (UTC)."""
    completed_at_utc: str | None
    """When it ended (UTC); null until then."""
    run_status: str
    """`running`, `completed` or `cancelled`."""
    total_targets: int
    """How many targets it has."""
    success_count: int
    """How many were collected."""
    failed_count: int
    """How many failed."""
    pending_count: int
    """How many are left."""


@dataclass(frozen=True, slots=True)
class TargetResult:
    """How a target of a bulk run stands, for people."""

    __pydantic_config__: ClassVar[dict[str, Any]] = DESCRIBED

    project_id: int
    """The number of the project."""
    project_name: str
    """What people call the project."""
    branch_name: str
    """The branch."""
    status: str
    """`pending`, `success` or `failed`."""
    new_commits_count: int | None
    """How many commits were new."""
    error_message: str | None
    """Why it failed."""
    processed_at_utc: str | None
    """When it was settled (UTC)."""
