"""PgQueuer on PostgreSQL: `python pgqueuer_peer.py items|runs FOLDER COUNT`, for the Python of its environment."""
# mypy: ignore-errors
# Its package is not installed where the types are checked.

import asyncio
import json
import logging
import sys
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import asyncpg
from pgqueuer import PgQueuer, Queries
from pgqueuer.types import QueueExecutionMode

_, work, folder, count = sys.argv
count = int(count)
logging.disable(logging.WARNING)
address = (Path(folder) / "address").read_text()
IN_FLIGHT = 100
executed = 0


async def drained(pool):
    """Works in this process until the queue is empty and what is done is recorded."""
    queue = PgQueuer.from_asyncpg_pool(pool)

    @queue.entrypoint("no_op")
    async def no_op(job):
        del job
        global executed  # noqa: PLW0603 - a script for one measurement
        executed += 1

    await queue.run(dequeue_timeout=timedelta(seconds=1), batch_size=IN_FLIGHT, mode=QueueExecutionMode.drain)


async def main():
    async with asyncpg.create_pool(address, min_size=4, max_size=10) as pool:
        queries = Queries.from_asyncpg_pool(pool)
        await queries.install()
        started = perf_counter()
        if work == "items":  # all in one call, which is its fastest way
            await queries.enqueue(["no_op"] * count, [b"%d" % item for item in range(count)], [0] * count)
        else:
            for number in range(count):
                await queries.enqueue("no_op", b"%d" % number)
            enqueued, started = count / (perf_counter() - started), perf_counter()
        await drained(pool)
        seconds = perf_counter() - started
        assert executed == count
        assert not await pool.fetchval("SELECT count(*) FROM pgqueuer")
        return {"rate": count / seconds} | ({"enqueued": enqueued} if work == "runs" else {})


print(json.dumps(asyncio.run(main())), flush=True)
