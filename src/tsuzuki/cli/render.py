"""How runs, numbers, times and tables look to people."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO
from unicodedata import category

import click
import msgspec

from tsuzuki import lifecycle, settings
from tsuzuki.backends import Line, amount
from tsuzuki.cli.narrow import columns, squeezed, width_of
from tsuzuki.holders import interrupted
from tsuzuki.lifecycle import Run, Status, is_waiting, last_heartbeat
from tsuzuki.runs import plain
from tsuzuki.spending import told, usage

NARROW: Final = 100
"""A JSON value that fits into so many columns is shown on one line."""
_OURS: Final = f'  File "{Path(__file__).parents[1]}{os.sep}'
INTERRUPTED: Final = "interrupted"
WITH_FAILURES: Final = lifecycle.WITH_FAILURES.lower()
"""The word for a run that was stopped on the way; no status of the store."""
_TINY: Final = 0.1
_SAMPLE: Final = 200
_WIDEST: Final = 60
_WIDEST_LAST: Final = 400
MOST_SHOWN: Final = 4000
"""So many characters of a result or of params are shown to people."""
_ENOUGH: Final = 4096
"""More of a text than this is not even looked at."""
COLOURS: Final = {
    "COMPLETED": "green",
    "FAILED": "red",
    "failed": "red",
    "CANCELLED": "yellow",
    "CANCELLING": "yellow",
    INTERRUPTED: "yellow",
    "DISCONNECTED": "yellow",
    "RUNNING": "cyan",
}
"""Words that are easier to find in colour."""
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
ITEMS: Final = ("KEY", "TASK", "OUTCOME", "TRIES", "TOOK", "ERROR")
"""The columns of a table of items."""
NUMBERS: Final = frozenset({"RUN", "DONE", "FAILED", "TRIES", "TOOK"})
"""The columns of runs and items that have numbers in them."""

json_option: Final = click.option("--json", "as_json", is_flag=True, help="JSON for programs instead of text.")


def put(value: Any) -> None:
    """Writes a value to stdout as one line of JSON."""
    click.echo(msgspec.json.encode(value))


def shown_json(data: bytes) -> str:
    """Gives JSON for people: on one line where it is short, indented where it is not."""
    short = msgspec.json.format(data, indent=0).decode()
    return short if len(short) <= NARROW else msgspec.json.format(data, indent=2).decode()


def result_text(data: bytes) -> str:
    """Gives a result for people: a text as it is, all else as JSON."""
    value = msgspec.json.decode(data)
    return value if isinstance(value, str) else shown_json(data)


def put_result(data: bytes, *, completed: bool) -> None:
    """Print the result of a run that was carried out or watched to its end, where it has one."""
    if completed and data != b"null":
        text = result_text(data)  # into a pipe as it is: click would leave escape sequences out
        click.echo(harmless(text) if sys.stdout.isatty() else text, color=True)


def truncate(text: str, size: int, ways: str) -> str:
    """Return a text that people can read on a terminal: of a long one the beginning, its size and how to see it all."""
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}\n… cut after {amount(MOST_SHOWN)} of {amount(size)}; {ways} shows all of it"


def counted(number: int, one: str, many: str = "") -> str:
    """Gives a number with its noun: 1 run, 2,000 runs."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def duration(seconds: float) -> str:
    """Gives a duration in at most two units: 0.3s, 12s, 3m 5s, 2h 10m."""
    if seconds < 1:
        return f"{seconds:.3f}s" if seconds < _TINY else f"{seconds:.1f}s"
    left, parts = round(seconds), list[str]()
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def log_line(line: Line) -> str:
    """Gives a line of a run's log."""
    place = f"{line.name}[{shortened(line.key)}]" if line.key else line.name
    level = "" if line.level == "info" else f"{line.level.upper()} "
    said = harmless(f"{f'{place}: ' if place else ''}{level}{line.text}")
    return f"{local(line.at)}  {said}".replace("\n", "\n    ")  # so that no line can look like the next one


def local(stamp: str | float | None) -> str:
    """Gives a time of the store as the clock on the wall shows it."""
    if stamp is None:
        return ""
    at = datetime.fromisoformat(stamp) if isinstance(stamp, str) else datetime.fromtimestamp(stamp, UTC)
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def took(run: Run) -> str:
    """Gives how long a run has taken, once it has ended."""
    if run.started_at is None or run.finished_at is None:
        return ""
    passed = datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)
    return duration(passed.total_seconds()) if passed.total_seconds() >= 1 else "<1s"


def status_word(run: Run, gone: frozenset[str], waited_for: frozenset[str]) -> str:
    """Gives the status of a run for people."""
    return INTERRUPTED if interrupted(run, gone, waited_for) else run.status.value


def status_text(status: str, failed: int) -> str:
    """Return the status of one run, and how many of its items failed if it completed all the same."""
    return f"{status}, {failed:,} failed" if status == Status.COMPLETED and failed else str(status)


def record(run: Run, gone: frozenset[str], waited_for: frozenset[str]) -> dict[str, Any]:
    """Gives a row for programs."""
    fields = plain(run)
    fields |= {"usage": usage(run.spent), "heartbeat_at": last_heartbeat(run)}
    del fields["spent"]
    waits = {"waits_for": waits_for(run), "waiting_until": run.not_before if is_waiting(run) else None}
    return {**fields, "interrupted": interrupted(run, gone, waited_for), **waits}


def usage_lines(sums: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Gives the lines that tell what was used of models: all together, and each where there are several."""
    if sums is None:
        return
    several = len(sums["models"]) > 1
    if several:
        yield "usage", told(sums)
    for model in sums["models"]:
        yield "" if several else "usage", f"{model['provider']}/{model['model'] or '?'}: {told(model)}"


WAITS: Final = "WAITS FOR"
"""A column that is there where a run waits for a time to come."""


def waits_for(run: Run) -> str:
    """Return what a run waits for, in the words of the step that waits, such as an open batch, or of its `Later`."""
    if not is_waiting(run):
        return ""
    steps = msgspec.json.decode(bytes(run.progress))
    return next((one_line(step["text"]) for step in steps if step.get("text")), one_line(run.waiting_reason))


def wait_line(until: float | None, reason: str) -> str:
    """Return what a run waits for, and until when; an empty text for one that does not wait."""
    return "" if until is None else (f"{reason}, " if reason else "") + f"until {local(until)}"


def wait_of(run: Run) -> str:
    """Return the same for a row."""
    return wait_line(run.not_before if is_waiting(run) else None, waits_for(run))


def counts(run: Run) -> str:
    """Gives what a run has done: 998 done, 2 failed."""
    return counts_of({"done": run.done, "failed": run.failed, "skipped": run.skipped, "steps": run.steps})


def counts_of(numbers: Mapping[str, int]) -> str:
    """Gives the same of a run that a gateway tells of."""
    told = [f"{numbers[word]:,} {word}" for word in ("done", "failed", "skipped") if numbers.get(word)]
    told += [counted(numbers["steps"], "step")] if numbers.get("steps") else []
    return ", ".join(told) or "no items"


def recorded(run: Run) -> int:
    """Gives how many outcomes of a run need not be done again."""
    return run.done + run.skipped + run.steps


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[str] = frozenset()) -> Iterator[str]:
    """Gives the lines of a table: of a list its columns are as wide as all rows need, of a stream as those so far."""
    shape, source = Table(head, right), iter(rows)
    page = list(source) if isinstance(rows, list) else list(islice(source, _SAMPLE))
    yield shape.head(page)
    while page:
        yield from shape.lines(page)
        page = list(islice(source, _SAMPLE))


class Table:
    """A table that is printed a page at a time; its columns grow with what comes, and never shrink.

    What is long is shortened in the middle, the last column less than the others, and all of them where the terminal
    is too narrow for the table; programs read --json.
    """

    def __init__(self, head: Sequence[str], right: frozenset[str] = frozenset()) -> None:
        self._head, self._right = head, right
        self._widths = [columns(name) for name in head]

    def head(self, page: Iterable[Sequence[str]]) -> str:
        """Gives the line above the first page."""
        self._grow([self._short(row) for row in page])
        return self._line(self._head)

    def lines(self, page: Iterable[Sequence[str]]) -> Iterator[str]:
        """Gives the lines of a page."""
        rows = [self._short(row) for row in page]
        self._grow(rows)
        for row in rows:
            words = [cell for cell in row if cell in COLOURS]
            yield painted(self._line(row), words[0], sys.stdout) if words else self._line(row)

    def _grow(self, rows: list[list[str]]) -> None:
        for row in rows:
            self._widths = list(map(max, self._widths, map(columns, row)))

    def _short(self, row: Sequence[str]) -> list[str]:
        last = len(self._head) - 1
        return [shortened(cell, _WIDEST if at < last else _WIDEST_LAST) for at, cell in enumerate(row)]

    def _line(self, row: Sequence[str]) -> str:
        widths = self._widths
        if sys.stdout.isatty() and sum(widths) + 2 * len(widths) > (room := width_of(sys.stdout)):
            widths = squeezed(widths, [name in self._right for name in self._head], room)
            row = [shortened(cell, width) for cell, width in zip(row, widths, strict=True)]
        parts = zip(self._head, row, widths, strict=True)
        cells = [padded(cell, width, right=name in self._right) for name, cell, width in parts]
        return fitted("  ".join(cells).rstrip())


def shortened(text: str, width: int = NARROW) -> str:
    """Gives a text on one line, of at most so many columns: the beginning and the end tell most."""
    line = one_line(text if len(text) <= _ENOUGH else f"{text[: _ENOUGH // 2]}…{text[-_ENOUGH // 2 :]}")
    if columns(line) <= width:
        return line
    tail = line[-width // 4 :]
    while columns(tail) > width // 4:
        tail = tail[1:]
    return clipped(line, width - columns(tail)) + tail


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Fills a text up to so many columns."""
    space = " " * (width - columns(text))
    return space + text if right else text + space


def fitted(line: str) -> str:
    """Cuts a line to the width of the terminal, where stdout is one."""
    if not sys.stdout.isatty():
        return line
    return clipped(line, width_of(sys.stdout))


def painted(line: str, word: str, stream: TextIO) -> str:
    """Colours a word of a line, where the stream is a terminal and colours are wanted."""
    if word not in COLOURS or not stream.isatty() or settings.colourless():
        return line
    return re.sub(rf"(?<!\w){word}(?!\w)", lambda found: click.style(found[0], fg=COLOURS[word]), line, count=1)


def clipped(line: str, width: int) -> str:
    """Cuts a line that is too long."""
    if columns(line) <= width:
        return line
    while columns(line) >= width and line:
        line = line[: -max((columns(line) - width) // 2, 1)]
    return f"{line}…"


def one_line(text: str) -> str:
    """Gives a text without line breaks and signs that would steer a terminal."""
    return " ".join(text.split()) if text.isprintable() else "".join(map(_printable, " ".join(text.split())))


def harmless(text: str) -> str:
    """Gives a text with its lines and without signs that would steer a terminal: what it says came from anywhere."""
    return text if text.isprintable() else "".join(map(_with_lines, text))


def _with_lines(sign: str) -> str:
    return sign if sign in "\n\t" or category(sign) == "Zs" else _printable(sign)


def _printable(sign: str) -> str:
    return sign if sign.isprintable() else f"\\x{ord(sign):02x}"


def users_part(trace: str) -> str:
    """Gives a traceback without the frames of Tsuzuki itself."""
    kept, ours = list[str](), False
    for line in trace.rstrip().splitlines():
        if line.startswith('  File "'):
            ours = line.startswith(_OURS)
        elif not line.startswith("    "):
            ours = False
        if not ours:
            kept.append(line)
    return "\n".join(kept)


def ourselves() -> str:
    """Gives how `tsuzuki` is called from the current folder: by its name where that is this very program."""
    beside, found = Path(sys.executable).with_name("tsuzuki"), shutil.which("tsuzuki")
    if not beside.exists() or (found is not None and Path(found).resolve() == beside.resolve()):
        return "tsuzuki"
    return shlex.quote(near(str(beside)))


def near(path: str) -> str:
    """Gives a path as seen from the current folder, where that is shorter."""
    seen = os.path.relpath(path)
    return path if seen.startswith("..") else seen
