"""`tsuzuki glossary generate`: from a folder to a glossary in this process; killed and started again, it goes on."""

import asyncio
from pathlib import Path
from typing import Any, Final

import click

from tsuzuki import Run, Runs, llm
from tsuzuki.apps.glossary import flows, japanese
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.documents import read_folder
from tsuzuki.apps.glossary.exports import FORMATS, export
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.runs_repository import RunRow
from tsuzuki.apps.glossary.terminal import desk_of
from tsuzuki.apps.terminal import quiet_option
from tsuzuki.cli.here import SOME_FAILED, Progress, begin_here, with_progress
from tsuzuki.cli.render import counted
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import BadUsage, ProviderRefused

LLM: Final = ("llm_provider", "llm_model", "llm_base_url")
"""What a project knows of the model that answers it."""


@click.command()
@click.option(
    "-i", "--input", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="The documents."
)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The glossary.")
@click.option(
    "--format", "kind", type=click.Choice(sorted(FORMATS)), help="By default what the name of the file ends in."
)
@click.option(
    "--provider", help="Who answers, from now on [default: the last one that was named, else TSUZUKI_LLM_PROVIDER]."
)
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
    top = folder.resolve()
    if not output.resolve().parent.is_dir():
        raise BadUsage(f"there is no folder {output.parent} for the glossary: make it first")

    async def work(runs: Runs, progress: Progress) -> ProjectFile:
        desk = desk_of(runs)
        project = await _prepared(desk, top, options, progress)
        await desk.reconcile(project.project.id)
        debug = bool(options["llm_debug"])
        scopes = ("full",) if _extracted(project) else ("extract", "full")
        rows = [await _carried_out(runs, project.project.id, scope, progress, debug=debug) for scope in scopes]
        left_out.extend(row.error_message for row in rows if row.error_message)
        return project

    left_out: list[str] = []
    project = with_progress(store, work, quiet=quiet)
    entries = project.refined.list()
    output.write_text(export(form, project.project.name, entries), encoding="utf-8")
    found = f"{counted(len(entries), 'term')}, {counted(len(project.issues.list()), 'issue')}"
    click.echo(f"{output}: {found}", err=True)
    if unaided := japanese.unaided(entry.term_name for entry in entries):
        click.echo(unaided, err=True)
    if left_out:
        told = "\n".join(left_out) if quiet else "Something was left out"
        click.echo(f"{told} (start it again to ask only for that)", err=True)
    return SOME_FAILED if left_out else 0


async def _prepared(desk: Desk, folder: Path, options: dict[str, Any], progress: Progress) -> ProjectFile:
    """Return the project of a folder with what the folder has now; make none where nothing could come of it."""
    documents, skipped = read_folder(folder)
    for each in skipped:
        progress.say(f"left out: {each}")
    if not documents:
        raise BadUsage(
            f"{folder.name} has no document that can be read: .txt or .md, in UTF-8 or Shift_JIS, at most 3 MB each"
        )
    project = desk.registry.at(str(folder))
    said = _said(options)
    kept = {} if project is None else {name: getattr(project, name) for name in LLM}
    await _check({**kept, **said}, progress)
    project = project or desk.registry.add(_free_name(desk, folder.name), doc_root=str(folder))
    if any(getattr(project, name) != value for name, value in said.items()):
        project = desk.registry.change(project.id, **said)
    file = desk.project(project.id)
    for name in file.documents.sync_folder(documents):
        progress.say(
            f"left out: {name}: a document of that name was added elsewhere. Delete it there to take this one."
        )
    return file


def _said(options: dict[str, Any]) -> dict[str, str]:
    """Gives what is said about the model; another provider has neither the model nor the address of the one before."""
    said = {f"llm_{name}": options[name] for name in ("provider", "model", "base_url") if options[name] is not None}
    return {**dict.fromkeys(LLM, ""), **said} if "llm_provider" in said else said


async def _check(chosen: dict[str, str], progress: Progress) -> None:
    """Says who answers; refuses one that there is not, does not listen, or whose key is missing, before all else."""
    address = llm.Address(*(chosen.get(name, "") for name in ("llm_provider", "llm_base_url", "llm_model"))).filled()
    provider = llm.opened(address, watched=True)
    try:
        if provider.capability.local:  # a server of one's own may not have been started
            await provider.health()
    except ProviderRefused:  # it listens, and has no list of models
        pass
    finally:
        await provider.close()
    progress.say(f"asking {address.provider} {address.model}".strip())


def _free_name(desk: Desk, name: str) -> str:
    taken = {project.name for project in desk.registry.projects()}
    names = (name, *(f"{name} {number}" for number in range(2, len(taken) + 3)))
    return next(each for each in names if each not in taken)


def _extracted(project: ProjectFile) -> bool:
    """Return whether there are terms, found in the documents and by the model as they are now."""
    if not project.terms.list():
        return False
    now = project.origin("")
    for row in project.runs():
        origin = project.run_origin(row.id) if row.scope == "extract" else None
        if origin is not None:
            return row.status == "completed" and (origin.documents, origin.address) == (now.documents, now.address)
    return False


async def _carried_out(runs: Runs, number: int, scope: str, progress: Progress, *, debug: bool) -> RunRow:
    """Carry out a run here, or continue the one that was left behind, and return its row."""
    row: RunRow | None = None
    warnings: asyncio.Task[None] | None = None

    async def begin(worker: str) -> tuple[Run, bool]:
        nonlocal row, warnings
        desk = desk_of(runs, worker)
        row, run, goes_on = await desk.begin(number, scope, "manual", llm_debug=debug)
        warnings = asyncio.create_task(_say_warnings(runs, run, progress))
        return run, goes_on

    try:
        await begin_here(runs, flows.glossary, begin, progress)
        if warnings is not None:
            await warnings  # they end with the run
    finally:
        if warnings is not None:
            warnings.cancel()
        await desk_of(runs).reconcile(number)
    assert row is not None  # noqa: S101 - a run that completed was begun
    return await desk_of(runs).run(number, row.id)


async def _say_warnings(runs: Runs, run: Run, progress: Progress) -> None:
    """Show what a run warns of while it is in progress, such as a model that is silent."""
    seen = [line.number async for line in runs.log(run.id)]  # of a run that continues: those were shown before
    async for line in runs.follow_log(run.id, after=max(seen, default=0)):
        if line.level == "warning" and not line.logger:
            progress.say(line.text)
