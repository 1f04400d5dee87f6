"""One project as the pipeline and the desk use it: everything that its file has, and the rows of its runs."""

from dataclasses import replace
from typing import TypeVar

from tsuzuki import RunUpdateResult
from tsuzuki.apps.glossary import runs_repository as rows
from tsuzuki.apps.glossary.documents import Documents
from tsuzuki.apps.glossary.glossaries import Entries, Issues
from tsuzuki.apps.glossary.records import Origin, Project
from tsuzuki.apps.glossary.refusals import NotThere, sanitised
from tsuzuki.apps.glossary.registry import Registry
from tsuzuki.apps.glossary.runs_repository import RunRow
from tsuzuki.apps.glossary.synonyms import Synonyms
from tsuzuki.apps.glossary.terms import Terms

Found = TypeVar("Found")


class ProjectFile:
    """The file of a project; each use opens a connection of its own."""

    def __init__(self, registry: Registry, number: int) -> None:
        self.project: Project = registry.project(number)
        self.ledger = registry.file(number)
        self.documents = Documents(self.ledger)
        self.terms = Terms(self.ledger)
        self.synonyms = Synonyms(self.ledger)
        self.provisional = Entries(self.ledger, "provisional")
        self.issues = Issues(self.ledger)
        self.refined = Entries(self.ledger, "refined")

    # Runs

    def origin(self, engine_run: str, **chosen: bool | int) -> Origin:
        """Gives what a run that is started now is started with."""
        made = Origin(
            engine_run,
            self.project.llm_provider,
            self.project.llm_model,
            self.project.llm_base_url,
            documents=self.documents.digest(),
        )
        return replace(made, **chosen)  # type: ignore[arg-type] # llm_debug and review_batch_size

    def open_run(self, scope: str, triggered_by: str, origin: Origin) -> RunRow:
        """Gives the row of an engine's run, made where it is not there yet."""
        with self.ledger.writing() as connection:
            return _there(rows.get_run(connection, rows.open_run(connection, scope, triggered_by, origin)))

    def begin(self, number: int) -> tuple[RunRow, Origin]:
        """Lets a run be running."""
        with self.ledger.writing() as connection:
            rows.begin_run(connection, number)
            return _there(rows.get_run(connection, number)), _there(rows.origin_of(connection, number))

    def progress(self, number: int, current: int, total: int, step: str) -> None:
        """Notes how far a run is."""
        with self.ledger.writing() as connection:
            rows.update_run_progress(connection, number, current, total, step)

    def complete(self, number: int, left_out: str = "") -> RunUpdateResult:
        """Mark a run as completed, unless it has ended otherwise, with what it could not do."""
        with self.ledger.writing() as connection:
            if left_out:
                return rows.update_run_status_if_active(connection, number, "completed", sanitised(left_out))
            return rows.complete_run_if_not_cancelled(connection, number)

    def end(self, number: int, status: str, error: str | None, *, began: bool) -> RunUpdateResult:
        """Lets a run that is active say how it has ended."""
        with self.ledger.writing() as connection:
            if status == "completed" and began:
                rows.begin_run(connection, number)
            return rows.update_run_status_if_active(connection, number, status, error)

    def run(self, number: int) -> RunRow:
        """Gives a run."""
        with self.ledger.reading() as connection:
            return _there(rows.get_run(connection, number))

    def run_origin(self, number: int) -> Origin | None:
        """Gives what a run was started with."""
        with self.ledger.reading() as connection:
            return rows.origin_of(connection, number)

    def runs(self) -> list[RunRow]:
        """Lists runs, the newest first."""
        with self.ledger.reading() as connection:
            return rows.list_runs(connection)

    def active(self) -> RunRow | None:
        """Gives the run that is active."""
        with self.ledger.reading() as connection:
            return rows.get_active_run(connection)

    def current(self) -> RunRow | None:
        """Gives the run that is active, else the newest."""
        with self.ledger.reading() as connection:
            return rows.get_current_or_latest_run(connection)


def _there(found: Found | None) -> Found:
    if found is None:
        raise NotThere("実行が見つかりません / there is no such run")
    return found
