"""`python -m bench.load`: loads a gateway and two workers, looks at them every second, purges, and does it again."""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.http.asking import lane
from bench.http.parts import Part, gateway, started
from bench.load.seen import Look, Looks, parts
from bench.ours import address
from bench.page import IMAGES, written
from bench.plot import drawn
from bench.process import fresh_folder, measure
from bench.report import machine

FLOWS: Final = "bench/load/flows.py"
LANES: Final = 16
SECOND: Final = 1.0
LONGEST_WATCH: Final = 600
TIMES: Final = 6
"""A watcher whose watch has run out asks again, as often as this."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much."""

    runs: int
    items: int
    watchers: int
    cycles: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--cycles", type=int, default=2)
    parser.add_argument("--print", action="store_true", help="only print; docs/performance.md stays as it is")
    options = parser.parse_args()
    load = Load(options.runs, options.items, options.watchers, options.cycles)
    facts = machine(measure("bench.yardsticks:fsyncs", 200)["ms"])
    looks = Looks()
    with fresh_folder() as folder:
        ended = _loaded(folder, load, looks)
    text = _page(load, looks, ended)
    print(text)
    if options.print:
        return
    pictures = {
        "load-latency": drawn("Answer to a submission", looks.latencies(), x="seconds", y="ms", steep=True),
        "load-memory": drawn("Memory", looks.memory(), x="seconds", y="MB"),
        "load-files": drawn("Files of the store", looks.files(), x="seconds", y="MB"),
    }
    for name, picture in pictures.items():
        (IMAGES / f"{name}.svg").write_bytes(picture)
    shown = "\n\n".join(f"![{name}](images/{name}.svg)" for name in pictures)
    written("load", f"{text}\n\n{shown}", "make load", facts)


def _loaded(folder: Path, load: Load, looks: Looks) -> list[Look]:
    """Gives what was seen after each cycle's purge."""
    ended = []
    with ExitStack() as stack:
        serving, port = stack.enter_context(gateway(folder))
        working = [stack.enter_context(_worker(folder, number)) for number in (1, 2)]
        told = parts(serving, working)
        for cycle in range(1, load.cycles + 1):
            print(f"cycle {cycle}", file=sys.stderr, flush=True)
            asyncio.run(_cycle(port, folder, load, looks, told))
            looks.take(told, folder, "loaded")
            _purged(folder)
            ended.append(looks.take(told, folder, "purged"))
    return ended


@contextmanager
def _worker(folder: Path, number: int) -> Iterator[Part]:
    named = ("--worker-id", f"load-{number}", "--concurrency", "50")
    with started(folder, "worker", "--flows", FLOWS, *named) as part:
        part.waited("takes runs")
        yield part


def _purged(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tsuzuki.cli",
        "purge",
        "--older-than",
        "0s",
        "--yes",
        "--backend",
        address(folder),
    ]
    subprocess.run(command, check=True, capture_output=True)


# A cycle


async def _cycle(port: int, folder: Path, load: Load, looks: Looks, told: dict[str, Part]) -> None:
    async with lane(port) as asking:
        body = {"flow_name": "many_items", "params": {"count": load.items}}
        big = (await asking.json("POST", "/runs", body))["run_id"]
    watching = [asyncio.create_task(_watched(port, big)) for _ in range(load.watchers)]
    looking = asyncio.create_task(_looking(folder, looks, told))
    numbers = iter(range(load.runs))
    began = perf_counter()
    await asyncio.gather(*(_submitting(port, numbers, looks) for _ in range(LANES)))
    looks.rates.append(load.runs / (perf_counter() - began))
    async with lane(port) as asking:
        while any([await asking.json("GET", f"/runs?status={status}&limit=1") for status in ("PENDING", "RUNNING")]):
            await asyncio.sleep(0.5)
    looks.ended.append(load.runs / (perf_counter() - began))
    looks.watched.append(sum(await asyncio.gather(*watching)))
    looking.cancel()


async def _submitting(port: int, numbers: Iterator[int], looks: Looks) -> None:
    async with lane(port) as asking:
        for number in numbers:
            body = b'{"flow_name": "no_op_flow", "params": {"number": %d}}' % number
            began = perf_counter()
            await asking.ask("POST", "/runs", body)
            looks.answered(perf_counter() - began)


async def _watched(port: int, run_id: str) -> int:
    """Watches the large run to its end; gives 1 if it was told of it."""
    for _ in range(TIMES):
        async with lane(port) as asking:
            asking.send("GET", f"/runs/{run_id}/watch?timeout_sec={LONGEST_WATCH}")
            while line := await asking.reader.readline():
                if b'"status":"COMPLETED"' in line:
                    return 1
    return 0


async def _looking(folder: Path, looks: Looks, told: dict[str, Part]) -> None:
    while True:
        await asyncio.sleep(SECOND)
        looks.take(told, folder)


# The page


INTRODUCTION: Final = """\
{runs:,} runs submitted one by one over {lanes} connections; beside them one run with a map over {items:,} items, which
{watchers} watchers follow. One gateway and two workers on SQLite; {cycles} times, with `tsuzuki purge` after each.

| cycle | accepted | accepted and ended | watchers at the end | purged: file, of it the log | gateway | workers |
|---:|---:|---:|---:|---:|---:|---:|
"""


def _page(load: Load, looks: Looks, ended: list[Look]) -> str:
    lines = [_cycle_line(load, looks, number, look) for number, look in enumerate(ended)]
    p50, p99, worst = looks.percentiles()
    answered = f"{looks.count:,} submissions were answered in {p50:.1f} ms at p50, {p99:.1f} ms at p99"
    return (
        INTRODUCTION.format(runs=load.runs, items=load.items, watchers=load.watchers, cycles=load.cycles, lanes=LANES)
        + "\n".join(lines)
        + f"\n\n{answered}, {worst:.0f} ms at worst."
    )


def _cycle_line(load: Load, looks: Looks, number: int, look: Look) -> str:
    workers = " and ".join(f"{mb:.0f}" for name, mb in look.memory.items() if name != "gateway")
    cells = [
        f"{number + 1}",
        f"{looks.rates[number]:,.0f}/s",
        f"{looks.ended[number]:,.0f}/s",
        f"{looks.watched[number]} of {load.watchers}",
        f"{look.file:,.0f} MB, {look.log:,.0f} MB",
        f"{look.memory['gateway']:.0f} MB",
        f"{workers} MB",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
