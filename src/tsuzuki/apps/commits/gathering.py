"""What is collected of a target: gathered beside the file, then settled in one transaction."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tsuzuki.apps.commits.ledger import Ledger, transaction
from tsuzuki.apps.commits.queries import SQL
from tsuzuki.apps.commits.records import Commit, Settled, Target
from tsuzuki.apps.commits.times import now
from tsuzuki.errors import Conflict


class Gathering:
    """Commits of one target on their way into the file."""

    def __init__(self, connection: sqlite3.Connection, target: Target, run_id: str, *, bulk: bool) -> None:
        self._connection = connection
        self._target = target
        self._run_id = run_id
        self._bulk = bulk
        self._replaces = False
        connection.execute(SQL["gathered"])
        connection.execute(SQL["lost"])

    def add(self, commits: Sequence[Commit]) -> None:
        """Takes a page of commits; nobody else is kept waiting."""
        with transaction(self._connection, "DEFERRED"):
            self._connection.executemany(SQL["gathered_more"], commits)

    def leave_behind(self, shas: Sequence[str]) -> None:
        """Takes commits that the branch does not reach any more."""
        with transaction(self._connection, "DEFERRED"):
            self._connection.executemany(SQL["lost_more"], [(sha,) for sha in shas])

    def begin_anew(self) -> None:
        """Drops what was gathered: the whole history of the branch follows, and takes the place of what is stored."""
        self._connection.execute(SQL["gathered_none"])
        self._connection.execute(SQL["lost_none"])
        self._replaces = True

    def settle(self, head: str | None) -> Settled:
        """Stores commits, head, result and counters, all or nothing; gives the number of commits that were new.

        Without a head what was asked for was not the whole history of the branch.
        """
        values = {"project_id": self._target.project_id, "branch_name": self._target.branch_name, "head_sha": head}
        with transaction(self._connection):
            known = settled(self._connection, self._run_id, self._target, bulk=self._bulk)
            if known is not None:
                return known
            mended = self._mend_figures(values)
            lost = self._leave_behind(values)
            added = self._connection.execute(SQL["commits_add"], values).rowcount
            for query in ("gathered_uncounted", "authors_add", "counted_add", "activity_add"):
                self._connection.execute(SQL[query], values)
            self._connection.execute(SQL["counted_remove"], values)
            for query in ("activity_remove", "activity_again") if mended or lost else ():
                self._connection.execute(SQL[query], values)
            self._connection.execute(SQL["gone_remove"], values)
            if head is not None:
                self._connection.execute(SQL["head_set"], values)
            outcome = {**values, "run_id": self._run_id, "new_commits_count": added, "now": now()}
            if self._bulk:
                _settle(self._connection, "success", outcome)
            elif self._run_id:
                self._connection.execute(SQL["receipt_add"], outcome)
        return Settled("success", added)

    def _leave_behind(self, values: dict[str, object]) -> bool:
        """Marks what a rewritten branch does not reach any more; True where there was some."""
        if self._replaces:
            self._connection.execute(SQL["lost_others"], values)
        self._connection.execute(SQL["unreachable_remove"], values)
        return self._connection.execute(SQL["unreachable_add"], values).rowcount > 0

    def _mend_figures(self, values: dict[str, object]) -> bool:
        """Gives commits their figures that were stored without; True where there were some."""
        found = self._connection.execute(SQL["gathered_figures"], values).fetchall()
        self._connection.executemany(SQL["figures_set"], found)
        self._connection.executemany(SQL["figures_counted"], [row[2:] for row in found])
        return bool(found)


@contextmanager
def gathering(ledger: Ledger, target: Target, run_id: str, *, bulk: bool) -> Iterator[Gathering]:
    """Opens a gathering for a target of a run."""
    with ledger.reading() as connection:
        yield Gathering(connection, target, run_id, bulk=bulk)


def settled(connection: sqlite3.Connection, run_id: str, target: Target, *, bulk: bool) -> Settled | None:
    """Gives what this run has settled of a target already, if it has."""
    query = "result" if bulk else "receipt"
    row = connection.execute(SQL[query], (run_id, target.project_id, target.branch_name)).fetchone()
    if row is None or row[0] == "pending":
        return None
    return Settled(*row) if bulk else Settled("success", row[0])


def known_outcome(ledger: Ledger, run_id: str, target: Target, *, bulk: bool) -> Settled | None:
    """Looks up what this run has settled of a target already."""
    with ledger.reading() as connection:
        return settled(connection, run_id, target, bulk=bulk)


def mark_gone(ledger: Ledger, target: Target) -> None:
    """Writes down that the source of a branch does not have it any more; what is stored of it stays."""
    values = {"project_id": target.project_id, "branch_name": target.branch_name, "now": now()}
    with ledger.writing() as connection:
        connection.execute(SQL["gone_add"], values)


def record_failure(ledger: Ledger, run_id: str, target: Target, message: str) -> Settled:
    """Writes why a target of a bulk run failed, and counts it; what was settled before stays."""
    with ledger.writing() as connection:
        known = settled(connection, run_id, target, bulk=True)
        if known is not None:
            return known
        values = {"project_id": target.project_id, "branch_name": target.branch_name, "run_id": run_id}
        _settle(connection, "failed", {**values, "error_message": message, "now": now()})
    return Settled("failed", None, message)


def _settle(connection: sqlite3.Connection, status: str, values: dict[str, object]) -> None:
    """Writes a result and counts it; refuses where the run is not running any more, and all is undone."""
    written = connection.execute(SQL[f"result_{status}"], values).rowcount
    counted = connection.execute(SQL[f"count_{status}"], (values["run_id"],)).rowcount
    if not (written and counted):
        raise Conflict(f"bulk run {values['run_id']} is not running, or has no such target: nothing is stored")
