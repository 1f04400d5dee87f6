"""A flow over many items, half of them async and half of them sync: `thousand.py ITEMS`."""

import asyncio
import sys

from tests.acceptance.flows.calls import called, pause, pause_here, tell
from tsuzuki import flow, task


@task
async def double(number: int) -> int:
    await pause(0.001, 0.005)
    called("double", number)
    return number * 2


@task
def square(number: int) -> int:
    pause_here(0.001, 0.005)
    called("square", number)
    return number**2


@flow
async def thousand(items: int) -> list[int]:
    doubled, squared = await asyncio.gather(
        double.map(range(0, items, 2), concurrency=8),
        square.map(range(1, items, 2), concurrency=8),
    )
    return [*doubled, *squared]


if __name__ == "__main__":
    tell(thousand.run(items=int(sys.argv[1])).result)
