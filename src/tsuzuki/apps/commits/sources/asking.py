"""Asks an HTTP API politely: waits as it says, tries again what passes, and gives up within bounds.

Waits are plain sleeps of the event loop: a run that is cancelled, or to stop, leaves them at once.
"""

import asyncio
import email.utils
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2

from tsuzuki import current
from tsuzuki.apps.commits.refusals import SourceFailure
from tsuzuki.apps.commits.times import CLOCK
from tsuzuki.clock import Clock

_CAUSES: Final = {401: "unauthorized", 403: "forbidden", 404: "not_found", 429: "rate_limited"}
_SERVER: Final = 500
_TOO_MANY: Final = 429
_OK: Final = 200
MAX_ANSWER_BYTES: Final = 16 << 20
"""A page of a hundred commits has a tenth of it. Packed answers are refused: they may be a thousand times as large."""
LOOK_INTERVAL_S: Final = 0.2
"""How often a wait looks whether its run is to stop."""
_TIMEOUTS_PER_ANSWER: Final = 10
"""An answer that comes byte by byte is given up after so many timeouts."""


class _Answer(NamedTuple):
    """An answer that was read as a whole."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often an API is tried."""

    tries: int = 5
    first: float = 1.0
    """The first wait where the server does not say how long (seconds); each further one is twice as long."""
    longest: float = 600.0
    """A longer wait is not waited for: the target fails, and can be retried."""
    timeout: float = 60.0
    reach: float = 10.0
    """How long to wait until a server takes a call at all (seconds)."""
    pages: int = 100_000
    """How many pages of one list are followed."""
    total: float | None = None
    """How long all answers together may take (seconds); None means as long as they take."""
    clock: Clock = field(default=CLOCK)


class Asking:
    """An API at an address, with a token that only it is shown."""

    def __init__(self, address: str, token: str | None, patience: Patience) -> None:
        self._patience = patience
        self.known = token is not None
        headers = {"Accept-Encoding": "identity"} | ({"PRIVATE-TOKEN": token} if token is not None else {})
        # Redirects are not followed: one to another host would carry the token there.
        timeout = httpx2.Timeout(patience.timeout, connect=min(patience.timeout, patience.reach))
        secure = urlsplit(address).scheme != "http"  # authorities are not asked otherwise, and take long to read
        self._client = httpx2.AsyncClient(
            base_url=address, headers=headers, timeout=timeout, follow_redirects=False, verify=secure
        )
        self._not_before = 0.0
        self._away = False
        self._until: float | None = None

    @property
    def most_pages(self) -> int:
        """How many pages of one list are followed."""
        return self._patience.pages

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def get(self, path: str, asked: Mapping[str, str] | None = None) -> tuple[Any, Mapping[str, str]]:
        """Gives the answer and its headers; a `SourceFailure` where there is none in the end."""
        total = self._patience.total
        if total is not None and self._until is None:
            self._until = asyncio.get_running_loop().time() + total
        try:
            async with asyncio.timeout_at(self._until):
                return await self._get(path, asked)
        except TimeoutError:
            raise SourceFailure("size", f"it took longer than {total:g} s") from None

    async def _get(self, path: str, asked: Mapping[str, str] | None) -> tuple[Any, Mapping[str, str]]:
        # A server that could not be reached with all patience is tried once by each further target: hundreds of them
        # would wait in vain otherwise.
        tries = 1 if self._away else self._patience.tries
        for number in range(1, tries + 1):
            await self._wait_for_the_quota()
            failure, wait = SourceFailure("network"), 0.0
            try:
                async with asyncio.timeout(_TIMEOUTS_PER_ANSWER * self._patience.timeout):
                    answer = await self._read(path, asked)
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ssl.SSLError) as error:
                failure = SourceFailure("network", type(error).__name__)
            else:
                self._away = False
                self._note_the_quota(answer.headers)
                if answer.status_code == _OK:
                    return _decoded(answer.body), answer.headers
                failure, wait = _failure(answer), self._told_to_wait(answer)
            if failure.cause not in ("network", "server", "rate_limited") or number == tries:
                self._away = failure.cause == "network"
                raise failure
            await self._wait(wait or self._patience.first * 2 ** (number - 1), failure)
        raise AssertionError("the last try gives or raises")

    async def _read(self, path: str, asked: Mapping[str, str] | None) -> _Answer:
        """Read an answer as it comes, and only as much as is taken."""
        async with self._client.stream("GET", path, params=dict(asked or {})) as answer:
            body = bytearray()
            if answer.status_code == _OK:
                if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
                    raise SourceFailure("answer", "it is packed, though that was refused")
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES:
                        raise SourceFailure("size", f"more than {MAX_ANSWER_BYTES >> 20} MB")
            return _Answer(answer.status_code, answer.headers, bytes(body))

    async def _wait(self, seconds: float, failure: SourceFailure) -> None:
        if seconds > self._patience.longest:
            raise SourceFailure(failure.cause, f"it asks to wait {seconds:.0f} s")
        await _rest(self._patience.clock, seconds)

    async def _wait_for_the_quota(self) -> None:
        left = self._not_before - self._patience.clock.now()
        if left > 0:
            await self._wait(left, SourceFailure("rate_limited"))

    def _note_the_quota(self, headers: Mapping[str, str]) -> None:
        """Remembers when the next request may be made, where this one was the last of its time."""
        used_up = headers.get("ratelimit-remaining", "").strip() == "0"
        self._not_before = self._reset(headers) if used_up else 0.0

    def _told_to_wait(self, answer: _Answer) -> float:
        """Reads how long the server wants to be left alone: in seconds, as a date, as the time of its reset, or not."""
        said = answer.headers.get("retry-after", "").strip()
        if said.isdigit():
            return max(float(said), 0.1)
        until = _date(said) if said else 0.0
        if not until and answer.status_code == _TOO_MANY:
            until = self._reset(answer.headers)
        return max(until - self._patience.clock.now(), 0.1) if until else 0.0

    def _reset(self, headers: Mapping[str, str]) -> float:
        reset = headers.get("ratelimit-reset", "").strip()
        return float(reset) if reset.isdigit() else _date(headers.get("ratelimit-resettime", ""))


async def _rest(clock: Clock, seconds: float) -> None:
    """Wait; a run that is to stop is left at once, since nothing is lost by that."""
    resting = asyncio.ensure_future(clock.sleep(seconds))
    try:
        while not resting.done():
            if current().cancelled:
                raise asyncio.CancelledError
            await asyncio.wait([resting], timeout=LOOK_INTERVAL_S)
        resting.result()
    finally:
        resting.cancel()


def _failure(answer: _Answer) -> SourceFailure:
    status = answer.status_code
    cause = _CAUSES.get(status) or ("server" if status >= _SERVER else "answer")
    return SourceFailure(cause, "" if status in _CAUSES else f"HTTP {status}")


def _date(text: str) -> float:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return 0.0


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise SourceFailure("answer") from None
