"""What the commands share: the desk of whoever sits at this machine, which project is meant, and how tables look."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import click

from tsuzuki import Runs
from tsuzuki.apps import terminal
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.terminal import submitting
from tsuzuki.cli.store import Store
from tsuzuki.errors import BadUsage

Result = TypeVar("Result")
_NUMBERS: Final = frozenset({"id", "documents", "terms", "issues", "refined", "confidence"})
NO_PROJECT: Final = "there is no project yet: tsuzuki glossary generate -i DIR -o glossary.md"

project_argument = click.argument("project", required=False, default="")


def desk_of(runs: Runs, worker: str = "") -> Desk:
    """Gives the desk of whoever sits at this machine; what it starts is carried out by this worker in this process."""
    return Desk(runs, submitting(runs, worker), here=True)


def on_desk(store: Store, work: Callable[[Desk], Awaitable[Result]], *, makes: bool = False) -> Result:
    """Lets a function work at the desk; who only looks makes no store."""
    if store.missing and not makes:
        raise BadUsage(NO_PROJECT)

    async def working() -> Result:
        async with store.open() as runs:
            return await work(desk_of(runs))

    return asyncio.run(working())


def chosen(desk: Desk, reference: str) -> ProjectFile:
    """Gives the project that is meant: by number, by name, or the only one there is."""
    if reference.isascii() and reference.isdigit():
        return desk.project(int(reference))
    if reference:
        return desk.project(desk.registry.named(reference).id)
    projects = desk.registry.projects()
    if len(projects) == 1:
        return desk.project(projects[0].id)
    if not projects:
        raise BadUsage(NO_PROJECT)
    names = ", ".join(repr(project.name) for project in projects[:5])
    raise BadUsage(f"name a project, there are {len(projects)}: {names}")


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], nothing: str) -> None:
    """Prints a table, or says that there is nothing to print."""
    terminal.print_table(head, rows, nothing, _NUMBERS)
