"""Many runs in one process, and what they leave: `many.py RUNS`; says its threads, files and memory at times."""

import asyncio
import sys
import threading
from pathlib import Path

from tests.acceptance.flows.calls import tell
from tsuzuki import flow, task


@task
async def one(number: int) -> int:
    await asyncio.sleep(0)
    return number + 1


@task
def two(number: int) -> int:
    return number * 2


@flow
async def little(number: int) -> int:
    return sum(await one.map(range(5))) + sum(await two.map(range(5))) + await two(number)  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow


def kilobytes() -> int:
    """Gives the memory of this process that belongs to it alone."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private"))


def measure() -> dict[str, int]:
    return {
        "threads": threading.active_count(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "kilobytes": kilobytes(),
    }


if __name__ == "__main__":
    count = int(sys.argv[1])
    for number in range(count):
        little.run(number=number)
        if number in {count // 4, count - 1}:
            tell(measure())
