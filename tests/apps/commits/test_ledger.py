"""`commits.db`: the tables as they were asked for, and what the database itself refuses."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tsuzuki.apps.commits.bulkruns import BulkRuns
from tsuzuki.apps.commits.gathering import gathering, record_failure
from tsuzuki.apps.commits.ledger import Ledger
from tsuzuki.apps.commits.projects import Projects
from tsuzuki.apps.commits.queries import SQL
from tsuzuki.apps.commits.records import Commit, FoundProject, Target
from tsuzuki.apps.commits.statistics import Asked, Row, statistics
from tsuzuki.errors import Conflict, NewerStore, NotAStore

RUN = "550e8400-e29b-41d4-a716-446655440000"
COLUMNS = {
    "bulk_collection_runs": [
        ("run_id", "TEXT", 0, None, 1),
        ("started_at_utc", "TEXT", 1, None, 0),
        ("completed_at_utc", "TEXT", 0, None, 0),
        ("status", "TEXT", 1, None, 0),
        ("total_targets", "INTEGER", 1, None, 0),
        ("completed_count", "INTEGER", 1, "0", 0),
        ("failed_count", "INTEGER", 1, "0", 0),
        ("success_count", "INTEGER", 1, "0", 0),
    ],
    "bulk_collection_results": [
        ("run_id", "TEXT", 1, None, 1),
        ("project_id", "INTEGER", 1, None, 2),
        ("branch_name", "TEXT", 1, None, 3),
        ("status", "TEXT", 1, None, 0),
        ("new_commits_count", "INTEGER", 0, None, 0),
        ("error_message", "TEXT", 0, None, 0),
        ("processed_at_utc", "TEXT", 0, None, 0),
    ],
    "commits": [
        ("project_id", "INTEGER", 1, None, 0),
        ("branch_name", "TEXT", 1, None, 0),
        ("sha", "TEXT", 1, None, 0),
        ("author_name", "TEXT", 1, None, 0),
        ("author_email", "TEXT", 1, None, 0),
        ("committed_date_utc", "TEXT", 1, None, 0),
        ("additions", "INTEGER", 1, None, 0),
        ("deletions", "INTEGER", 1, None, 0),
    ],
}
INDEXES = {
    "idx_bulk_results_run_status": ["run_id", "status"],
    "idx_bulk_results_target_status": ["project_id", "branch_name", "status"],
    "idx_bulk_runs_status_started": ["status", "started_at_utc"],
    "idx_commits_checkpoint": ["project_id", "branch_name", "committed_date_utc"],
}


def commit(sha: str, day: int = 1) -> Commit:
    return Commit(sha, "Ada", "ada@example.com", f"2026-01-{day:02d}T00:00:00+00:00", 3, 1, 0, 1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with one project and two branches of one commit each."""
    ledger = Ledger(tmp_path / "commits.db")
    projects = Projects(ledger)
    projects.sync(projects.connect("gitlab", "http://gitlab", "none"), [FoundProject("7", "team/app", "main")])
    for name in ("main", "other"):
        with gathering(ledger, Target(1, name), "", bulk=False) as gathered:
            gathered.add([commit("a")])
            gathered.settle("a")
    return ledger


@pytest.fixture
def raw(ledger: Ledger) -> Iterator[sqlite3.Connection]:
    """The file as anybody may open it."""
    with closing(sqlite3.connect(ledger.file, isolation_level=None)) as connection:
        yield connection


def test_the_tables_have_exactly_the_columns_that_were_asked_for(raw: sqlite3.Connection) -> None:
    for table, columns in COLUMNS.items():
        assert [row[1:] for row in raw.execute(f"PRAGMA table_info({table})")] == columns
    unique = [row[1] for row in raw.execute("PRAGMA index_list(commits)") if row[2]]
    assert [row[2] for row in raw.execute(f"PRAGMA index_info({unique[0]})")] == ["project_id", "branch_name", "sha"]


def test_the_indexes_are_there_and_the_checkpoint_uses_its_own(raw: sqlite3.Connection) -> None:
    for name, columns in INDEXES.items():
        assert [row[2] for row in raw.execute(f"PRAGMA index_info({name})")] == columns
    plan = raw.execute(f"EXPLAIN QUERY PLAN {SQL['checkpoint']}", (1, "main")).fetchall()
    assert "idx_commits_checkpoint" in str(plan)


def test_deleting_a_run_deletes_its_results_and_results_know_nothing_of_commits(
    ledger: Ledger, raw: sqlite3.Connection
) -> None:
    keys = [(row[2], row[6]) for row in raw.execute("PRAGMA foreign_key_list(bulk_collection_results)")]
    assert keys == [("bulk_collection_runs", "CASCADE")]
    assert [row[2] for row in raw.execute("PRAGMA foreign_key_list(commits)")] == ["projects"]
    BulkRuns(ledger).open(RUN)
    with ledger.writing() as connection:
        connection.execute("DELETE FROM bulk_collection_runs")
    assert raw.execute("SELECT count(*) FROM bulk_collection_results").fetchone() == (0,)
    with pytest.raises(sqlite3.IntegrityError), ledger.writing() as connection:
        connection.execute("INSERT INTO commits VALUES (99, 'b', 's', 'n', 'e', 'd', 0, 0)")


REFUSED = [
    "UPDATE bulk_collection_runs SET status = 'failed'",
    "UPDATE bulk_collection_runs SET status = 'completed'",  # without a time
    "UPDATE bulk_collection_runs SET completed_at_utc = 'now'",  # while it is running
    "UPDATE bulk_collection_runs SET completed_count = 2, failed_count = 1",
    "UPDATE bulk_collection_runs SET success_count = 3",
    "UPDATE bulk_collection_results SET status = 'done'",
    "UPDATE bulk_collection_results SET status = 'success'",  # without a number
    "UPDATE bulk_collection_results SET status = 'failed'",  # without a reason
    "UPDATE bulk_collection_results SET status = 'failed', error_message = ''",
    "INSERT INTO bulk_collection_runs (run_id, started_at_utc, status, total_targets) VALUES ('b', 'x', 'running', 0)",
    "INSERT INTO bulk_collection_results SELECT run_id, 9, 'x', 'pending', 1, NULL, NULL FROM bulk_collection_runs",
    "INSERT INTO bulk_collection_results SELECT * FROM bulk_collection_results",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_the_database_refuses_what_must_not_be(ledger: Ledger, raw: sqlite3.Connection, statement: str) -> None:
    BulkRuns(ledger).open(RUN)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)


def test_only_the_moves_of_the_requirement_are_possible(ledger: Ledger, raw: sqlite3.Connection) -> None:
    runs = BulkRuns(ledger)
    runs.open(RUN)
    record_failure(ledger, RUN, Target(1, "main"), "why")
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(
            "UPDATE bulk_collection_results SET status = 'success', new_commits_count = 1 WHERE branch_name = 'main'"
        )
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("UPDATE bulk_collection_results SET status = 'pending' WHERE branch_name = 'main'")
    runs.close(RUN, "cancelled", "")
    runs.open(RUN)
    runs.complete(RUN)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("UPDATE bulk_collection_runs SET status = 'running', completed_at_utc = NULL")
    summary = runs.summary(RUN)
    assert (summary.run_status, summary.failed_count, summary.pending_count) == ("completed", 2, 0)


def test_nothing_is_settled_in_a_run_that_is_not_running(ledger: Ledger) -> None:
    runs = BulkRuns(ledger)
    runs.open(RUN)
    runs.close(RUN, "cancelled", "")
    with gathering(ledger, Target(1, "main"), RUN, bulk=True) as gathered:
        gathered.add([commit("b", 2)])
        with pytest.raises(Conflict):
            gathered.settle("b")
    assert ledger.one("head", (1, "main")) == ("a",)
    assert ledger.one("branch_count", (1, "main")) == (1,)


def test_what_was_settled_once_is_given_again_unchanged(ledger: Ledger) -> None:
    BulkRuns(ledger).open(RUN)
    for expected in (1, 1):
        with gathering(ledger, Target(1, "main"), RUN, bulk=True) as gathered:
            gathered.add([commit("a"), commit("b", 2), commit("b", 2)])
            assert gathered.settle("b").new_commits_count == expected
    assert record_failure(ledger, RUN, Target(1, "main"), "late").status == "success"
    summary = BulkRuns(ledger).summary(RUN)
    assert (summary.success_count, summary.failed_count, summary.pending_count) == (1, 0, 1)


def test_times_are_written_in_one_way(ledger: Ledger, raw: sqlite3.Connection) -> None:
    BulkRuns(ledger).open(RUN)
    record_failure(ledger, RUN, Target(1, "main"), "why")
    BulkRuns(ledger).complete(RUN)
    times = raw.execute(
        "SELECT started_at_utc, completed_at_utc, processed_at_utc "
        "FROM bulk_collection_runs JOIN bulk_collection_results USING (run_id)"
    ).fetchone()
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", text) for text in times)
    assert times[0] <= times[2] <= times[1]


def test_commits_of_an_earlier_version_survive_and_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "commits.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            "CREATE TABLE commits (project_id INTEGER, branch_name TEXT NOT NULL, sha TEXT NOT NULL, "
            "author_name TEXT NOT NULL, author_email TEXT NOT NULL, committed_date_utc TEXT NOT NULL, "
            "additions INTEGER NOT NULL, deletions INTEGER NOT NULL, UNIQUE (project_id, branch_name, sha));"
            "INSERT INTO commits VALUES (1, 'main', 'a', 'Ada', 'ada@x', '2026-01-01T00:00:00+00:00', 2, 1),"
            "(1, 'twin', 'a', 'Ada', 'ada@x', '2026-01-01T00:00:00+00:00', 2, 1);"
        )
    for _ in range(2):
        ledger = Ledger(file)
        assert BulkRuns(ledger).targets() == [Target(1, "main"), Target(1, "twin")]
        (row,) = statistics(ledger, Asked()).rows
        assert row == Row("2026-01", "Ada", 1, 2, 1, 0)


def test_a_newer_or_foreign_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "commits.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerStore):
        Projects(Ledger(file)).connections()
    file.write_bytes(b"something else entirely, and long enough to be looked at" * 20)
    with pytest.raises(NotAStore):
        Projects(Ledger(file)).connections()


def test_the_file_waits_for_others_who_write(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert connection.execute("PRAGMA busy_timeout").fetchone()[0] >= 5000
