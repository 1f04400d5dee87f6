"""Rows of runs: created, read, moved, with what became of each move."""

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tsuzuki import RunUpdateResult
from tsuzuki.apps.glossary import runs_repository as rows
from tsuzuki.apps.glossary.records import Origin
from tsuzuki.apps.glossary.registry import Registry
from tsuzuki.apps.glossary.times import current_utc_iso, to_iso_string
from tsuzuki.apps.ledger import Ledger

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
NAIVE = datetime(2026, 2, 1, 0, 15, 30)  # noqa: DTZ001 - it is to be refused
AWARE = datetime(2026, 2, 1, 9, 15, 30, 999, timezone(timedelta(hours=9)))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    registry = Registry(tmp_path)
    return registry.file(registry.add("one").id)


@pytest.fixture
def conn(ledger: Ledger) -> Iterator[sqlite3.Connection]:
    with ledger.reading() as connection:
        yield connection


def running(conn: sqlite3.Connection) -> int:
    number = rows.create_run(conn, "full")
    rows.update_run_status(conn, number, "running", started_at=datetime.now(UTC))
    return number


def row(conn: sqlite3.Connection, number: int) -> rows.RunRow:
    found = rows.get_run(conn, number)
    assert found is not None
    return found


def test_the_table_has_exactly_the_columns_of_the_requirement(conn: sqlite3.Connection) -> None:
    columns = {each[1]: (each[2], each[3], each[4]) for each in conn.execute("PRAGMA table_info(runs)")}
    assert list(columns) == [
        "id", "scope", "status", "started_at", "finished_at", "triggered_by", "error_message", "progress_current",
        "progress_total", "current_step", "created_at",
    ]  # fmt: skip
    assert columns["triggered_by"] == ("TEXT", 1, "'api'")
    assert columns["created_at"] == ("TEXT", 1, None)
    for values in (("full", "pending", None), ("all", "pending", "x"), ("full", "Running", "x")):
        with pytest.raises(sqlite3.IntegrityError):
            conn.execute("INSERT INTO runs (scope, status, created_at) VALUES (?, ?, ?)", values)
    last = max(rows.create_run(conn, "full", by) for by in ("api", "manual", "auto"))
    conn.execute("DELETE FROM runs WHERE id = ?", (last,))
    assert rows.create_run(conn, "extract") == last + 1


def test_statuses_are_checked_by_name() -> None:
    assert {"pending", "running", "completed", "failed", "cancelled"} == rows.VALID_STATUSES
    assert {"completed", "failed", "cancelled"} == rows.TERMINAL_STATUSES
    for wrong in ("complete", "Running", "canceled"):
        with pytest.raises(ValueError, match=f"Invalid status: {wrong}. Must be one of"):
            rows.validate_status(wrong)
    with pytest.raises(ValueError, match="running"):
        rows.validate_status("running", {"failed"})
    assert [each.value for each in RunUpdateResult] == ["updated", "not_found", "terminal"]


def test_a_new_run_is_pending_and_has_nothing_else(conn: sqlite3.Connection) -> None:
    made = row(conn, rows.create_run(conn, "extract", "auto"))
    assert (made.scope, made.status, made.triggered_by) == ("extract", "pending", "auto")
    assert (made.started_at, made.finished_at, made.error_message, made.progress_total) == (None, None, None, None)
    assert TIME.fullmatch(made.created_at)
    assert rows.get_run(conn, 99) is None


def test_the_active_run_comes_first_then_the_newest(conn: sqlite3.Connection) -> None:
    assert rows.get_current_or_latest_run(conn) is None
    assert rows.get_active_run(conn) is None
    assert rows.list_runs(conn) == []
    old, new = rows.create_run(conn, "full"), rows.create_run(conn, "full")
    active = rows.get_active_run(conn)
    assert active is not None
    assert active.id == new
    rows.cancel_run(conn, new)
    current = rows.get_current_or_latest_run(conn)
    assert current is not None
    assert current.id == old
    rows.cancel_run(conn, old)
    current = rows.get_current_or_latest_run(conn)
    assert current is not None
    assert current.id == new
    assert [each.id for each in rows.list_runs(conn)] == [new, old]


def test_an_error_goes_when_a_run_goes_on_and_stays_when_it_ends(conn: sqlite3.Connection) -> None:
    number = running(conn)
    rows.update_run_status(conn, number, "failed", error_message="broken")
    rows.update_run_status(conn, number, "failed")
    assert row(conn, number).error_message == "broken"
    rows.update_run_status(conn, number, "running", error_message="ignored")
    assert row(conn, number).error_message is None
    started = row(conn, number).started_at
    rows.update_run_status(conn, number, "completed", finished_at=AWARE)
    assert (row(conn, number).error_message, row(conn, number).started_at) == (None, started)
    assert row(conn, number).finished_at == "2026-02-01T00:15:30+00:00"


@pytest.mark.parametrize("status", ["pending", "running"])
def test_only_ends_are_given_on_condition(conn: sqlite3.Connection, status: str) -> None:
    number = running(conn)
    with pytest.raises(ValueError, match="Invalid status"):
        rows.update_run_status_if_active(conn, number, status)
    with pytest.raises(ValueError, match="Invalid status"):
        rows.update_run_status_if_running(conn, number, status)


def test_conditional_updates_say_what_became_of_them(conn: sqlite3.Connection) -> None:
    waiting, busy = rows.create_run(conn, "full"), running(conn)
    assert rows.complete_run_if_not_cancelled(conn, waiting) is RunUpdateResult.ALREADY_TERMINAL
    assert row(conn, waiting).status == "pending"
    assert rows.complete_run_if_not_cancelled(conn, busy) is RunUpdateResult.UPDATED
    assert rows.fail_run_if_not_terminal(conn, waiting, "no") is RunUpdateResult.UPDATED
    before = row(conn, waiting)
    assert rows.cancel_run(conn, waiting) is RunUpdateResult.ALREADY_TERMINAL
    assert rows.fail_run_if_not_terminal(conn, waiting, "again") is RunUpdateResult.ALREADY_TERMINAL
    assert row(conn, waiting) == before
    for update in (rows.cancel_run, rows.complete_run_if_not_cancelled):
        assert update(conn, 99) is RunUpdateResult.NOT_FOUND
    assert rows.fail_run_if_not_terminal(conn, 99, "x") is RunUpdateResult.NOT_FOUND
    never = rows.create_run(conn, "full")
    assert rows.update_run_status_if_active(conn, never, "completed") is RunUpdateResult.ALREADY_TERMINAL
    assert (row(conn, never).status, row(conn, never).finished_at) == ("pending", None)
    with pytest.raises(sqlite3.IntegrityError):  # nothing is completed that never began
        rows.update_run_status(conn, never, "completed")


@pytest.mark.parametrize(
    "complete",
    [
        rows.complete_run_if_not_cancelled,
        lambda conn, number: rows.update_run_status_if_active(conn, number, "completed"),
        lambda conn, number: rows.update_run_status(conn, number, "completed"),
    ],
)
def test_what_ran_since_nobody_said_when_can_be_completed(
    conn: sqlite3.Connection, complete: Callable[[sqlite3.Connection, int], object]
) -> None:
    number = rows.create_run(conn, "full")
    rows.update_run_status(conn, number, "running")
    assert row(conn, number).started_at is None
    assert complete(conn, number) in {RunUpdateResult.UPDATED, None}
    assert row(conn, number).status == "completed"
    assert row(conn, number).started_at is not None


def test_a_row_gives_its_columns_by_name(conn: sqlite3.Connection) -> None:
    found = row(conn, rows.create_run(conn, "review", "auto"))
    assert (found["id"], found["scope"], found["triggered_by"]) == (found.id, "review", "auto")
    columns = [each[1] for each in conn.execute("PRAGMA table_info(runs)")]
    assert dict(found) == {name: getattr(found, name) for name in columns}
    with pytest.raises(IndexError):
        found["nothing"]


def test_naive_times_are_refused_by_name(conn: sqlite3.Connection) -> None:
    number = running(conn)
    for name in ("started_at", "finished_at"):
        with pytest.raises(ValueError, match=f"{name} must be timezone-aware"):
            rows.update_run_status(conn, number, "failed", **{name: NAIVE})  # type: ignore[arg-type]
    for update in (rows.update_run_status_if_active, rows.update_run_status_if_running):
        with pytest.raises(ValueError, match="finished_at"):
            update(conn, number, "failed", finished_at=NAIVE)
    assert to_iso_string(None, "x") is None
    assert to_iso_string(AWARE, "x") == "2026-02-01T00:15:30+00:00"
    assert TIME.fullmatch(current_utc_iso())


def test_of_many_who_end_a_run_one_is_told_that_it_did(ledger: Ledger) -> None:
    with ledger.writing() as connection:
        number = running(connection)
    told: list[RunUpdateResult] = []

    def end(update: int) -> None:
        with ledger.writing() as connection:
            told.append(
                rows.cancel_run(connection, number)
                if update % 2
                else rows.complete_run_if_not_cancelled(connection, number)
            )

    threads = [threading.Thread(target=end, args=(at,)) for at in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told).count(RunUpdateResult.UPDATED) == 1


def test_progress_belongs_to_its_run_and_a_row_is_made_once_for_an_engines_run(conn: sqlite3.Connection) -> None:
    other, number = rows.create_run(conn, "full"), rows.open_run(conn, "full", "api", Origin("engine"))
    assert rows.open_run(conn, "full", "api", Origin("engine")) == number
    rows.update_run_progress(conn, number, 3, 7, "issues")
    found = row(conn, number)
    assert (found.progress_current, found.progress_total, found.current_step) == (3, 7, "issues")
    assert row(conn, other).current_step is None
    with pytest.raises(sqlite3.IntegrityError):
        rows.update_run_progress(conn, number, 1, 1, "cooking")


def test_an_older_file_is_migrated_in_place(tmp_path: Path) -> None:
    file = tmp_path / "project-1.db"
    first, *_ = sorted((Path(rows.__file__).parent / "migrations").glob("*.sql"))
    with sqlite3.connect(file) as old:
        old.executescript(first.read_text())
        old.execute("INSERT INTO excluded_terms (term_text, created_at) VALUES ('old', 'x')")
        old.execute("PRAGMA user_version = 1")
    old.close()
    registry = Registry(tmp_path)
    assert registry.add("one").id == 1
    for _ in range(2):
        assert registry.file(1).one("runs") is None
        assert registry.file(1).all("excluded")[0][1] == "old"
