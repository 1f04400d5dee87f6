"""The commands that stay with a run of a gateway: watch and events."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from tsuzuki.cli import render
from tsuzuki.cli.here import SOME_FAILED
from tsuzuki.cli.narrow import width_of
from tsuzuki.cli.progress import MOST_LINES, PLAIN, Pace, finished_in, step_line
from tsuzuki.cli.remote import output_option, over_http, reference, spoken
from tsuzuki.clock import SystemClock
from tsuzuki.errors import RunFailure, RunInterrupted, RunStopped

if TYPE_CHECKING:
    from tsuzuki.client import Client

_LOG_LINES: Final = 3
_EXIT: Final = {"FAILED": RunFailure.exit_code, "CANCELLED": RunStopped.exit_code}


class Screen:
    """Shows snapshots on stderr: live lines on a terminal, a line now and then elsewhere."""

    def __init__(self, client: "Client") -> None:
        self._client, self._clock, self._pace = client, SystemClock(), Pace()
        client.notice = self._say
        self._live = sys.stderr.isatty()
        self._drawn, self._status, self._told = 0, "", 0.0
        self._log: list[str] = []
        self._read = 0

    def see(self, snapshot: Any) -> None:
        """Shows a snapshot."""
        now = self._clock.monotonic()
        steps = self._steps(snapshot, now)
        before, self._status = self._status, snapshot["status"]
        if self._live:
            self._draw([self._headline(snapshot), *steps, *self._lines(snapshot)])
        elif self._status != before or now - self._told >= PLAIN:
            self._told = now
            for line in [self._headline(snapshot), *steps]:
                click.echo(line, err=True)

    def _say(self, sentence: str) -> None:
        """Says something between two pictures: what was drawn stays above it."""
        click.echo(sentence, err=True)
        self._drawn = 0

    def _headline(self, snapshot: Any) -> str:
        tasks = snapshot["tasks"]
        over = sum(state == "SUCCEEDED" for state in tasks.values())
        many = f", {over} of {len(tasks)} tasks" if tasks else ""
        error = f": {render.shortened(snapshot['error'])}" if snapshot.get("error") else ""
        return f"run {snapshot.get('number', '')} of {snapshot['flow_name']} is {snapshot['status']}{many}{error}"

    def _steps(self, snapshot: Any, now: float) -> list[str]:
        steps = [step for step in snapshot.get("progress") or () if isinstance(step, dict)][:MOST_LINES]
        rates = [self._pace.see(str(step.get("step")), finished_in(step), now) for step in steps]
        room = width_of(sys.stderr) - 3 if self._live else 0
        return [
            f"  {step_line(step, rate, bar=self._live, room=room)}" for step, rate in zip(steps, rates, strict=True)
        ]

    def _lines(self, snapshot: Any) -> list[str]:
        """Gives the last lines of the run's log."""
        page = self._client.get_log(snapshot["run_id"], after=self._read)
        self._read = page["next_after"]
        self._log = [*self._log, *(f"  {render.local(line['at'])}  {line['text']}" for line in page["items"])]
        self._log = self._log[-_LOG_LINES:]
        return self._log

    def _draw(self, lines: list[str]) -> None:
        width = width_of(sys.stderr) - 1
        above = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        shown = [render.clipped(render.one_line(line), width) for line in lines]
        shown[0] = render.painted(shown[0], self._status, sys.stderr)
        sys.stderr.write(above + "".join(f"{line}\n" for line in shown))
        sys.stderr.flush()
        self._drawn = len(lines)


def watched(
    client: "Client",
    run_id: str,
    *,
    output: str,
    timeout_sec: float | None = None,
    tell: Callable[["Client", Any], None] | None = None,
) -> int:
    """Watch a run until it has ended or the time is over, and return its exit code. Ctrl-C only stops watching.

    What is printed on stdout at the end is its status, unless `tell` prints something else.
    """
    screen, snapshot = Screen(client), None
    try:
        for snapshot in client.watch_run(run_id, timeout_sec=timeout_sec):
            if output in ("json", "jsonl"):
                render.put(snapshot)
            else:
                screen.see(snapshot)
    except KeyboardInterrupt:
        again = spoken(client, f"watch {run_id if snapshot is None else snapshot.get('number', run_id)}")
        click.echo(f"not watching any more; the run goes on: {again} watches it again", err=True)
        return RunInterrupted.exit_code
    if snapshot is None:
        return 0
    if output == "status":
        _advise(client, snapshot)
    if tell is not None:
        tell(client, snapshot)
    elif output == "status":
        click.echo(snapshot["status"])
    some_failed = bool((snapshot.get("counts") or {}).get("failed"))
    return _EXIT.get(snapshot["status"], SOME_FAILED if some_failed and snapshot["status"] == "COMPLETED" else 0)


def _advise(client: "Client", snapshot: Any) -> None:
    """Says what can be done next with a run that did not end well."""
    number, failed = snapshot.get("number", snapshot["run_id"]), (snapshot.get("counts") or {}).get("failed")
    if failed:
        say = spoken(client, f"items {number} --failed", store=True)
        click.echo(f"{render.counted(failed, 'item')} failed: {say} shows why", err=True)
    if snapshot["status"] in _EXIT or (failed and snapshot["status"] == "COMPLETED"):
        what = "tries only that again" if failed else "goes on; what has finished is not done again"
        click.echo(f"{spoken(client, f'resume {number}', store=True)} {what}", err=True)


@click.command(short_help="Watch a run of a gateway.")
@reference
@click.option("--timeout-sec", type=click.FloatRange(0), help="Stop watching after so many seconds.")
@output_option("status", "json", "jsonl")
@over_http
def watch(client: "Client", *, reference: str, timeout_sec: float | None, output: str) -> int:
    """Watch a run until it has ended: its steps and items, how long they will take, and its last log lines.

    Ctrl-C stops watching; the run goes on. The exit code is that of the run: 0, 5 failed, 6 some items failed,
    7 cancelled.

    \b
      tsuzuki watch 12
      tsuzuki watch 12 -o json | jq .status
    """  # noqa: D301 - click reads \b as: keep these lines
    return watched(client, reference, output=output, timeout_sec=timeout_sec)


@click.command(short_help="Follow the journal of a run of a gateway.")
@reference
@click.option("--after", default=0, type=click.IntRange(0), help="Begin after this position.")
@output_option("table", "jsonl", "json")
@over_http
def events(client: "Client", *, reference: str, after: int, output: str) -> int:
    """Follow the journal of a run, from its beginning or from a position, until the run has ended.

    \b
      tsuzuki events 12
      tsuzuki events 12 --after 500 -o jsonl
    """  # noqa: D301 - click reads \b as: keep these lines
    for fact in client.events(reference, after=after):
        if output == "table":
            told = {name: value for name, value in fact.items() if name not in ("position", "kind", "at", "traceback")}
            words = "  ".join(f"{name}={render.shortened(_said(value), 60)}" for name, value in told.items())
            click.echo(render.fitted(f"{fact['position']:>6}  {fact['kind']:<13} {words}".rstrip()))
        else:
            render.put(fact)
    return 0


def _said(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


COMMANDS: Final = (watch, events)
