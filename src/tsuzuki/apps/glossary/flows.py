"""The flow: one run of a project, of whatever scope."""

import asyncio
import contextlib
import sqlite3
from typing import Any, Final

from tsuzuki import current, flow
from tsuzuki.apps.glossary import (
    loglines,
    offline,  # its rules answer where no model does
)
from tsuzuki.apps.glossary.asking import told
from tsuzuki.apps.glossary.executor import ExecutionContext, PipelineExecutor
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.records import Origin, PipelineScope
from tsuzuki.apps.glossary.refusals import (
    DamagedProject,
    ModelUnavailable,
    PipelineCancelledException,
    sanitised,
)
from tsuzuki.apps.glossary.registry import Registry, folder_of
from tsuzuki.apps.glossary.runs_repository import RunRow
from tsuzuki.apps.glossary.times import CLOCK
from tsuzuki.apps.saving import begun, ended, saved
from tsuzuki.errors import StoreError

__all__ = ["flows", "glossary", "offline"]

NOTED: Final = 0.5
"""How often the row of a run says how far it is (seconds)."""


class Stopping:
    """Says that the run is being stopped, as the engine says it."""

    def is_set(self) -> bool:
        """Tells whether it is."""
        return current().cancelled


class Notes:
    """Takes what a run tells: lines for its log, and now and then a note in its row, one at a time."""

    def __init__(self, project: ProjectFile, number: int) -> None:
        self._project = project
        self._number = number
        self._step = ""
        self._noted = 0.0
        self._waiting: tuple[int, int, str] | None = None
        self._writing: asyncio.Task[None] | None = None

    def take(self, entry: dict[str, Any]) -> None:
        """Takes an entry."""
        current().log.log(entry["level"], loglines.written(entry))
        if "progress_total" not in entry:
            return
        step, done, total = entry["step"], entry["progress_current"], entry["progress_total"]
        self._waiting = (done, total, step)
        now = CLOCK.monotonic()
        if step != self._step or done >= total or now - self._noted >= NOTED:
            self._step, self._noted = step, now
            if self._writing is None or self._writing.done():  # otherwise a later one says more
                self._writing = begun(self._try_to_note)

    async def settle(self) -> None:
        """Notes what was told last."""
        if self._writing is not None:
            await ended(self._writing)
        await saved(self._try_to_note)

    def _try_to_note(self) -> None:
        told(self._note)

    def _note(self) -> None:
        if self._waiting is not None:
            last, self._waiting = self._waiting, None
            self._project.progress(self._number, *last)


@flow(name="glossary", key="glossary:{project_id}")
async def glossary(
    project_id: int,
    scope: str = "full",
    triggered_by: str = "api",
    llm_debug: bool = False,
    review_batch_size: int | None = None,
) -> dict[str, int]:
    """Carries out a scope (full, extract, generate, review, refine) over the documents of a project."""
    wanted = PipelineScope(scope)
    registry = Registry(folder_of(current().tenant))
    chosen: dict[str, bool | int] = {"llm_debug": llm_debug}
    if review_batch_size is not None:
        chosen["review_batch_size"] = review_batch_size
    project, row, origin = await saved(_begin, registry, project_id, wanted, triggered_by, chosen)
    notes = Notes(project, row.id)
    context = ExecutionContext(row.id, notes.take, Stopping())
    debug = str(registry.debug_folder(project_id) / f"run-{row.id}") if origin.llm_debug else ""
    executor = PipelineExecutor(origin.address, review_batch_size=origin.review_batch_size, debug_dir=debug)
    try:
        left_out = await executor.execute(project, wanted, context, project.project.doc_root or ".")
    except PipelineCancelledException:  # the run is being stopped: the engine knows whether for good
        raise asyncio.CancelledError from None
    except (ModelUnavailable, RuntimeError) as error:  # the run has failed, unless it is being stopped as well
        if not current().cancelled:
            await saved(_fail, project, row.id, error)
        raise
    finally:
        await notes.settle()
    # Only writes are awaited from here on, so that a run whose work is done is completed, whatever is asked now.
    try:
        await saved(project.complete, row.id, left_out)
    except (StoreError, DamagedProject, sqlite3.Error) as error:
        # All results are saved, so the run has not failed: `Desk.reconcile` writes its row later.
        current().log.warning("Failed to update run status: %s", type(error).__name__)
    return {"run_id": row.id}


def _fail(project: ProjectFile, number: int, error: Exception) -> None:
    """Write into the row that the run has failed, also if nobody looks at it who would reconcile it."""
    with contextlib.suppress(StoreError, DamagedProject, sqlite3.Error):
        if project.provisional.list():  # otherwise what was finished becomes the glossary, which reconciling does
            project.end(number, "failed", sanitised(str(error)), began=True)


def _begin(
    registry: Registry, project_id: int, scope: PipelineScope, triggered_by: str, chosen: dict[str, bool | int]
) -> tuple[ProjectFile, RunRow, Origin]:
    """Lets the row of this run be running."""
    project = ProjectFile(registry, project_id)
    # Where the one who started it has died meanwhile, nobody has written the row: whoever comes first does.
    opened = project.open_run(scope, triggered_by, project.origin(current().run_id, **chosen))
    return project, *project.begin(opened.id)


def flows() -> list[Any]:
    """Gives the flows of this application."""
    return [glossary]
