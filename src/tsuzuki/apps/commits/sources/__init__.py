"""Where commits come from: the protocol of a source. GitLab and local git are two; each knows nothing of the ledger."""

from collections.abc import AsyncIterator
from typing import Protocol

from tsuzuki.apps.commits.records import Branch, Commit, FoundProject, Span


class Source(Protocol):
    """A place that has projects, their branches and their commits.

    What cannot be had is a `SourceFailure` with its cause. To be cancelled while it waits is part of the contract.
    """

    cheap: bool
    """Whether the history of a branch may be read as a whole without a second thought."""

    async def projects(self) -> list[FoundProject]:
        """Lists the projects that can be seen."""
        ...

    async def branches(self, project: str) -> list[Branch]:
        """Lists the branches of a project."""
        ...

    async def head(self, project: str, branch: str) -> str:
        """Gives the commit that a branch points to."""
        ...

    def commits(self, project: str, span: Span) -> AsyncIterator[list[Commit]]:
        """Gives the commits of a span, page by page; raises HeadGone where `span.after` is unknown."""
        ...

    async def left_behind(self, project: str, span: Span) -> list[str]:
        """Lists the commits that `span.after` reaches and `span.head` does not: there are some after a force push."""
        ...

    async def whole(self, project: str) -> bool:
        """Tells whether the history of a project is all there: a shallow clone has only its newest part."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds."""
        ...
