"""A worker that is started again whenever it is killed, until SIGTERM: `reborn.py URL`."""

import asyncio
import ctypes
import os
import signal
import sys
from types import FrameType

from tests.acceptance.flows.catalog import FLOWS
from tsuzuki import Runs, Worker

child = 0


async def work(url: str) -> None:
    async with Runs.open(url) as runs, Worker(runs.backend, FLOWS) as worker:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


def leave(number: int, frame: FrameType | None) -> None:
    os.kill(child, number)


if __name__ == "__main__":
    ending = -signal.SIGKILL
    while ending == -signal.SIGKILL:
        child = os.fork()
        if not child:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it dies with us, however we die
            asyncio.run(work(sys.argv[1]))
            os._exit(0)
        signal.signal(signal.SIGTERM, leave)
        ending = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(ending)
