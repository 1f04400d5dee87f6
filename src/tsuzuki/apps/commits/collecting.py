"""Collects one target: where to go on, what to ask for, and one transaction for all of it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from tsuzuki.apps.commits.gathering import Gathering, gathering, mark_gone
from tsuzuki.apps.commits.ledger import Ledger
from tsuzuki.apps.commits.projects import Projects
from tsuzuki.apps.commits.records import Connection, Project, Settled, Span, Target
from tsuzuki.apps.commits.refusals import HeadGone, NotThere, SourceFailure, told
from tsuzuki.apps.commits.sources import Source
from tsuzuki.apps.commits.sources.asking import Patience
from tsuzuki.apps.commits.sources.git import GitSource
from tsuzuki.apps.commits.sources.gitlab import GitLabSource
from tsuzuki.apps.commits.times import before
from tsuzuki.apps.commits.tokens import Tokens, check_token
from tsuzuki.errors import BadUsage, StoreError

OVERLAP_DAYS: Final = 30
"""How far before the newest stored commit one asks again, where only dates tell what is new."""


class Sources:
    """The open sources of a run, one for each connection."""

    def __init__(self, tokens: Tokens, patience: Patience | None = None) -> None:
        self._tokens = tokens
        self._patience = patience or Patience()
        self._open: dict[int, Source] = {}

    def of(self, connection: Connection) -> Source:
        """Gives the source of a connection, opened once."""
        if connection.connection_id not in self._open:
            self._open[connection.connection_id] = self._opened(connection)
        return self._open[connection.connection_id]

    def _opened(self, connection: Connection) -> Source:
        if connection.kind == "git":
            return GitSource(connection.address)
        token = self._tokens.of(connection)
        if self._tokens.missing(connection):
            raise SourceFailure("token")
        try:
            check_token(token)
        except BadUsage:  # one of the environment, which nobody has looked at before
            raise SourceFailure("unauthorized") from None
        return GitLabSource(connection.address, token, self._patience)

    async def close(self) -> None:
        """Closes all of them."""
        for source in self._open.values():
            await source.close()


PATIENCE: ContextVar[Patience | None] = ContextVar("PATIENCE", default=None)
"""How patient the sources of this context are; None for the usual."""
_SOURCES: ContextVar[Sources | None] = ContextVar("_SOURCES", default=None)


@asynccontextmanager
async def open_sources(ledger: Ledger, tenant: str, patience: Patience | None = None) -> AsyncIterator[Sources]:
    """Opens sources for the calls inside the block: connections are kept from one target to the next."""
    sources = Sources(Tokens(ledger.file.parent, tenant=tenant), patience or PATIENCE.get())
    token = _SOURCES.set(sources)
    try:
        yield sources
    finally:
        _SOURCES.reset(token)
        await sources.close()


async def collect(
    ledger: Ledger, target: Target, run_id: str, *, bulk: bool, since: str | None = None, until: str | None = None
) -> Settled:
    """Collects what is new of a target, or of a span of time, and settles it."""
    sources = _SOURCES.get()
    if sources is None:
        raise RuntimeError("collect is called inside open_sources")
    project, connection = await asyncio.to_thread(_place_of, ledger, target)
    source = sources.of(connection)
    try:
        head = await source.head(project.source_key, target.branch_name)
    except SourceFailure as failure:
        if failure.cause == "no_branch":
            await asyncio.to_thread(mark_gone, ledger, target)
        raise
    with gathering(ledger, target, run_id, bulk=bulk) as gathered:
        if since or until:
            await _gather(source, project, Span(head, None, since, until), gathered)
            return await asyncio.to_thread(gathered.settle, None)
        stored = await asyncio.to_thread(_stored_head, ledger, target)
        if stored is None:
            since_then = await asyncio.to_thread(_since, ledger, target, cheap=source.cheap)
            await _gather(source, project, Span(head, None, since_then), gathered)
        elif stored != head:
            await _gather_after(source, project, Span(head, stored), gathered)
        return await asyncio.to_thread(gathered.settle, head if await source.whole(project.source_key) else None)


async def _gather_after(source: Source, project: Project, span: Span, gathered: Gathering) -> None:
    """Gathers what the head reaches and the stored one does not, and what only the stored one reaches.

    Where the source does not know the stored head any more, history was rewritten: all of it is gathered again.
    """
    assert span.after is not None  # noqa: S101 - a head is stored
    try:
        await _gather(source, project, span, gathered)
        gathered.leave_behind(await source.left_behind(project.source_key, span))
    except HeadGone:
        gathered.begin_anew()
        await _gather(source, project, Span(span.head), gathered)


async def _gather(source: Source, project: Project, span: Span, gathered: Gathering) -> None:
    async for page in source.commits(project.source_key, span):
        gathered.add(page)


def _place_of(ledger: Ledger, target: Target) -> tuple[Project, Connection]:
    projects = Projects(ledger)
    project = projects.project(target.project_id)
    try:
        return project, projects.connection(project.connection_id)
    except NotThere:
        raise SourceFailure("connection") from None


def _stored_head(ledger: Ledger, target: Target) -> str | None:
    row = ledger.one("head", (target.project_id, target.branch_name))
    return None if row is None else str(row[0])


def _since(ledger: Ledger, target: Target, *, cheap: bool) -> str | None:
    """Gives the time to ask from where no head is stored: the checkpoint less an overlap.

    A cheap source lacks figures only where its history was cut off: what lies behind may be there now.
    """
    if cheap and ledger.one("cut_off", (target.project_id,)) is not None:
        return None
    row = ledger.one("checkpoint", (target.project_id, target.branch_name))
    return None if row is None or row[0] is None else before(str(row[0]), days=OVERLAP_DAYS)


def why(error: Exception) -> str:
    """Says why a target failed, without anything that a server or a database has said."""
    if isinstance(error, SourceFailure):
        return str(error)
    if isinstance(error, StoreError | sqlite3.Error | OSError):
        return told("storage")
    return told("unknown", type(error).__name__)
