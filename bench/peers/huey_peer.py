"""Huey on SQLite: `python huey_peer.py items|runs FOLDER COUNT`, for the Python of its environment."""
# mypy: ignore-errors
# Its package is not installed where the types are checked.

import json
import logging
import sys
from time import perf_counter, sleep

from huey import SqliteHuey

_, work, folder, count = sys.argv
count = int(count)
logging.disable(logging.WARNING)
huey = SqliteHuey("bench", filename=f"{folder}/huey.db")


@huey.task()
def no_op(item):
    return item


def consume(workers):
    """Works on threads of this process until all results are there."""
    consumer = huey.create_consumer(workers=workers, periodic=False, initial_delay=0.01, max_delay=0.05)
    started = perf_counter()
    consumer.start()
    while huey.result_count() < count:
        sleep(0.005)
    seconds = perf_counter() - started
    consumer.stop(graceful=True)
    return seconds


def items():
    """A map is a task per item; the time includes enqueueing them, while the consumer works."""
    started = perf_counter()
    consumer = huey.create_consumer(workers=WORKERS, periodic=False, initial_delay=0.01, max_delay=0.05)
    consumer.start()
    results = no_op.map(range(count)).get(blocking=True, backoff=1.0, max_delay=0.01)
    assert results == list(range(count))
    consumer.stop(graceful=True)
    return perf_counter() - started


def runs():
    for number in range(count):
        no_op(number)
    return consume(WORKERS)


WORKERS = {"items": 8, "runs": 1}[work]  # of 1, 2, 8, 32 and 100 these were the fastest: more compete for the file
seconds = items() if work == "items" else runs()
print(json.dumps({"rate": count / seconds}), flush=True)
