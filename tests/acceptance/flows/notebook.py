"""Runs the flow of `thousand` where an event loop is running already, as a cell of a notebook does."""

import asyncio
import sys

from tests.acceptance.flows.calls import tell
from tests.acceptance.flows.thousand import thousand


async def cell() -> None:
    tell(len(thousand.run(items=int(sys.argv[1])).result))


if __name__ == "__main__":
    asyncio.new_event_loop().run_until_complete(cell())  # `asyncio.run` would keep Ctrl-C for itself
