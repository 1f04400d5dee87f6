"""A client that costs little itself: one connection a lane, requests written by hand, answers read by length."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Lane:
    """One connection that is kept open, with one request under way."""

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host = f"127.0.0.1:{port}"
        self.reader, self.writer = reader, writer

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        """Sends a request."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Sends a request and gives the body of the answer, which has to be 200."""
        self.send(method, path, body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 200"), (head, answer)
        return answer

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """The same with JSON."""
        return json.loads(await self.ask(method, path, b"" if body is None else json.dumps(body).encode()))


@asynccontextmanager
async def lane(port: int) -> AsyncIterator[Lane]:
    """Opens a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Lane(port, reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()
