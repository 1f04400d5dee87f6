"""The commands about language models: models, ask, cost, jobs, doctor, cache."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tsuzuki import extras, settings
from tsuzuki import llm as models_of_language
from tsuzuki.cli import render
from tsuzuki.cli.store import DEFAULT_FOLDER, announce, debug_option, on_runs, refuse_gateway
from tsuzuki.errors import StoreUnavailable
from tsuzuki.llm.queue import looking
from tsuzuki.overview import Overview
from tsuzuki.runs import Runs
from tsuzuki.spending import dollars, usage

if TYPE_CHECKING:
    from tsuzuki.llm import Job, JobQueue

_STATUSES: Final = ("PENDING", "IN_PROGRESS", "COMPLETED", "FAILED")
_PROCESSES: Final = ("PROCESS", *_STATUSES, "BATCH", "CREATED")
_COSTS: Final = ("PROVIDER", "MODEL", "REQUESTS", "TOKENS IN", "TOKENS OUT", "COST")
_DAY: Final = 86_400.0
_BATCHES: Final = {"open": ", its batch is still open", "unclear": ", its batch may have been created"}
_JOBS: Final = ("JOB", "STATUS", "BATCH", "UPDATED", "ERROR")


def provider_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that name a provider, and hands its address to the command as `at`."""

    @click.option("--provider", default="", help="Who is asked [default: TSUZUKI_LLM_PROVIDER or offline].")
    @click.option("--base-url", default="", help="Where it is [default: TSUZUKI_LLM_BASE_URL or its own address].")
    @click.option("--model", default="", help="Which model [default: TSUZUKI_LLM_MODEL or its own default].")
    @debug_option
    @functools.wraps(command)
    def addressed(provider: str, base_url: str, model: str, **options: Any) -> Any:
        return command(at=models_of_language.Address(provider, base_url, model), **options)

    return addressed


def folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names the folder."""
    tell = "Where jobs are kept [default: TSUZUKI_DATA_DIR or .tsuzuki]."

    @click.option("--data-dir", metavar="DIR", help=tell)
    @functools.wraps(command)
    def located(data_dir: str | None, **options: Any) -> Any:
        refuse_gateway(named=bool(data_dir), naming="--data-dir DIR")
        if (folder := settings.data_dir(data_dir)) != DEFAULT_FOLDER:
            announce(f"folder {folder}")
        return command(data_dir=data_dir, **options)

    return located


def asynchronous(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
    """Makes an async function a command."""

    @functools.wraps(command)
    def ran(**options: Any) -> int:
        return asyncio.run(command(**options))

    return ran


@click.group("llm", short_help="Language models: models, ask, cost, jobs, doctor, cache.")
def llm() -> None:
    """Ask language models, and look after jobs and kept answers.

    \b
      tsuzuki llm ask "Why is the sky blue?" --provider ollama --model llama3.2
      tsuzuki llm doctor --provider openai
      tsuzuki llm jobs list
      tsuzuki llm cost --days 30
    """  # noqa: D301 - click reads \b as: keep these lines


@llm.command("models")
@provider_options
@asynchronous
async def models(at: "models_of_language.Address") -> int:
    """List the models that a provider has.

    \b
      tsuzuki llm models --provider ollama
    """  # noqa: D301 - click reads \b as: keep these lines
    provider = models_of_language.opened(at, watched=True)
    try:
        for name in await provider.models():
            click.echo(name)
    finally:
        await provider.close()
    return 0


@llm.command("ask")
@click.argument("prompt")
@click.option("--system", default="", help="What the model is told beforehand.")
@provider_options
@asynchronous
async def ask(at: "models_of_language.Address", prompt: str, system: str) -> int:
    """Ask a question, and show the answer as it comes.

    \b
      tsuzuki llm ask "Why is the sky blue?" --provider ollama --model llama3.2
    """  # noqa: D301 - click reads \b as: keep these lines
    provider = models_of_language.opened(at, watched=True)
    said = False
    try:
        async for piece in provider.stream(models_of_language.Question(prompt, system=system)):
            click.echo(piece, nl=False)
            said = True
    finally:
        if said:  # an error stands on a line of its own
            click.echo()
        await provider.close()
    return 0


@llm.command("doctor")
@provider_options
@asynchronous
async def doctor(at: "models_of_language.Address") -> int:
    """Check that a provider can be reached, and does what its record says; this asks a few short questions.

    \b
      tsuzuki llm doctor --provider openai
    """  # noqa: D301 - click reads \b as: keep these lines
    provider = models_of_language.opened(at, watched=True)
    click.echo(f"{provider.name} at {provider.base_url or 'no address'}, model {provider.model}")
    bad = 0
    try:
        async for what, told in models_of_language.examined(provider):
            bad += told is not None
            click.echo(f"  {'ok  ' if told is None else 'FAIL'}  {what}{'' if told is None else f': {told}'}")
    finally:
        await provider.close()
    return 1 if bad else 0


@llm.command("cost", short_help="What runs have used of models, and what that cost.")
@click.option("--days", type=click.FloatRange(0), help="Only runs that changed in the last so many days.")
@render.json_option
@on_runs
async def cost(runs: Runs, days: float | None, *, as_json: bool) -> int:
    """Show what runs have used of each model, and what that cost, from their journals.

    \b
      tsuzuki llm cost --days 30
    """  # noqa: D301 - click reads \b as: keep these lines
    after = None if days is None else runs.now() - days * _DAY
    found = await Overview(runs).spenders(updated_after=after)
    used = usage(spent for row in found.rows for spent in row.spent)
    if as_json:
        render.put({"usage": used, "runs": len(found.rows), "at_least": found.more})
        return 0
    if used is None:
        click.echo("no run has asked a language model", err=True)
        return 0
    lines = ((each["provider"], each["model"], *_figures(each)) for each in used["models"])
    for line in render.table(_COSTS, (*lines, ("", "all", *_figures(used))), frozenset(_COSTS[2:])):
        click.echo(line)
    if used["unpriced"]:
        click.echo(f"* without {render.counted(used['unpriced'], 'request')} of unknown price{_unlisted()}")
    if used["uncertain"]:
        click.echo(f"{render.counted(used['uncertain'], 'request')} brought no answer and may have been charged")
    more = f" (the newest {len(found.rows):,} runs; there are more)" if found.more else ""
    click.echo(f"{render.counted(len(found.rows), 'run')}{more}", err=True)
    return 0


def _unlisted() -> str:
    """Says where prices would come from, where there is no list of them."""
    from tsuzuki.llm import prices  # noqa: PLC0415 - other commands need no price

    return "" if prices.listed() else f"; the extra `llm` knows prices: {extras.installing('llm')}"


def _figures(sums: dict[str, Any]) -> tuple[str, ...]:
    price = "not known" if sums["cost"] is None else dollars(sums["cost"]) + (" *" if sums["unpriced"] else "")
    return (*(f"{sums[name]:,}" for name in ("requests", "input_tokens", "output_tokens")), price)


@llm.group("jobs", short_help="The jobs of the queue: list, show, cancel.")
def jobs() -> None:
    """Look at the job queue.

    \b
      tsuzuki llm jobs list
    """  # noqa: D301 - click reads \b as: keep these lines


def _queue(data_dir: str | None) -> "JobQueue":
    path = settings.data_dir(data_dir) / "llm_jobs.db"
    if not path.exists():
        raise StoreUnavailable(f"there is no job queue at {path}; --data-dir names another folder")
    return models_of_language.JobQueue(path)


@jobs.command("list")
@render.json_option
@folder_option
@debug_option
@asynchronous
async def jobs_list(data_dir: str | None, *, as_json: bool) -> int:
    """Show the processes that have jobs, and how far each is.

    \b
      tsuzuki llm jobs list --json
    """  # noqa: D301 - click reads \b as: keep these lines
    async with _queue(data_dir) as queue:  # which recovers what the dead have left
        found = [_counted(each) for each in looking.processes(queue.path.parent)]
    if as_json:
        render.put(found)
        return 0
    lines = (
        (
            each["process_id"],
            *(f"{each.get(word, 0):,}" for word in _STATUSES),
            _batches(each),
            render.local(each["created_at"]),
        )
        for each in found
    )
    for line in render.table(_PROCESSES, lines, frozenset(_STATUSES)):
        click.echo(line)
    return 0


def _counted(process: dict[str, Any]) -> dict[str, Any]:
    """Gives a process with the number of its jobs under each status that it has."""
    counts = {word: count for word in _STATUSES if (count := process[word.lower()])}
    return {name: value for name, value in process.items() if name.upper() not in _STATUSES} | counts


def _batches(process: dict[str, Any]) -> str:
    told = [f"{batch} is still open" for batch in process["open_batches"]]
    told += [f"{process['unclear_batches']} may have been created"] if process["unclear_batches"] else []
    return ", ".join(told) or process["batch_job_id"] or ""


@jobs.command("show")
@click.argument("process")
@render.json_option
@folder_option
@debug_option
@asynchronous
async def jobs_show(process: str, data_dir: str | None, *, as_json: bool) -> int:
    """Show the jobs of a process.

    \b
      tsuzuki llm jobs show 6f1c9a52-3f0e-4d53-9f52-0c7b7a0f8f11
    """  # noqa: D301 - click reads \b as: keep these lines
    async with _queue(data_dir) as queue:
        found = [job async for job in queue.jobs(process)]
        batches = {each["id"]: each["batch_state"] for each in looking.jobs(queue.path.parent, process, len(found))}
    if not found:
        raise _unknown(process)
    if as_json:
        render.put([_plain(job) | {"batch_state": batches.get(job.id)} for job in found])
        return 0
    lines = (
        (
            job.id,
            job.status + _BATCHES.get(batches.get(job.id) or "", ""),
            job.batch_job_id or "",
            render.local(job.updated_at),
            job.error_message or "",
        )
        for job in found
    )
    for line in render.table(_JOBS, lines):
        click.echo(line)
    return 0


def _unknown(process: str) -> StoreUnavailable:
    return StoreUnavailable(f"process {process} has no jobs here; `tsuzuki llm jobs list` shows those that have")


def _plain(job: "Job") -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__slots__}


@jobs.command("cancel")
@click.argument("process")
@click.option("--delete", is_flag=True, help="Forget its jobs too, answered or not: nobody waits for them any more.")
@folder_option
@provider_options
@asynchronous
async def jobs_cancel(at: "models_of_language.Address", process: str, data_dir: str | None, *, delete: bool) -> int:
    """Ask the provider to end the open batches of a process; what is done is kept, the rest is PENDING.

    A run that was cancelled leaves its jobs here, PENDING, for a resume; --delete forgets them. A run that is resumed
    all the same finds its batch by its journal.

    \b
      tsuzuki llm jobs cancel 6f1c9a52-3f0e-4d53-9f52-0c7b7a0f8f11 --provider openai
    """  # noqa: D301 - click reads \b as: keep these lines
    async with _queue(data_dir) as queue:
        if not await queue.counts(process):
            raise _unknown(process)
        asked = await models_of_language.QueueWorker(queue, at).cancel(process)
        deleted = await queue.delete_process(process, abandoned=True) if delete else None
    told = "" if deleted is None else f", and forgot {render.counted(deleted, 'job')}"
    click.echo(f"asked for the end of {render.counted(asked, 'batch', 'batches')}{told}")
    return 0


@llm.group("cache", short_help="The kept answers: stats, clear.")
def cache() -> None:
    """Look at the kept answers.

    \b
      tsuzuki llm cache stats
    """  # noqa: D301 - click reads \b as: keep these lines


def _cache_file(data_dir: str | None) -> Path:
    return settings.data_dir(data_dir) / "llm_cache.db"


@cache.command("stats")
@folder_option
@debug_option
@asynchronous
async def cache_stats(data_dir: str | None) -> int:
    """Show how many answers are kept, how large they are, and how often they were given again.

    \b
      tsuzuki llm cache stats
    """  # noqa: D301 - click reads \b as: keep these lines
    async with models_of_language.Cache(_cache_file(data_dir)) as kept:
        stats = await kept.stats()
    click.echo(f"{stats.answers:,} answers, {stats.bytes:,} bytes, given again {stats.hits:,} times")
    return 0


@cache.command("clear")
@folder_option
@debug_option
@asynchronous
async def cache_clear(data_dir: str | None) -> int:
    """Forget all kept answers.

    \b
      tsuzuki llm cache clear
    """  # noqa: D301 - click reads \b as: keep these lines
    async with models_of_language.Cache(_cache_file(data_dir)) as kept:
        click.echo(f"forgot {await kept.clear():,} answers")
    return 0


COMMANDS: Final = (llm,)
