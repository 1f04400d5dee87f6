"""What others than its holder ask of a run (cancel, resume): kept on a subject of its own, and let into its chain.

A request is published first, acknowledged, and never breaks the sequence of the holder. A living holder hears it and
lets it into the chain itself; where nobody holds the run, or the holder does not in a moment, the asker does. Where the
asker has died meanwhile, whoever follows the journal does. The chain alone decides: the message that lets a request in
names its sequence, and as both are in one stream, only messages after the request can. So it is let in once.
"""

import asyncio
import base64
import contextlib
import logging
import random
import sqlite3
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg

from tsuzuki import facts as f
from tsuzuki.backends import Check
from tsuzuki.backends.nats import frames, leaders, topology
from tsuzuki.backends.nats.chain import MOST_AT_ONCE, Chain
from tsuzuki.backends.nats.faults import DENIED, ApiError, Unclear
from tsuzuki.backends.nats.frames import Tip
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.servertime import seconds
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import TsuzukiError
from tsuzuki.lifecycle import Run

logger: Final = logging.getLogger("tsuzuki.nats")

PATIENCE: Final = 0.25
"""How long a living holder may take to let a request in, before the asker does (seconds)."""
SOON: Final = 0.001
SELDOM: Final = 0.02
"""How long an asker waits before its first look at the chain, and at most between two (seconds)."""
LEFT: Final = 1.0
"""After so many seconds, and up to as many more, a request that nobody let in is let in by who hears of it."""
OLD: Final = 600.0
"""A resume that is older is left alone by who hears of it when it starts: nobody counts on it any more (seconds)."""
AT_ONCE: Final = 32
"""How many requests are seen to at a time."""
LONGEST: Final = 5.0
"""How long one that begins to follow waits for them (seconds)."""
_LOOKS: Final = (0.0, 0.002, 0.01, 0.05, 0.2)

LetIn = Callable[[str, int, f.Fact], None]
HeldSince = Callable[[str], int | None]
"""Tells which message was the claim of a run that is held here."""
Settle = Callable[[str, int, f.Fact], Awaitable[Any]]


class Fate(Enum):
    """What became of a request: nothing yet; it is in the chain; the run has ended or was resumed since."""

    OPEN = 0
    LET_IN = 1
    OVER = 2


class Requests:
    """The requests of all runs."""

    def __init__(
        self,
        wire: Wire,
        names: Topology,
        options: Options,
        clock: Clock,
        *,
        chain: Chain,
        reserve: Reserve,
        kept: bool,
    ) -> None:
        self._wire, self._topology, self._clock, self._chain, self._reserve = wire, names, clock, chain, reserve
        self._timeout = options.timeout
        self._asked_here: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._found: set[asyncio.Task[None]] = set()
        self._old: dict[str, tuple[int, f.Fact]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.kept = kept
        """Whether the store keeps requests: one of old does once an admin has opened it."""
        self.let_in: LetIn = _nobody
        self.held_since: HeldSince = _never
        self.followed: Callable[[], bool] = bool
        self.settle: Settle = _nothing
        self.row: Callable[[str], Run | None] = _unknown

    async def close(self) -> None:
        """Leaves."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Asking

    async def put(self, run_id: str, fact: f.Fact, patience: float = 0.0) -> int:
        """Keeps a request, once; gives its sequence, 0 where that is not possible: the chain has to do.

        Where the answer gets lost it is looked for by its name, and asked again where it is not there.
        """
        if not self.kept:
            return 0
        write = self._reserve.urgently if isinstance(fact, f.CancelAsked) else _plainly
        publish = partial(self._publish, run_id, f.encode(fact), self._chain.mark(), [])
        try:
            request = await write(lambda: self._chain.patiently(publish, patience))
        except ApiError as error:
            if error.error != DENIED:
                raise
            self.kept = False  # this user has no right to it, and need not try again
            return 0
        self._asked_here.add(request)
        self.let_in(run_id, request, fact)
        return request

    async def _publish(self, run_id: str, data: bytes, name: str, tries: list[str]) -> int:
        if tries and (found := await self._named(run_id, name)):
            return found
        tries.append(name)
        return await self._wire.publish(self._topology.request(run_id), data, once=name)

    async def _named(self, run_id: str, name: str) -> int:
        """Finds our own request among the last ones of a run; 0 where it is not there."""
        journal, subject = self._topology.journal, self._topology.request(run_id)
        last = await leaders.message(self._wire, journal, self._timeout, last_by_subj=subject)
        return int(last["seq"]) if last is not None and name.encode() in base64.b64decode(last.get("hdrs", "")) else 0

    async def awaited(self, run_id: str, request: int) -> Tip | None:
        """Waits a moment for the holder to let a request in; gives where the chain ended then."""
        until, pause, seen = self._clock.monotonic() + PATIENCE, SOON, request
        with contextlib.suppress(Unclear):  # then the asker looks, which has more patience
            while self._clock.monotonic() < until:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, SELDOM)
                for seq, frame in await self._chain.after(run_id, seen):
                    if request in frame.requests:
                        return await self._chain.whole(frames.tip_of(frame, seq))
                    if frames.begins_anew(frame):
                        return None
                    seen = seq
        return None

    async def fate(self, run_id: str, request: int) -> Fate:
        """Tells what became of a request."""
        seen = request
        while found := await self._chain.after(run_id, seen):
            for seq, frame in found:
                if request in frame.requests:
                    return Fate.LET_IN
                if frames.begins_anew(frame):
                    return Fate.OVER
                seen = seq
        return Fate.OPEN

    def answered(self, request: int) -> None:
        """Takes note that whoever asked here has its answer."""
        self._asked_here.discard(request)

    # Hearing

    async def noticed(self, message: Msg) -> None:
        """Hears of a request as it is published: whoever holds a run and does not follow the journal looks for it."""
        run_id = topology.last_token(message.subject)
        since = self.held_since(run_id)
        if since is None or self.followed():
            return
        for pause in _LOOKS:  # it is heard of a moment before it is kept
            await asyncio.sleep(pause)
            with contextlib.suppress(Unclear, ApiError):
                if found := await self._after(run_id, since):
                    for request, data, at in found:
                        self._hear(run_id, request, data, at)
                    return

    async def _after(self, run_id: str, seq: int) -> list[tuple[int, bytes, float]]:
        """Reads the requests of a run after a sequence, and when each was kept."""
        asked = {"seq": seq + 1, "next_by_subj": self._topology.request(run_id), "batch": MOST_AT_ONCE}
        answers = await self._wire.many(topology.direct_get(self._topology.journal), msgspec.json.encode(asked))
        told = [(answer.headers or {}, answer.data) for answer in answers]
        return [(int(told["Nats-Sequence"]), data, seconds(told["Nats-Time-Stamp"])) for told, data in told]

    def _hear(self, run_id: str, request: int, data: bytes, at: float) -> None:
        fact = _read(data, at)
        if fact is not None and request not in self._asked_here:
            self.let_in(run_id, request, fact)

    def heard(self, run_id: str, request: int, data: bytes, at: float) -> None:
        """Takes note of a request: the holder lets it in, and if nobody does in time, whoever has heard of it."""
        fact = _read(data, at)
        if fact is None or request in self._asked_here:
            return
        self.let_in(run_id, request, fact)
        cancels = isinstance(fact, f.CancelAsked)
        if self._clock.now() - at < OLD or (cancels and self.followed()):
            self._take_on(run_id, request, fact)
        elif cancels:
            self._old[run_id] = request, fact

    def _take_on(self, run_id: str, request: int, fact: f.Fact) -> None:
        task = asyncio.get_running_loop().create_task(self._see_to(run_id, request, fact))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._overdue(fact):
            self._found.add(task)
            task.add_done_callback(self._found.discard)

    async def caught_up(self) -> None:
        """Waits until what was asked before we came is seen to: otherwise we would claim what is to be cancelled.

        Of what is old nearly all is over: only now the rows tell of which runs that is not so.
        """
        old, self._old = self._old, {}
        for run_id, (request, fact) in old.items():
            if not self._has_ended(run_id):
                self._take_on(run_id, request, fact)
        if self._found:
            await asyncio.wait(set(self._found), timeout=LONGEST)

    def _has_ended(self, run_id: str) -> bool:
        try:
            row = self.row(run_id)
        except (sqlite3.Error, msgspec.MsgspecError):  # the file is damaged: the chain tells
            return False
        return row is None or row.status.terminal

    def _overdue(self, fact: f.Fact) -> bool:
        """Tells whether an asker has had its time, and whoever followed the journal then."""
        return self._clock.now() - fact.at > 2 * LEFT

    async def _see_to(self, run_id: str, request: int, fact: f.Fact) -> None:
        if not self._overdue(fact):
            await asyncio.sleep(LEFT * random.uniform(1.0, 2.0))
        try:
            async with self._turns:
                if await self.fate(run_id, request) is Fate.OPEN:
                    await self.settle(run_id, request, fact)
        except (TsuzukiError, Unclear, ApiError) as error:  # refused, or not ours to do: others hear of it too
            logger.debug("the request %d for run %s is left to others: %s", request, run_id, error)

    # Looking after them

    async def drop(self, run_id: str) -> None:
        """Removes the requests of a run that is purged."""
        subject = self._topology.request(run_id)
        await self._wire.api(topology.purge_stream(self._topology.journal), filter=subject)

    async def subjects(self) -> list[str]:
        """Names the runs for which there are requests."""
        told = await self._wire.api(
            topology.stream_info(self._topology.journal), subjects_filter=self._topology.all_requests
        )
        return [topology.last_token(subject) for subject in told["state"].get("subjects") or ()]

    async def sweep(self, unknown: Callable[[str], Awaitable[bool]]) -> Check:
        """Removes the requests of runs that are no more: whoever asked did not know."""
        runs = await self.subjects()
        gone = [run_id for run_id in runs if await unknown(run_id)]
        for run_id in gone:
            await self.drop(run_id)
        text = f"of {len(runs) - len(gone)} runs kept, of {len(gone)} that are no more swept"
        return Check("requests", ok=True, text=text)


def _read(data: bytes, at: float) -> f.Fact | None:
    """Reads a request, which was made when the server kept it: whoever asked may have a clock that is wrong."""
    try:
        fact = f.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return msgspec.structs.replace(fact, at=at) if isinstance(fact, f.Fact) else None


async def _plainly(write: Callable[[], Awaitable[int]]) -> int:
    return await write()


def _nobody(run_id: str, request: int, fact: f.Fact) -> None:
    """Nobody holds runs here."""


def _unknown(run_id: str) -> Run | None:
    """Nobody follows the journal here."""


def _never(run_id: str) -> int | None:
    """Nobody holds runs here."""


async def _nothing(run_id: str, request: int, fact: f.Fact) -> None:
    """Nobody settles requests here."""
