"""A worker on the store of its folder until SIGTERM: `work.py [--lease S] [--grace S] [--concurrency N]`."""

import argparse
import asyncio
import logging
import signal

from tests.acceptance.flows.calls import tell
from tests.acceptance.flows.catalog import FLOWS
from tsuzuki import Runs, Worker


async def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--lease", type=float, default=30.0)
    options.add_argument("--grace", type=float, default=30.0)
    options.add_argument("--concurrency", type=int, default=10)
    given = options.parse_args()
    logging.basicConfig(level=logging.INFO)
    async with (
        Runs.open() as runs,
        Worker(runs.backend, FLOWS, concurrency=given.concurrency, lease=given.lease, grace=given.grace) as worker,
    ):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        tell(worker.id)
        await worker.run()
    tell("left")


if __name__ == "__main__":
    asyncio.run(main())
