"""The commands that look at a gateway: tasks, list-vnext, flows, metrics; and what list, get … do there."""

from time import sleep
from typing import TYPE_CHECKING, Any, Final

import click

from tsuzuki.backends import Line
from tsuzuki.cli import render
from tsuzuki.cli.closely import show_closely_there
from tsuzuki.cli.cuts import Cancelled, Cut
from tsuzuki.cli.remote import LIST, listed, output_option, over_http, reference, show, show_run, waits_there
from tsuzuki.lifecycle import TERMINAL, Status

if TYPE_CHECKING:
    from tsuzuki.client import Client

FOLLOW: Final = 0.5
"""How often a gateway is asked for new lines of a log (seconds)."""
_WORKERS: Final = ("WORKER", "STATE", "TAGS", "RUN NOW", "LAST STATUS", "SEEN")
_FLOWS: Final = ("FLOW", "PARAMS", "TAGS", "WHAT IT DOES")


# ------------------------------------------------------------------------------ what the commands of the store do there


def list_there(client: "Client", *, output: str, status: tuple[str, ...], limit: int, **filters: Any) -> int:
    """Lists the runs of a gateway."""
    runs = client.list_runs(limit=limit, status=[word.upper() for word in status] or None, **filters)
    if output == "status":
        for run in runs:
            click.echo(f"{run['run_id']}  {run['status']}")
        return 0
    none = f"no runs at {client.server} fit"
    if output != "table":
        return show(runs, output, LIST, listed, none)
    found = list(runs)
    if not any(map(waits_there, found)):
        return show(found, output, LIST, listed, none)
    return show(found, output, (*LIST, render.WAITS), lambda run: (*listed(run), waits_there(run)), none)


def get_there(client: "Client", *, output: str, reference: str) -> int:
    """Shows a run of a gateway, with its result, however large."""
    snapshot = client.get_run(reference, include=["records", "params"] if output == "json" else None)
    if output != "status" and snapshot.get("result_truncated"):
        snapshot |= {"result": client.get_result(reference), "result_truncated": False}
    return show_run(snapshot, output)


def items_there(
    client: "Client", *, output: str, reference: str, failed: bool, status: str | None, limit: int | None, **more: Any
) -> int:
    """Shows the items of a run of a gateway."""
    key, position = more.pop("key"), more.pop("position")
    if key is not None or position is not None:
        return show_closely_there(client, reference, key=key, position=position, step=more["step"], output=output)
    items = client.list_items(reference, status="failed" if failed else status, limit=limit, **more)
    filtered = status is not None or any(more.values())
    none = f"run {reference} has no {'failed ' if failed else ''}items{' that fit' if filtered else ''}"
    return show(items, output, render.ITEMS, _item, none)


def logs_there(client: "Client", *, output: str, reference: str, follow: bool) -> int:
    """Shows the log of a run of a gateway."""
    after, over = 0, not follow
    while True:
        page = client.get_log(reference, after=after)
        for line in page["items"]:
            if output == "table":
                click.echo(render.log_line(Line(**line)))
            else:
                render.put(line)
        after = page["next_after"]
        if page["items"]:
            continue
        if over:
            return 0
        over = client.get_run(reference)["status"] in TERMINAL  # its last lines may have come since
        if not over:
            sleep(FOLLOW)


def _item(item: Any) -> tuple[str, ...]:
    took = render.duration(item["took"])
    return item["key"], item["task"], item["status"], f"{item['tries']}", took, item.get("error") or ""


def cancel_there(
    client: "Client", *, output: str, reference: str, reason: str, wait: bool, timeout_sec: float | None
) -> int:
    """Asks for a run of a gateway to stop."""
    snapshot = client.cancel_run(reference, wait, timeout_sec, reason=reason or None)
    status, ours = Status(snapshot["status"]), snapshot.get("cancel_requested_at") is not None
    told = Cancelled(
        name=f"run {snapshot.get('number', '')} of {snapshot['flow_name']}",
        status=status,
        counts=render.counts_of(snapshot.get("counts") or {}),
        cut=Cut.there(snapshot),
        late=status in TERMINAL and status is not Status.CANCELLED and not ours,
        waited=(timeout_sec or 0.0) if wait and status not in TERMINAL else None,
    )
    if output != "table":
        show_run(snapshot, output)
    else:
        click.echo(f"{told}")
    return told.exit_code


def resume_there(client: "Client", *, output: str, reference: str, keep_failed: bool, **local: Any) -> int:
    """Lets a run of a gateway go on."""
    del local  # where the flow is, and how progress is shown, is for runs that are carried out here
    snapshot = client.resume_run(reference, failed=not keep_failed)
    if output != "table":
        return show_run(snapshot, output)
    who = f"a worker for {snapshot['tag']!r} goes on with it"
    click.echo(f"run {snapshot.get('number', '')} of {snapshot['flow_name']} is {snapshot['status']}: {who}")
    return 0


# ------------------------------------------------------------------------------------------------ commands of their own


@click.command(short_help="Show the tasks of a run of a gateway.")
@reference
@output_option("table", "json")
@over_http
def tasks(client: "Client", *, reference: str, output: str) -> int:
    """Show the tasks of a run, with what is recorded of them.

    \b
      tsuzuki tasks 12
      tsuzuki tasks --run-id 12 -o json
    """  # noqa: D301 - click reads \b as: keep these lines
    found = client.get_tasks(reference)
    if output == "json":
        render.put(found)
        return 0
    records = found["task_records"]
    rows = [(name, state, records.get(name, {})) for name, state in found["tasks"].items()]
    return show(rows, "table", ("TASK", "STATE", "TOOK", "ERROR"), _task, _no_tasks(found))


def _no_tasks(found: Any) -> str:
    """Says that there are no tasks: a run that has ended will have none."""
    over = found["status"] in TERMINAL
    return f"run {found['run_id']} of {found['flow_name']} {'called no tasks' if over else 'has no tasks yet'}"


def _task(row: tuple[str, str, Any]) -> tuple[str, ...]:
    name, state, record = row
    took = record.get("duration_ms")
    return name, state, "" if took is None else render.duration(took / 1000), record.get("error") or ""


@click.command("list-vnext", short_help="Show one page of the runs of a gateway.")
@click.option("--status", multiple=True, help="May be repeated.")
@click.option("--flow", metavar="NAME", help="Only runs of this flow.")
@click.option("--tag", help="Only runs for workers with this tag.")
@click.option("--workflow-yaml-sha256", metavar="DIGEST", help="Only runs of this YAML text.")
@click.option("--updated-after", type=float, metavar="SECONDS", help="Only runs that changed after this Unix time.")
@click.option("--cursor", default="", help="Where the page before ended.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200), help="At most so many.")
@output_option("table", "json")
@over_http
def list_vnext(client: "Client", *, status: tuple[str, ...], output: str, **more: Any) -> int:
    """Show one page of runs and the cursor of the next: for programs that look again and again.

    \b
      tsuzuki list-vnext --updated-after 1767225600 -o json
      tsuzuki list-vnext --cursor eyJ1Ijox…
    """  # noqa: D301 - click reads \b as: keep these lines
    page = client.list_runs_vnext(status=[word.upper() for word in status] or None, **more)
    if output == "json":
        render.put(page)
        return 0
    show(page["items"], output, LIST, listed, f"no runs at {client.server} fit")
    if page["next_cursor"]:
        click.echo(f"more: --cursor {page['next_cursor']}", err=True)
    return 0


def workers_there(
    client: "Client",
    *,
    output: str,
    everyone: bool,
    state: str | None,
    hidden: bool,
    limit: int | None,
    hide: tuple[str, ...],
    unhide: tuple[str, ...],
) -> int:
    """Lists the workers of a gateway, or hides some."""
    for worker, unseen in (*((name, True) for name in hide), *((name, False) for name in unhide)):
        client.hide_worker(worker, hidden=unseen)
        if output == "table":
            click.echo(f"worker {worker} is {'hidden' if unseen else 'shown'}")
    if (hide or unhide) and output == "table":
        return 0
    scope = "all" if everyone or state else "active"
    seen = client.list_workers(scope=scope, state=state, include_hidden=hidden, limit=limit)
    return show(seen, output, _WORKERS, _worker, f"no workers at {client.server}; --all shows those that left, too")


def _worker(worker: Any) -> tuple[str, ...]:
    run, last = worker["current_run_id"] or "", worker["last_run_status"] or ""
    failing = (worker.get("wheel_sync") or {}).get("last_result") == "error"
    state = worker["state"] + (" (hidden)" if worker["hidden"] else "") + (" (wheel sync fails)" if failing else "")
    return worker["worker_id"], state, ",".join(worker["tags"]), run, last, render.local(worker["last_seen_at"])


@click.command(short_help="Show the flows that the workers of a gateway know.")
@output_option("table", "json", "jsonl")
@over_http
def flows(client: "Client", *, output: str) -> int:
    """Show the flows that live workers know, with their params.

    \b
      tsuzuki flows
      tsuzuki flows -o json | jq '.[].params'
    """  # noqa: D301 - click reads \b as: keep these lines
    return show(client.list_flows(), output, _FLOWS, _flow, "no worker knows a flow")


def _flow(flow: Any) -> tuple[str, ...]:
    schema = flow["params"] or {}
    needed = set(schema.get("required", ()))
    names = (name if name in needed else f"[{name}]" for name in schema.get("properties", ()))
    return flow["name"], " ".join(names), ",".join(flow["tags"]), flow["doc"].partition("\n")[0]


@click.command(short_help="Print the metrics of a gateway.")
@over_http
def metrics(client: "Client") -> int:
    """Print the metrics of a gateway in the text format of Prometheus.

    \b
      tsuzuki metrics | grep runs_total
    """  # noqa: D301 - click reads \b as: keep these lines
    click.echo(client.get_metrics(), nl=False)
    return 0


COMMANDS: Final = (tasks, list_vnext, flows, metrics)
