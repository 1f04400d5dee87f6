"""The values that this application speaks of: connections, projects, branches, commits, targets and how they went."""

from dataclasses import dataclass
from typing import NamedTuple


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

    connection_id: int
    kind: str
    address: str
    token_from: str
    created_at_utc: str


@dataclass(frozen=True, slots=True)
class FoundProject:
    """A project as a source tells of it."""

    source_key: str
    name: str
    default_branch: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project that is known here; `project_id` is ours, `source_key` its source's."""

    project_id: int
    connection_id: int | None
    source_key: str
    name: str
    default_branch: str
    synced_at_utc: str
    collected_branches: int = 0


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

    run_id: str
    started_at_utc: str
    completed_at_utc: str | None
    run_status: str
    total_targets: int
    success_count: int
    failed_count: int
    pending_count: int


@dataclass(frozen=True, slots=True)
class TargetResult:
    """How a target of a bulk run stands, for people."""

    project_id: int
    project_name: str
    branch_name: str
    status: str
    new_commits_count: int | None
    error_message: str | None
    processed_at_utc: str | None
