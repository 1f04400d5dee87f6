"""A demonstration of a few seconds: a run is killed in the middle, started again, and does nothing twice."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tsuzuki import settings
from tsuzuki.backends import Query
from tsuzuki.clock import SystemClock
from tsuzuki.errors import StoreError
from tsuzuki.flow import task
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs
from tsuzuki.script import flow

ITEMS: Final = 300
AT_ONCE: Final = 10
KILL_AT: Final = 120
PATIENCE: Final = 30.0
TARGET: Final = "tsuzuki.demo:translate_all"
TALLY: Final = "demo-calls.txt"
_GIVEN: Final = "translate_all(items=300)"


@task
async def translate(number: int, tally: str) -> str:
    """Stands for something slow and dear; it keeps a tally of its calls, outside of Tsuzuki."""
    with Path(tally).open("a", encoding="utf-8") as calls:  # noqa: ASYNC230 - one short line
        calls.write(f"{number}\n")
    await asyncio.sleep(random.uniform(0.05, 0.25))
    return f"sentence {number}"


@flow
async def translate_all(items: int, tally: str) -> int:
    """Translates so many sentences."""
    return len(await translate.map(range(items), tally=tally, concurrency=AT_ONCE))


def main() -> int:
    """Shows it."""
    folder = settings.data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    tally = folder / TALLY
    tally.unlink(missing_ok=True)
    url = settings.backend_url(directory=folder)

    print(f"Tsuzuki: {ITEMS} slow items, {AT_ONCE} at a time. At about item {KILL_AT} the process gets kill -9.\n")
    _say_command(fresh=True)
    first = _start(folder, tally, fresh=True)
    row = asyncio.run(_kill_midway(first, url))
    print(f"\n*** kill -9 ***  {row.done} of {ITEMS} items are in the journal\n")

    _say_command(fresh=False)
    code = _start(folder, tally, fresh=False).wait()
    return _tell(row, tally) if code == 0 else code


def _say_command(*, fresh: bool) -> None:
    print(f"$ tsuzuki run {TARGET} -p items={ITEMS}{' --fresh' if fresh else ''}", flush=True)


def _start(folder: Path, tally: Path, *, fresh: bool) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tsuzuki.cli", "run", TARGET, "--data-dir", str(folder)]
    params = ["-p", f"items={ITEMS}", "-p", f"tally={tally}"]
    return subprocess.Popen([*command, *params, *(["--fresh"] if fresh else [])])  # noqa: S603 - our own arguments


async def _kill_midway(process: "subprocess.Popen[bytes]", url: str) -> Run:
    """Kills the process without any warning, once part of the work is recorded."""
    clock = SystemClock()
    patience = clock.monotonic() + PATIENCE
    async with Runs.open(url) as runs:
        while process.poll() is None and clock.monotonic() < patience:
            row = await _newest(runs)
            if row is not None and row.holder is not None and row.done >= KILL_AT:
                break
            await clock.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        row = await _newest(runs)
    if row is None:
        raise StoreError("the demonstration could not start its run")
    return row


async def _newest(runs: Runs) -> Run | None:
    return max(await runs.list(Query(flow=translate_all.name, limit=5)), key=lambda row: row.number, default=None)


def _tell(row: Run, tally: Path) -> int:
    """Says what the tally proves, and what to try next."""
    calls = Counter(tally.read_text().split())
    repeated = sum(calls.values()) - len(calls)
    command = _command()
    print(
        f"\nEvery one of the {ITEMS} items is recorded exactly once. Of the {row.done} that were recorded before the kill,"
        f"\nnone was called again; {repeated} that were under way at that moment were (at most {AT_ONCE} can be).\n"
        f"\nTry next:"
        f"\n  {command} list                   what ran here"
        f"\n  {command} get {row.number}                  this run"
        f"\n  {command} items {row.number}                its items"
        f"\n  {command} run examples/crawl.py  another one: press Ctrl-C, then run it again"
        f"\n  {command} --help"
    )
    return 0


def _command() -> str:
    """Says how to call the command line from here."""
    if shutil.which("tsuzuki"):
        return "tsuzuki"
    beside = os.path.relpath(Path(sys.executable).with_name("tsuzuki"))
    return "python -m tsuzuki.cli" if beside.startswith("..") else beside


if __name__ == "__main__":
    sys.exit(main())
