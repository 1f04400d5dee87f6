"""HTTP to a provider: tried again where that helps, at the pace of the process, without a word of its key.

Questions and answers as JSON go over connections of our own; files, streams and whatever a proxy is asked for go
through the HTTP library.
"""

import asyncio
import functools
import io
import logging
import math
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import IO, Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
import msgspec

from tsuzuki.clock import Clock, SystemClock
from tsuzuki.context import FRAME
from tsuzuki.errors import BadUsage, LLMError, ProviderRefused, ProviderUnavailable, ProviderUnclear
from tsuzuki.llm.connection import KEPT, MAX_ANSWER_BYTES, TOO_LARGE, Connections, Response
from tsuzuki.llm.pacing import Pace
from tsuzuki.redact import redact

PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Refusals that may be over soon."""
UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""What goes wrong before a byte was sent."""
TOO_MANY: Final = 429
CLIENT_ERROR: Final = 400
LONGEST_PAUSE: Final = 60.0
LONGEST_ASKED: Final = 300.0
"""Who asks us to wait longer than this (seconds) is not waited for: whoever asked can come again."""
LONGEST_MESSAGE: Final = 500
LARGEST_REFUSAL: Final = 1 << 20
PIECE: Final = 1 << 16
"""How much of a file is sent at once."""
Answered = TypeVar("Answered", Response, httpx2.Response)
_HINTS: Final = {
    401: "; look at the key in the environment",
    403: "; look at the key in the environment",
    404: "; look at the address (TSUZUKI_LLM_BASE_URL, with its /v1 or /v1beta where it has one) and at the model",
}
_OURS: Final[ContextVar[bool]] = ContextVar("tsuzuki_llm_wire", default=False)
logging.getLogger("httpx2").addFilter(lambda record: record.levelno > logging.INFO or not _OURS.get())
"""The library tells of every request; of ours the log of a run would be full: polls of a day, many questions."""
_JSON: Final = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How often something is sent, and how long to wait between (seconds)."""

    attempts: int = 5
    first: float = 0.5
    unheard: int | None = None
    """How often where nobody listens; as often as otherwise where nothing is said."""
    longest: float = math.inf
    """The longest wait, where that is less than anybody's."""

    def ends(self, tries: int, *, unheard: bool) -> bool:
        """Tells whether that was the last time."""
        return tries >= (self.unheard if unheard and self.unheard is not None else self.attempts)

    def pause(self, tries: int, asked: float | None) -> float:
        """Gives how long to wait: what the provider asks for, else longer after each try; with jitter."""
        if asked is not None:
            return asked + random.uniform(0, 0.1 * asked)
        return min(LONGEST_PAUSE, self.longest, self.first * (1 << (tries - 1))) * random.uniform(0.5, 1.0)


_PATIENCE: Final[ContextVar[Patience | None]] = ContextVar("tsuzuki_llm_patience", default=None)


@contextmanager
def patient(patience: Patience) -> Iterator[None]:
    """Says how patient the questions are that are asked within; a step is known by its arguments, so this is none."""
    token = _PATIENCE.set(patience)
    try:
        yield
    finally:
        _PATIENCE.reset(token)


@functools.cache
def _trust() -> ssl.SSLContext:
    """Gives the authorities that are trusted; reading them takes longer than everything else here."""
    return httpx2.create_ssl_context()


class Wire:
    """A connection to a provider; `async with` it."""

    def __init__(
        self,
        provider: str,
        base_url: str,
        *,
        headers: Mapping[str, str],
        secret: str = "",
        timeout: float = 120.0,
        pace: Pace | None = None,
        patience: Patience | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.provider, self.base_url = provider, base_url.rstrip("/")
        self._headers, self._secret, self._timeout = headers, secret, timeout
        self.pace, self._patience = pace or Pace(), patience or Patience()
        self.clock: Clock = clock or SystemClock()
        self._idle: list[httpx2.AsyncClient] = []
        self._dated = "", 0.0
        """The date of the provider's last answer, and when it came by our clock."""
        self._connections: Connections | None = None
        if _is_plain(self.base_url):
            try:
                self._connections = Connections(self.base_url, dict(headers), timeout, self._trusted())
            except ValueError:  # its text may tell the key
                raise BadUsage(f"the key of {provider} has signs that no key has, such as a line break") from None

    def _trusted(self) -> ssl.SSLContext | None:
        return _trust() if self.base_url.startswith("https") else None

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Gives a client for one request at a time, which keeps its connection.

        A client for many looks at all their connections before each request: with 64 of them that doubles its cost.
        """
        http = self._idle.pop() if self._idle else self._made()
        try:
            yield http
        finally:
            self._idle.append(http)

    def _made(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=KEPT)
        headers, verify = {"accept-encoding": "identity", **self._headers}, self._trusted() or False
        return httpx2.AsyncClient(headers=headers, timeout=self._timeout, limits=limits, verify=verify)

    async def close(self) -> None:
        """Ends the connections."""
        if self._connections is not None:
            self._connections.close()
            await asyncio.sleep(0)  # the loop lets go of their sockets
        while self._idle:
            await self._idle.pop().aclose()

    async def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        files: Mapping[str, Any] | None = None,
        fields: Mapping[str, str] | None = None,
        content: IO[bytes] | None = None,
        weight: int | None = None,
        once: bool = False,
    ) -> Any:
        """Sends a request and gives the JSON of its answer; `content` is a body of JSON that is read from a file.

        With a weight (tokens) it keeps to the pace of the process. `once`: it is not sent again unless it was surely
        not taken; where that is not known, `ProviderUnclear` is raised.
        """
        said = None if body is None else msgspec.json.encode(body)
        if self._connections is not None and files is None and content is None:
            ask = functools.partial(self._connections.ask, method, path, dict(params or {}), said)
            response: Response | httpx2.Response = await self._sent(ask, weight, once=once)
        else:
            async with self._client() as http:
                headers = None if said is None and content is None else _JSON
                if content is not None:
                    headers = _JSON | {"content-length": str(content.seek(0, io.SEEK_END))}
                request = functools.partial(http.build_request, method, f"{self.base_url}{path}", headers=headers)
                make = functools.partial(request, params=params, files=files, data=fields)
                response = await self._sent(
                    lambda: _received(http, make(content=said if content is None else _pieces(content))),
                    weight,
                    once=once,
                )
        try:
            return msgspec.json.decode(response.content)
        except (msgspec.DecodeError, RecursionError):
            kind = ProviderUnclear if once else ProviderUnavailable
            raise kind(
                f"{self._name} answered something that is not JSON: {self.clean(text_of(response.content))}"
            ) from None

    @asynccontextmanager
    async def lines(self, method: str, path: str, body: Any = None, *, weight: int | None = None) -> AsyncIterator[Any]:
        """Sends a request and gives the lines of its answer as they come."""
        content = None if body is None else msgspec.json.encode(body)
        url = path if path.startswith("http") else f"{self.base_url}{path}"
        headers = None if content is None else _JSON
        async with self._client() as http:
            make = functools.partial(http.build_request, method, url, content=content, headers=headers)
            response = await self._sent(lambda: http.send(make(), stream=True), weight, once=False)
            try:
                yield self._lines(response)
            finally:
                await response.aclose()

    async def _lines(self, response: httpx2.Response) -> AsyncIterator[str]:
        try:
            pending = bytearray()
            async for piece in response.aiter_bytes():
                pending += piece
                if b"\n" in piece:
                    *lines, rest = pending.split(b"\n")
                    pending = bytearray(rest)
                    for line in lines:
                        yield text_of(line).removesuffix("\r")
                elif len(pending) > MAX_ANSWER_BYTES:
                    raise httpx2.RemoteProtocolError(TOO_LARGE)
            if pending:
                yield text_of(pending)
        except httpx2.TransportError as error:
            raise ProviderUnavailable(f"{self._name} broke off in the middle: {self._told(error)}") from None

    async def _sent(self, send: Callable[[], Awaitable[Answered]], weight: int | None, *, once: bool) -> Answered:
        tries, patience = 0, _PATIENCE.get() or self._patience
        while True:
            tries += 1
            if weight is not None:
                with FRAME.get().resting():
                    await self.pace.turn(self.clock, weight)
            asked, unheard = None, False
            try:
                response = await _untold(send())
                self._dated = response.headers.get("date", ""), self.clock.now()
                if response.status_code < CLIENT_ERROR:
                    return response
                asked = retry_after(response.headers, self.clock)
                error: LLMError = await self._refusal(response, asked, once=once)
            except UNSENT as failure:
                unheard = True
                told = f"{self._name} cannot be reached: {self._told(failure)}"
                error = ProviderUnavailable(f"{told}; is it running, and is the address right (TSUZUKI_LLM_BASE_URL)?")
            except httpx2.TransportError as failure:
                kind = ProviderUnclear if once else ProviderUnavailable
                error = kind(f"{self._name} did not answer: {self._told(failure)}")
            if isinstance(error, ProviderRefused | ProviderUnclear) or patience.ends(tries, unheard=unheard):
                raise error
            if asked is not None and asked > LONGEST_ASKED:
                raise error
            with FRAME.get().resting():
                await self.clock.sleep(patience.pause(tries, asked))

    def there(self, at: float) -> float:
        """Return a time of our clock by that of the provider, as its last answer told it."""
        date, now = self._dated
        try:
            theirs = parsedate_to_datetime(date)
        except ValueError:
            return at
        return at + (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)).timestamp() - now

    def used(self, more: int) -> None:
        """Takes note of tokens that were used beyond what was thought."""
        self.pace.used(more)

    async def _refusal(self, response: Response | httpx2.Response, asked: float | None, *, once: bool) -> LLMError:
        status = response.status_code
        try:
            content = response.content if isinstance(response, Response) else await _beginning(response)
            said = self.clean(message_of(content))
        except httpx2.TransportError as error:
            said = self._told(error)
        finally:
            if isinstance(response, httpx2.Response):
                await response.aclose()
        text = f"{self._name} answered HTTP {status}: {said}"
        if status not in PASSING or "insufficient_quota" in said:
            return ProviderRefused(text + _HINTS.get(status, ""), status)
        if asked is not None and asked > LONGEST_ASKED:
            text += f"; it asks to be left alone for {asked:,.0f} s"
        return ProviderUnclear(text) if once and status != TOO_MANY else ProviderUnavailable(text)

    @property
    def _name(self) -> str:
        return f"{self.provider} at {redact(self.base_url)}"

    def _told(self, error: Exception) -> str:
        return self.clean(f"{type(error).__name__}: {error}".rstrip(": "))

    def clean(self, text: str) -> str:
        """Gives what a provider said without our key, and not too much of it."""
        if self._secret:
            text = text.replace(self._secret, "***")
        return redact(text[: 4 * LONGEST_MESSAGE])[:LONGEST_MESSAGE]  # half a secret would not look like one


async def _untold(sending: Awaitable[Answered]) -> Answered:
    token = _OURS.set(True)
    try:
        return await sending
    finally:
        _OURS.reset(token)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


async def _received(http: httpx2.AsyncClient, request: httpx2.Request) -> Response:
    """Send a request and read the answer as it comes, up to a bound."""
    answer = await http.send(request, stream=True)
    try:
        body = bytearray()
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise httpx2.RemoteProtocolError(TOO_LARGE)
        return Response(answer.status_code, dict(answer.headers), bytes(body))
    finally:
        await answer.aclose()


async def _beginning(response: httpx2.Response) -> bytes:
    """Read as much of a refusal as may tell why."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST_REFUSAL:
            break
    return bytes(body)


def _is_plain(base_url: str) -> bool:
    """Tells whether connections of our own do for a place: no password in it, and no proxy that is set for it."""
    place = urlsplit(base_url)
    if place.scheme not in ("http", "https") or place.username or not base_url.isascii():
        return False
    proxies = getproxies()
    return not (proxies.get(place.scheme) or proxies.get("all")) or bool(proxy_bypass(place.hostname or ""))


def text_of(content: bytes | bytearray) -> str:
    """Gives a body as text."""
    return content.decode(errors="replace")


def message_of(content: bytes) -> str:
    """Gives the message in the body of a refusal, in whatever form providers put it."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return text_of(content)
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(key):
            found = found[key]
    if isinstance(found, dict):
        return str(found.get("code") or found.get("type") or found)
    return str(found)


def retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Gives how long the provider asks us to wait (seconds); a date counts too."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        asked = _seconds(text, clock) if text else None
        if asked is not None:
            return max(0.0, asked * unit)
    return None


def _seconds(text: str, clock: Clock) -> float | None:
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return number if math.isfinite(number) else None
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - datetime.fromtimestamp(clock.now(), UTC)).total_seconds()


DONE: Final[Mapping[str, Any]] = MappingProxyType({})
"""What `events` gives where a provider says that nothing follows."""


async def events(lines: AsyncIterator[str]) -> AsyncIterator[Any]:
    """Gives the JSON of server-sent events; `[DONE]` ends them, and is given as `DONE`."""
    async for line in lines:
        if not line.startswith("data:"):
            continue
        text = line[5:].strip()
        if text == "[DONE]":
            yield DONE
            return
        yield decoded(text)


async def objects(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """Gives the objects of an answer that has one on each line."""
    async for line in lines:
        if line.strip():
            yield decoded(line)


def decoded(text: str) -> dict[str, Any]:
    """Gives an event of a stream."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        raise ProviderUnavailable(f"a stream brought something that is no answer: {redact(text[:200])}") from None
