"""The connection: it never gives up, sends nothing late, and matches answers with requests.

The client's own request is not used: it waits with `asyncio.wait_for`, and has no answer of many messages.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import AuthorizationError, Error, MaxPayloadError

from tsuzuki.backends.nats.faults import ApiError, Unclear, refusal, sequence_of
from tsuzuki.backends.nats.options import Options
from tsuzuki.errors import StoreError, StoreUnavailable

logger: Final = logging.getLogger("tsuzuki.nats")

EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
LIFETIME: Final = "Nats-TTL"
_STATUS: Final = "Status"
_DONE: Final = "204"
_AGAIN: Final = 1.0
"""How long to wait before the next client is tried, when one has given up for good (seconds)."""
_ROOM: Final = 1 << 30
"""How many bytes of answers may wait for us; each request bounds its own."""


MOST_READS: Final = 4
"""How many answers of many messages may be under way; each of them has at most 8 MB."""


class _Waiting:
    """Who waits for an answer, and what came so far."""

    __slots__ = ("future", "many", "messages", "timer")

    def __init__(self, future: "asyncio.Future[list[Msg]]", *, many: bool) -> None:
        self.future, self.many = future, many
        self.messages: list[Msg] = []
        self.timer: asyncio.TimerHandle | None = None

    def fail(self, reason: str) -> None:
        if not self.future.done():
            self.future.set_exception(Unclear(reason))

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


class Listening(msgspec.Struct):
    """What somebody listens to, and how the client of today calls it."""

    subject: str
    heard: Callable[[Msg], Awaitable[None]]
    current: Subscription


class Wire:
    """A connection with requests and answers."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client = Client()
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, _Waiting] = {}
        self._tokens = count(1)
        self._inbox = ""
        self._reading = asyncio.Semaphore(MOST_READS)
        self._listening: dict[Subscription, Listening] = {}
        self._renewal: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self._last_error: Exception | None = None
        self.closed = False
        self.on_reconnect: list[Callable[[], None]] = []

    @property
    def largest(self) -> int:
        """The size of the largest message, with its headers, that the server takes."""
        return self._client.max_payload

    @property
    def server(self) -> str:
        """The version of the server that we speak to."""
        return str(self._client.connected_server_version)

    async def connect(self) -> None:
        """Connects, or says why not."""
        try:
            await self._dial(self._client)
            self._inbox = self._client.new_inbox()
            await self.subscribe(f"{self._inbox}.*", self._heard)
        except (TimeoutError, OSError, Error, ValueError, Unclear) as error:
            self.closed = True
            await self._client.close()
            raise self._unreachable(self._last_error or error) from error
        self._up.set()

    async def _dial(self, client: Client) -> None:
        options = self._options
        async with asyncio.timeout(options.connect_timeout):
            await client.connect(
                servers=list(options.servers),
                name="tsuzuki",
                error_cb=self._erred,
                disconnected_cb=self._lost,
                reconnected_cb=self._found,
                closed_cb=self._ended,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.25,  # type: ignore[arg-type]  # it sleeps for it, whole or not
                connect_timeout=2,
                ping_interval=5,
                max_outstanding_pings=2,
                pending_size=0,
                **options.credentials(),
            )

    def _unreachable(self, error: Exception) -> StoreError:
        url = self._options.url
        if isinstance(error, AuthorizationError) or "uthorization" in str(error):
            return StoreUnavailable(f"{url} refuses us ({error}); check creds=, nkey=, token= or the user's rights")
        return StoreUnavailable(
            f"{url} cannot be reached ({str(error) or type(error).__name__}); start it, or check the address"
        )

    async def close(self) -> None:
        """Leaves; whoever waits for an answer is told that none comes."""
        self.closed = True
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
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

    # Asking

    async def ask(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> Msg:
        """Asks, and gives the one answer."""
        answers = await self._request(subject, data, headers, timeout, many=False)
        answer = answers[0]
        if answer.headers and answer.headers.get(_STATUS) == "503":
            raise Unclear("nobody answers on the server: is JetStream enabled, has it a leader?")
        return answer

    async def many(self, subject: str, data: bytes) -> list[Msg]:
        """Asks, and gives all messages of the answer; none where there is nothing.

        Few are under way at a time: a server turns out a client for which more than 64 MB wait.
        """
        try:
            async with asyncio.timeout(self._options.timeout):
                await self._reading.acquire()
        except TimeoutError:
            raise Unclear("it is busy answering") from None
        try:
            return await self._request(subject, data, None, None, many=True)
        finally:
            self._reading.release()

    async def api(self, subject: str, **request: Any) -> dict[str, Any]:
        """Asks the server's API; what it refuses is raised."""
        answer = await self.ask(subject, msgspec.json.encode(request) if request else b"")
        told: dict[str, Any] = msgspec.json.decode(answer.data)
        if error := told.get("error"):
            raise refusal(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
        return told

    async def publish(self, subject: str, data: bytes, *, after: int | None = None, lifetime: int = 0) -> int:
        """Writes to a stream, where asked only directly after a sequence of the subject; gives the new sequence."""
        headers: dict[str, str] = {}
        if after is not None:
            headers[EXPECTED] = str(after)
        if lifetime:
            headers[LIFETIME] = str(lifetime)
        return sequence_of((await self.ask(subject, data, headers or None)).data)

    async def tell(self, subject: str, data: bytes) -> None:
        """Sends a message that nobody needs to get."""
        try:
            await self._client.publish(subject, data)
        except Error as error:
            raise Unclear(str(error) or type(error).__name__) from error

    async def pull(self, subject: str, data: bytes, reply: str) -> None:
        """Asks for messages that come to another subject."""
        try:
            await self._client.publish(subject, data, reply=reply)
        except Error as error:
            raise Unclear(str(error) or type(error).__name__) from error

    async def subscribe(self, subject: str, heard: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Listens."""
        try:
            subscription = await self._client.subscribe(subject, cb=heard, pending_bytes_limit=_ROOM)
        except Error as error:
            raise Unclear(str(error) or type(error).__name__) from error
        self._listening[subscription] = Listening(subject, heard, subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Listens no more."""
        listening = self._listening.pop(subscription)
        try:
            await listening.current.unsubscribe()
        except Error as error:
            logger.debug("cannot unsubscribe: %s", error)

    def inbox(self) -> str:
        """Gives a subject that nobody else uses."""
        return self._client.new_inbox()

    async def _request(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None, timeout: float | None, *, many: bool
    ) -> list[Msg]:
        token = str(next(self._tokens))
        waiting = _Waiting(self._loop.create_future(), many=many)
        seconds = self._options.timeout if timeout is None else timeout
        waiting.timer = self._loop.call_later(seconds, waiting.fail, f"no answer within {seconds:g} s")
        self._waiting[token] = waiting
        try:
            await self._client.publish(
                subject, data, reply=f"{self._inbox}.{token}", headers=dict(headers) if headers else None
            )
            return await waiting.future
        except MaxPayloadError as error:
            raise ApiError(400, 10054, f"{len(data)} bytes") from error
        except Error as error:
            await asyncio.sleep(0)  # whoever asks again at once must not keep the loop from reconnecting
            raise Unclear(str(error) or type(error).__name__) from error
        finally:
            waiting.timer.cancel()
            del self._waiting[token]
            if not waiting.future.cancel() and not waiting.future.cancelled():
                waiting.future.exception()  # it may have failed while we were still sending

    async def _heard(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is not None:
            waiting.heard(message)

    # What the client tells

    async def _erred(self, error: Exception) -> None:
        self._last_error = error
        logger.debug("NATS: %r", error)

    async def _lost(self) -> None:
        if not self.closed and self._up.is_set():
            logger.warning("the connection to %s is lost; trying to get it back", self._options.url)
        self._up.clear()
        self._fail_all("the connection was lost")

    async def _found(self) -> None:
        logger.warning("the connection to %s is back", self._options.url)
        self._up.set()
        for told in self.on_reconnect:
            told()

    async def _ended(self) -> None:
        """Some errors make the client give up for good (its rights expired or were withdrawn); we never do."""
        if not self.closed and self._inbox and self._renewal is None:
            self._up.clear()
            self._fail_all("the connection was closed")
            self._renewal = self._loop.create_task(self._renew(), name="tsuzuki-nats-renewal")

    async def _renew(self) -> None:
        """Takes a new client, and listens with it to what the old one listened to."""
        while not self.closed:
            client = Client()
            try:
                await self._dial(client)
                for listening in list(self._listening.values()):
                    listening.current = await client.subscribe(
                        listening.subject, cb=listening.heard, pending_bytes_limit=_ROOM
                    )
            except (TimeoutError, OSError, Error, ValueError) as error:
                logger.debug("NATS: %r; trying again", error)
                await client.close()
                await asyncio.sleep(_AGAIN)
            else:
                self._client, self._renewal = client, None
                await self._found()
                return

    def _fail_all(self, reason: str) -> None:
        for waiting in list(self._waiting.values()):
            waiting.fail(reason)
