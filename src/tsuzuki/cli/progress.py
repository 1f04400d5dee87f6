"""Shows on stderr how far a run is: live lines on a terminal, a plain line now and then elsewhere."""

import asyncio
import sys
import threading
from collections import deque
from types import TracebackType
from typing import Any, Final, Self, TextIO

import click
import msgspec

from tsuzuki.cli.narrow import broken, columns, width_of
from tsuzuki.cli.render import clipped, counted, duration, one_line, padded, recorded, shortened
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import TsuzukiError
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs
from tsuzuki.watchers import STOPPING, wait_text

LIVE: Final = 0.2
"""How often the live lines are drawn anew (seconds)."""
PLAIN: Final = 5.0
"""How often a plain line is written (seconds)."""
WINDOW: Final = 10.0
"""The rate is what was finished in the last so many seconds."""
MOST_LINES: Final = 6
MANY: Final = 10.0
"""From so many per second on, a rate is shown without decimals."""
BAR: Final = 24
_SHORTEST_BAR: Final = 6
_SHORTEST_NAME: Final = 8
_GIVING_WAY: Final = ("rate", "percent", "eta")
"""What a line leaves out where there is no room for it, one after the other."""


class Pace:
    """How fast each step is, from what was seen of it lately."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def see(self, step: str, finished: int, at: float) -> float | None:
        """Takes a count; gives the rate per second, once there is one."""
        seen = self._seen.setdefault(step, deque())
        seen.append((at, finished))
        while at - seen[0][0] > WINDOW:
            seen.popleft()
        passed = at - seen[0][0]
        return (finished - seen[0][1]) / passed if passed >= 1 else None


def step_line(step: dict[str, Any], rate: float | None, *, bar: bool, width: int = 0, room: int = 0) -> str:
    """Gives the line of one step: its name, a bar, counts, percent, rate and what is left.

    Where there is only so much room, the name gives way, then the bar, then the rate, the percent and what is left: the
    counts, and what the step says itself, such as its cost, tell more.
    """
    name = padded(step.get("name") or "flow", width)
    name = shortened(name, max(room // 3, _SHORTEST_NAME)) if room else name
    without: tuple[str, ...] = ()
    line = _line(name, step, rate, 0, without)
    while room and columns(line) > room and without != _GIVING_WAY:
        without = _GIVING_WAY[: len(without) + 1]
        line = _line(name, step, rate, 0, without)
    spare = room - columns(line) - 2 if room else BAR
    return _line(name, step, rate, min(spare, BAR), without) if bar and spare >= _SHORTEST_BAR else line


def _line(name: str, step: dict[str, Any], rate: float | None, bar: int, without: tuple[str, ...]) -> str:
    finished = finished_in(step)
    total = step.get("total")
    parts = [name]
    if total:
        share = min(finished / total, 1.0)
        full = round(share * bar)
        parts += [f"{'━' * full}{'╌' * (bar - full)}"] if bar else []
        parts += [f"{finished:,}/{total:,}", *([f"{int(share * 100):3d}%"] if "percent" not in without else [])]
    else:
        parts += [f"{finished:,} done"]
    parts += [f"{rate:,.1f}/s" if rate < MANY else f"{rate:,.0f}/s"] if rate and "rate" not in without else []
    eta = None if "eta" in without else left_for(step, rate)
    parts += [f"ETA {duration(eta)}"] if eta is not None and finished < (total or 0) else []
    parts += [f"{step[word]:,} {word}" for word in ("failed", "skipped") if step.get(word)]
    parts += [one_line(step["text"])] if step.get("text") else []
    return "  ".join(parts)


def finished_in(step: dict[str, Any]) -> int:
    """Gives how many items of a step have ended, in whatever way."""
    return int(step.get("done", 0) + step.get("failed", 0) + step.get("skipped", 0))


def left_for(step: dict[str, Any], rate: float | None) -> float | None:
    """Gives how long a step will still take: what was just seen counts more than the average so far."""
    if rate is None:
        eta: float | None = step.get("eta")
        return eta
    return float(max(step.get("total", 0) - finished_in(step), 0)) / rate if rate else None


class Above:
    """A stream beside the live lines: what is written to it stands above them."""

    def __init__(self, stream: TextIO, progress: "Progress") -> None:
        self._stream = stream
        self._progress = progress

    def write(self, text: str) -> int:
        """Takes the live lines away and writes."""
        with self._progress.turn:
            self._progress.clear()
            self._progress.within_a_line = not text.endswith("\n") if text else self._progress.within_a_line
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Progress:
    """Tells people on stderr what happens to a run while it is carried out here."""

    def __init__(self, runs: Runs, *, quiet: bool = False, clock: Clock | None = None) -> None:
        self._runs = runs
        self._quiet = quiet
        self._clock = clock or SystemClock()
        self._screen: TextIO = sys.stderr
        self._live = self._screen.isatty() and not quiet
        self._drawn: list[int] = []
        """The columns of each live line that stands there."""
        self._pace = Pace()
        self._task: asyncio.Task[None] | None = None
        self._streams: tuple[TextIO, TextIO] = (sys.stdout, sys.stderr)
        self.continued = False
        self.turn = threading.RLock()  # the user's functions print from threads of their own
        self.within_a_line = False

    async def __aenter__(self) -> Self:
        if self._live:
            sys.stderr = Above(sys.stderr, self)
            if sys.stdout.isatty():
                sys.stdout = Above(sys.stdout, self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.clear()
        sys.stdout, sys.stderr = self._streams

    # What the engine tells

    def began(self, run: Run, *, continued: bool) -> None:
        """Says which run this is, and whether it goes on."""
        self.continued = continued
        if continued:
            self.say(f"continuing run {run.number} of {run.flow}: {recorded(run):,} recorded", always=True)
        else:
            self.say(f"run {run.number} of {run.flow}")
        if self._task is not None:  # of a run that another process was quicker to go on with
            self._task.cancel()
        self._task = asyncio.create_task(self._watch(run.id), name="tsuzuki-progress")

    def stopping(self) -> None:
        """Says how to leave at once."""
        self.say(STOPPING, always=True)

    def waiting(self, run: Run) -> None:
        """Say until when the run waits, and why."""
        self.say(one_line(wait_text(run)), always=True)

    def changed(self, text: str) -> None:
        """Warns of a flow that has changed since the run was executed last."""
        self.say(f"warning: {text}", always=True)

    def say(self, text: str, *, always: bool = False) -> None:
        """Writes a line above the live ones."""
        if self._quiet and not always:
            return
        self.clear()
        click.echo(broken(text, self._screen), file=self._screen)

    # What is drawn

    async def _watch(self, run_id: str) -> None:
        told = self._clock.monotonic()
        while True:
            await self._clock.sleep(LIVE)
            try:
                lines = [] if self._quiet else self._lines(await self._runs.get(run_id))
            except TsuzukiError:  # the run itself will say so
                return
            if self._live:
                self._draw(lines)
            elif self._clock.monotonic() - told >= PLAIN:
                told = self._clock.monotonic()
                for line in lines:
                    self.say(line)

    def _lines(self, row: Run) -> list[str]:
        at = self._clock.monotonic()
        steps: list[dict[str, Any]] = msgspec.json.decode(bytes(row.progress))
        width = max((columns(step["name"]) for step in steps[:MOST_LINES]), default=0) if self._live else 0
        room = width_of(self._screen) - 1 if self._live else 0
        lines = [
            step_line(step, self._pace.see(step["step"], finished_in(step), at), bar=self._live, width=width, room=room)
            for step in steps[:MOST_LINES]
        ]
        more = len(steps) - MOST_LINES
        return [*lines, f"and {counted(more, 'more step')}"] if more > 0 else lines

    def _draw(self, lines: list[str]) -> None:
        width = width_of(self._screen) - 1
        with self.turn:
            self.clear()
            if self.within_a_line:
                return
            shown = [clipped(line, width) for line in lines]
            self._screen.write("".join(f"{line}\n" for line in shown))
            self._drawn = [columns(line) for line in shown]
            self._screen.flush()

    def clear(self) -> None:
        """Takes the live lines away."""
        if self._drawn:
            width = width_of(self._screen)  # somebody may have made it narrower: a line takes up several then
            rows = sum(max(-(-taken // width), 1) for taken in self._drawn)
            self._screen.write(f"\x1b[{rows}F\x1b[J")
            self._screen.flush()
            self._drawn = []
