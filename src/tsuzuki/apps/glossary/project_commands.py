"""The commands about projects: list, add, clone, remove."""

from dataclasses import asdict
from typing import Any

import click

from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.terminal import NO_PROJECT, chosen, on_desk, print_table
from tsuzuki.cli.params import agreed_to_remove
from tsuzuki.cli.render import json_option, put
from tsuzuki.cli.store import Store, store_options


@click.group()
def projects() -> None:
    """List, add, clone and remove projects."""


@projects.command(name="list")
@json_option
@store_options
def list_projects(store: Store, *, as_json: bool) -> None:
    """List projects with how much each has."""

    async def work(desk: Desk) -> list[Any]:
        return [(project, desk.registry.counts(project.id)) for project in desk.registry.projects()]

    found = [] if store.missing else on_desk(store, work)
    if as_json:
        return put([{**asdict(project), "counts": asdict(counts)} for project, counts in found])
    rows = [
        (str(p.id), p.name, str(c.documents), str(c.terms), str(c.issues), str(c.refined), p.llm_provider or "-")
        for p, c in found
    ]
    for project, counts in found:
        if counts.damaged:
            click.echo(f"{project.name}: {counts.damaged}", err=True)
    head = ("id", "name", "documents", "terms", "issues", "refined", "provider")
    return print_table(head, rows, NO_PROJECT)


@projects.command()
@click.argument("name")
@click.option("--provider", default="", help="Who answers.")
@click.option("--model", default="", help="Which model answers.")
@click.option("--base-url", default="", help="Where the provider is.")
@store_options
def add(store: Store, name: str, provider: str, model: str, base_url: str) -> None:
    """Make an empty project."""

    async def work(desk: Desk) -> int:
        return desk.add_project(name, provider, model, base_url).id

    click.echo(on_desk(store, work, makes=True))


@projects.command()
@click.argument("project")
@click.argument("new_name")
@store_options
def clone(store: Store, project: str, new_name: str) -> None:
    """Copy a project under another name, all but its runs."""

    async def work(desk: Desk) -> int:
        return desk.registry.clone(chosen(desk, project).project.id, new_name).id

    click.echo(on_desk(store, work))


@projects.command()
@click.argument("project")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_options
def remove(store: Store, project: str, *, yes: bool) -> int:
    """Remove a project with everything in it."""

    async def work(desk: Desk) -> int:
        found = chosen(desk, project).project
        if not yes and not agreed_to_remove(f"{found.name!r} with all its documents and results"):
            return 1
        await desk.remove_project(found.id)
        return 0

    return on_desk(store, work)
