"""Reads and extends the chains of runs; fenced, and sure of what was written when an acknowledgement got lost."""

import asyncio
import logging
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from nats.aio.msg import Msg

from tsuzuki import facts as f
from tsuzuki.backends.nats import frames, leaders, topology
from tsuzuki.backends.nats.blobs import Blobs
from tsuzuki.backends.nats.faults import IN_FLIGHT, PASSED, ApiError, Unclear, fault
from tsuzuki.backends.nats.frames import ELSEWHERE, Frame, Tip
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreError
from tsuzuki.lifecycle import Run
from tsuzuki.tallies import SIZES, sizes

logger: Final = logging.getLogger("tsuzuki.nats")

Read = TypeVar("Read")

MOST_AT_ONCE: Final = 256
MOST_BYTES: Final = 8 << 20
AGAIN: Final = 0.02
"""How long to wait before a refused or unclear write is looked at again (seconds)."""
FIRST_TRY_S: Final = 2.0
"""How long a cluster may take over the first try of a write, and twice as long over each further one: what is written
while a stream has no leader is never acknowledged, and a server may only be busy."""
TOMBSTONE: Final = 24 * 3600
"""How long a tombstone tells other processes that a run is gone (seconds)."""
_REMEMBERED: Final = 256
_REMEMBERED_BYTES: Final = 16 << 20
"""Of how many bytes huge params are remembered: lists and claims ask for the same ones again and again."""
_LOOKS: Final = 20
"""How often a replica that lags behind is asked again."""
_SEQUENCE: Final = "Nats-Sequence"


class Passed(Exception):
    """Somebody else extended the chain first; here is where it ends now."""

    def __init__(self, tip: Tip | None) -> None:
        super().__init__("somebody else was quicker")
        self.tip = tip


class Spans:
    """Where the positions of a chain are: the last position of each message, and its sequence."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.sequences: list[int] = []

    def add(self, position: int, seq: int) -> None:
        """Adds a message at the end."""
        if not self.sequences or seq > self.sequences[-1]:
            self.positions.append(position)
            self.sequences.append(seq)


class Chain:
    """The chains of all runs."""

    def __init__(self, wire: Wire, topology_: Topology, options: Options, clock: Clock, blobs: Blobs) -> None:
        self._blobs = blobs
        self._wire, self._topology, self._options, self._clock = wire, topology_, options, clock
        self._leader = options.replicas > 1
        self._spans: OrderedDict[str, Spans] = OrderedDict()
        self._huge: OrderedDict[str, bytes] = OrderedDict()
        self._writer = uuid.uuid4().hex[:12]
        self._marks = count(1)
        self._under_way: dict[str, tuple[int, Frame] | None] = {}
        self.sizes = sizes()
        self.on_stray: Callable[[str, int, Frame], None] = _ignore

    def mark(self) -> str:
        """Gives a mark that no other message bears."""
        return f"{self._writer}.{next(self._marks)}"

    # Reading

    async def last(self, run_id: str) -> Tip | None:
        """Reads where a chain ends; None where there is none, or a tombstone."""
        tip = await self.end(run_id)
        return None if tip is None or tip.run is None else tip

    async def end(self, run_id: str) -> Tip | None:
        """Reads where a chain ends, be it with a tombstone."""
        found = await self._one(last_by_subj=self._topology.chain(run_id))
        if found is None:
            return None
        seq, data = found
        return await self.whole(frames.tip_of(frames.decode(data), seq))

    async def _one(self, timeout: float | None = None, /, **which: Any) -> tuple[int, bytes] | None:
        """Reads one message; a replica may lag behind, so among several it is their leader that is asked."""
        stream, timeout = self._topology.journal, self._options.timeout if timeout is None else timeout
        if not self._leader:
            request = msgspec.json.encode(which)
            return _message(await self._wire.ask(topology.direct_get(stream), request, timeout=timeout, again=True))
        found = await leaders.message(self._wire, stream, timeout, **which)
        return None if found is None else (int(found["seq"]), leaders.body(found))

    async def mark_at(self, seq: int) -> str | None:
        """Reads the mark of the message at a sequence; None where there is none."""
        found = await self._one(seq=seq)
        return None if found is None else frames.decode(found[1]).mark

    async def whole(self, tip: Tip) -> Tip:
        """Gives a tip whose row has its params."""
        if tip.run is None or tip.run.params != ELSEWHERE:
            return tip
        params = await self._params(tip.run.id, tip.first)
        return tip if params is None else msgspec.structs.replace(tip, run=_with(tip.run, params))

    async def _params(self, run_id: str, first: int) -> msgspec.Raw | None:
        """Reads the params out of the first message of a chain, or out of the blob that it names."""
        found = await self._one(seq=first)
        submission = None if found is None else frames.submission_of(frames.decode(found[1]))
        return None if submission is None else (await self.unfolded(run_id, submission)).params

    async def unfolded(self, run_id: str, fact: f.Submitted) -> f.Submitted:
        """Puts params that are kept apart in their place; those that are lost are left out, and fail their run."""
        if not fact.blob:
            return msgspec.structs.replace(fact, params=msgspec.Raw(bytes(fact.params)))
        params = self._huge.pop(run_id, None)
        try:
            params = params or await self._read_huge(run_id, fact.blob)
        except StoreError as error:
            logger.exception("run %s has lost its params", run_id, extra={"err_id": error.error_id, "run_id": run_id})
            return fact
        self._huge[run_id] = params
        while sum(map(len, self._huge.values())) > _REMEMBERED_BYTES:
            self._huge.popitem(last=False)
        return msgspec.structs.replace(fact, params=msgspec.Raw(params), blob="")

    async def _read_huge(self, run_id: str, blob: str) -> bytes:
        """Reads params, which a replica may not have yet."""
        for look in range(_LOOKS if self._leader else 0):
            try:
                return await self._blobs.get(run_id, blob)
            except StoreError:
                await asyncio.sleep(0.01 * look)
        return await self._blobs.get(run_id, blob)

    async def after(self, run_id: str, seq: int, most: int = MOST_AT_ONCE) -> list[tuple[int, Frame]]:
        """Reads messages of a chain, those after a sequence; a tombstone ends it."""
        request = {
            "seq": seq + 1,
            "next_by_subj": self._topology.chain(run_id),
            "batch": min(most, MOST_AT_ONCE),
            "max_bytes": MOST_BYTES,
        }
        answers = await self._wire.many(topology.direct_get(self._topology.journal), msgspec.json.encode(request))
        found = [(_sequence(answer), frames.decode(answer.data)) for answer in answers]
        return [(at, frame) for at, frame in found if frame.row is not None]

    async def upto(self, run_id: str, tip: Tip) -> list[Frame]:
        """Reads a chain up to its end; a replica that lags behind leaves it unclear."""
        read: list[Frame] = []
        seq = 0
        while seq < tip.seq:
            found = await self.after(run_id, seq)
            if not found:
                raise Unclear(f"a replica of {self._topology.journal} lags behind")
            read += [frame for _, frame in found]
            seq = found[-1][0]
        return read

    def spans(self, run_id: str) -> Spans:
        """Gives what is known of where the positions of a run are."""
        spans = self._spans.pop(run_id, None) or Spans()
        self._spans[run_id] = spans
        if len(self._spans) > _REMEMBERED:
            self._spans.popitem(last=False)
        return spans

    # Writing

    async def extend(
        self, run_id: str, tip: Tip | None, frame: Frame, row: Run | None, *, patience: float, lifetime: int = 0
    ) -> Tip:
        """Writes a message with its row directly after a tip, exactly once; `Passed` when somebody was quicker.

        A lost acknowledgement is made up for: the chain is read, and shows whether the message is there.
        """
        after = 0 if tip is None else tip.seq
        self._under_way[frame.mark] = None
        try:
            seq = await self._extend(run_id, after, frame, patience, lifetime)
        except BaseException:
            heard = self._under_way.pop(frame.mark)
            if heard is not None:
                self.on_stray(run_id, *heard)
            raise
        del self._under_way[frame.mark]
        self.sizes.add(len(frame.facts), SIZES)
        return Tip(seq, frame.first or seq, frame.mark, row)

    def heard(self, seq: int, frame: Frame) -> bool:
        """Takes back what this process is writing just now: whoever writes it knows it best."""
        if frame.mark not in self._under_way:
            return False
        self._under_way[frame.mark] = seq, frame
        return True

    async def _extend(self, run_id: str, after: int, frame: Frame, patience: float, lifetime: int) -> int:
        subject, data = self._topology.chain(run_id), frames.encode(frame)
        doubt: Unclear | None = None
        until = self._clock.monotonic() + patience
        patience_of_try = FIRST_TRY_S if self._leader else self._options.timeout
        while True:
            timeout = min(patience_of_try, self._options.timeout, max(until - self._clock.monotonic(), AGAIN))
            try:
                if doubt is not None and (written := await self._look(run_id, after, frame, timeout)):
                    return written
                return await self._wire.publish(subject, data, after=after, lifetime=lifetime, timeout=timeout)
            except ApiError as error:
                if error.error == PASSED and (
                    written := await self.patiently(partial(self._look, run_id, after, frame), patience)
                ):
                    return written
                if error.error not in (PASSED, IN_FLIGHT):
                    raise fault(error, self._options.url) from error
                doubt = doubt or Unclear(str(error))
            except Unclear as error:
                doubt = error
                patience_of_try *= 2
            await self._wait(doubt, until)

    async def patiently(self, read: Callable[[], Awaitable[Read]], patience: float) -> Read:
        """Reads for somebody who would rather wait than give up."""
        until = self._clock.monotonic() + patience
        while True:
            try:
                return await read()
            except Unclear as error:
                await self._wait(error, until)

    async def _look(self, run_id: str, after: int, frame: Frame, timeout: float | None = None) -> int:
        """Finds our message; 0 when the chain still ends where it ended; `Passed` when it went on without us.

        Ours can only be the one that follows directly: whatever else stands there has kept it out for good.
        """
        found = await self._one(timeout, seq=after + 1, next_by_subj=self._topology.chain(run_id))
        if found is None and after and await self.end(run_id) is None:
            raise Passed(None)  # it was purged
        if found is None:
            return 0
        seq, data = found
        if frames.decode(data).mark == frame.mark:
            return seq
        raise Passed(await self.end(run_id))

    async def _wait(self, doubt: Unclear, until: float) -> None:
        """Waits a moment, and for the connection; when patience ends, the doubt becomes an error."""
        left = until - self._clock.monotonic()
        if left <= 0 or self._wire.closed or not await self._wire.connected(left):
            raise fault(doubt, self._options.url) from doubt
        await asyncio.sleep(AGAIN)

    async def bury(self, run_id: str, tip: Tip | None) -> None:
        """Puts a tombstone at the end of a chain: nothing can follow, and all who listen hear that it is gone."""
        first = 0 if tip is None else tip.first
        frame = Frame(self.mark(), 0, first, None, [])
        buried = await self.extend(run_id, tip, frame, None, patience=self._options.timeout, lifetime=TOMBSTONE)
        await self.drop(run_id, seq=buried.seq)

    async def drop(self, run_id: str, **upto: int) -> None:
        """Removes a chain, or what of it is before a sequence."""
        await self._wire.api(topology.purge_stream(self._topology.journal), filter=self._topology.chain(run_id), **upto)
        self._spans.pop(run_id, None)
        self._huge.pop(run_id, None)


def _ignore(run_id: str, seq: int, frame: Frame) -> None:
    """Nobody follows the journal."""


def _with(run: Run, params: msgspec.Raw) -> Run:
    return msgspec.structs.replace(run, params=params)


def _message(answer: Msg) -> tuple[int, bytes] | None:
    """Reads the answer of a direct get."""
    headers = answer.headers or {}
    status = headers.get("Status")
    if status == "404":
        return None
    if status is not None:
        raise Unclear(f"the server answered {status} {headers.get('Description', '')}")
    return _sequence(answer), answer.data


def _sequence(answer: Msg) -> int:
    return int((answer.headers or {})[_SEQUENCE])


def sequences(values: list[int], gap: int = 32) -> Iterator[tuple[int, int]]:
    """Groups indices that lie close together into ranges."""
    start = last = values[0]
    for value in values[1:]:
        if value > last + gap:
            yield start, last
            start = value
        last = value
    yield start, last
