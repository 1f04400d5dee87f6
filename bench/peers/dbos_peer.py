"""DBOS: `python dbos_peer.py steps|items|runs FOLDER COUNT`, for the Python of its environment.

On SQLite, or on the PostgreSQL that the file `address` in the folder names.
"""
# mypy: ignore-errors
# Its package is not installed where the types are checked.

import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from time import perf_counter, sleep

from dbos import DBOS, DBOSClient, SetWorkflowID

_, work, folder, count = sys.argv
count = int(count)
named = Path(folder) / "address"
if named.exists():
    url = named.read_text()
else:
    url = f"sqlite:///{folder}/dbos.sqlite"
    sqlite3.connect(f"{folder}/dbos.sqlite").execute("PRAGMA journal_mode = WAL")  # not its default; faster for it
DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})


@DBOS.step()
async def no_op(item):
    return item


@DBOS.workflow()
async def steps_workflow(count):
    for item in range(count):
        await no_op(item)
    return count


@DBOS.workflow()
async def items_workflow(count):
    """Starts steps in a fixed order, which replay needs, 100 in flight."""
    results = []
    for begin in range(0, count, 100):
        results += await asyncio.gather(*(no_op(item) for item in range(begin, min(begin + 100, count))))
    return len(results)


executed = 0


@DBOS.workflow()
async def run_workflow(number):
    global executed  # noqa: PLW0603 - a script for one measurement
    executed += 1
    return number


async def one(workflow):
    started = perf_counter()
    with SetWorkflowID("bench"):
        result = await workflow(count)
    assert result == count
    return perf_counter() - started


def runs():
    """Enqueues one call at a time while nobody listens; then this process works until all have ended."""
    DBOS.launch()
    DBOS.register_queue("bench", worker_concurrency=100, polling_interval_sec=0.1)
    DBOS.destroy()
    client = DBOSClient(system_database_url=url)
    options = {"queue_name": "bench", "workflow_name": run_workflow.__qualname__}
    handles = [client.enqueue(options, number) for number in range(count)]
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})
    DBOS.launch()
    started = perf_counter()
    while executed < count or client.list_workflows(status=["ENQUEUED", "PENDING"], limit=1):
        sleep(0.01)
    seconds = perf_counter() - started
    assert handles[-1].get_result() == count - 1
    return seconds


if work == "runs":
    seconds = runs()
else:
    DBOS.launch()
    seconds = asyncio.run(one(steps_workflow if work == "steps" else items_workflow))
print(json.dumps({"rate": count / seconds}), flush=True)
DBOS.destroy()
