"""How commands speak to a gateway: the options for it, and what all of them print."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from tsuzuki import settings
from tsuzuki.cli import render
from tsuzuki.cli.cuts import Cut
from tsuzuki.cli.progress import step_line
from tsuzuki.cli.store import API_KEY, QUIET, SERVER, announce, debug_option
from tsuzuki.errors import BadUsage, RunNotFound

if TYPE_CHECKING:
    from tsuzuki.client import Client

FORMS: Final = ("table", "json", "jsonl", "status")


def connect(server: str | None, api_key: str | None) -> "Client":
    """Gives a client of the gateway that the options name."""
    from tsuzuki.client import Client  # noqa: PLC0415 - HTTP is heavy, and other commands do not need it

    try:
        client = Client(server, api_key, notice=functools.partial(click.echo, err=True))
    except ValueError as error:
        raise BadUsage(f"--server {server}: {error}; for example --server http://127.0.0.1:8000") from error
    announce(f"gateway {client.server}")
    return client


def spoken(client: "Client", command: str, *, store: bool = False) -> str:
    """Gives a command as people would type it next: with --server where it would not find this gateway by itself.

    Those that also look at a `store` do so unless a gateway is named.
    """
    known = settings.server() == client.server and (settings.server_is_set() or not store)
    return f"`{render.ourselves()} {command}{'' if known else f' --server {client.server}'}`"


_SERVER: Final = "The gateway [default: TSUZUKI_SERVER, or on this machine]."
_KEY: Final = "The API key [default: TSUZUKI_API_KEY, which unlike an option is in no list of processes]."


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that name the gateway; said before the command they hold too, unless it says others."""
    key = click.option("--api-key", metavar="KEY", default=_noted(API_KEY), help=_KEY)
    server = click.option("--server", metavar="URL", default=_noted(SERVER), help=_SERVER)
    return server(key(command))


def quiet_option_before(group: Callable[..., Any]) -> Callable[..., Any]:
    """Add -q to the program: it holds for the command that follows."""
    tell = "Do not say which store or gateway is used."
    return click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_note(QUIET), help=tell)(group)


def server_options_before(group: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the same options to a group: they hold for the command that follows."""
    key = click.option("--api-key", metavar="KEY", expose_value=False, callback=_note(API_KEY), help=_KEY)
    server = click.option("--server", metavar="URL", expose_value=False, callback=_note(SERVER), help=_SERVER)
    return server(key(group))


def _noted(name: str) -> Callable[[], Any]:
    return lambda: click.get_current_context().meta.get(name)


def _note(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def note(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        del parameter
        if value:
            ctx.meta[name] = value

    return note


def output_option(*forms: str, default: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds -o with these forms."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=default or forms[0],
        show_default=True,
        help="What to print.",
    )


def over_http(command: Callable[..., int]) -> Callable[..., Any]:
    """Makes a function over a client a command."""

    @server_options
    @debug_option
    @functools.wraps(command)
    def run(server: str | None, api_key: str | None, **options: Any) -> int:
        with connect(server, api_key) as client:
            return _asked(client, lambda: command(client, **options))

    return run


def _asked(client: "Client", ask: Callable[[], int]) -> int:
    """Asks a gateway; of a run that is not there it also says where one finds those that are."""
    from tsuzuki.client import HTTPStatusError  # noqa: PLC0415 - as above

    try:
        return ask()
    except HTTPStatusError as error:
        if error.detail != "run not found":
            raise
        raise RunNotFound(f"{error}; {spoken(client, 'list', store=True)} shows the runs there") from error


def here_or_over_http(remote: Callable[..., int]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lets a command of the store speak to a gateway instead, where one is named by --server or TSUZUKI_SERVER."""

    def decorate(local: Callable[..., Any]) -> Callable[..., Any]:
        @server_options
        @click.option("-o", "--output", type=click.Choice(FORMS), help="What to print; --json is -o json.")
        @functools.wraps(local)
        def run(server: str | None, api_key: str | None, output: str | None, as_json: bool, **options: Any) -> int:
            store_named = options.get("data_dir") or options.get("backend")
            if server is None and (store_named or not settings.server_is_set()):
                if output in ("jsonl", "status"):
                    raise BadUsage(f"-o {output} is for runs of a gateway; say --server, or --json for the store")
                code: int = local(as_json=as_json or output == "json", **options)
                return code
            if store_named:
                raise BadUsage("--server names a gateway and --data-dir or --backend a store: say one of them")
            del options["data_dir"], options["backend"]
            form = output or ("json" if as_json else "table")
            with connect(server, api_key) as client:
                return _asked(client, lambda: remote(client, output=form, **options))

        return run

    return decorate


def reference(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the run that a command is about: RUN, or --run-id."""

    @click.argument("run", metavar="RUN", required=False)
    @click.option("--run-id", metavar="RUN", help="The same as RUN.")
    @functools.wraps(command)
    def told(run: str | None, run_id: str | None, **options: Any) -> Any:
        if (run is None) == (run_id is None):
            ctx = click.get_current_context()
            raise click.UsageError(f"say which run, for example `{ctx.command_path} 1`", ctx)
        return command(reference=run_id if run is None else run, **options)

    return told


def show(
    records: Iterable[Any], output: str, head: Sequence[str], row: Callable[[Any], Sequence[str]], empty: str = ""
) -> int:
    """Prints records as a table, as one JSON array, or a line of JSON each."""
    if output == "json":
        render.put(list(records))
    elif output == "jsonl":
        for record in records:
            render.put(record)
    else:
        lines = list(render.table(head, [row(record) for record in records], render.NUMBERS))
        for line in lines if len(lines) > 1 or not empty else ():
            click.echo(line)
        if len(lines) == 1 and empty:
            click.echo(empty, err=True)
    return 0


def listed(run: Any) -> tuple[str, ...]:
    """Gives a run as a row of a table."""
    counts = run.get("counts") or {}
    return (
        f"{run.get('number', '')}",
        run["flow_name"],
        render.INTERRUPTED if run.get("interrupted") else run["status"],
        f"{counts.get('done', 0) + counts.get('skipped', 0):,}",
        f"{counts['failed']:,}" if counts.get("failed") else "",
        render.local(run["updated_at"]),
        run["run_id"],
    )


def waits_there(run: Any) -> str:
    """Return what a run of a gateway waits for, and until when."""
    told = [step["text"] for step in run.get("progress") or () if step.get("text")]
    return render.wait_line(run.get("waiting_until"), render.one_line((*told, run.get("waiting_reason") or "")[0]))


LIST: Final = ("RUN", "FLOW", "STATUS", "DONE", "FAILED", "CHANGED", "ID")


def facts_of(snapshot: Any) -> Iterable[tuple[str, str]]:
    """Gives what people are told of one run."""
    yield "run", f"{snapshot.get('number', '')} ({snapshot['run_id']})"
    yield "flow", snapshot["flow_name"]
    status = render.status_text(snapshot["status"], (snapshot.get("counts") or {}).get("failed", 0))
    yield "status", status + (f" (worker {snapshot['worker_id']})" if snapshot.get("worker_id") else "")
    if wait := waits_there(snapshot):
        yield "waits", wait
    ways = f"`tsuzuki get {snapshot.get('number', snapshot['run_id'])} --json`"
    params = msgspec.json.encode(snapshot["params"])
    yield "params", render.truncate(render.shown_json(params), len(params), ways)
    if snapshot.get("params_truncated"):
        yield "", "(shortened: -o json has all params)"
    for name in ("key", "continues"):
        if snapshot.get(name):
            yield name, render.shortened(snapshot[name])
    yield "tags", ", ".join([snapshot["tag"], *(tag for tag in snapshot["tags"] if tag != snapshot["tag"])])
    for name, key in (("created", "created_at"), ("started", "started_at"), ("finished", "finished_at")):
        if snapshot.get(key):
            yield name, render.local(snapshot[key]) + (f", attempt {snapshot['attempt']}" if name == "started" else "")
    if snapshot.get("wheels"):
        yield "wheels", ", ".join(sorted(snapshot["wheels"]))
    yield "items", render.counts_of(snapshot.get("counts") or {})
    yield from _cancel_of(snapshot)
    for step in snapshot.get("progress") or ():
        yield "progress", step_line(step, None, bar=True)
    yield from render.usage_lines(snapshot.get("usage"))
    for task, state in snapshot["tasks"].items():
        yield "task", f"{state:<10} {task}"
    if snapshot.get("error"):
        yield "error", snapshot["error"]
    if snapshot["status"] == "COMPLETED":
        result = msgspec.json.encode(snapshot.get("result"))
        yield "result", render.truncate(render.result_text(result), len(result), ways)


def _cancel_of(snapshot: Any) -> Iterable[tuple[str, str]]:
    if snapshot.get("cancel_requested_at"):
        why = f": {snapshot['cancel_reason']}" if snapshot.get("cancel_reason") else ""
        by = snapshot.get("cancel_requested_by") or "somebody"
        yield "cancel", f"asked at {render.local(snapshot['cancel_requested_at'])} by {by}{why}"
    if (cut := Cut.there(snapshot)) is not None:
        yield "cut off", f"{cut}"


def show_run(snapshot: Any, output: str) -> int:
    """Prints one run."""
    if output == "status":
        click.echo(snapshot["status"])
    elif output in ("json", "jsonl"):
        render.put(snapshot)
    else:
        for name, text in facts_of(snapshot):
            click.echo(render.harmless(f"{name:<12}{text}" if "\n" not in text else f"{name}\n{text}"))
    return 0
