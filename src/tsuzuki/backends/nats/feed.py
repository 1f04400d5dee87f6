"""Follows a stream: first the last message of every subject, then whatever comes, in order and without gaps.

Its consumer belongs to this process alone and is made anew, from where we were, whenever it falls silent. It is
pulled, and answers come to a callback: nothing here can lose a message together with a time-out.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg

from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.backends.nats.topology import NANO
from tsuzuki.backends.nats.wire import Listening, Wire
from tsuzuki.clock import Clock

logger: Final = logging.getLogger("tsuzuki.nats")

BATCH: Final = 1000
MOST_BYTES: Final = 16 << 20
FEW: Final = 200
"""How many last messages of subjects are asked for at once, without a limit of bytes: a server that stops at such a
limit never sends the message that would have gone beyond it, as it has taken it off its list of last ones. More are
asked for when half of them have come, so that the server need not wait for us."""
EXPIRES: Final = 30.0
HEARTBEAT: Final = 1.0
SILENT: Final = 3.0
"""After so many seconds without a heartbeat the consumer is made anew."""
_TIMEOUT: Final = frozenset({"404", "408"})
_UNANSWERED: Final = "Nats-Pending-Messages"
"""How many messages that were asked for do not come any more."""


class Feed:
    """Hands each message of a stream to a function, once and in order; `whole`: these subjects are all it has."""

    def __init__(
        self,
        wire: Wire,
        clock: Clock,
        stream: str,
        subjects: list[str],
        take: Callable[[str, int, bytes], None],
        *,
        whole: bool = False,
    ) -> None:
        self._wire, self._clock, self._stream, self._subjects, self._take = wire, clock, stream, subjects, take
        self._whole = whole
        self._last = 0
        self._delivered = 0
        self._asked = 0
        self._sparse = False
        self._heard_at = 0.0
        self._broken = asyncio.Event()
        self._name = ""
        self._inbox = ""
        self._subscription: Listening | None = None
        self._task: asyncio.Task[None] | None = None
        self.loaded = asyncio.Event()
        self.spoken_at = 0.0
        """When something was heard of the stream last, by the time of the loop; it speaks up every second."""
        self._kept_at = "0"

    @property
    def kept_at(self) -> float:
        """When the server has kept the message that is handed over just now (Unix seconds)."""
        return int(self._kept_at) / NANO

    def start(self, after: int = 0) -> None:
        """Begins to follow, after a sequence."""
        self._last = after
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"tsuzuki-feed-{self._stream}")
        self._wire.on_reconnect.append(self._broken.set)

    def again(self, after: int = 0) -> None:
        """Goes back to follow from after a sequence on."""
        self._last = after
        self.loaded.clear()
        self._broken.set()

    async def close(self) -> None:
        """Follows no more."""
        with contextlib.suppress(ValueError):  # it was never started
            self._wire.on_reconnect.remove(self._broken.set)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._name and await self._wire.connected(0):
            with contextlib.suppress(ApiError, Unclear):  # the server forgets it by itself, a little later
                await self._wire.ask(topology.delete_consumer(self._stream, self._name), b"", timeout=HEARTBEAT)

    async def _run(self) -> None:
        while True:
            try:
                await self._begin()
                await self._watch()
            except (Unclear, ApiError) as error:
                logger.debug("the feed of %s begins again: %s", self._stream, error)
                await self._wire.connected(1.0)
                await asyncio.sleep(0.1)
            finally:
                await self._end()

    async def _begin(self) -> None:
        self._broken.clear()
        self._delivered = self._asked = 0
        self._sparse = not self._last
        self._heard_at = self._clock.monotonic()
        self._inbox = self._wire.inbox()
        self._name = self._inbox.rpartition(".")[2]
        self._subscription = await self._wire.subscribe(self._inbox, self._heard)
        answer = await self._wire.api(
            topology.create_consumer(self._stream, self._name),
            stream_name=self._stream,
            action="create",
            config=self._config(),
        )
        self.spoken_at = asyncio.get_running_loop().time()
        if not answer.get("num_pending") and not self._broken.is_set():
            self.loaded.set()
        await self._pull()

    def _config(self) -> dict[str, Any]:
        where = {"deliver_policy": "by_start_sequence", "opt_start_seq": self._last + 1}
        return {
            "name": self._name,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": 30 * NANO,
            **({} if self._whole and not self._sparse else {"filter_subjects": self._subjects}),
            **({"deliver_policy": "last_per_subject"} if self._sparse else where),
        }

    async def _watch(self) -> None:
        while not self._broken.is_set() and (left := self._heard_at + SILENT - self._clock.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._broken.wait()

    async def _end(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await self._wire.unsubscribe(subscription)

    async def _pull(self) -> None:
        most = FEW if self._sparse else BATCH
        more, self._asked = most - self._asked, most
        request = {
            "batch": more,
            **({} if self._sparse else {"max_bytes": MOST_BYTES}),
            "expires": int(EXPIRES * NANO),
            "idle_heartbeat": int(HEARTBEAT * NANO),
        }
        await self._wire.pull(
            topology.next_messages(self._stream, self._name), msgspec.json.encode(request), self._inbox
        )

    async def _heard(self, message: Msg) -> None:
        self._heard_at = self._clock.monotonic()
        self.spoken_at = asyncio.get_running_loop().time()
        headers = message.headers
        try:
            if headers and "Status" in headers and not message.data:
                await self._told(headers)
                return
            await self._given(message)
        except Unclear:
            self._broken.set()

    async def _told(self, headers: Mapping[str, str]) -> None:
        status = headers["Status"]
        if status == "100":  # a heartbeat
            return
        if status in _TIMEOUT or (status == "409" and "MaxBytes" in headers.get("Description", "")):
            self._asked = max(self._asked - int(headers.get(_UNANSWERED, self._asked)), 0)
            await self._pull()
        else:
            self._broken.set()

    async def _given(self, message: Msg) -> None:
        # $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.OUR NUMBER.TIME.PENDING, where domains put two words before
        if self._broken.is_set():  # it begins again, after what it has taken or was told
            return
        words = message.reply.split(".")
        seq, number, pending = int(words[-4]), int(words[-3]), int(words[-1])
        if number != self._delivered + 1:
            self._broken.set()  # one was lost on the way: begin again where we were
            return
        self._delivered, self._kept_at = number, words[-2]
        self._take(message.subject, seq, message.data)
        # The last of each subject come in the order of the stream, so this is where we are.
        self._last = seq
        if not pending:
            self.loaded.set()
        self._asked -= 1
        if self._asked <= (FEW // 2 if self._sparse else 0):
            await self._pull()
