"""A way between clients and a server that can be cut, stopped, or made to lose, repeat and swap what goes along it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Self

Twist = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]
"""Changes the frames of the protocol on their way."""


class Proxy:
    """Forwards a loopback port to another.

    `deaf` swallows answers, `rewrite` changes them, `silence` stops everything until `speak` as a lost link does,
    `cut` closes the way so that connections are refused, `mend` opens it. `dial` makes the sockets to the server, in
    a network of their own.
    """

    def __init__(
        self,
        target: int,
        *,
        host: str = "127.0.0.1",
        dial: Callable[[], socket.socket] = socket.socket,
        asked: Twist | None = None,
        answered: Twist | None = None,
    ) -> None:
        self._target, self._host, self._dial = target, host, dial
        self._asked, self._answered = asked, answered
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.port = 0
        self.deaf = False
        self.rewrite: tuple[bytes, bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def mend(self) -> None:
        self.deaf = False
        self.speak()
        self._server = await asyncio.start_server(self._came, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def silence(self) -> None:
        """Nothing gets through; what is sent meanwhile arrives afterwards, as TCP has it."""
        self._flowing.clear()

    def speak(self) -> None:
        """Lets everything through again."""
        self._flowing.set()

    async def cut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for way in self._ways:
            way.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._ways.clear()

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ways.add(writer)
        try:
            there, back = await self._connect()
        except OSError:  # the server is away: so is its proxy
            writer.close()
            return
        self._ways.add(back)
        for way in (self._forward(reader, back, answers=False), self._forward(there, writer, answers=True)):
            task = asyncio.get_running_loop().create_task(way)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        way = self._dial()
        way.setblocking(False)
        await asyncio.get_running_loop().sock_connect(way, (self._host, self._target))
        return await asyncio.open_connection(sock=way)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        twist = self._answered if answers else self._asked
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async for piece in _pieces(reader) if twist is None else twist(frames(reader)):
                await self._flowing.wait()
                if answers and self.deaf:
                    continue
                if answers and self.rewrite is not None:
                    piece = piece.replace(*self.rewrite)  # noqa: PLW2901 - what comes is not what goes
                writer.write(piece)
                await writer.drain()
        writer.close()


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(65536):
        yield piece


async def frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Gives what is said in the protocol of NATS, one message or command at a time."""
    while line := await reader.readline():
        words = line.split()
        if words and words[0].upper() in (b"MSG", b"HMSG", b"PUB", b"HPUB"):
            line += await reader.readexactly(int(words[-1]) + 2)
        yield line
