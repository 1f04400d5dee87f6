"""The commands that hand runs to a gateway: submit and submit-yaml."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from tsuzuki.cli import render
from tsuzuki.cli.params import object_of, read_file, value_of, words_of
from tsuzuki.cli.remote import FORMS, output_option, over_http, spoken
from tsuzuki.cli.store import ARGUMENTS
from tsuzuki.cli.watching import watched
from tsuzuki.errors import BadUsage, FlowNotFound

if TYPE_CHECKING:
    from tsuzuki.client import Client

_ALIVE: Final = ("IDLE", "RUNNING")


def params_of(arguments: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Puts params together, the later winning: files, JSON objects, and single ones as NAME=VALUE."""
    params: dict[str, Any] = {}
    for kind, text in arguments:
        if kind == "file":
            params |= object_of(read_file(text), f"--params-file {text}")
        elif kind == "json":
            params |= object_of(text.encode(), "--params")
        else:
            name, equals, value = text.partition("=")
            if not name or not equals:
                raise BadUsage(f"--param {text!r} is no param; say --param name=value")
            params[name] = value_of(value)
    return params


def _collect(kind: str) -> Any:
    """Notes an option of params with its kind; click calls this in the order of the command line."""

    def noted(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
        del parameter
        ctx.meta.setdefault("tsuzuki.params", []).extend((kind, value) for value in values)

    return noted


def _in_order(ctx: click.Context) -> tuple[tuple[str, str], ...]:
    """Gives the options of params in the order of the command line, also where different ones were mixed."""
    noted: list[tuple[str, str]] = ctx.meta.get("tsuzuki.params", [])
    words = {"--params-file": "file", "--params": "json", "--param": "one", "-p": "one"}
    order = [words[word] for word in (text.partition("=")[0] for text in _arguments(ctx)) if word in words]
    queues = {kind: [value for each, value in noted if each == kind] for kind in set(order)}
    if sum(map(len, queues.values())) != len(noted):
        return tuple(noted)
    return tuple((kind, queues[kind].pop(0)) for kind in order if queues[kind])


def _arguments(ctx: click.Context) -> list[str]:
    arguments: list[str] = ctx.meta.get(ARGUMENTS, [])
    return arguments


@click.command(short_help="Start a run on a gateway.")
@click.argument("flow_name", metavar="FLOW")
@click.option("--params-file", multiple=True, metavar="FILE|-", expose_value=False, callback=_collect("file"))
@click.option("--params", multiple=True, metavar="JSON", expose_value=False, callback=_collect("json"))
@click.option("-p", "--param", multiple=True, metavar="NAME=VALUE", expose_value=False, callback=_collect("one"))
@click.option("--tag", help="Route it to workers with this tag.")
@click.option("--tags", "labels", multiple=True, metavar="LABEL", help="Labels to search by; may be repeated.")
@click.option("--key", help="At most one active run holds a key.")
@click.option("--priority", type=int, help="Those that wait with a greater one are claimed first.")
@click.option("--not-before", metavar="TIME", help="Wait until then, for example 2026-01-31T08:00:00+00:00.")
@click.option("--continues", metavar="RUN", help="Skip the items that this run has done.")
@click.option("--idempotency-key", metavar="KEY", help="Give the first run with this key instead of a second one.")
@click.option("--allow-unknown", is_flag=True, help="Submit it even if no worker knows the flow.")
@click.option("--watch", "-w", is_flag=True, help="Watch it until it has ended, and print its result.")
@output_option(*FORMS)
@over_http
def submit(
    client: "Client",
    *,
    flow_name: str,
    watch: bool,
    output: str,
    labels: tuple[str, ...],
    allow_unknown: bool,
    **more: Any,
) -> int:
    """Start a run of FLOW on a gateway.

    Params come from files, JSON objects and single values; the later one wins. A flow that no worker knows is refused,
    unless one of them can find further flows, or no worker was ever here.

    \b
      tsuzuki submit sample --param sentences=40 --watch
      tsuzuki submit crawl --params-file base.json --params '{"pages": 5}' --param site=example
    """  # noqa: D301 - click reads \b as: keep these lines
    params = params_of(_in_order(click.get_current_context()))
    tags = words_of(labels) or None
    if not allow_unknown:
        _check_known(client, flow_name)
    return _accepted(client, client.submit_run(flow_name, params, tags=tags, **more), output, watch=watch)


def _check_known(client: "Client", name: str) -> None:
    """Refuse a flow that no worker knows; only warn where one may still learn it, or none was ever here."""
    workers = [worker for worker in client.list_workers(scope="all", include_hidden=True) if worker["tags"]]
    living = [worker for worker in workers if worker["state"] in _ALIVE]
    known = sorted({flow for worker in living or workers for flow in worker["flows"]})
    if not living and (name in known or not known):
        click.echo(f"warning: no worker is alive; the run waits for one that knows the flow {name!r}", err=True)
    if name in known or not known or any(worker.get("resolves") for worker in living):
        return
    close = get_close_matches(name, known, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"they know {', '.join(known)}."
    if any(worker["wheel_sync"]["enabled"] for worker in living):
        click.echo(f"warning: no living worker knows the flow {name!r} yet ({advice})", err=True)
        return
    who = "no living worker" if living else "no worker"
    raise FlowNotFound(f"{who} knows the flow {name!r}; {advice} --allow-unknown submits it all the same")


@click.command("submit-yaml", short_help="Start a run of a YAML flow on a gateway.")
@click.argument("file", metavar="FILE.yaml|-", required=False)
@click.option("--workflow-file", metavar="FILE.yaml|-", help="The same as FILE.yaml.")
@click.option("--flow-name", metavar="NAME", help="What the flow is called [default: the name of the file].")
@click.option("--tag", help="Route it to workers with this tag.")
@click.option("--idempotency-key", metavar="KEY", help="Give the first run with this key instead of a second one.")
@click.option("--watch", "-w", is_flag=True, help="Watch it until it has ended, and print its result.")
@output_option(*FORMS)
@over_http
def submit_yaml(
    client: "Client",
    *,
    file: str | None,
    workflow_file: str | None,
    flow_name: str | None,
    watch: bool,
    output: str,
    **more: Any,
) -> int:
    """Start a run of a flow written as YAML on a gateway.

    \b
      tsuzuki submit-yaml pipeline.yaml --watch
      tsuzuki flow check pipeline.yaml      says what is wrong with one, without a gateway
    """  # noqa: D301 - click reads \b as: keep these lines
    source = file or workflow_file
    if source is None:
        raise BadUsage("say which file, for example `tsuzuki submit-yaml pipeline.yaml`")
    name = flow_name or (Path(source).stem if source != "-" else "workflow")
    return _accepted(client, client.submit_run_yaml(read_file(source), name, **more), output, watch=watch)


def _accepted(client: "Client", run: Any, output: str, *, watch: bool) -> int:
    """Print a run that was accepted; with `watch` only how it ended, as `tsuzuki run` does."""
    number = run.get("number", run["run_id"])
    if watch:
        click.echo(f"run {number} is {run['status']} ({run['run_id']})", err=True)
        return watched(client, run["run_id"], output="status", tell=_TELL[output])
    if output in ("json", "jsonl"):
        render.put(run)
    elif output == "status":
        click.echo(run["status"])
    else:
        click.echo(run["run_id"])
        watch_it = spoken(client, f"watch {number}")
        click.echo(f"run {number} is {run['status']}; {watch_it} watches it", err=True)
    return 0


def _tell_result(client: "Client", snapshot: Any) -> None:
    render.put_result(msgspec.json.encode(_result(client, snapshot)), completed=snapshot["status"] == "COMPLETED")


def _tell_object(client: "Client", snapshot: Any) -> None:
    counts = snapshot.get("counts") or {}
    render.put(
        {
            "run_id": snapshot["run_id"],
            "number": snapshot.get("number"),
            "status": snapshot["status"],
            "result": _result(client, snapshot),
            "error": snapshot.get("error"),
            "flow": snapshot["flow_name"],
            **{name: counts.get(name) for name in ("done", "failed", "skipped", "steps")},
            **{name: snapshot.get(name) for name in ("attempt", "created_at", "started_at", "finished_at")},
            **{name: snapshot.get(name) for name in ("usage", "cut")},
        }
    )


def _result(client: "Client", snapshot: Any) -> Any:
    truncated = snapshot.get("result_truncated")
    return client.get_result(snapshot["run_id"]) if truncated else snapshot.get("result")


_TELL: Final[dict[str, Callable[["Client", Any], None] | None]] = {
    "table": _tell_result,
    "json": _tell_object,
    "jsonl": _tell_object,
    "status": None,
}


COMMANDS: Final = (submit, submit_yaml)
