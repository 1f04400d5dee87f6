"""The rows of runs: created, read, moved from status to status by single statements that say what became of it.

They are a projection: what happens to a run is decided by the engine's journal.
"""

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tsuzuki import RunUpdateResult
from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import Origin
from tsuzuki.apps.glossary.times import current_utc_iso, to_iso_string

VALID_STATUSES: Final = frozenset({"pending", "running", "completed", "failed", "cancelled"})
TERMINAL_STATUSES: Final = frozenset({"completed", "failed", "cancelled"})
STEPS: Final = ("extract", "provisional", "issues", "refined")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as people see it."""

    id: int
    scope: str
    status: str
    started_at: str | None
    finished_at: str | None
    triggered_by: str
    error_message: str | None
    progress_current: int | None
    progress_total: int | None
    current_step: str | None
    created_at: str

    def __getitem__(self, column: str) -> str | int | None:
        """Gives a column by its name, as a row of SQLite does."""
        if column not in self.keys():
            raise IndexError(f"a run has no column {column!r}")
        value: str | int | None = getattr(self, column)
        return value

    @staticmethod
    def keys() -> list[str]:
        """Lists the columns."""
        return list(RunRow.__slots__)

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.status not in TERMINAL_STATUSES


def validate_status(status: str, allowed: frozenset[str] | set[str] | None = None) -> None:
    """Refuses a word that is no status, or not one of those that are allowed."""
    allowed = VALID_STATUSES if allowed is None else allowed
    if status not in allowed:
        raise ValueError(f"Invalid status: {status}. Must be one of {sorted(allowed)}")


def create_run(conn: sqlite3.Connection, scope: str, triggered_by: str = "api") -> int:
    """Adds a run that is pending; gives its id."""
    number = conn.execute(SQL["run_add"], (scope, triggered_by, current_utc_iso())).lastrowid
    assert number is not None  # noqa: S101 - an insert into a table with an integer key gives one
    return number


def get_run(conn: sqlite3.Connection, run_id: int) -> RunRow | None:
    """Gives a run, or None."""
    return _row(conn.execute(SQL["run"], (run_id,)).fetchone())


def get_active_run(conn: sqlite3.Connection) -> RunRow | None:
    """Gives the run that is pending or running, or None."""
    return _row(conn.execute(SQL["active_run"]).fetchone())


def get_current_or_latest_run(conn: sqlite3.Connection) -> RunRow | None:
    """Gives the active run; where there is none, the newest whatever its status."""
    return _row(conn.execute(SQL["current_run"]).fetchone())


def list_runs(conn: sqlite3.Connection) -> list[RunRow]:
    """Lists all runs, the newest first."""
    return [RunRow(*row) for row in conn.execute(SQL["runs"]).fetchall()]


def update_run_status(  # noqa: PLR0917 - the arguments of the requirement, in its order
    conn: sqlite3.Connection,
    run_id: int,
    status: str,
    started_at: datetime | None = None,
    finished_at: datetime | None = None,
    error_message: str | None = None,
) -> None:
    """Sets a status; a run that goes on loses its error, a time is changed only where it is given."""
    validate_status(status)
    ended = to_iso_string(finished_at, "finished_at")
    values = {
        "id": run_id,
        "status": status,
        "started_at": to_iso_string(started_at, "started_at"),
        "finished_at": ended,
        "completed_at": ended or current_utc_iso() if status == "completed" else None,
        "error_message": error_message,
        "goes_on": status not in TERMINAL_STATUSES,
    }
    conn.execute(SQL["run_status"], values)


def update_run_status_if_active(
    conn: sqlite3.Connection,
    run_id: int,
    status: str,
    error_message: str | None = None,
    finished_at: datetime | None = None,
) -> RunUpdateResult:
    """Ends a run that is pending or running."""
    validate_status(status, TERMINAL_STATUSES)
    values = {"id": run_id, "error_message": error_message, **_end(status, finished_at)}
    return _result(conn, run_id, conn.execute(SQL["run_end_active"], values).rowcount)


def update_run_status_if_running(
    conn: sqlite3.Connection, run_id: int, status: str, finished_at: datetime | None = None
) -> RunUpdateResult:
    """Ends a run that is running; one that is pending has not begun and stays."""
    validate_status(status, TERMINAL_STATUSES)
    values = {"id": run_id, **_end(status, finished_at)}
    return _result(conn, run_id, conn.execute(SQL["run_end_running"], values).rowcount)


def cancel_run(conn: sqlite3.Connection, run_id: int) -> RunUpdateResult:
    """Lets a run that is pending or running be cancelled."""
    return update_run_status_if_active(conn, run_id, "cancelled")


def complete_run_if_not_cancelled(conn: sqlite3.Connection, run_id: int) -> RunUpdateResult:
    """Lets a run that is running be completed."""
    return update_run_status_if_running(conn, run_id, "completed")


def fail_run_if_not_terminal(conn: sqlite3.Connection, run_id: int, error_message: str) -> RunUpdateResult:
    """Lets a run that is pending or running be failed, and says why."""
    return update_run_status_if_active(conn, run_id, "failed", error_message)


def update_run_progress(conn: sqlite3.Connection, run_id: int, current: int, total: int, step: str) -> None:
    """Notes how far a run is."""
    conn.execute(SQL["run_progress"], (current, total, step, run_id))


def begin_run(conn: sqlite3.Connection, run_id: int) -> None:
    """Lets a run be running: for the first time, or once more after a crash; a completed one stays so."""
    conn.execute(SQL["run_begin"], {"id": run_id, "started_at": current_utc_iso()})


# Which run of the engine a row stands for


def open_run(conn: sqlite3.Connection, scope: str, triggered_by: str, origin: Origin) -> int:
    """Gives the row of an engine's run; whoever comes first makes it, the starter or the flow itself."""
    found = conn.execute(SQL["run_of_engine"], (origin.engine_run,)).fetchone()
    if found is not None:
        return int(found[0])
    number = create_run(conn, scope, triggered_by)
    conn.execute(SQL["run_origin_add"], (number, *origin.cells))
    return number


def origin_of(conn: sqlite3.Connection, run_id: int) -> Origin | None:
    """Gives what a run was started with."""
    found = conn.execute(SQL["run_origin"], (run_id,)).fetchone()
    return None if found is None else Origin(*found[1:])


def _end(status: str, finished_at: datetime | None) -> dict[str, str | None]:
    ended = to_iso_string(finished_at, "finished_at") or current_utc_iso()
    return {"status": status, "finished_at": ended, "completed_at": ended if status == "completed" else None}


def _result(conn: sqlite3.Connection, run_id: int, changed: int) -> RunUpdateResult:
    if changed:
        return RunUpdateResult.UPDATED
    return RunUpdateResult.NOT_FOUND if get_run(conn, run_id) is None else RunUpdateResult.ALREADY_TERMINAL


def _row(found: tuple[object, ...] | None) -> RunRow | None:
    return None if found is None else RunRow(*found)  # type: ignore[arg-type] # the columns in their order
