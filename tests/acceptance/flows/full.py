"""A flow on a disk of so many bytes, or on one without a limit: `full.py [BYTES]`."""

import asyncio
import resource
import sys

from tests.acceptance.flows.calls import called, tell
from tsuzuki import TsuzukiError, flow, task


@task
async def fill(number: int) -> str:
    await asyncio.sleep(0.001)
    called("fill", number)
    return f"{number}:" + "x" * 2000


@flow
async def filling(items: int) -> int:
    return sum(len(text) for text in await fill.map(range(items), concurrency=8))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        size = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        tell(filling.run(items=300).result)
    except TsuzukiError as error:
        tell(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_code)
