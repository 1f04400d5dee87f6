"""What one can do with glossaries: projects, runs, and what they come to; commands and routes call only this."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki import Run, Runs, Status
from tsuzuki.apps.abandoned import abandoned
from tsuzuki.apps.glossary import flows, loglines
from tsuzuki.apps.glossary.addresses import checked_address
from tsuzuki.apps.glossary.answers import GlossaryDefinition
from tsuzuki.apps.glossary.asking import Asked, answer
from tsuzuki.apps.glossary.generating import Subjects
from tsuzuki.apps.glossary.partial import keep_partial, partial_of
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.prompts import define_prompt
from tsuzuki.apps.glossary.records import Entry, PipelineScope, Project
from tsuzuki.apps.glossary.refusals import BadValue, DamagedProject, ModelUnavailable, NoRuns, RunActive, sanitised
from tsuzuki.apps.glossary.registry import Registry, folder_of
from tsuzuki.apps.glossary.runs_repository import RunRow
from tsuzuki.errors import KeyHeld, LLMError, RunNotFound, StoreError

Submit = Callable[..., Awaitable[Run]]
CHOSEN: Final = ("llm_debug", "review_batch_size")
"""What whoever starts a run may choose for it alone."""
CLOSING_WAIT: Final = 2.0
"""How long a run whose row is completed may take to record its own end (seconds)."""
INTERRUPTED: Final = (
    "中断されました（プロセスが終了しました）。同じ範囲をもう一度実行すると、続きから始まります / "
    "Interrupted: its process has ended. Run the same again, and it continues from there"
)
"""What the row of a run says whose process has ended; the run itself can still be resumed, and is running then."""
CANCEL_WAIT: Final = 3.0
"""How long a cancel is waited for before the answer says how things stand (seconds)."""
WORDS: Final = {
    Status.PENDING: "pending",
    Status.RUNNING: "running",
    Status.CANCELLING: "running",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
}
"""How the states of the engine are called here."""


class Desk:
    """The glossaries of a tenant."""

    def __init__(
        self, runs: Runs, submit: Submit, *, tenant: str = "", folder: Path | None = None, here: bool = False
    ) -> None:
        self._runs = runs
        self._submit = submit
        self._here = here
        """Whether the caller carries out what it starts itself, in its own process."""
        self.tenant = tenant
        self.registry = Registry(folder_of(tenant, folder))

    # Projects

    def project(self, number: int) -> ProjectFile:
        """Opens a project."""
        return ProjectFile(self.registry, number)

    def add_project(self, name: str, provider: str = "", model: str = "", base_url: str = "") -> Project:
        """Makes a project."""
        provider, base_url = checked_address(provider, base_url, tenant=self.tenant)
        return self.registry.add(name, llm_provider=provider, llm_model=model.strip(), llm_base_url=base_url)

    def change_project(self, number: int, changed: dict[str, str]) -> Project:
        """Changes a project; a run that is active goes on as it was started."""
        before = self.registry.project(number)
        provider = changed.get("llm_provider", before.llm_provider)
        base_url = changed.get("llm_base_url", before.llm_base_url)
        if {"llm_provider", "llm_base_url"} & changed.keys():
            provider, base_url = checked_address(provider, base_url, tenant=self.tenant)
        return self.registry.change(number, **{**changed, "llm_provider": provider, "llm_base_url": base_url})

    async def remove_project(self, number: int) -> None:
        """Removes a project, unless a run of it is active."""
        try:
            await self.reconcile(number)
            active = await asyncio.to_thread((await self._opened(number)).active)
        except DamagedProject:  # nothing can be read of it any more, and a run of it fails at its next write
            active = None
        if active is not None:
            raise RunActive(
                f"実行中は削除できません / run {active.id} of this project is active: stop it first", active.id
            )
        await asyncio.to_thread(self.registry.remove, number)

    async def _opened(self, number: int) -> ProjectFile:
        """Opens a project, without holding up the loop."""
        return await asyncio.to_thread(self.project, number)

    # Runs

    async def start(self, number: int, scope: str, triggered_by: str = "api", **chosen: bool | int) -> RunRow:
        """Starts a run; one of the same scope that was stopped before is continued."""
        return (await self.begin(number, scope, triggered_by, **chosen))[0]

    async def begin(
        self, number: int, scope: str, triggered_by: str = "api", **chosen: bool | int
    ) -> tuple[RunRow, Run, bool]:
        """Starts a run, or goes on with one that its process left behind; tells which."""
        if scope not in set(PipelineScope):
            raise BadValue(f"Unknown scope: {scope[:40]}. Must be one of {', '.join(PipelineScope)}")
        project = await self._opened(number)
        await self.reconcile(number)
        # The worker may be quicker than we are: what was chosen goes with the run.
        params = {"project_id": number, "scope": scope, "triggered_by": triggered_by, **chosen}
        earlier = await self._earlier(project, scope)
        try:
            run = await self._submit(flows.glossary, params, continues=earlier)
        except KeyHeld as held:
            run, goes_on = await self._after(held, project, params)
            if goes_on:
                return await self._row(project, run), run, True
        origin = await asyncio.to_thread(lambda: project.origin(run.id, **chosen))
        return await asyncio.to_thread(project.open_run, scope, triggered_by, origin), run, False

    async def _after(self, held: KeyHeld, project: ProjectFile, params: dict[str, Any]) -> tuple[Run, bool]:
        """Gets past a run that holds the project and does not really: it has just ended, or lost its process."""
        holder = await self._runs.get(held.run_id)
        row = await self._row(project, holder)
        busy = RunActive(f"Run already running: {row.id}", row.id)
        if await abandoned(self._runs, holder):
            if self._here and row.scope == params["scope"]:
                return holder, True
            await self.reconcile(project.project.id)  # the row says why it ended, before the engine says how
            await self._runs.cancel(holder.id, by="glossary", reason="its process has ended")
        elif row.status == "completed":
            try:
                async with asyncio.timeout(CLOSING_WAIT):
                    await self._runs.wait(holder.id)
            except TimeoutError:
                raise busy from None
        else:
            raise busy
        earlier = await self._earlier(project, params["scope"])
        try:
            return await self._submit(flows.glossary, params, continues=earlier), False
        except KeyHeld as again:
            row = await self._row(project, await self._runs.get(again.run_id))
            raise RunActive(f"Run already running: {row.id}", row.id) from None

    async def _row(self, project: ProjectFile, run: Run) -> RunRow:
        """Gives the row of an engine's run; where its starter has not written it yet, it is written now."""
        params = msgspec.json.decode(bytes(run.params))
        chosen = {name: params[name] for name in CHOSEN if params.get(name) is not None}
        origin = await asyncio.to_thread(lambda: project.origin(run.id, **chosen))
        scope, by = params.get("scope", "full"), params.get("triggered_by", "api")
        return await asyncio.to_thread(project.open_run, scope, by, origin)

    async def _earlier(self, project: ProjectFile, scope: str) -> str | None:
        """Return the run that a new one of the same scope continues: the last one, if it left something undone."""
        last = next((row for row in await asyncio.to_thread(project.runs) if row.scope == scope), None)
        if last is None or last.active or (last.status == "completed" and not last.error_message):
            return None
        origin = await asyncio.to_thread(project.run_origin, last.id)
        if origin is None:
            return None
        try:
            return (await self._runs.get(origin.engine_run)).id
        except RunNotFound:
            return None

    async def cancel(self, number: int, run_id: int) -> RunRow:
        """Asks for the end of a run and waits a moment for it; one that has ended stays as it is."""
        row = await self.run(number, run_id)
        origin = await asyncio.to_thread((await self._opened(number)).run_origin, run_id)
        if not row.active or origin is None:
            return row
        await self._runs.cancel(origin.engine_run, by="glossary")
        try:
            async with asyncio.timeout(CANCEL_WAIT):
                await self._runs.wait(origin.engine_run)
        except TimeoutError:
            pass  # the answer says how things stand; the run ends soon
        return await self.run(number, run_id)

    async def run(self, number: int, run_id: int) -> RunRow:
        """Gives a run as it stands."""
        await self.reconcile(number)
        return await asyncio.to_thread((await self._opened(number)).run, run_id)

    async def runs(self, number: int) -> list[RunRow]:
        """Lists the runs of a project, the newest first."""
        await self.reconcile(number)
        return await asyncio.to_thread((await self._opened(number)).runs)

    async def current(self, number: int) -> RunRow:
        """Gives the active run, else the last one."""
        await self.reconcile(number)
        row = await asyncio.to_thread((await self._opened(number)).current)
        if row is None:
            raise NoRuns
        return row

    async def partial(self, number: int, run_id: int) -> list[dict[str, Any]]:
        """Gives what a run has defined so far, whether it has ended or not."""
        await self.run(number, run_id)
        origin = await asyncio.to_thread((await self._opened(number)).run_origin, run_id)
        return [] if origin is None else await partial_of(self._runs, origin.engine_run)

    async def reconcile(self, number: int) -> None:
        """Make the row that is active say what has become of the engine's run."""
        project = await self._opened(number)
        row = await asyncio.to_thread(project.active)
        if row is None:
            return
        origin = await asyncio.to_thread(project.run_origin, row.id)
        try:
            run = await self._runs.get(origin.engine_run if origin else "")
        except RunNotFound:
            lost = "the engine knows this run no more"
            await asyncio.to_thread(project.end, row.id, "failed", lost, began=False)
            return
        if await abandoned(self._runs, run):
            await asyncio.to_thread(project.end, row.id, "failed", INTERRUPTED, began=False)
            await keep_partial(self._runs, project, run)
            return
        if not run.status.terminal:
            if row.status == "pending" and run.started_at is not None:
                await asyncio.to_thread(project.begin, row.id)
            return
        error = sanitised(run.error.message) if run.status is Status.FAILED and run.error else None
        began = run.started_at is not None
        await asyncio.to_thread(project.end, row.id, WORDS[run.status], error, began=began)
        if run.status is not Status.COMPLETED:
            await keep_partial(self._runs, project, run)

    # Logs

    async def logs(self, number: int, run_id: int, *, history: bool = False) -> AsyncGenerator[dict[str, Any], None]:
        """Gives the log of a run as it is written, and at last, in every case, that it is complete."""
        row = await self.run(number, run_id)
        origin = await asyncio.to_thread((await self._opened(number)).run_origin, run_id)
        if origin is not None and (row.active or history):
            try:
                interrupted = await abandoned(self._runs, await self._runs.get(origin.engine_run))
                lines = self._runs.log if interrupted else self._runs.follow_log  # it would be followed for ever
                async for line in lines(origin.engine_run):
                    if not line.logger:  # lines of libraries are for the engine's own log
                        yield loglines.read(run_id, line.level, sanitised(line.text))
                async for entry in self._failure(run_id, origin.engine_run):
                    yield entry
            except RunNotFound:
                pass  # the row says what is known of it
        yield await self._completion(number, run_id, origin.engine_run if origin else "")

    async def _failure(self, run_id: int, engine_run: str) -> AsyncIterator[dict[str, Any]]:
        run = await self._runs.get(engine_run)
        if run.status is Status.FAILED and run.error is not None:
            trace = "\n".join(map(sanitised, run.error.traceback.splitlines()))
            yield loglines.entry(run_id, "error", f"Run failed: {sanitised(run.error.message)}", traceback=trace)

    async def _completion(self, number: int, run_id: int, engine_run: str) -> dict[str, Any]:
        try:
            status = (await self.run(number, run_id)).status
        except (
            StoreError,
            DamagedProject,
            sqlite3.Error,
        ):  # its row could not be written: what the engine knows counts
            known = WORDS[(await self._runs.get(engine_run)).status]
            return {"run_id": run_id, "complete": True, "db_status": known, "status_update_failed": True}
        return {"run_id": run_id, "complete": True, "db_status": status}

    # One entry

    async def regenerate(self, number: int, entry_id: int) -> Entry:
        """Asks for the definition of one entry again."""
        project = await self._opened(number)
        entry = await asyncio.to_thread(project.provisional.get, entry_id)
        terms = await asyncio.to_thread(project.terms.list)
        category = next((term.category for term in terms if term.term_text == entry.term_name), None)
        subjects = await asyncio.to_thread(Subjects.of, project)
        subject = subjects.subject(entry.term_name, category or "")
        try:
            given = await answer(GlossaryDefinition, define_prompt(subject), Asked.of(project.origin("").address))
        except (LLMError, TimeoutError) as error:
            raise ModelUnavailable(
                f"モデルから回答がありません / the language model gave no answer: {sanitised(str(error))}"
            ) from error
        return await asyncio.to_thread(project.provisional.regenerate, entry_id, given.definition, given.confidence)
