"""The projects of a tenant: `registry.db` knows their names and settings, each has a file of its own."""

import shutil
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tsuzuki import settings
from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import Counts, Project
from tsuzuki.apps.glossary.refusals import BadValue, DamagedProject, NoProject, Taken
from tsuzuki.apps.glossary.times import current_utc_iso
from tsuzuki.apps.ledger import Ledger, records
from tsuzuki.errors import NotAStore

FOLDER: Final = "glossary"
LONGEST_NAME: Final = 200
_REGISTRY: Final = sorted((Path(__file__).parent / "registry_migrations").glob("*.sql"))
_PROJECT: Final = sorted((Path(__file__).parent / "migrations").glob("*.sql"))


def folder_of(tenant: str, data_dir: Path | None = None) -> Path:
    """Gives where the projects of a tenant lie."""
    top = data_dir or settings.data_dir()
    return (top / "tenants" / quote(tenant, safe="") if tenant else top) / FOLDER


class ProjectLedger(Ledger):
    """The file of a project: it is never created again once it is lost, which would hide the loss."""

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for a few statements; raise `DamagedProject` if the file cannot be read."""
        name = self.file.name
        if not self.file.exists():
            raise DamagedProject(f"{name} が見つかりません", f"{name} is missing")
        try:
            with super().reading() as connection:
                yield connection
        except NotAStore as error:
            raise _damaged(name, error) from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # its subclasses tell of statements, not of the file
                raise
            raise _damaged(name, error) from error


def _damaged(name: str, error: Exception) -> DamagedProject:
    why = error.__cause__ or error
    return DamagedProject(f"{name} が壊れています（{why}）", f"{name} is damaged ({why})")


class Registry:
    """The projects in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledger = Ledger(folder / "registry.db", _REGISTRY, SQL)

    def projects(self) -> list[Project]:
        """Lists the projects by name."""
        return records(Project, self._ledger.all("projects"))

    def project(self, number: int) -> Project:
        """Gives a project."""
        return self._found("project", number)

    def named(self, name: str) -> Project:
        """Gives a project by its name."""
        return self._found("project_named", name.strip())

    def at(self, doc_root: str) -> Project | None:
        """Gives the project of a folder of documents."""
        row = self._ledger.one("project_at", (doc_root,))
        return None if row is None else Project(*row)

    def file(self, number: int) -> Ledger:
        """Gives the file of a project that is there."""
        return self._file(self.project(number).id)

    def debug_folder(self, number: int) -> Path:
        """Gives where the questions and answers of a project are kept, for whoever wants to look at them."""
        return self.folder / "llm_debug" / f"project-{number}"

    def counts(self, number: int) -> Counts:
        """Count what a project has, or tell that its file is damaged."""
        try:
            row = self._file(number).one("counts")
        except DamagedProject as error:
            return Counts(damaged=str(error))
        return Counts() if row is None else Counts(*row)

    def add(self, name: str, **chosen: str) -> Project:
        """Makes a project."""
        values: dict[str, Any] = dict.fromkeys(("doc_root", "llm_provider", "llm_model", "llm_base_url"), "")
        number = self._added({**values, **chosen, "name": checked(name), "now": current_utc_iso()})
        with Ledger(self._file(number).file, _PROJECT, SQL).writing():
            pass  # the file is there from now on; if this process ends before, the project counts as damaged
        return self.project(number)

    def change(self, number: int, **changed: Any) -> Project:
        """Changes the name or the settings of a project."""
        project = replace(self.project(number), **changed)
        values = {
            name: getattr(project, name) for name in ("id", "doc_root", "llm_provider", "llm_model", "llm_base_url")
        }
        try:
            with self._ledger.writing() as connection:
                told = {**values, "name": checked(project.name), "now": current_utc_iso()}
                connection.execute(SQL["project_change"], told)
        except sqlite3.IntegrityError:
            raise _taken(project.name) from None
        return self.project(number)

    def clone(self, number: int, name: str) -> Project:
        """Makes a copy of a project under another name: all but its runs."""
        source = self.project(number)
        chosen = {at: getattr(source, at) for at in ("llm_provider", "llm_model", "llm_base_url")}
        with self._file(source.id).reading() as one:  # first of all: of a damaged project no copy is made
            one.execute(SQL["counts"]).fetchone()
            copy = self.add(name, **chosen)
            with closing(sqlite3.connect(self._file(copy.id).file)) as other:
                one.backup(other)
        with self._file(copy.id).writing() as connection:
            connection.execute(SQL["runs_forget"])
        return copy

    def remove(self, number: int) -> None:
        """Removes a project with everything in it."""
        file = self._file(self.project(number).id).file
        with self._ledger.writing() as connection:
            connection.execute(SQL["project_remove"], (number,))
        # If this process ends here a file is left that nobody will ever open: numbers are not given twice.
        for ending in ("", "-wal", "-shm"):
            file.with_name(file.name + ending).unlink(missing_ok=True)
        shutil.rmtree(self.debug_folder(number), ignore_errors=True)

    def _added(self, values: dict[str, Any]) -> int:
        try:
            with self._ledger.writing() as connection:
                return int(connection.execute(SQL["project_add"], values).lastrowid or 0)
        except sqlite3.IntegrityError:
            raise _taken(values["name"]) from None

    def _file(self, number: int) -> ProjectLedger:
        return ProjectLedger(self.folder / f"project-{number}.db", _PROJECT, SQL)

    def _found(self, query: str, value: int | str) -> Project:
        row = self._ledger.one(query, (value,))
        if row is None:
            raise NoProject(f"プロジェクトが見つかりません / there is no project {value!r}")
        return Project(*row)


def checked(name: str) -> str:
    """Gives a name for a project as it is stored."""
    clean = " ".join(unicodedata.normalize("NFC", name).split())
    if not clean or len(clean) > LONGEST_NAME or not clean.isprintable():
        raise BadValue(
            f"プロジェクト名が不正です / a project needs a name of 1 to {LONGEST_NAME} characters that can be seen"
        )
    return clean


def _taken(name: str) -> Taken:
    return Taken(f"同じ名前のプロジェクトがあります / there is a project of that name already: {name!r}")
