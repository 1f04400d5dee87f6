"""The server of `tsuzuki serve`: uvicorn that ends streams when it stops, and lets go of clients that never end."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tsuzuki.gateway.app import create_app
from tsuzuki.gateway.options import STALL, STORE_WAIT, Options
from tsuzuki.runs import Runs

HEADERS_WAIT: Final = 10.0
"""A request's headers must have arrived after so long (seconds)."""
MOST_HEADERS: Final = 65_536
"""Of an address and headers so many bytes are taken, in front of a body or behind it."""
KEEP_ALIVE: Final = 30
"""An idle connection is kept for so long (seconds)."""
DRAIN: Final = 5
"""Requests under way may take so long (seconds) when the server stops."""
TICK: Final = 1.0
"""How often the time that answers carry is brought up to date (seconds); uvicorn itself wakes ten times as often."""
TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
SPARE: Final = 1000
"""So many connections may be open beside the streams; more are answered with 503 at once."""


class PatientProtocol(HttpToolsProtocol):
    """HTTP on one connection, with an end to patience: with headers that never end, and with nobody who reads."""

    _unread = 0
    """So many bytes came since the last that made up headers or a part of a body."""
    _refused = False
    """Whether a request was refused: what came behind it in the same piece is not read."""
    _waiting: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Begins to wait for headers."""
        super().connection_made(transport)
        _send_at_once(transport.get_extra_info("socket"))
        self._waiting = self.loop.call_later(HEADERS_WAIT, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Takes what comes; headers without measure would fill the memory before anybody looks at a key."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > MOST_HEADERS and not self.transport.is_closing():
            self._refuse()

    def _refuse(self) -> None:
        self._refused = True
        if self._waiting is None or self._answers():  # behind a request: it would stand in the midst of its answer
            self.transport.abort()
            return
        self.transport.write(TOO_LARGE)
        self.transport.close()

    def _answers(self) -> bool:
        return not getattr(self.cycle, "response_complete", True)  # before the first request there is no cycle

    def on_message_begin(self) -> None:
        """Waits for the rest of the headers of a later request too."""
        if self._refused:
            return
        super().on_message_begin()
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEADERS_WAIT, self.transport.abort)

    def on_headers_complete(self) -> None:
        """Wait no more: the headers are there. Those that came in one piece are measured only now."""
        if self._refused:
            return
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MOST_HEADERS:
            self._refuse()
            return
        _call_off(self._waiting)
        self._waiting = None
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Takes a part of a body, which is counted elsewhere."""
        self._unread = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        if not self._refused:
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Begins to wait for a client that does not read."""
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(STALL, self.transport.abort)

    def resume_writing(self) -> None:
        """Waits no more: the client reads."""
        _call_off(self._stalled)
        self._stalled = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing any more."""
        _call_off(self._waiting)
        _call_off(self._stalled)
        super().connection_lost(exc)


def _call_off(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def _send_at_once(connection: socket.socket) -> None:
    """Lets an answer's body follow its headers at once: asyncio does so only for sockets that say they are TCP."""
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Server(uvicorn.Server):
    """A server that ends its streams first when it stops, so that it does not wait for them, and wakes seldom."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        self._told = False
        self._wake: Callable[[], object] = bool
        super().__init__(config)
        self._application = app
        self.ready: Callable[[], object] = bool

    @property
    def should_exit(self) -> bool:
        """Whether the server was told to stop; it hears of it at once, from a signal or another thread too."""
        return self._told

    @should_exit.setter
    def should_exit(self, told: bool) -> None:
        self._told = told
        if told:
            self._wake()

    async def main_loop(self) -> None:
        """Serves until it is told to stop."""
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._wake = partial(loop.call_soon_threadsafe, stopping.set)
        try:
            while not await self.on_tick(0):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TICK):
                        await stopping.wait()
        finally:
            self._wake = bool

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and says so."""
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops: streams end, requests under way are finished."""
        if (gateway := getattr(self._application.state, "gateway", None)) is not None:
            gateway.streams.close()
        await super().shutdown(sockets)


def serve_runs(
    open_runs: Callable[[float], AbstractAsyncContextManager[Runs]],
    options: Options,
    listening: socket.socket,
    ready: Callable[[], object],
) -> None:
    """Serves a store until the process is told to stop; one that cannot be opened is told before anybody connects."""

    async def serve() -> None:
        async with open_runs(STORE_WAIT) as runs:
            server = make_server(create_app(runs, options=options), options, log_level="warning")
            server.ready = ready
            stop.reach(server)
            if not server.should_exit:
                await server.serve([listening])

    stop = _Stop()
    with stop.heard(), asyncio.Runner(loop_factory=_loops()) as runner:
        runner.run(serve())


class _Stop:
    """Hears that the process is told to stop while its server cannot: before it serves, and once it has stopped.

    The server's own way to stop is the only one: a signal that came earlier is kept for it, and the one that it
    repeats at its end is not to end us before the store is closed.
    """

    def __init__(self) -> None:
        self._told = False
        self._server: Server | None = None

    def reach(self, server: Server) -> None:
        """Names the server that is to stop; it may have been told already."""
        self._server = server
        server.should_exit = self._told

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listens to signals meanwhile."""
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, way in before.items():
                signal.signal(number, way)

    def _hear(self, *_: object) -> None:
        self._told = True
        if self._server is not None:
            self._server.should_exit = True


def _loops() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Gives the faster event loop where there is one: this process is ours, so we may choose."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return uvloop.new_event_loop


def make_server(app: FastAPI, options: Options, **more: Any) -> Server:
    """Makes the server of an application."""
    _raise_open_files()
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_config=None,  # it logs as the process does
        ws="none",
        lifespan="on",
        server_header=False,
        proxy_headers=False,  # nothing here depends on who a proxy says it speaks for
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
        limit_concurrency=options.max_streams + SPARE,
        backlog=2048,
        **more,
    )
    return Server(config, app)


def _raise_open_files() -> None:
    """Lets this process have as many connections as the system allows it."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
