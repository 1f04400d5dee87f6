"""Answers that stay open: server-sent events, so many at a time.

One ends when the client leaves or stalls, when its key is revoked, or when we stop.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tsuzuki.errors import StoreError, TooBusy
from tsuzuki.gateway.options import STALL
from tsuzuki.gateway.permits import Permits

logger: Final = logging.getLogger("tsuzuki.gateway")

HEADERS: Final = {
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
    "Content-Type": "text/event-stream; charset=utf-8",
}


def event(name: str, data: bytes, number: int | None = None) -> bytes:
    """Writes one event: its name before its data, lines that end in LF."""
    place = b"" if number is None else b"id: %d\n" % number
    return b"%sevent: %s\ndata: %s\n\n" % (place, name.encode(), data)


class Streams:
    """The streams that are open: counted, and ended together."""

    def __init__(self, most: int, permits: Permits) -> None:
        self._most = most
        self.permits = permits
        self.open = 0
        self.closing = asyncio.Event()

    def answer(self, frames: AsyncGenerator[bytes, None], key_id: str = "") -> "EventStream":
        """Opens one more stream for who has this key, or refuses it."""
        if self.open >= self._most or self.closing.is_set():
            raise TooBusy
        self.open += 1
        return EventStream(frames, self, key_id)

    def close(self) -> None:
        """Ends all streams, and opens none any more."""
        self.closing.set()


class EventStream(Response):
    """A stream of events as an answer."""

    def __init__(self, frames: AsyncGenerator[bytes, None], streams: Streams, key_id: str) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._frames = frames
        self._streams = streams
        self._key_id = key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends until the stream or the client ends, the key holds no more, or the gateway stops."""
        del scope
        async with self._streams.permits.held(self._key_id) as revoked:
            await self._sent(receive, send, revoked)

    async def _sent(self, receive: Receive, send: Send, revoked: asyncio.Event) -> None:
        sending = asyncio.create_task(self._send(send), name="gateway-stream")
        ways: list[asyncio.Task[Any]] = [
            sending,
            asyncio.create_task(_gone(receive), name="gateway-stream-gone"),
            asyncio.create_task(self._streams.closing.wait(), name="gateway-stream-closing"),
            asyncio.create_task(revoked.wait(), name="gateway-stream-revoked"),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._streams.open -= 1
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await self._frames.aclose()
        await self._end(sending, send)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for frame in self._frames:
            async with asyncio.timeout(STALL):
                await send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _end(self, sending: "asyncio.Task[None]", send: Send) -> None:
        """Ends the answer in order, unless the client takes nothing any more."""
        error = None if sending.cancelled() else sending.exception()
        if isinstance(error, StoreError):  # told by an end without its last event: the client comes again
            logger.warning("a stream ends because the store cannot be read: %s", error)
        elif error is not None and not isinstance(error, TimeoutError):
            raise error
        if not isinstance(error, TimeoutError):
            try:
                async with asyncio.timeout(1):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            except TimeoutError:
                return


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
