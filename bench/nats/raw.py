"""The yardstick on NATS: what the raw client gives without any engine, one result message per item.

The client's own `publish` of JetStream makes a task and a timer for every message, and `publish_async` is not much
quicker. So this loop uses the least that the client can do: a plain publish whose acknowledgement comes to an inbox.
It is two to three times as fast as they are, and the harder yardstick.
"""

import asyncio
import json
from pathlib import Path
from typing import Final

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.process import Figures, Stopwatch

SUBJECT: Final = "bare.result"
LONGEST: Final = 30
"""A message is lost while a stream looks for a leader, and this loop does not try again: then it fails (seconds)."""


async def no_op(item: int) -> int:
    return item


async def _connected(folder: Path) -> Client:
    """Connects, and makes a stream with as many replicas as ours have."""
    url, _, replicas = (folder / "address").read_text().partition("?replicas=")
    client = await nats.connect(url.split(","))
    await client.jetstream().add_stream(name="bare", subjects=[SUBJECT], num_replicas=int(replicas))
    return client


class Publisher:
    """Publishes messages and reads their acknowledgements."""

    def __init__(self, client: Client) -> None:
        self._client, self._inbox = client, client.new_inbox()
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def listen(self) -> None:
        await self._client.subscribe(f"{self._inbox}.*", cb=self._acknowledged)

    async def publish(self, number: int, data: bytes) -> None:
        reply = f"{self._inbox}.{number}"
        kept = self._waiting[reply] = self._loop.create_future()
        await self._client.publish(SUBJECT, data, reply=reply)
        await kept

    async def _acknowledged(self, message: Msg) -> None:
        kept = self._waiting.pop(message.subject)
        if "seq" in json.loads(message.data):
            kept.set_result(None)
        else:
            kept.set_exception(RuntimeError(message.data.decode()))


def items(folder: Path, count: int, in_flight: int) -> Figures:
    """Lanes of no-op coroutines that share one input; each result is a message that JetStream acknowledged."""

    async def work() -> Figures:
        client = await _connected(folder)
        publisher = Publisher(client)
        await publisher.listen()
        numbers = iter(range(count))

        async def lane() -> None:
            for number in numbers:
                await publisher.publish(number, b"%d" % await no_op(number))

        watch = Stopwatch()
        async with asyncio.timeout(LONGEST):
            await asyncio.gather(*(lane() for _ in range(in_flight)))
        figures = watch.figures(count)
        assert (await client.jetstream().stream_info("bare")).state.messages == count
        await client.close()
        return figures

    return asyncio.run(work())
