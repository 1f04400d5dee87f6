"""The rows of bulk runs: opened, closed, summed up. What happens to a run is decided by the engine's journal."""

from tsuzuki.apps.commits.ledger import Ledger, records
from tsuzuki.apps.commits.queries import SQL
from tsuzuki.apps.commits.records import Summary, Target, TargetResult
from tsuzuki.apps.commits.refusals import NoTargets, NothingFailed, NotThere, told
from tsuzuki.apps.commits.times import before, now


class BulkRuns:
    """The bulk runs of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def targets(self, retry_of: str = "") -> list[Target]:
        """Gives the targets of a new run: every pair with a history, or those that failed in another run."""
        if not retry_of:
            return records(Target, self.ledger.all("targets"))
        self.summary(retry_of)
        return records(Target, self.ledger.all("failed_targets", (retry_of,)))

    def open(self, run_id: str, retry_of: str = "") -> list[Target]:
        """Lets a run be running, and gives its targets in their order.

        Whoever comes first writes the row and its pending targets, all or nothing: the starter, or the flow itself
        where the starter died. A cancelled run that goes on is reopened; one that was completed stays so.
        """
        with self.ledger.writing() as connection:
            row = connection.execute(SQL["run_status"], (run_id,)).fetchone()
            if row is not None:
                connection.execute(SQL["run_reopen"], (run_id,))
                return records(Target, connection.execute(SQL["run_targets"], (run_id,)).fetchall())
            values = (retry_of,) if retry_of else ()
            rows = connection.execute(SQL["failed_targets" if retry_of else "targets"], values).fetchall()
            if not rows:
                raise NothingFailed if retry_of else NoTargets
            connection.execute(SQL["run_add"], {"run_id": run_id, "now": now(), "total_targets": len(rows)})
            connection.executemany(SQL["pending_add"], [(run_id, *row) for row in rows])
            return records(Target, rows)

    def complete(self, run_id: str) -> Summary:
        """Closes a run whose targets have all been tried; what is pending still could not even be written down."""
        with self.ledger.writing() as connection:
            values = {"run_id": run_id, "now": now(), "error_message": told("storage"), "status": "completed"}
            if connection.execute(SQL["run_status"], (run_id,)).fetchone()[0] == "running":
                number = connection.execute(SQL["leftovers_failed"], values).rowcount
                connection.execute(SQL["leftovers_count"], {**values, "number": number})
            connection.execute(SQL["run_close"], values)
        return self.summary(run_id)

    def close(self, run_id: str, status: str, at: str) -> None:
        """Lets the row of a run that is over say so."""
        with self.ledger.writing() as connection:
            connection.execute(SQL["run_close"], {"run_id": run_id, "status": status, "now": at})

    def running(self) -> str | None:
        """Gives the run that is running, by its row."""
        row = self.ledger.one("running")
        return None if row is None else str(row[0])

    def latest(self) -> Summary | None:
        """Gives the run that was started last."""
        row = self.ledger.one("latest")
        return None if row is None else self.summary(str(row[0]))

    def summary(self, run_id: str) -> Summary:
        """Sums a run up."""
        row = self.ledger.one("summary", (run_id,))
        if row is None:
            raise NotThere(
                f"一括収集が見つかりません / there is no bulk run {run_id!r}: `tsuzuki commits history` lists them"
            )
        return Summary(*row)

    def current(self, run_id: str) -> Target | None:
        """Gives the target that a running run is at."""
        row = self.ledger.one("next_pending", (run_id,))
        return None if row is None else Target(*row)

    def history(self, limit: int = 50) -> list[Summary]:
        """Lists runs, the newest first."""
        return records(Summary, self.ledger.all("history", (limit,)))

    def results(self, run_id: str, status: str | None = None) -> list[TargetResult]:
        """Lists how the targets of a run went."""
        self.summary(run_id)
        rows = self.ledger.all("results", {"run_id": run_id, "status": status})
        return [TargetResult(row[0], str(row[1]), *row[2:]) for row in rows]

    def forget(self, days: float) -> int:
        """Removes what ended more than so many days ago; gives the number of bulk runs removed."""
        line = before(now(), days=days)
        with self.ledger.writing() as connection:
            connection.execute(SQL["forget_receipts"], (line,))
            return connection.execute(SQL["forget_runs"], (line,)).rowcount
