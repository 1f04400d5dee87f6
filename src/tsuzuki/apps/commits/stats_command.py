"""The command that shows and draws statistics."""

from pathlib import Path
from typing import Any

import click

from tsuzuki.apps.commits.authors import Authors
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.apps.commits.plot import drawn
from tsuzuki.apps.commits.png import png
from tsuzuki.apps.commits.records import Project
from tsuzuki.apps.commits.statistics import Asked, author_names, closely, statistics
from tsuzuki.apps.commits.tables import HEAD, cells, plain, separated
from tsuzuki.apps.commits.terminal import on_desk, print_table
from tsuzuki.cli.render import counted, put
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import BadUsage


@click.command()
@click.option("--project", metavar="PROJECT", help="Only a project, by its number or name.")
@click.option("--branch", metavar="NAME", help="Only a branch of that project.")
@click.option("--author", "authors", multiple=True, metavar="NAME", help="Only an author; may be repeated.")
@click.option("--no-merges", is_flag=True, help="Leave merges out.")
@click.option("--since", metavar="MONTH", help="From that month on (2026-01).")
@click.option("--until", metavar="MONTH", help="Until that month.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
@click.option("--tsv", "form", flag_value="tsv", help="Print TSV.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.option(
    "--plot", is_flag=False, flag_value="commits.svg", metavar="[FILE]", help="Draw a picture (.svg or .png)."
)
@store_options
def stats(
    store: Store,
    *,
    project: str | None,
    branch: str | None,
    authors: tuple[str, ...],
    since: str | None,
    until: str | None,
    form: str | None,
    plot: str | None,
    no_merges: bool,
) -> None:
    """Show additions and deletions by month and author; a commit counts once, in however many branches it is.

    \b
      tsuzuki commits stats --plot
      tsuzuki commits stats --project 1 --no-merges --tsv
    """  # noqa: D301 - click reads \b as: keep these lines

    async def work(desk: Desk) -> tuple[Any, str, str]:
        found = desk.projects.find(project) if project else None
        number = None if found is None else found.project_id
        asked = Asked(number, branch, authors, merges=not no_merges, since=since, until=until)
        sums = statistics(desk.ledger, asked)
        picture = drawn(closely(desk.ledger, asked, sums), _title(desk, found, branch)) if plot is not None else ""
        return sums, picture, "" if sums.rows else _nothing(desk, asked)

    found, picture, nothing = on_desk(store, work)
    if form == "json":
        put(plain(found))
    elif form:
        click.echo(separated(found, "," if form == "csv" else "\t"), nl=False)
    else:
        rows = [tuple(c if isinstance(c, str) else f"{c:,}" for c in row) for row in cells(found)]
        print_table(HEAD, rows, nothing)
    if plot is not None and found.rows:
        _draw(plot, picture)
    elif plot is not None:
        click.echo(f"{plot} is not drawn: there is nothing to draw", err=True)


def _nothing(desk: Desk, asked: Asked) -> str:
    """Says why there may be nothing to show, and what to do about it."""
    if not author_names(desk.ledger):
        return "no commits yet: tsuzuki commits collect --git ."
    if asked.authors and not Authors(desk.ledger).called(asked.authors):
        return f"nobody is called {' or '.join(asked.authors)}: tsuzuki commits stats names everybody"
    return "no commits fit that: tsuzuki commits stats shows all of them"


def _title(desk: Desk, project: Project | None, branch: str | None) -> str:
    if project is not None:
        return f"{project.name}{f' · {branch}' if branch else ''}"
    counted_ones = {row[0] for row in desk.ledger.all("counted_projects")}
    known = [each for each in desk.projects.projects() if each.project_id in counted_ones]
    return known[0].name if len(known) == 1 else counted(len(known), "project")


def _draw(name: str, picture: str) -> None:
    file = Path(name)
    form = file.suffix.lower()
    if form not in (".svg", ".png"):
        raise BadUsage(f"a picture is SVG or PNG: name it {file.with_suffix('.svg').name}")
    drawing = png(picture) if form == ".png" else picture.encode()
    try:
        file.write_bytes(drawing)
    except OSError as error:
        raise BadUsage(f"{name} cannot be written: {error.strerror}") from None
    click.echo(f"{name} is drawn{': open it in a browser' if form == '.svg' else ''}", err=True)
