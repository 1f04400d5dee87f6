"""A process that works on a queue until it is killed; its arguments are those of `main`."""

import asyncio
import sys
from pathlib import Path

from tsuzuki.llm.providers import Address
from tsuzuki.llm.queue.jobs import JobQueue
from tsuzuki.llm.queue.worker import QueueWorker


async def main(file: str, provider: str, url: str, process_id: str, strategy: str) -> None:
    async with JobQueue(Path(file)) as queue:
        worker = QueueWorker(queue, Address(provider, url, "m-1"), concurrency=4)
        await (worker.cancel(process_id) if strategy == "cancel" else worker.process(process_id, strategy))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
