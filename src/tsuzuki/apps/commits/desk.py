"""What one can do with collections: connect, list, collect, start, cancel, retry, look.

Commands and routes call only these.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from tsuzuki import Run, Runs, Status
from tsuzuki.apps.abandoned import abandoned
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.bulkruns import BulkRuns
from tsuzuki.apps.commits.collecting import open_sources
from tsuzuki.apps.commits.ledger import Ledger, ledger_of
from tsuzuki.apps.commits.projects import Projects
from tsuzuki.apps.commits.records import DESCRIBED, Branch, Connection, FoundProject, Project, Summary, Target
from tsuzuki.apps.commits.refusals import (
    BranchBusy,
    BulkRunning,
    NoConnection,
    NoTargets,
    NothingFailed,
    NothingRunning,
    SourceFailure,
)
from tsuzuki.apps.commits.sources.asking import Patience
from tsuzuki.apps.commits.sources.git import whole_repository
from tsuzuki.apps.commits.sources.gitlab import GitLabSource, server_address
from tsuzuki.apps.commits.times import asked
from tsuzuki.apps.commits.tokens import Tokens, check_token
from tsuzuki.backends import Query
from tsuzuki.errors import BadUsage, Conflict, KeyHeld, RunNotFound

Submit = Callable[..., Awaitable[Run]]
CLOSING_WAIT: Final = 2.0
"""How long a run whose row is completed may take to record its own end (seconds)."""
CANCEL_WAIT: Final = 3.0
"""How long a cancel is waited for before the answer says how things stand (seconds)."""
WAITED_FOR: Final = Patience(tries=2, first=0.2, longest=1.0, timeout=2.0, pages=200, total=30.0)
"""How patient one is with a source while somebody waits for an answer over HTTP."""
CHECKED: Final = Patience(tries=2, first=0.5, longest=5.0, timeout=15.0)
"""How patient one is with a server that is being registered."""
ACTIVE: Final = (Status.PENDING, Status.RUNNING, Status.CANCELLING)


@dataclass(frozen=True, slots=True)
class Started:
    """A bulk run that was started, or goes on."""

    __pydantic_config__: ClassVar[dict[str, Any]] = DESCRIBED

    run_id: str
    """The id of the bulk run."""
    total_targets: int
    """How many targets it has."""
    resumed: bool = False
    """Whether it goes on with an earlier one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a bulk run stands, with what the engine knows of it."""

    summary: Summary
    current_target: Target | None
    error: str | None
    number: int | None


class Desk:
    """The collections of a tenant."""

    def __init__(
        self, runs: Runs, submit: Submit, *, tenant: str = "", folder: Path | None = None, here: bool = False
    ) -> None:
        self._runs = runs
        self._submit = submit
        self._patience = None if here else WAITED_FOR
        self._here = here
        """Whether the caller carries out what it starts itself, in its own process."""
        self.tenant = tenant
        self.ledger: Ledger = ledger_of(tenant, folder)
        self.projects = Projects(self.ledger)
        self.bulk_runs = BulkRuns(self.ledger)
        self.tokens = Tokens(self.ledger.file.parent, tenant=tenant)

    # Connections and projects

    def connect(self, kind: str, address: str, token: str | None = None) -> Connection:
        """Registers a connection, and keeps its token apart from it; without one, the token that is kept stays."""
        if kind == "git":
            try:
                place = whole_repository(Path(address))
            except SourceFailure as failure:  # nobody was asked: what was said is wrong
                raise BadUsage(str(failure)) from None
            return self.projects.connect("git", str(place.parent if place.name == ".git" else place), "none")
        clean = server_address(address)
        check_token(token)
        if token is None:
            known = [each for each in self.projects.connections() if each.address == clean]
            token = self.tokens.kept(known[0]) if known else None
        connection = self.projects.connect("gitlab", clean, self.tokens.source_of(token, clean))
        self.tokens.keep(connection, token)
        return connection

    async def check(self, address: str, token: str) -> None:
        """Raise where a GitLab server cannot be reached with a token, or is none; nothing is registered."""
        clean = server_address(address)
        check_token(token or None)
        source = GitLabSource(clean, token or self.tokens.of_environment(clean), CHECKED)
        try:
            await source.check()
        finally:
            await source.close()

    def disconnect(self, number: int) -> None:
        """Removes a connection and its token."""
        connection = self.projects.connection(number)
        self.projects.disconnect(number)
        self.tokens.keep(connection, None)

    async def sync(self, connection: Connection, only: str = "") -> list[Project]:
        """Asks a source for its projects, or for one by its path, and keeps what it tells."""
        async with open_sources(self.ledger, self.tenant, self._patience) as sources:
            source = sources.of(connection)
            found: list[FoundProject]
            if only and isinstance(source, GitLabSource):
                found = [await source.project(only)]
            else:
                found = await source.projects()
        return await asyncio.to_thread(self.projects.sync, connection, found)

    async def branches(self, project: Project) -> list[Branch]:
        """Asks a source for the branches of a project; where its connection was removed, nobody knows of any."""
        if project.connection_id is None:
            return []
        async with open_sources(self.ledger, self.tenant, self._patience) as sources:
            source = sources.of(await asyncio.to_thread(self.projects.connection, project.connection_id))
            return await source.branches(project.source_key)

    # Collecting branches

    async def collection(
        self, project: Project, branches: list[str], *, every: bool, since: str = "", until: str = ""
    ) -> dict[str, Any]:
        """Gives the params of a collection: the named branches, all of them, or the default one."""
        span = {"since": asked(since, "since") if since else None, "until": None}
        span["until"] = asked(until, "until", end=True) if until else None
        if span["since"] and span["until"] and span["since"] > span["until"]:
            raise BadUsage(
                f"開始日は終了日より前でなければなりません / the span ends before it begins: {since} to {until}"
            )
        if every and branches:
            raise BadUsage("ブランチ名とすべてのどちらか一方を指定してください / name branches, or say all: not both")
        if project.connection_id is None:
            raise NoConnection
        names = [branch.name for branch in await self.branches(project)] if every else branches
        names = names or [project.default_branch or "HEAD"]
        return {"project_id": project.project_id, "branches": names, **span}

    async def collect(self, params: dict[str, Any]) -> Run:
        """Starts a collection of branches."""
        try:
            return await self._submit(flows.collect_project, params)
        except KeyHeld as held:
            raise Conflict(f"このプロジェクトは収集中です / that project is being collected already: {held}") from None

    async def remove_branch(self, target: Target) -> int:
        """Removes the commits of a branch, unless it is being collected."""
        for key in (flows.BULK_KEY, flows.PROJECT_KEY.format(target.project_id)):
            if await self._runs.list(Query(key=key, status=ACTIVE, tenant=self.tenant, limit=1)):
                raise BranchBusy
        return await asyncio.to_thread(self.projects.remove_branch, target)

    # Bulk runs

    async def start(self, *, pause: float = 0.1, concurrency: int = 1, fresh: bool = False) -> Started:
        """Goes on with every branch that has a history; a bulk run that was cancelled on the way goes on itself."""
        await self._refuse_while_running()
        if not fresh and (resumed := await self._resumed()) is not None:
            return resumed
        targets = await asyncio.to_thread(self.bulk_runs.targets)
        if not targets:
            raise NoTargets
        await asyncio.to_thread(self._check_connections, targets)
        return await self._started({"pause": pause, "concurrency": concurrency})

    async def retry(self, run_id: str = "", *, pause: float = 0.1, concurrency: int = 1) -> Started:
        """Starts a new bulk run of exactly those targets that failed in another one, or in the last."""
        await self._refuse_while_running()
        latest = await asyncio.to_thread(self.bulk_runs.latest)
        of = run_id or ("" if latest is None else latest.run_id)
        targets = await asyncio.to_thread(self.bulk_runs.targets, of) if of else []
        if not targets:
            raise NothingFailed
        await asyncio.to_thread(self._check_connections, targets)
        return await self._started({"retry_of": of, "pause": pause, "concurrency": concurrency})

    async def _started(self, params: dict[str, Any]) -> Started:
        run = await self._submitted(params)
        # If this process ends here, the flow itself writes the row: the run was accepted, so it will be executed.
        targets = await asyncio.to_thread(self.bulk_runs.open, run.id, str(params.get("retry_of", "")))
        return Started(run.id, len(targets))

    async def _submitted(self, params: dict[str, Any]) -> Run:
        """Hands a bulk run to the engine; one that has closed its row and is about to record its end is waited for."""
        try:
            return await self._submit(flows.bulk, params)
        except KeyHeld as held:
            row = await asyncio.to_thread(self.ledger.one, "run_status", (held.run_id,))
            if row is None or row[0] != "completed":
                raise BulkRunning from None
            try:
                async with asyncio.timeout(CLOSING_WAIT):
                    await self._runs.wait(held.run_id)
                return await self._submit(flows.bulk, params)
            except (KeyHeld, TimeoutError):
                raise BulkRunning from None

    async def _refuse_while_running(self) -> None:
        """Refuses where a bulk run is running; one that its process left behind for ever does not count."""
        await self.reconcile()
        running = await asyncio.to_thread(self.bulk_runs.running)
        if running is None:
            return
        if not await abandoned(self._runs, await self._runs.get(running)):
            raise BulkRunning
        await self._runs.cancel(running, by="commits", reason="its process has ended")
        await self.reconcile()

    async def _resumed(self) -> Started | None:
        """Lets the last bulk run go on, where it was cancelled on the way and can be carried out by who asks."""
        latest = await asyncio.to_thread(self.bulk_runs.latest)
        if latest is None or latest.run_status != "cancelled" or not latest.pending_count:
            return None
        try:
            if (await self._runs.get(latest.run_id)).private and not self._here:
                return None
            await self._runs.resume(latest.run_id, failed=False, by="commits")
        except KeyHeld:
            raise BulkRunning from None
        except (Conflict, RunNotFound):
            return None  # the engine knows it no more, or has another opinion: a new run does the same work
        await asyncio.to_thread(self.bulk_runs.open, latest.run_id)
        return Started(latest.run_id, latest.total_targets, resumed=True)

    def _check_connections(self, targets: list[Target]) -> None:
        """Refuses where no target could be asked for; where some can, the others fail with their reason."""
        wanted = {target.project_id for target in targets}
        used = {project.connection_id for project in self.projects.projects() if project.project_id in wanted}
        connections = [each for each in self.projects.connections() if each.connection_id in used]
        lacking = [each.address for each in connections if self.tokens.missing(each)]
        if len(lacking) < len(connections):
            return
        if not lacking:
            raise NoConnection
        raise NoConnection(
            f"{lacking[0]} のトークンがありません / the token for {lacking[0]} is missing: set "
            "TSUZUKI_GITLAB_TOKEN, or register it again with `tsuzuki commits connect`"
        )

    async def cancel(self, run_id: str = "") -> Standing | None:
        """Cancels the bulk run that is running; with an id, that one and no other."""
        await self.reconcile()
        running = await asyncio.to_thread(self.bulk_runs.running)
        if run_id:
            await asyncio.to_thread(self.bulk_runs.summary, run_id)
        if running is None or (run_id and run_id != running):
            raise NothingRunning
        await self._runs.cancel(running, by="commits")
        try:
            async with asyncio.timeout(CANCEL_WAIT):
                await self._runs.wait(running)
        except TimeoutError:
            pass  # it is told how things stand; the run ends soon
        return await self.standing(running)

    # Looking

    async def standing(self, run_id: str = "") -> Standing | None:
        """Says how a bulk run stands, or the last one."""
        await self.reconcile()
        look = self.bulk_runs
        summary = await asyncio.to_thread(look.summary, run_id) if run_id else await asyncio.to_thread(look.latest)
        if summary is None:
            return None
        target = None
        if summary.run_status == "running":
            target = await asyncio.to_thread(self.bulk_runs.current, summary.run_id)
        try:
            row = await self._runs.get(summary.run_id)
        except RunNotFound:
            return Standing(summary, target, None, None)
        error = None if row.error is None else row.error.said
        return Standing(summary, target, error, row.number)

    async def left(self, stands: Standing) -> bool:
        """Tells whether the last bulk run was left on the way, so that a start goes on with it."""
        latest = await asyncio.to_thread(self.bulk_runs.latest)
        if latest is None or latest.run_id != stands.summary.run_id or not stands.summary.pending_count:
            return False
        if stands.summary.run_status != "running":
            return stands.summary.run_status == "cancelled"
        return await abandoned(self._runs, await self._runs.get(latest.run_id))

    async def reconcile(self) -> None:
        """Lets the row that says `running` say what has become of the engine's run."""
        run_id = await asyncio.to_thread(self.bulk_runs.running)
        if run_id is None:
            return
        try:
            row = await self._runs.get(run_id)
        except RunNotFound:
            await asyncio.to_thread(self.bulk_runs.close, run_id, "cancelled", "")
            return
        if not row.status.terminal:
            return
        left = await asyncio.to_thread(self.bulk_runs.current, run_id)
        status = "completed" if row.status is Status.COMPLETED and left is None else "cancelled"
        await asyncio.to_thread(self.bulk_runs.close, run_id, status, row.finished_at or "")
