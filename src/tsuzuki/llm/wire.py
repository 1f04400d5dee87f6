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
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import IO, Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
import msgspec

from tsuzuki.clock import Clock, SystemClock
from tsuzuki.context import FRAME, current
from tsuzuki.errors import (
    BadUsage,
    LLMError,
    ProviderDenied,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnclear,
)
from tsuzuki.llm.capability import LOCAL
from tsuzuki.llm.connection import KEPT, MAX_ANSWER_BYTES, TOO_LARGE, Connections, Response
from tsuzuki.llm.pacing import ModelPace, Pace, model_pace_of
from tsuzuki.llm.questions import Reply
from tsuzuki.llm.refusals import ACCOUNT, KEY, Refusal, retry_after, text_of
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
Read = TypeVar("Read")
MAX_LIMITED_S: Final = 3600.0
"""How long a question is held up by limits while its model answers nothing at all (seconds)."""
ACCOUNT_HINT: Final = "; look at the account with the provider, then resume the run"
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


@dataclass(slots=True)
class Asked:
    """A question on its way: what it weighs, whom it is for, and how often nobody knows what became of it."""

    weight: int
    """About how many tokens it takes."""
    model: str
    uncertain: int = 0
    """How many requests were sent and brought no answer: they may have been charged."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """What went wrong with one request."""

    error: LLMError
    pause: float | None = None
    """How long the provider asks us to wait (seconds)."""
    limited: bool = False
    """Whether we ask too fast, which uses up no try."""
    unheard: bool = False
    """Whether nobody listens."""

    @property
    def is_final(self) -> bool:
        """Whether it is not to be sent again."""
        return isinstance(self.error, ProviderRefused | ProviderUnclear | ProviderTimeout)


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
        timeout: float = 600.0,
        pace: Pace | None = None,
        patience: Patience | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.provider, self.base_url = provider, base_url.rstrip("/")
        self._headers, self._secret, self._timeout = headers, secret, timeout
        self.pace, self._patience = pace or Pace(), patience or Patience()
        self.clock: Clock = clock or SystemClock()
        self._idle: list[httpx2.AsyncClient] = []
        self._nobody = object()
        """Stands for whoever asks outside a run."""
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
        question: Asked | None = None,
        once: bool = False,
    ) -> Any:
        """Sends a request and gives the JSON of its answer; `content` is a body of JSON that is read from a file.

        A question keeps to the pace of the process. `once`: it is not sent again unless it was surely not taken;
        where that is not known, `ProviderUnclear` is raised.
        """
        said = None if body is None else msgspec.json.encode(body)
        if self._connections is not None and files is None and content is None:
            ask = functools.partial(self._connections.ask, method, path, dict(params or {}), said)
            return await self._sent(ask, _decoded, question, once=once)
        headers = None if said is None else _JSON
        if content is not None:
            headers = _JSON | {"content-length": str(content.seek(0, io.SEEK_END))}
        async with self._client() as http:
            request = functools.partial(http.build_request, method, f"{self.base_url}{path}", headers=headers)
            make = functools.partial(request, params=params, files=files, data=fields)
            return await self._sent(
                lambda: _received(http, make(content=said if content is None else _pieces(content))),
                _decoded,
                question,
                once=once,
            )

    @asynccontextmanager
    async def lines(
        self, method: str, path: str, body: Any = None, *, question: Asked | None = None
    ) -> AsyncIterator[Any]:
        """Sends a request and gives the lines of its answer as they come."""
        content = None if body is None else msgspec.json.encode(body)
        url = path if path.startswith("http") else f"{self.base_url}{path}"
        headers = None if content is None else _JSON
        async with self._client() as http:
            make = functools.partial(http.build_request, method, url, content=content, headers=headers)
            response = await self._sent(lambda: http.send(make(), stream=True), _as_it_is, question, once=False)
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

    async def _sent(
        self,
        send: Callable[[], Awaitable[Answered]],
        read: Callable[[Answered], Read],
        question: Asked | None,
        *,
        once: bool,
    ) -> Read:
        """Send a request until it is answered, or until that will not help any more."""
        tries, started, patience = 0, self.clock.monotonic(), _PATIENCE.get() or self._patience
        while True:
            await self._turn(question)
            sent_at = self.clock.monotonic()
            outcome = await self._attempt(send, read, question, once=once)
            if not isinstance(outcome, _Fault):
                return outcome
            tries += not outcome.limited
            ends = not outcome.limited and patience.ends(tries, unheard=outcome.unheard)
            if outcome.is_final or ends or (outcome.pause or 0.0) > LONGEST_ASKED:
                raise self._given_up(outcome.error, question)
            if outcome.limited and question is not None:
                pace, now = self._model_pace(question), self.clock.monotonic()
                if now - max(started, pace.last_answer) > MAX_LIMITED_S:
                    raise self._given_up(outcome.error, question)
                pace.refused(sent_at, now, outcome.pause, patience.first)
            if not outcome.limited:
                with FRAME.get().resting():
                    await self.clock.sleep(patience.pause(tries, outcome.pause))

    async def _turn(self, question: Asked | None) -> None:
        """Wait until a question may be sent; raise if the key or the account was refused a moment ago."""
        if question is None:
            return
        with FRAME.get().resting():
            if self.provider not in LOCAL:
                await self._model_pace(question).probed(self.clock)
            await self._model_pace(question).turn(self.clock, question.weight)
            await self.pace.turn(self.clock, question.weight)
        if error := self._model_pace(question).denied.get(self._asker(), self.clock):
            raise ProviderDenied(str(error), error.status)

    def there(self, at: float) -> float:
        """Return a time of our clock by that of the provider, as its last answer told it."""
        date, now = self._dated
        try:
            theirs = parsedate_to_datetime(date)
        except ValueError:
            return at
        return at + (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)).timestamp() - now

    async def _attempt(
        self,
        send: Callable[[], Awaitable[Answered]],
        read: Callable[[Answered], Read],
        question: Asked | None,
        *,
        once: bool,
    ) -> "Read | _Fault":
        """Send a request once."""
        try:
            response = await _untold(send())
            self._dated = response.headers.get("date", ""), self.clock.now()
            if response.status_code >= CLIENT_ERROR:
                return await self._refusal(response, question, once=once)
            if question is not None:
                self._heard(question, response.headers)
            return read(response)
        except UNSENT as failure:
            told = f"{self._name} cannot be reached: {self._told(failure)}"
            hint = "is it running, and is the address right (TSUZUKI_LLM_BASE_URL)?"
            return _Fault(ProviderUnavailable(f"{told}; {hint}"), unheard=True)
        except httpx2.TransportError as failure:
            told = f"{self._name} did not answer: {self._told(failure)}"
            timed_out = isinstance(failure, httpx2.ReadTimeout) and question is not None
        except NotJSON as failure:
            told, timed_out = f"{self._name} answered something that is not JSON: {self.clean(str(failure))}", False
        if once:
            return _Fault(ProviderUnclear(told))
        if question is not None and self.provider not in LOCAL:
            question.uncertain += 1
        if timed_out:
            hint = "set TSUZUKI_LLM_TIMEOUT_SEC higher, or allow fewer max_tokens"
            return _Fault(ProviderTimeout(f"{self._name} did not answer within {self._timeout:g} s ({hint})"))
        return _Fault(ProviderUnavailable(told))

    def _given_up(self, error: LLMError, question: Asked | None) -> LLMError:
        """Return an error that also tells how many requests may have been charged."""
        if question is not None and question.uncertain:
            many = "1 request" if question.uncertain == 1 else f"{question.uncertain} requests"
            error.args = (f"{error}; {many} may have been charged",)
            error.reply = Reply(
                model=question.model, finish="error", tries=question.uncertain, uncertain=question.uncertain
            )
        return error

    def _asker(self) -> tuple[object, int]:
        """Return who asks: a run that is resumed is let in again, as is any other run."""
        return current().run_id or self._nobody, current().attempt

    def _model_pace(self, question: Asked) -> ModelPace:
        return model_pace_of(self.provider, self.base_url, question.model)

    def _heard(self, question: Asked, headers: Mapping[str, str]) -> None:
        pace = self._model_pace(question)
        pace.heard(headers, self.clock, question.weight)
        pace.answered()
        pace.last_answer = self.clock.monotonic()

    def used(self, question: Asked, tokens: int) -> None:
        """Takes note of how many tokens a question used in truth."""
        for pace in (self.pace, self._model_pace(question)):
            pace.used(tokens - question.weight)

    async def _refusal(self, response: Response | httpx2.Response, question: Asked | None, *, once: bool) -> _Fault:
        """Return what a status of 400 or more means."""
        status, pause = response.status_code, retry_after(response.headers, self.clock)
        try:
            content = response.content if isinstance(response, Response) else await _beginning(response)
            said = Refusal.read(content)
        except httpx2.TransportError as error:
            said = Refusal(self._told(error))
        finally:
            if isinstance(response, httpx2.Response):
                await response.aclose()
        pause = said.pause if pause is None else pause
        text = f"{self._name} answered HTTP {status}: {self.clean(said.text)}"
        if said.is_denied(status, pause):
            denied = ProviderDenied(text + _HINTS.get(status, ACCOUNT_HINT), status if status in KEY else ACCOUNT)
            if question is not None:
                self._model_pace(question).denied.note(self._asker(), denied, self.clock)
            return _Fault(denied)
        if status not in PASSING or said.is_too_large:
            return _Fault(ProviderRefused(text + _HINTS.get(status, ""), status))
        if pause is not None and pause > LONGEST_ASKED:
            text += f"; it asks to be left alone for {pause:,.0f} s"
        if once and status != TOO_MANY:
            return _Fault(ProviderUnclear(text))
        limited = status == TOO_MANY and question is not None
        if limited and question is not None:
            self._model_pace(question).heard(response.headers, self.clock, question.weight)
        return _Fault(ProviderUnavailable(text), pause, limited)

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


class NotJSON(Exception):
    """What was answered is not JSON; its text."""


def _decoded(response: Response | httpx2.Response) -> Any:
    try:
        return msgspec.json.decode(response.content)
    except (msgspec.DecodeError, RecursionError):
        raise NotJSON(text_of(response.content)) from None


def _as_it_is(response: Answered) -> Answered:
    return response


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
