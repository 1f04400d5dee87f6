"""Tickets of the work queue: what one says, and who deals out those of a group.

A ticket says that a run may be claimed. It decides nothing: the chain does.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg

from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import CONSUMER_EXISTS, DENIED, ApiError, Unclear
from tsuzuki.backends.nats.topology import NANO, Group, Topology
from tsuzuki.backends.nats.wire import Listening, Wire
from tsuzuki.lifecycle import Run

ACK: Final = b"+ACK"
UNDER_WAY: Final = b"+WPI"
NO_MORE: Final = b"+TERM"
ANSWER: Final = 1.0
"""How long an answer of the queue is waited for, beyond the time it was given (seconds)."""
LINGER: Final = 0.02
"""How long the next ticket of an answer is waited for: a queue with too many tickets out does not say that this was
all (seconds)."""
SHORTEST: Final = 0.01
"""A request without an end would stay open where too many tickets are out (seconds)."""
NO_RUN: Final = "there is no such run"
_LIMITS: Final = ("ack_wait", "max_ack_pending")
"""What whoever starts sets anew on a consumer that is there."""
_NEEDED: Final = ("filter_subject", "ack_policy")
"""Without these a consumer deals out something else, or for good."""
_NOTHING_MORE: Final = frozenset({"404", "408"})


class Ticket(msgspec.Struct, frozen=True):
    """A ticket; `reply` is where we say what became of it, if it was dealt to us, `problem` why it makes no sense."""

    run_id: str
    subject: str
    reply: str
    problem: str = ""
    seq: int = 0
    delivered: int = 0


class _Said(msgspec.Struct):
    run_id: str
    flow_name: str = ""
    tag: str = ""
    number: int = 0


_said: Final = msgspec.json.Decoder(_Said).decode


def write(run: Run) -> bytes:
    """Writes the ticket of a run."""
    return msgspec.json.encode(_Said(run.id, run.flow, run.tag, run.number))


def read(message: Msg) -> Ticket:
    """Reads a ticket that was dealt to us; one that makes no sense says so."""
    # $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.…, where domains put two words before
    words = message.reply.split(".")
    return _read(message.subject, message.data, message.reply, seq=int(words[-4]), delivered=int(words[-5]))


def kept(message: Msg) -> Ticket:
    """Reads a ticket that lies in the queue."""
    headers = message.headers or {}
    return _read(headers["Nats-Subject"], message.data, "", seq=int(headers["Nats-Sequence"]), delivered=0)


def _read(subject: str, data: bytes, reply: str, *, seq: int, delivered: int) -> Ticket:
    run_id = topology.last_token(subject)
    try:
        named = _said(data).run_id
        problem = "" if named == run_id else f"it names another run, {named!r}"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"it is no ticket: {error}"
    return Ticket(run_id, subject, reply, problem, seq, delivered)


def ours(names: Topology, queue: Mapping[str, Any]) -> str:
    """Says what of a queue, told by its settings, is to be looked through.

    What a later version lets in beside tickets is its own. A queue of old may hold what has no form at all.
    """
    others = set(queue["subjects"]) - {names.all_tickets, names.all_work}
    return names.all_tickets if others else names.all_work


def back(delay: float = 0.0) -> bytes:
    """Says that others may have a ticket, after a while."""
    return b"-NAK" if delay <= 0 else b"-NAK " + msgspec.json.encode({"delay": int(delay * NANO)})


class Gone(Exception):
    """There is no such consumer any more."""


class _Pull:
    """One request for tickets, and what came so far."""

    def __init__(self, token: str, most: int) -> None:
        self.token, self.most = token, most
        self.messages: list[Msg] = []
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def given(self, message: Msg) -> None:
        self.messages.append(message)
        if len(self.messages) >= self.most:
            self.end()
        elif len(self.messages) == 1:
            self._loop.call_later(LINGER, self._linger, 1)

    def _linger(self, seen: int, still: int = 0) -> None:
        """Ends when nothing came twice in a row: once may mean that this process was busy."""
        still = still + 1 if seen == len(self.messages) else 0
        if still > 1:
            self.end()
        elif not self.future.done():
            self._loop.call_later(LINGER, self._linger, len(self.messages), still)

    def end(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def told(self, status: str, text: str) -> None:
        if status in _NOTHING_MORE:
            self.end()
        elif status == "503" or "Deleted" in text:
            self.future.set_exception(Gone)
        else:
            self.fail(f"the queue answered {status} {text}")

    def fail(self, reason: str) -> None:
        if not self.future.done():
            self.future.set_exception(Unclear(reason))


class Dealer:
    """Deals out the tickets of a group: what is there at once, or the first that comes within a moment.

    No request stays open for long: that of a worker which stands still would swallow what comes meanwhile.
    """

    def __init__(self, wire: Wire, names: Topology, group: Group, learned: Callable[[float, str], None]) -> None:
        self._wire, self._stream, self._learned = wire, names.work, learned
        self._name, self._config = names.consumer(group)
        self._inbox = wire.inbox()
        self._subscription: Listening | None = None
        self._ready = False
        self._turn = asyncio.Lock()
        self._tokens = count(1)
        self._pull: _Pull | None = None

    async def deal(self, most: int, patience: float) -> list[Ticket]:
        """Gives at most so many tickets; waits for the first one, if there is none."""
        async with self._turn:
            for _ in range(2):
                try:
                    await self._prepare()
                    return [read(message) for message in await self._ask(most, patience)]
                except Gone:
                    self._ready = False
            raise Unclear("the consumer of the work queue is gone as soon as it was made")

    async def _prepare(self) -> None:
        if self._subscription is None:
            self._subscription = await self._wire.subscribe(f"{self._inbox}.*", self._heard)
        if self._ready:
            return
        note = ""
        try:
            config = await self._make("create")
        except ApiError as error:
            if error.error not in (CONSUMER_EXISTS, DENIED):
                raise
            found = (await self._wire.api(topology.consumer_info(self._stream, self._name)))["config"]
            config, note = await self._adapted(found)
        self._ready = True
        self._learned(config.get("ack_wait", 0) / NANO, note)

    async def _make(self, action: str) -> dict[str, Any]:
        request = {"stream_name": self._stream, "config": self._config, "action": action}
        answer = await self._wire.api(topology.create_consumer(self._stream, self._name), **request)
        config: dict[str, Any] = answer["config"]
        return config

    async def _adapted(self, found: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Gives a consumer that others made our limits, or keeps theirs; says which, where they differ."""
        unlike = [x for x in (*_LIMITS, *_NEEDED) if found.get(x) != self._config[x]]
        if not unlike:
            return found, ""
        before = ", ".join(f"{x}={_shown(found.get(x))}" for x in unlike)
        ours = ", ".join(f"{x}={_shown(self._config[x])}" for x in unlike)
        try:
            return await self._make("update"), f"had {before}, and has {ours} from now on"
        except ApiError as error:
            if any(x in _NEEDED for x in unlike):
                raise  # no tickets from there: runs are claimed without them
            return found, f"keeps {before} instead of {ours}: {error}"

    async def _ask(self, most: int, patience: float) -> list[Msg]:
        pull = self._pull = _Pull(str(next(self._tokens)), most)
        request = {"batch": most, "no_wait": True, "expires": int(max(patience, SHORTEST) * NANO)}
        timer = asyncio.get_running_loop().call_later(patience + ANSWER, pull.fail, "the queue does not answer")
        try:
            subject = topology.next_messages(self._stream, self._name)
            await self._wire.pull(subject, msgspec.json.encode(request), f"{self._inbox}.{pull.token}")
            await pull.future
        except Unclear:
            if not pull.messages:
                raise
        except BaseException:
            self._pull = None
            for message in pull.messages:
                await self._hand_back(message)
            raise
        finally:
            timer.cancel()
            self._pull = None
        return pull.messages

    async def _heard(self, message: Msg) -> None:
        pull, headers = self._pull, message.headers
        waits = pull is not None and not pull.future.done()
        if headers and "Status" in headers and not message.reply:
            if pull is not None and waits and topology.last_token(message.subject) == pull.token:
                pull.told(headers["Status"], headers.get("Description", ""))
        elif pull is not None and waits:
            pull.given(message)
        else:
            await self._hand_back(message)  # nobody waits any more

    async def _hand_back(self, message: Msg) -> None:
        try:
            await self._wire.tell(message.reply, back())
        except Unclear:
            return  # it comes back by itself


def _shown(setting: Any) -> str:
    """Writes a setting as people set it: times in seconds."""
    return f"{setting / NANO:g}s" if isinstance(setting, int) and setting >= NANO // 1000 else str(setting)
