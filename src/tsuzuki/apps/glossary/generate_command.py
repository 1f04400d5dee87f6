"""`tsuzuki glossary generate`: from a folder to a glossary in this process; killed and started again, it goes on."""

from pathlib import Path
from typing import Any

import click

from tsuzuki import Run, Runs
from tsuzuki.apps.glossary import flows
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.documents import read_folder
from tsuzuki.apps.glossary.exports import FORMATS, export
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.terminal import desk_of, quiet_option
from tsuzuki.cli.here import Progress, begin_here, with_progress
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import BadUsage


@click.command()
@click.option(
    "-i", "--input", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="The documents."
)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The glossary.")
@click.option(
    "--format", "kind", type=click.Choice(sorted(FORMATS)), help="By default what the name of the file ends in."
)
@click.option("--provider", help="Who answers [default: TSUZUKI_LLM_PROVIDER].")
@click.option("--model", help="Which model answers.")
@click.option("--base-url", help="Where the provider is.")
@click.option("--llm-debug", is_flag=True, help="Keep each question and answer in a file that only you can read.")
@quiet_option
@store_options
def generate(store: Store, *, folder: Path, output: Path, kind: str | None, quiet: bool, **options: Any) -> int:
    """Make a glossary out of a folder of .txt and .md files; started again after a crash, it goes on.

    \b
      tsuzuki glossary generate -i docs -o glossary.md
      tsuzuki glossary generate -i docs -o glossary.tbx --provider ollama --model llama3.2
    """  # noqa: D301 - click reads \b as: keep these lines
    if not folder.is_dir():
        raise BadUsage(f"there is no folder {folder}")
    form = kind or output.suffix.lstrip(".").lower()
    if form not in FORMATS:
        raise BadUsage(f"{output.name}: name it .md, .csv, .json or .tbx, or say --format")

    async def work(runs: Runs, progress: Progress) -> ProjectFile:
        desk = desk_of(runs)
        project = _prepared(desk, folder, options, progress)
        await desk.reconcile(project.project.id)
        debug = bool(options["llm_debug"])
        if not _extracted(project):
            await _carried_out(runs, project.project.id, "extract", progress, debug=debug)
        await _carried_out(runs, project.project.id, "full", progress, debug=debug)
        return project

    project = with_progress(store, work, quiet=quiet)
    entries = project.refined.list()
    output.write_text(export(form, project.project.name, entries), encoding="utf-8")
    click.echo(f"{output}: {len(entries)} terms, {len(project.issues.list())} issues", err=True)
    return 0


def _prepared(desk: Desk, folder: Path, options: dict[str, Any], progress: Progress) -> ProjectFile:
    """Gives the project of a folder with what the folder has now."""
    top = str(folder.resolve())
    project = desk.registry.at(top) or desk.registry.add(_free_name(desk, folder.resolve().name), doc_root=top)
    said = {f"llm_{name}": options[name] for name in ("provider", "model", "base_url") if options[name] is not None}
    if said and any(getattr(project, name) != value for name, value in said.items()):
        project = desk.registry.change(project.id, **said)
    documents, skipped = read_folder(folder)
    for each in skipped:
        progress.say(f"left out: {each}")
    file = desk.project(project.id)
    file.documents.become(documents)
    return file


def _free_name(desk: Desk, name: str) -> str:
    taken = {project.name for project in desk.registry.projects()}
    names = (name, *(f"{name} {number}" for number in range(2, len(taken) + 3)))
    return next(each for each in names if each not in taken)


def _extracted(project: ProjectFile) -> bool:
    """Tells whether the terms are those of the documents as they are now."""
    said = project.documents.digest()
    for row in project.runs():
        origin = project.run_origin(row.id) if row.scope == "extract" else None
        if origin is not None:
            return row.status == "completed" and origin.documents == said
    return False


async def _carried_out(runs: Runs, number: int, scope: str, progress: Progress, *, debug: bool) -> None:
    """Carries a run out here, or goes on with the one that was left behind."""

    async def begin(worker: str) -> tuple[Run, bool]:
        desk = desk_of(runs, worker)
        _, run, goes_on = await desk.begin(number, scope, "manual", llm_debug=debug)
        return run, goes_on

    try:
        await begin_here(runs, flows.glossary, begin, progress)
    finally:
        await desk_of(runs).reconcile(number)
