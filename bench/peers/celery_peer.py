"""Celery on Redis: `python celery_peer.py items|runs FOLDER COUNT`, for the Python of its environment.

The work `raw` is Redis alone: a command per call, each synced. The worker is a process of its own, as it always is.
"""
# mypy: ignore-errors
# Its package is not installed where the types are checked.

import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep

from celery import Celery, group
from redis import Redis

ADDRESS = "CELERY_BENCH_ADDRESS"
if __name__ == "__main__":
    _, work, folder, count = sys.argv
    count = int(count)
    os.environ[ADDRESS] = (Path(folder) / "address").read_text()

app = Celery("celery_peer", broker=os.environ[ADDRESS], backend=os.environ[ADDRESS])
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=16, worker_hijack_root_logger=False)
POOL = ("--pool", "prefork", "--concurrency", "2")  # its default: a process for each of two cores


@app.task(name="no_op")
def no_op(item):
    return item


def worker():
    command = [sys.executable, "-m", "celery", "-A", "celery_peer", "worker", *POOL, "--loglevel", "ERROR"]
    quiet = [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]
    return subprocess.Popen(quiet, cwd=Path(__file__).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def results(store):
    """Counts the results that are kept: each is a key."""
    return sum(1 for _ in store.scan_iter("celery-task-meta-*", count=10_000))


def runs(store):
    """Enqueues one call at a time while nobody listens; the time goes from the first result to the last one."""
    started = perf_counter()
    for number in range(count):
        no_op.delay(number)
    enqueued = count / (perf_counter() - started)
    working = worker()
    while not (first := results(store)):
        sleep(0.005)
    started = perf_counter()
    while results(store) < count:
        sleep(0.02)
    seconds = perf_counter() - started
    working.terminate()
    working.wait()
    return {"rate": (count - first) / seconds, "enqueued": enqueued}


def items():
    """A map is a group of tasks; the time includes sending them to a worker that waits."""
    working = worker()
    assert no_op.delay(0).get(timeout=30) == 0
    started = perf_counter()
    done = group(no_op.s(item) for item in range(count)).apply_async().get(timeout=300)
    seconds = perf_counter() - started
    assert done == list(range(count))
    working.terminate()
    working.wait()
    return {"rate": count / seconds}


def raw(store):
    started = perf_counter()
    for number in range(count):
        store.rpush("rows", number)
    return {"rate": count / (perf_counter() - started)}


if __name__ == "__main__":
    store = Redis.from_url(os.environ[ADDRESS])
    print(json.dumps({"items": items, "runs": lambda: runs(store), "raw": lambda: raw(store)}[work]()), flush=True)
