"""Connections, the projects they give, and what is stored of their branches."""

from dataclasses import dataclass
from typing import Any

from tsuzuki.apps.commits.ledger import Ledger, records
from tsuzuki.apps.commits.queries import SQL
from tsuzuki.apps.commits.records import Connection, FoundProject, Project, Target
from tsuzuki.apps.commits.refusals import NotThere
from tsuzuki.apps.commits.times import now


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """What is stored of a branch."""

    branch_name: str
    commits: int
    last_collect_time: str
    gone_at_utc: str | None = None
    """When its source was found not to have it any more."""


class Projects:
    """The connections and projects of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def connect(self, kind: str, address: str, token_from: str) -> Connection:
        """Registers a connection; one that is there gets its new token."""
        values = {"kind": kind, "address": address, "token_from": token_from, "now": now()}
        with self.ledger.writing() as connection:
            return Connection(*connection.execute(SQL["connection_add"], values).fetchone())

    def connections(self) -> list[Connection]:
        """Lists the connections."""
        return records(Connection, self.ledger.all("connections"))

    def connection(self, number: int | None) -> Connection:
        """Gives a connection."""
        row = None if number is None else self.ledger.one("connection", (number,))
        if row is None:
            raise NotThere(
                f"接続が見つかりません / there is no connection {number}: `tsuzuki commits connect` lists them"
            )
        return Connection(*row)

    def disconnect(self, number: int) -> None:
        """Removes a connection; projects and commits stay, and are its own again if it is registered again."""
        self.connection(number)
        with self.ledger.writing() as connection:
            connection.execute(SQL["connection_remove"], {"connection_id": number, "now": now()})

    def sync(self, connection: Connection, found: list[FoundProject]) -> list[Project]:
        """Keeps what a source tells of its projects."""
        rows: list[dict[str, Any]] = [
            {
                "connection_id": connection.connection_id,
                "source_key": project.source_key,
                "name": project.name,
                "default_branch": project.default_branch,
                "now": now(),
            }
            for project in found
        ]
        with self.ledger.writing() as writing:
            writing.executemany(SQL["project_add"], rows)
        return self.projects(connection.connection_id)

    def projects(self, connection_id: int | None = None) -> list[Project]:
        """Lists projects, of one connection or all."""
        return records(Project, self.ledger.all("projects_of", {"connection_id": connection_id}))

    def project(self, number: int) -> Project:
        """Gives a project."""
        row = self.ledger.one("project", (number,))
        if row is None:
            raise NotThere(
                f"プロジェクトが見つかりません / there is no project {number}: `tsuzuki commits projects` lists them"
            )
        return Project(*row)

    def find(self, text: str) -> Project:
        """Finds a project by its number, or by its name where only one has it."""
        if text.isascii() and text.isdigit():
            return self.project(int(text))
        named = [project for project in self.projects() if project.name == text]
        if len(named) != 1:
            why = "several projects have" if named else "no project has"
            raise NotThere(f"{why} the name {text!r}: `tsuzuki commits projects` lists them with their numbers")
        return named[0]

    def branches(self, project_id: int) -> list[StoredBranch]:
        """Lists what is stored of a project's branches."""
        return records(StoredBranch, self.ledger.all("branches", (project_id,)))

    def stored(self, target: Target) -> int:
        """Counts the stored commits of a branch."""
        row = self.ledger.one("branch_count", (target.project_id, target.branch_name))
        return 0 if row is None else int(row[0])

    def remove_branch(self, target: Target) -> int:
        """Removes the commits of a branch; gives how many there were. What other branches have is still counted."""
        values = {"project_id": target.project_id, "branch_name": target.branch_name}
        with self.ledger.writing() as connection:
            connection.execute(SQL["branch_remove_counted"], values)
            removed = connection.execute(SQL["branch_remove_commits"], values).rowcount
            for query in (
                "branch_remove_unreachable",
                "branch_remove_head",
                "gone_remove",
                "activity_remove",
                "activity_again",
            ):
                connection.execute(SQL[query], values)
        return removed
