"""Connections to one place over HTTP/1.1, each for one request at a time and kept for the next.

The HTTP library takes about a millisecond of processor time for a request, ten times what this takes: with many short
questions that is what decides how many can be asked. What goes wrong is raised as the library's own errors. Redirects,
proxies, compression and HTTP/2 are the library's business.
"""

import asyncio
import ipaddress
import ssl
from typing import Any, Final, NamedTuple, cast
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import httpx2

LARGEST_HEAD: Final = 64 * 1024
MAX_ANSWER_BYTES: Final = 64 << 20
"""How large an answer, or a line of one, may be."""
KEPT: Final = 60.0
"""How long a connection is kept for the next request (seconds)."""
TOO_LARGE: Final = f"its answer is larger than {MAX_ANSWER_BYTES >> 20} MB"
STILL: Final = 0.25
"""A timer that is so late tells that this process stood still (seconds)."""
HEARD: Final = 1.0
"""How long an answer is waited for after this process stood still (seconds)."""
SPREAD: Final = 0.25
"""How long the first address of a name may take before the next one is tried too (seconds)."""
_EMPTY: Final = (204, 304)
_FINAL: Final = 200
_SECURE: Final = 443
_PLAIN: Final = 80


class Response(NamedTuple):
    """What came back."""

    status_code: int
    headers: dict[str, str]
    content: bytes


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._got = bytearray()
        self._received = 0
        self._answer: asyncio.Future[Response] | None = None
        self._head: tuple[int, dict[str, str]] | None = None
        self._reading: _Reading = _Reading(None)
        self._seen = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.idle_since = 0.0

    # What the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        """Takes more of an answer; whatever comes without a question ends the connection."""
        if self._answer is None or self._answer.done():
            self.close()
            return
        self._seen = self._loop.time()
        self._got += data
        self._received += len(data)
        if self._received > MAX_ANSWER_BYTES:
            self._fail(httpx2.RemoteProtocolError(TOO_LARGE))
            return
        try:
            self._read_on()
        except ValueError as error:
            self._fail(httpx2.RemoteProtocolError(f"it does not speak HTTP: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Is closed: an answer that says nothing of its length ends here, any other one is lost."""
        self._transport = None
        if self._head is not None and self._reading.until_closed and exc is None:
            self._finish(bytes(self._got))
        else:
            self._fail(httpx2.ReadError(f"the connection was closed: {exc or 'before the answer was whole'}"))

    # One request

    @property
    def usable(self) -> bool:
        """Whether the next request may go here."""
        alive = self._transport is not None and not self._transport.is_closing()
        return alive and self._loop.time() - self.idle_since < KEPT

    async def ask(self, request: bytes, timeout: float) -> Response:
        """Sends a request and gives the answer; raises when nothing comes for so many seconds."""
        if self._transport is None:
            raise httpx2.ReadError("the connection was closed")
        self._answer = self._loop.create_future()
        self._head, self._seen, self._received = None, self._loop.time(), 0
        self._got.clear()
        self._look_at(self._seen + timeout, timeout)
        self._transport.write(request)
        try:
            return await self._answer
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._answer = None
            self.idle_since = self._loop.time()

    def _look_at(self, when: float, timeout: float) -> None:
        self._timer = self._loop.call_at(when, self._look_at_the_time, when, timeout)

    def _look_at_the_time(self, due: float, timeout: float) -> None:
        answer, now = self._answer, self._loop.time()
        if answer is None or answer.done():
            return
        if self._seen + timeout > now:  # something came meanwhile
            self._look_at(self._seen + timeout, timeout)
        elif now - due > STILL:  # this process stood still: what came meanwhile has not been read yet
            self._look_at(now + min(timeout, HEARD), timeout)
        else:
            self._fail(httpx2.ReadTimeout(f"nothing came for {timeout:g} s"))

    def close(self) -> None:
        """Ends it at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # Reading

    def _read_on(self) -> None:
        while self._head is None:
            end = self._got.find(b"\r\n\r\n")
            if end < 0:
                if len(self._got) > LARGEST_HEAD:
                    raise ValueError("its headers never end")
                return
            status, headers = _head_of(bytes(self._got[:end]))
            del self._got[: end + 4]
            if status >= _FINAL:  # before it there may be others, such as 100 Continue
                self._head, self._reading = (status, headers), _Reading(headers, empty=status in _EMPTY)
        body = self._reading.whole(self._got)
        if body is not None:
            self._finish(body)

    def _finish(self, body: bytes) -> None:
        answer, head = self._answer, self._head
        if answer is None or answer.done() or head is None:
            return
        status, headers = head
        if self._reading.until_closed or "close" in headers.get("connection", "").lower():
            self.close()
        answer.set_result(Response(status, headers, body))

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


class _Reading:
    """How the end of a body is known: by its length, by its pieces, or by the end of the connection."""

    def __init__(self, headers: dict[str, str] | None, *, empty: bool = False) -> None:
        said = headers or {}
        self._pieces: list[bytes] | None = [] if "chunked" in said.get("transfer-encoding", "").lower() else None
        length = "0" if empty else said.get("content-length")
        self._length = None if length is None else int(length)
        self.until_closed = self._pieces is None and self._length is None

    def whole(self, got: bytearray) -> bytes | None:
        """Gives the body once it is whole; takes what it can out of what came."""
        if self._pieces is not None:
            return self._joined(got, self._pieces)
        if self._length is None or len(got) < self._length:
            return None
        return bytes(got[: self._length])

    def _joined(self, got: bytearray, pieces: list[bytes]) -> bytes | None:
        while (end := got.find(b"\r\n")) >= 0:
            size = int(bytes(got[:end]).partition(b";")[0], 16)
            if size == 0:  # what may follow are trailers, up to an empty line
                over = got.startswith(b"\r\n", end + 2) or got.find(b"\r\n\r\n", end) >= 0
                return b"".join(pieces) if over else None
            if len(got) < end + 2 + size + 2:
                return None
            pieces.append(bytes(got[end + 2 : end + 2 + size]))
            del got[: end + 2 + size + 2]
        return None


def _head_of(text: bytes) -> tuple[int, dict[str, str]]:
    first, *rest = text.decode("latin-1").split("\r\n")
    version, status, *_ = first.split(" ", 2)
    if not version.startswith("HTTP/1."):
        raise ValueError(f"it answers {first[:40]!r}")
    pairs = (line.partition(":") for line in rest)
    return int(status), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Connections:
    """The connections to one place that wait for their next request; a request takes one of them, or a new one."""

    def __init__(self, base_url: str, headers: dict[str, str], timeout: float, trust: ssl.SSLContext | None) -> None:
        self._place: SplitResult = urlsplit(base_url)
        self._timeout, self._trust = timeout, trust
        self._idle: list[Connection] = []
        self._closed = False
        said = {"host": self._place.netloc, "user-agent": "tsuzuki", "accept": "*/*", "accept-encoding": "identity"}
        said |= headers
        if any(sign in text for pair in said.items() for text in pair for sign in "\r\n"):
            raise ValueError("a header has a line break in it")
        self._said = "".join(f"{name}: {text}\r\n" for name, text in said.items()).encode("latin-1")

    async def ask(self, method: str, path: str, params: dict[str, str] | None, body: bytes | None) -> Response:
        """Sends a request and gives the answer, whatever its status."""
        where = quote(self._place.path.rstrip("/") + path, safe="/:@!$&'()*+,;=~%?")
        if params:
            where += f"?{urlencode(params)}"
        head = f"{method} {where} HTTP/1.1\r\n".encode() + self._said
        if body is not None:
            head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        else:
            head += b"content-length: 0\r\n\r\n" if method == "POST" else b"\r\n"
        connection = await self._taken()
        response = await connection.ask(head, self._timeout)
        if connection.usable and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        return response

    async def _taken(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return await self._opened()

    async def _opened(self) -> Connection:
        loop = asyncio.get_running_loop()
        host, port = self._place.hostname or "", self._place.port or (_PLAIN if self._trust is None else _SECURE)
        # Other loops, like the gateway's, know nothing of that: they try the addresses one after the other. Where there
        # is one address only it is left out: cancelled at the wrong moment, the race of asyncio leaves a socket open.
        races = isinstance(loop, asyncio.BaseEventLoop) and not _is_address(host)
        spread: Any = {"happy_eyeballs_delay": SPREAD} if races else {}
        try:
            async with asyncio.timeout(self._timeout):
                made = await loop.create_connection(lambda: Connection(loop), host, port, ssl=self._trust, **spread)
        except TimeoutError:
            raise httpx2.ConnectTimeout(f"no connection within {self._timeout:g} s") from None
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        connection: Connection = made[1]
        return connection

    def close(self) -> None:
        """Ends those that wait, and those that others are still asking by once they are answered."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
