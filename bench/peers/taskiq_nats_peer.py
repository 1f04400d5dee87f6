"""taskiq on NATS: `python taskiq_nats_peer.py WORK FOLDER COUNT`, for the Python of its environment.

The work `nats` keeps every result in its object store, `nats unkept` none. The server is the one that the file
`address` in the folder names.
"""
# mypy: ignore-errors
# Its package is not installed where the types are checked.

import asyncio
import json
import logging
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from nats.js.api import ConsumerConfig
from taskiq.api import run_receiver_task
from taskiq_nats import NATSObjectStoreResultBackend, PullBasedJetStreamBroker

_, work, folder, count = sys.argv
count = int(count)
logging.disable(logging.ERROR)
url = (Path(folder) / "address").read_text().partition("?")[0]
IN_FLIGHT = 100
DURABLE = "taskiq_durable"
STREAM = "taskiq_jetstream"

# With its defaults (one message a pull, nothing ahead, 1,000 unacknowledged) it has half the rate.
broker = PullBasedJetStreamBroker(
    url,
    pull_consume_batch=IN_FLIGHT,
    consumer_config=ConsumerConfig(durable_name=DURABLE, max_ack_pending=count),
)
if work == "nats":
    broker = broker.with_result_backend(NATSObjectStoreResultBackend(url))


@broker.task
async def no_op(item):
    return item


async def send():
    """Sends a task per item, 100 calls under way at once."""
    items = iter(range(count))
    sent = []

    async def lane():
        for item in items:
            sent.append(await no_op.kiq(item))  # noqa: PERF401 - lanes share one list

    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    return sent


async def all_acknowledged():
    """Waits until every task was acknowledged, after its result was kept; kinder than to ask for each result."""
    while True:
        seen = await broker.js.consumer_info(STREAM, DURABLE)
        if seen.ack_floor.stream_seq >= count:
            return
        await asyncio.sleep(0.01)


async def items():
    """A map is a task per item; the time includes sending them, while the receiver works in the same process."""
    await broker.startup()
    receiving = asyncio.create_task(run_receiver_task(broker, max_async_tasks=IN_FLIGHT, max_prefetch=IN_FLIGHT))
    started = perf_counter()
    sent = await send()
    await all_acknowledged()
    seconds = perf_counter() - started
    if work == "nats":
        assert (await sent[-1].get_result()).return_value in range(count)
    receiving.cancel()
    with suppress(asyncio.CancelledError):
        await receiving
    await broker.shutdown()
    return seconds


seconds = asyncio.run(items())
print(json.dumps({"rate": count / seconds}), flush=True)
