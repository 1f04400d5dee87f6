"""A worker until SIGTERM: `work.py [--backend URL] [--lease S] [--grace S] [--concurrency N] [--ahead S] …`.

Without an address it works on the store of its folder. `--ahead` gives it the wall clock of a host whose clock
is wrong; `--foresight` lets it claim work for so many seconds ahead, so that it does on a slow machine too.
"""

import argparse
import asyncio
import logging
import signal
import time

from tests.acceptance.flows.calls import tell
from tests.acceptance.flows.catalog import FLOWS
from tests.acceptance.flows.nested import library
from tests.acceptance.flows.pipelines import pipelines
from tests.acceptance.flows.thousand import thousand
from tsuzuki import Runs, Worker, appetite
from tsuzuki.clock import SystemClock

ALL = [*FLOWS, thousand, library, pipelines]


async def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--backend")
    options.add_argument("--ahead", type=float, default=0.0)
    options.add_argument("--lease", type=float)
    options.add_argument("--grace", type=float, default=30.0)
    options.add_argument("--concurrency", type=int, default=10)
    options.add_argument("--foresight", type=float, default=appetite.AHEAD)
    given = options.parse_args()
    appetite.AHEAD = given.foresight  # type: ignore[misc] # the same for every machine, as fast as it may be
    if given.ahead:
        SystemClock.now = staticmethod(lambda: time.time() + given.ahead)
    logging.basicConfig(level=logging.INFO)
    async with (
        Runs.open(given.backend) as runs,
        Worker(runs.backend, ALL, concurrency=given.concurrency, lease=given.lease, grace=given.grace) as worker,
    ):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        tell(worker.id)
        await worker.run()
    tell("left")


if __name__ == "__main__":
    asyncio.run(main())
