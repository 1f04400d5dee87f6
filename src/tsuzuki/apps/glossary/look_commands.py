"""The commands that look: terms, issues, refined, export."""

from dataclasses import asdict
from pathlib import Path

import click

from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.exports import FORMATS, export
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.records import IssueType
from tsuzuki.apps.glossary.terminal import chosen, on_desk, print_table, project_argument
from tsuzuki.cli.render import json_option, put
from tsuzuki.cli.store import Store, store_options


def _project(store: Store, reference: str) -> ProjectFile:
    async def work(desk: Desk) -> ProjectFile:
        return chosen(desk, reference)

    return on_desk(store, work)


@click.command()
@project_argument
@click.option("--exclude", multiple=True, metavar="TERM", help="Leave a term out from now on.")
@click.option("--require", multiple=True, metavar="TERM", help="Let a term be always there.")
@json_option
@store_options
def terms(store: Store, project: str, *, exclude: tuple[str, ...], require: tuple[str, ...], as_json: bool) -> None:
    """List the terms of a project; what is excluded or required counts from the next run on."""
    found = _project(store, project)
    for text in exclude:
        found.terms.excluded.add(text)
    for text in require:
        found.terms.required.add(text)
    listed = found.terms.list()
    if as_json:
        return put([asdict(term) for term in listed])
    rows = [(term.term_text, term.category or "-", term.user_notes) for term in listed]
    return print_table(("term", "category", "notes"), rows, "no terms yet: tsuzuki glossary generate")


@click.command()
@project_argument
@click.option(
    "--type", "issue_type", type=click.Choice([each.value for each in IssueType]), help="Only those of a type."
)
@json_option
@store_options
def issues(store: Store, project: str, issue_type: str | None, *, as_json: bool) -> None:
    """List what the review found."""
    listed = _project(store, project).issues.list(issue_type)
    if as_json:
        return put([asdict(issue) for issue in listed])
    rows = [(issue.term_name, issue.issue_type, issue.description) for issue in listed]
    return print_table(("term", "type", "description"), rows, "no issues")


@click.command()
@project_argument
@json_option
@store_options
def refined(store: Store, project: str, *, as_json: bool) -> None:
    """Show the refined glossary."""
    listed = _project(store, project).refined.list()
    if as_json:
        return put([asdict(entry) for entry in listed])
    rows = [(entry.term_name, f"{entry.confidence:.0%}", entry.definition) for entry in listed]
    return print_table(("term", "confidence", "definition"), rows, "no glossary yet: tsuzuki glossary generate")


@click.command(name="export")
@project_argument
@click.option("--format", "kind", type=click.Choice(sorted(FORMATS)), help="md, csv, json or tbx (TBX-Basic).")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of stdout.")
@store_options
def export_command(store: Store, project: str, kind: str | None, output: Path | None) -> None:
    """Write the refined glossary as Markdown, CSV, JSON or TBX-Basic."""
    found = _project(store, project)
    ending = "" if output is None else output.suffix.lstrip(".").lower()
    text = export(kind or (ending if ending in FORMATS else "md"), found.project.name, found.refined.list())
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
