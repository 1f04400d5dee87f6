"""A demonstration of a few seconds: a run is killed in the middle, started again, and does nothing twice."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tsuzuki import settings
from tsuzuki.backends import Query
from tsuzuki.clock import SystemClock
from tsuzuki.flow import task
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs
from tsuzuki.script import flow

ITEMS: Final = 300
AT_ONCE: Final = 10
KILL_AT: Final = 120
PATIENCE: Final = 30.0
TARGET: Final = "tsuzuki.demo:translate_all"
NEXT: Final = """Try next:
  {command} list
  {command} get {number}
  {command} items {number}
  {command} run examples/crawl.py    (press Ctrl-C, then run it again)
  {command} --help"""


@task
async def translate(number: int) -> str:
    """Stands for something slow and dear; it keeps a tally of its calls, outside of Tsuzuki."""
    with _tally().open("a", encoding="utf-8") as calls:
        calls.write(f"{number}\n")
    await asyncio.sleep(random.uniform(0.05, 0.25))
    return f"sentence {number}"


@flow
async def translate_all(items: int = ITEMS) -> int:
    """Translates so many sentences."""
    return len(await translate.map(range(items), concurrency=AT_ONCE))


def _tally() -> Path:
    return settings.data_dir() / "demo-calls.txt"


def main() -> int:
    """Shows it."""
    _tally().parent.mkdir(parents=True, exist_ok=True)
    _tally().unlink(missing_ok=True)
    print(f"Tsuzuki: {ITEMS} slow items, {AT_ONCE} at a time. At about item {KILL_AT} the process gets kill -9.\n")
    first = _start("--fresh")
    if not asyncio.run(_reached_the_middle(first)):
        print("The run ended before it could be killed: there is nothing to show.")
        return first.wait() or 1
    first.kill()
    first.wait()
    number, before = asyncio.run(_recorded())
    print(f"\n*** kill -9 ***  {len(before)} of {ITEMS} items are in the journal\n")
    code = _start().wait()
    _, after = asyncio.run(_recorded())
    return code or _tell(number, before, after)


def _start(*options: str) -> "subprocess.Popen[bytes]":
    print(" ".join(["$ tsuzuki run", TARGET, *options]), flush=True)
    store = ("--backend", settings.backend_url()) if settings.server_is_set() else ()  # or else it would be refused
    return subprocess.Popen([sys.executable, "-m", "tsuzuki.cli", "run", TARGET, *store, *options])  # noqa: S603 - our own


async def _reached_the_middle(process: "subprocess.Popen[bytes]") -> bool:
    """Waits until part of the work is recorded; tells whether the process is still at it."""
    clock = SystemClock()
    patience = clock.monotonic() + PATIENCE
    async with Runs.open() as runs:
        while process.poll() is None and clock.monotonic() < patience:
            row = await _newest(runs)
            if row is not None and row.holder is not None and row.done >= KILL_AT:
                return True
            await clock.sleep(0.02)
    return process.poll() is None


async def _recorded() -> tuple[int, list[str]]:
    """Gives the number of the run, and the key of each recorded item."""
    async with Runs.open() as runs:
        row = await _newest(runs)
        return (0, []) if row is None else (row.number, [item["key"] async for item in runs.items(row.id)])


async def _newest(runs: Runs) -> Run | None:
    return max(await runs.list(Query(flow=translate_all.name, limit=5)), key=lambda row: row.number, default=None)


def _tell(number: int, before: list[str], after: list[str]) -> int:
    """Says what the journal and the tally prove, and what to try next."""
    calls = Counter(_tally().read_text().split())
    once = len(after) == len(set(after)) == ITEMS
    twice = sum(calls[key] > 1 for key in before)
    under_way = sum(calls[key] - 1 for key in calls.keys() - set(before))
    print(
        f"\n{len(set(after))} of {ITEMS} items are recorded, {'each exactly once' if once else 'but NOT each once'}."
        f"\nOf the {len(before)} recorded before the kill, {twice or 'none'} were called again."
        f"\nOf the {AT_ONCE} under way at that moment, {under_way} were: nobody can know how far they had come.\n"
    )
    print(NEXT.format(command=_command(), number=number))
    return 0 if once and not twice else 1


def _command() -> str:
    """Says how to call the command line from here."""
    if shutil.which("tsuzuki"):
        return "tsuzuki"
    beside = os.path.relpath(Path(sys.executable).with_name("tsuzuki"))
    return "python -m tsuzuki.cli" if beside.startswith("..") else beside


if __name__ == "__main__":
    sys.exit(main())
