"""Reads streams message by message, so that two servers can be compared: sequence, subject, time, headers, content."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import msgspec
import nats
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

AT_ONCE: Final = 500


class Item(NamedTuple):
    """A message as a stream keeps it; of its content, the digest."""

    seq: int
    subject: str
    at: str
    headers: tuple[tuple[str, str], ...]
    digest: str


async def names(url: str) -> list[str]:
    """Names the streams of a server."""
    client = await nats.connect(url)
    try:
        return sorted(info.config.name or "" for info in await client.jetstream().streams_info())
    finally:
        await client.close()


async def items(url: str, stream: str) -> list[Item]:
    """Reads all messages of a stream in order; a work queue is left as it is."""
    client = await nats.connect(url)
    try:
        info = await client.jetstream().stream_info(stream)
        if info.config.retention == "workqueue":
            return [item async for item in _by_sequence(client, stream, info.state.first_seq, info.state.last_seq)]
        return [item async for item in _consumed(client, stream, info.state.messages)]
    finally:
        await client.close()


async def _by_sequence(client: Client, stream: str, first: int, last: int) -> AsyncIterator[Item]:
    seq = first
    while seq <= last:
        request = msgspec.json.encode({"seq": seq, "next_by_subj": ">"})
        answer = await client.request(f"$JS.API.STREAM.MSG.GET.{stream}", request)
        told: dict[str, Any] = msgspec.json.decode(answer.data)
        if "error" in told:
            return
        message = told["message"]
        headers = (("raw", message.get("hdrs", "")),)
        yield Item(message["seq"], message["subject"], message["time"], headers, message.get("data", ""))
        seq = message["seq"] + 1


async def _consumed(client: Client, stream: str, count: int) -> AsyncIterator[Item]:
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.ALL, mem_storage=True)
    reading = await client.jetstream().pull_subscribe("", stream=stream, config=config)
    while count > 0:
        for message in await reading.fetch(min(count, AT_ONCE), timeout=30):
            seen = message.metadata
            headers = tuple(sorted((message.headers or {}).items()))
            digest = hashlib.sha256(message.data).hexdigest()
            yield Item(seen.sequence.stream, message.subject, seen.timestamp.isoformat(), headers, digest)
            count -= 1
