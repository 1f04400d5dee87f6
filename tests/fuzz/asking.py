"""Asks a gateway of this process, as a server would, with whatever a client may have sent."""

import asyncio
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI

from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options
from tsuzuki.runs import Runs

SOON = 30.0
"""What is not answered after so long (seconds, of a machine that may have other work) hangs; a stream that stays open
has answered."""


class Asked:
    """A gateway over a store in memory, with a run to ask about, and the loop in which it lives."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.app: FastAPI = create_app(
            Runs(MemoryBackend()), data_dir=str(Path(self.folder.name)), options=Options(max_wheel_bytes=1_000_000)
        )
        self._life = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self._life.__aenter__())
        self.run_id = self.loop.run_until_complete(self._run())

    async def _run(self) -> str:
        runs: Runs = self.app.state.gateway.runs
        return (await runs.submit("nothing", {})).id

    def close(self) -> None:
        self.loop.run_until_complete(self._life.__aexit__(None, None, None))
        self.loop.close()
        self.folder.cleanup()


@cache
def asked() -> Asked:
    """Gives the one of this process."""
    return Asked()


def ask(method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    """Gives the status that a request is answered with; raises where the gateway does, or is silent."""
    house = asked()
    return house.loop.run_until_complete(_ask(house, method, target, headers, body))


async def _ask(house: Asked, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    path, _, query = target.partition(b"?")
    path = path.replace(b"RUN", house.run_id.encode())
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace") if path.startswith(b"/") else "/",
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    status: asyncio.Future[int] = house.loop.create_future()
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start" and not status.done():
            status.set_result(int(message["status"]))

    answering = house.loop.create_task(house.app(scope, receive, send))
    async with asyncio.timeout(SOON):
        ways: list[asyncio.Future[Any]] = [answering, status]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    if not status.done():
        answering.result()
    answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    return status.result()
