"""The connection: it never gives up, sends nothing late, and matches answers with requests.

The client's own request is not used: it waits with `asyncio.wait_for`, and has no answer of many messages.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError, Error, OutboundBufferLimitError

from tsuzuki.backends.nats.dialing import Dialled, Ears, dial
from tsuzuki.backends.nats.faults import DENIED, ApiError, Away, Unclear, fault, refusal, refuse_too_large, sequence_of
from tsuzuki.backends.nats.options import Options
from tsuzuki.errors import StoreError

logger: Final = logging.getLogger("tsuzuki.nats")

EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
AMONG: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
ROLLUP: Final = "Nats-Rollup"
LIFETIME: Final = "Nats-TTL"
NAME: Final = "Nats-Msg-Id"
_STATUS: Final = "Status"
_DONE: Final = "204"
_ROOM: Final = 1 << 30
"""How many bytes of answers may wait for us; each request bounds its own."""
_SOON: Final = 0.05
"""How long to wait before somebody is asked again for whom nobody listened (seconds)."""
_AGAIN: Final = 1.0
"""How long to wait before a server that has thrown us out is tried again (seconds)."""
_STILL: Final = 0.25
"""A timer that is so late tells that this process stood still (seconds)."""
_HEARD: Final = 1.0
"""How long an answer is waited for after this process stood still (seconds)."""
_UNSENT: Final = "nothing can be sent to it just now"
_NOT_ALLOWED: Final = re.compile(r'permissions violation for (publish|subscription)[^"]{0,99}"([^"]+)"', re.IGNORECASE)


MOST_READS: Final = 4
"""How many answers of many messages may be under way; each of them has at most 8 MB."""


class _Waiting:
    """Who waits for an answer, and what came so far."""

    __slots__ = ("future", "many", "messages", "subject", "timer")

    def __init__(self, future: "asyncio.Future[list[Msg]]", subject: str, *, many: bool) -> None:
        self.future, self.subject, self.many = future, subject, many
        self.messages: list[Msg] = []
        self.timer: asyncio.TimerHandle | None = None

    def fail(self, error: Unclear | ApiError) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def heard(self, message: Msg) -> None:
        if self.future.done():
            return
        if not self.many:
            self.future.set_result([message])
        elif message.headers and _STATUS in message.headers:
            self._ended(message)
        else:
            self.messages.append(message)

    def _ended(self, message: Msg) -> None:
        status = (message.headers or {}).get(_STATUS, "")
        if status in (_DONE, "404"):
            self.future.set_result(self.messages)
        else:
            self.future.set_exception(Unclear(f"the server answered {status}"))


class Listening:
    """A subject that somebody listens to, also after the connection was made anew."""

    __slots__ = ("heard", "subject", "subscription")

    def __init__(self, subject: str, heard: Callable[[Msg], Awaitable[None]]) -> None:
        self.subject, self.heard = subject, heard
        self.subscription: Subscription | None = None


class Wire:
    """A connection with requests and answers."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client = Dialled(options)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, _Waiting] = {}
        self._tokens = count(1)
        self._inbox = ""
        self._listening: list[Listening] = []
        self._denied: ApiError | None = None
        self._reading = asyncio.Semaphore(MOST_READS)
        self._up = asyncio.Event()
        self._lost_at = 0.0
        self._reviving: asyncio.Task[None] | None = None
        self.closed = False
        self.on_reconnect: list[Callable[[], None]] = []

    @property
    def largest(self) -> int:
        """The size of the largest message, with its headers, that the server takes."""
        return self._client.max_payload

    @property
    def server(self) -> str:
        """The version of the server that we speak to."""
        version = self._client.connected_server_version
        return f"{version.major}.{version.minor}.{version.patch}"

    @property
    def has_jetstream(self) -> bool:
        """Whether the server that we speak to says that it has JetStream itself; others of its cluster may."""
        return self._client.has_jetstream

    async def connect(self) -> None:
        """Connects, or says why not."""
        await self._dial()
        try:
            self._inbox = self._client.new_inbox()
            await self.subscribe(f"{self._inbox}.*", self._heard)
        except Unclear as error:
            await self.close()
            raise fault(error, self._options.url) from error
        self._up.set()

    async def _dial(self) -> None:
        self._client = await dial(self._options, Ears(self._erred, self._lost, self._found, self._ended))

    async def close(self) -> None:
        """Leaves; whoever waits for an answer is told that none comes."""
        self.closed = True
        if self._reviving is not None:
            self._reviving.cancel()
            await asyncio.wait({self._reviving})
        await self._client.close()
        self._fail_all("the connection was closed")
        self._up.set()

    async def connected(self, timeout: float) -> bool:
        """Waits for the connection; tells whether it is there."""
        if not self._up.is_set():
            try:
                async with asyncio.timeout(timeout):
                    await self._up.wait()
            except TimeoutError:
                return False
        return not self.closed

    def away(self, seconds: float) -> bool:
        """Tells whether the connection has been gone for so long."""
        return self.closed or (not self._up.is_set() and self._loop.time() - self._lost_at >= seconds)

    # Asking

    async def ask(
        self,
        subject: str,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        *,
        again: bool = False,
    ) -> Msg:
        """Asks, and gives the one answer.

        Where nobody listens nothing was done: a cluster that is electing a leader, or has just made the stream, is
        asked again; with a timeout of its own only where that is wanted (`again`).
        """
        patience = self._options.timeout if timeout is None else timeout
        tries = int(patience / _SOON) if (timeout is None or again) and self.has_jetstream else 0
        while True:
            answer = (await self._request(subject, data, headers, timeout, many=False))[0]
            if not answer.headers or answer.headers.get(_STATUS) != "503":
                return answer
            if tries <= 0:
                raise Unclear(
                    "nobody answers on the server: is JetStream enabled, has it a leader, is the stream still there?"
                )
            tries -= 1
            await asyncio.sleep(_SOON)

    async def many(self, subject: str, data: bytes) -> list[Msg]:
        """Asks, and gives all messages of the answer; none where there is nothing.

        Few are under way at a time: a server turns out a client for which more than 64 MB wait.
        """
        await self._reachable(self._options.timeout)  # whoever waits for the connection keeps nobody from reading
        try:
            async with asyncio.timeout(self._options.timeout):
                await self._reading.acquire()
        except TimeoutError:
            raise Unclear("it is busy answering") from None
        try:
            return await self._request(subject, data, None, None, many=True)
        finally:
            self._reading.release()

    async def api(
        self, subject: str, timeout: float | None = None, again: bool = False, /, **request: Any
    ) -> dict[str, Any]:
        """Asks the server's API; what it refuses is raised."""
        answer = await self.ask(subject, msgspec.json.encode(request) if request else b"", timeout=timeout, again=again)
        told: dict[str, Any] = msgspec.json.decode(answer.data)
        if error := told.get("error"):
            raise refusal(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
        return told

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        after: int | None = None,
        among: str = "",
        alone: bool = False,
        lifetime: int = 0,
        once: str = "",
        timeout: float | None = None,
    ) -> int:
        """Writes to a stream, where asked only directly after a sequence of the subject; gives the new sequence.

        `among` names the subjects of which that sequence must be the last, where they are more than the one. With
        `alone` what the subject held before goes. What bears a name (`once`) is kept once, as long as the stream
        remembers names.
        """
        headers: dict[str, str] = {NAME: once} if once else {}
        if after is not None:
            headers[EXPECTED] = str(after)
        if among:
            headers[AMONG] = among
        if alone:
            headers[ROLLUP] = "sub"
        if lifetime:
            headers[LIFETIME] = str(lifetime)
        return sequence_of((await self.ask(subject, data, headers or None, timeout, again=True)).data)

    async def tell(self, subject: str, data: bytes) -> None:
        """Sends a message that nobody needs to get."""
        try:
            await self._client.publish(subject, data)
        except Error as error:
            raise Unclear(_UNSENT) from error

    async def pull(self, subject: str, data: bytes, reply: str) -> None:
        """Asks for messages that come to another subject."""
        try:
            await self._client.publish(subject, data, reply=reply)
        except Error as error:
            raise Unclear(_UNSENT) from error

    async def subscribe(self, subject: str, heard: Callable[[Msg], Awaitable[None]]) -> Listening:
        """Listens."""
        listening = Listening(subject, heard)
        try:
            await self._listen(listening)
        except Error as error:
            raise Unclear(_UNSENT) from error
        self._listening.append(listening)
        return listening

    async def _listen(self, listening: Listening) -> None:
        listening.subscription = await self._client.subscribe(
            listening.subject, cb=listening.heard, pending_bytes_limit=_ROOM
        )

    async def unsubscribe(self, listening: Listening) -> None:
        """Listens no more."""
        self._listening.remove(listening)
        if listening.subscription is not None:
            with contextlib.suppress(Error):  # then nobody sends anything either
                await listening.subscription.unsubscribe()

    def inbox(self) -> str:
        """Gives a subject that nobody else uses."""
        return self._client.new_inbox()

    async def _request(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None, timeout: float | None, *, many: bool
    ) -> list[Msg]:
        """Asks once the connection is there; that and the answer are waited for together, for one timeout."""
        seconds = self._options.timeout if timeout is None else timeout
        until = self._loop.time() + seconds
        while True:
            await self._reachable(until - self._loop.time())
            if self._denied is not None:
                raise self._denied
            refuse_too_large(data, headers, self.largest)
            token = str(next(self._tokens))
            waiting = _Waiting(self._loop.create_future(), subject, many=many)
            waiting.timer = self._loop.call_at(until, self._late, waiting, until, seconds)
            self._waiting[token] = waiting
            try:
                await self._client.publish(
                    subject, data, reply=f"{self._inbox}.{token}", headers=dict(headers) if headers else None
                )
                return await waiting.future
            except (OutboundBufferLimitError, ConnectionClosedError) as error:
                if self._loop.time() >= until:
                    raise Unclear(_UNSENT) from error
                await asyncio.sleep(_SOON)  # nothing was sent: the client knows of an outage a little before we do
            except Error as error:
                raise Unclear(_UNSENT) from error
            finally:
                waiting.cancel()
                del self._waiting[token]
                if not waiting.future.cancel() and not waiting.future.cancelled():
                    waiting.future.exception()  # it may have failed while we were still sending

    def _late(self, waiting: _Waiting, until: float, seconds: float) -> None:
        """Gives up on an answer; not before one that came while this process stood still could be heard."""
        stood_still = self._loop.time() - until
        if stood_still < _STILL:
            waiting.fail(Unclear(f"no answer within {seconds:g} s"))
            return
        error = Unclear(f"no answer within {seconds:g} s, while this process stood still for some {stood_still:.0f} s")
        waiting.timer = self._loop.call_later(min(seconds, _HEARD), waiting.fail, error)

    async def _reachable(self, seconds: float) -> None:
        """Waits for the connection; what cannot be sent in time was not sent."""
        if self._up.is_set() and not self.closed:
            return
        if not await self.connected(max(seconds, 0)):
            raise Away("the connection was closed" if self.closed else "there is no connection to it")

    async def _heard(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is not None:
            waiting.heard(message)

    # What the client tells

    async def _erred(self, error: Exception) -> None:
        logger.debug("NATS: %s", error)
        found = _NOT_ALLOWED.search(str(error))
        if found is None:
            return
        # The server tells it beside the answers, and the client tells it in small letters.
        kind, subject = found.groups()
        denied = ApiError(403, DENIED, f"{'write to' if kind.lower() == 'publish' else 'listen to'} {subject}")
        if self._inbox and subject.lower().startswith(self._inbox.lower()):
            self._denied = denied  # without answers there is nothing to be asked
        for waiting in list(self._waiting.values()):
            if self._denied or waiting.subject.lower() == subject.lower():
                waiting.fail(denied)

    async def _lost(self) -> None:
        if not self.closed and self._up.is_set():
            logger.warning("the connection to %s is lost; trying to get it back", self._options.url)
            self._lost_at = self._loop.time()
        self._up.clear()
        self._fail_all("the connection was lost")

    async def _found(self) -> None:
        logger.warning("the connection to %s is back", self._options.url)
        self._up.set()
        for told in self.on_reconnect:
            told()

    async def _ended(self) -> None:
        """The client gives up when a server throws us out; our rights may be given back, or our file replaced."""
        if not self.closed and self._reviving is None:
            self._reviving = self._loop.create_task(self._revive(), name="tsuzuki-reconnect")

    async def _revive(self) -> None:
        while True:
            try:
                await self._dial()
                for listening in self._listening:
                    await self._listen(listening)
                break
            except (StoreError, Error) as error:
                logger.warning("%s", error)
                await self._client.close()
                await asyncio.sleep(_AGAIN)
        self._reviving = None
        await self._found()

    def _fail_all(self, reason: str) -> None:
        for waiting in list(self._waiting.values()):
            waiting.fail(Unclear(reason))
