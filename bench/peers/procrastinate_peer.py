"""Procrastinate on PostgreSQL: `python procrastinate_peer.py items|runs FOLDER COUNT`, for its own Python.

The work `raw` is PostgreSQL alone: a row per commit, over the same client.
"""
# mypy: ignore-errors
# Its package is not installed where the types are checked.

import asyncio
import json
import logging
import sys
from pathlib import Path
from time import perf_counter

import psycopg
from procrastinate import App, PsycopgConnector

_, work, folder, count = sys.argv
count = int(count)
logging.disable(logging.WARNING)
address = (Path(folder) / "address").read_text()
IN_FLIGHT = 100
app = App(connector=PsycopgConnector(conninfo=address, min_size=4, max_size=10))
executed = 0


@app.task(name="no_op")
async def no_op(item):
    global executed  # noqa: PLW0603 - a script for one measurement
    executed += 1
    return item


async def queue():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        started = perf_counter()
        if work == "items":  # all in one call, which is its fastest way
            await no_op.batch_defer_async(*({"item": item} for item in range(count)))
        else:
            for number in range(count):
                await no_op.defer_async(item=number)
            enqueued, started = count / (perf_counter() - started), perf_counter()
        await app.run_worker_async(concurrency=IN_FLIGHT, wait=False, install_signal_handlers=False)
        seconds = perf_counter() - started
        assert executed == count
        return {"rate": count / seconds} | ({"enqueued": enqueued} if work == "runs" else {})


def raw():
    """The yardstick of this database: one row per commit, one after the other."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
        started = perf_counter()
        for number in range(count):
            connection.execute("INSERT INTO rows VALUES (%s, %s)", (number, "null"))
        return {"rate": count / (perf_counter() - started)}


print(json.dumps(raw() if work == "raw" else asyncio.run(queue())), flush=True)
