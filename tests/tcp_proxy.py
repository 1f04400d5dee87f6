"""A way between a client and a server that can be cut, or made to lose what the server answers."""

import asyncio
import contextlib
from typing import Self


class Proxy:
    """Forwards a port; `deaf` swallows answers, `rewrite` changes them, `cut` closes the way, `mend` opens it."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
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
        self._server = await asyncio.start_server(self._came, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

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
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._ways |= {writer, back}
        for way in (self._forward(reader, back, answers=False), self._forward(there, writer, answers=True)):
            task = asyncio.get_running_loop().create_task(way)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if answers and self.deaf:
                    continue
                if answers and self.rewrite is not None:
                    data = data.replace(*self.rewrite)
                writer.write(data)
                await writer.drain()
        writer.close()
