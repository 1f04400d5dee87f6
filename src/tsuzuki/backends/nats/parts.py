"""The parts of the store put together, and what one write means for the others."""

import asyncio
import contextlib
import logging
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Check, Query, WorkerRecord
from tsuzuki.backends.nats import frames, streams, topology
from tsuzuki.backends.nats.bells import Bells
from tsuzuki.backends.nats.blobs import Blobs
from tsuzuki.backends.nats.chain import AGAIN, Chain, Passed
from tsuzuki.backends.nats.claims import Claims
from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.backends.nats.feed import Feed
from tsuzuki.backends.nats.follower import Follower
from tsuzuki.backends.nats.frames import Tip
from tsuzuki.backends.nats.heart import Heart
from tsuzuki.backends.nats.inspection import Inspector
from tsuzuki.backends.nats.journal import Journals
from tsuzuki.backends.nats.keys import Keys
from tsuzuki.backends.nats.logs import Logs
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.pen import Desk
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.queue import Queue
from tsuzuki.backends.nats.records import Records
from tsuzuki.backends.nats.requests import HeldSince, LetIn, Requests
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.servertime import ServerTime
from tsuzuki.backends.nats.shared import Letters, Limits, Workers
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wheels import NatsWheels
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.backends.nats.work import Work, group_of
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreError, StoreUnavailable
from tsuzuki.lifecycle import ACTIVE, Run, Status

logger: Final = logging.getLogger("tsuzuki.nats")

EXECUTION_ERROR: Final = "execution_error"
_ROOM: Final = 1.0
"""How often whoever waits for room looks for it (seconds)."""
Answer = TypeVar("Answer")

_TO_BE_SEEN: Final = frozenset({Status.PENDING, Status.CANCELLING})
"""The runs that workers are woken for: to be claimed, or to be cancelled by their holder."""
_worker: Final = msgspec.json.Decoder(WorkerRecord).decode


class Progress(msgspec.Struct, frozen=True):
    """How far the steps of a run are, as others hear it."""

    run: str
    at: float
    steps: msgspec.Raw


_progress: Final = msgspec.json.Decoder(Progress).decode


class Parts:
    """Everything that a store is made of."""

    def __init__(self, wire: Wire, names: Topology, options: Options, clock: Clock, *, requests: bool) -> None:
        self.wire, self.topology, self.options, self.clock = wire, names, options, clock
        self.projection = Projection(clock)
        self.bells = Bells(wire, names)
        self.reserve = Reserve(wire, names)
        self.blobs = Blobs(wire, names, self.reserve, clock)
        self.chain = Chain(wire, names, options, clock, self.blobs)
        self.journals = Journals(self.chain, self.projection.position)
        self.requests = Requests(wire, names, options, clock, chain=self.chain, reserve=self.reserve, kept=requests)
        self.records = Records(wire, names, options, clock)
        self.auth = Records(wire, names, options, clock, names.auth)
        self.keys = Keys(self.chain, self.records, names, clock)
        self.logs = Logs(wire, names)
        self.workers = Workers(wire, names, self.records, self.reserve)
        self.limits = Limits(wire, names, self.records, clock, options.patience)
        self.letters = Letters(wire, names, self.records, self.reserve)
        self.wheels = NatsWheels(wire, names, options, clock, self.reserve)
        self.work = Work(wire, names, options, clock, self.projection.row)
        self.inspector = Inspector(
            wire,
            names,
            options,
            chain=self.chain,
            projection=self.projection,
            letters=self.letters,
            written=self.written,
        )
        self.claims = Claims(
            options,
            clock,
            chain=self.chain,
            projection=self.projection,
            work=self.work,
            written=self.written,
            inspector=self.inspector,
            reserve=self.reserve,
        )
        self.heart = Heart(options, names, clock)
        self.queue = Queue(
            wire,
            names,
            options,
            clock,
            chain=self.chain,
            blobs=self.blobs,
            reserve=self.reserve,
            keys=self.keys,
            requests=self.requests,
            projection=self.projection,
            written=self.written,
        )
        self.requests.settle, self.requests.row = self.queue.settle, self.projection.row
        self.desk = self._desk()
        self.follower = self._follower(requests=requests)
        self._state = Feed(wire, clock, names.state, [names.all_workers, names.all_progress], self._learn)
        self._progressed: set[str] = set()
        self._time: asyncio.Task[None] | None = None

    def _desk(self) -> Desk:
        return Desk(
            self.chain,
            url=self.options.url,
            stamp=self.projection.stamp,
            written=self.written,
            largest=lambda: self.wire.largest,
            reserve=self.reserve,
            patience=self.options.patience,
        )

    def _follower(self, *, requests: bool) -> Follower:
        names = self.topology
        return Follower(
            self.wire,
            names,
            self.options,
            self.clock,
            chain=self.chain,
            projection=self.projection,
            news=self._ring,
            asked=self.requests.heard,
            caught_up=self.requests.caught_up,
            subjects=[names.all_chains, *([names.all_requests] if requests else [])],
        )

    @classmethod
    async def assemble(cls, wire: Wire, options: Options, clock: Clock) -> "Parts":
        """Makes sure that the streams are there, and puts the parts together."""
        names = Topology(options)
        replicas, requests = await streams.prepare(wire, names, options)
        return cls(wire, names, msgspec.structs.replace(options, replicas=replicas), clock, requests=requests)

    async def start(self, let_in: LetIn, held_since: HeldSince) -> None:
        """Begins to follow what others write; whoever holds runs here is told what others ask of them."""
        self.requests.let_in, self.requests.held_since = let_in, held_since
        self.requests.followed = self.follower.feed.loaded.is_set
        await self.wire.subscribe(self.topology.all_requests, self.requests.noticed)
        if isinstance(self.clock, ServerTime):
            await self.clock.learn(self._asked)
            self._time = asyncio.create_task(self.clock.keep_learning(self._asked), name="tsuzuki-time")
        self._state.start()
        self.work.start()
        self.reserve.start()

    async def _asked(self) -> dict[str, Any]:
        return await self.wire.api(topology.stream_info(self.topology.state))

    async def close(self) -> None:
        """Leaves."""
        await self.heart.close()
        if self._time is not None:
            self._time.cancel()
            await asyncio.gather(self._time, return_exceptions=True)
        await self.queue.close()
        await self.requests.close()
        await self.inspector.close()
        await self.reserve.close()
        await self.work.close()
        await self.follower.close()
        await self._state.close()
        self.bells.ring_all()
        await self.wire.close()
        self.projection.close()

    async def patiently(self, run_id: str, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Asks again while the server is away or full, where a worker of this process holds the run: its calls wait."""
        until, told = self.clock.monotonic() + self.options.patience, False
        while True:
            try:
                return await call()
            except (Unclear, ApiError) as error:
                left = until - self.clock.monotonic()
                waits = not self.wire.closed and (isinstance(error, Unclear) or error.full)
                if not waits or not self._holds(run_id) or left <= 0 or not await self.wire.connected(left):
                    raise
                if not told:
                    logger.warning("run %s waits for the store: %s", run_id, error)
                told = True
                await asyncio.sleep(AGAIN if isinstance(error, Unclear) else _ROOM * random.uniform(0.5, 2.0))

    def _holds(self, run_id: str) -> bool:
        tip = self.projection.tip(run_id)
        return tip is not None and tip.run is not None and self.heart.beats_for(tip.run.holder)

    # What is written here, and what is heard

    async def written(self, tip: Tip, facts: Sequence[f.Fact]) -> None:
        """Takes note of what this process has written."""
        if tip.run is None:
            return
        self.projection.put(frames.lean(tip), ours=True)
        await self.work.written(tip.run)
        self._ring(tip.run)
        try:  # what is written stands, whatever comes of the rest: a crash or a fault here is made up for by `sweep`
            if tip.run.status.terminal and tip.run.id in self._progressed:
                self._progressed.discard(tip.run.id)
                await self._forget_progress(tip.run.id)
            await self._write_letters(tip.run, facts)
        except (Unclear, ApiError) as error:
            logger.warning("run %s: its dead letter or its progress is not seen to yet: %s", tip.run.number, error)

    async def _write_letters(self, run: Run, facts: Sequence[f.Fact]) -> None:
        for letter in frames.letters(run, facts):
            if self.options.dlq_execution_error or letter.reason != EXECUTION_ERROR:
                subject = self.topology.ticket(group_of(run), run.id)
                await self.letters.write(msgspec.structs.replace(letter, subject=subject))

    def _learn(self, subject: str, seq: int, data: bytes) -> None:
        del seq
        if not data:
            return
        if subject.startswith(self.topology.all_workers[:-1]):
            worker = _worker(data)
            self.projection.saw(worker.id, worker.heartbeat_at)
        else:
            progress = _progress(data)
            self.projection.progressed(progress.run, progress.at, bytes(progress.steps))
            self.bells.ring(progress.run)

    def _ring(self, run: Run) -> None:
        self.bells.ring(run.id)
        if run.status in _TO_BE_SEEN:
            self.bells.work.ring()

    async def progressed(self, run_id: str, progress: bytes) -> None:
        """Shows how far the steps of a run are, here and to others."""
        at = self.projection.stamp()
        told = Progress(run_id, at, msgspec.Raw(progress))
        self._progressed.add(run_id)
        await self.wire.publish(self.topology.progress(run_id), msgspec.json.encode(told))
        self.projection.progressed(run_id, at, progress)

    async def _forget_progress(self, run_id: str) -> None:
        subject = self.topology.progress(run_id)
        await self.wire.api(topology.purge_stream(self.topology.state), filter=subject)

    # Looking after the store

    async def purge(self, run_id: str) -> bool:
        """Removes an ended run with all it had; its tombstone tells the other processes.

        It may be done again after a failure at any point, and where it is not, `sweep` finds what is left.
        """
        end = await self.chain.end(run_id)
        run = self.projection.row(run_id) if end is None or end.run is None else end.run
        if run is None or not run.status.terminal:
            return False
        try:
            if end is not None and end.run is None:  # a purge went no further, or others purge it just now
                await self.chain.drop(run_id, seq=end.seq)
                fenced = True
            else:
                fenced = end is not None and await self._buried(run_id, end)
        except Passed:  # somebody resumed it
            return False
        if not fenced:
            # Not even a tombstone fits, nor does a request to resume. Without a chain nothing can follow either.
            await self.chain.drop(run_id)
        await asyncio.gather(self.logs.purge(run_id), self.requests.drop(run_id))
        await self.blobs.purge(run_id)
        await self._forget_progress(run_id)
        if not fenced:
            await self._tell_gone(run_id)
        self.projection.bury(run_id)
        await self._free_keys(run)
        return True

    async def _buried(self, run_id: str, tip: Tip | None) -> bool:
        """Writes the tombstone of a run; tells whether there was room for it."""
        try:
            await self.chain.bury(run_id, tip)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, ApiError) and error.__cause__.full:
                return False
            raise
        return True

    async def _tell_gone(self, run_id: str) -> None:
        """Writes a tombstone now that there is room; the run is gone without it too, others only hear of it later."""
        with contextlib.suppress(Passed):  # another process told it
            if not await self._buried(run_id, None):
                logger.warning("run %s is removed; others list it until they start anew, for want of room", run_id)

    async def _free_keys(self, run: Run) -> None:
        """Frees what the run held; to free is to write, and where there is no room for it keys are taken over."""
        try:
            await self.keys.free_once(run)
            await self.keys.free(run)
        except ApiError as error:
            if not error.full:
                raise

    async def known_runs(self) -> int:
        """Counts the runs; lists that are damaged, or know more runs than there are, are built anew."""
        if not await self.follower.asked(self.projection.intact):
            await self.follower.rebuild("it is damaged")
        runs = sum((await self.follower.asked(self.projection.counts)).values())
        if runs > await streams.chains(self.wire, self.topology):
            await self.follower.rebuild("it knows of runs that were removed without a trace")
            runs = sum((await self.follower.asked(self.projection.counts)).values())
        return runs

    async def sweep(self) -> list[Check]:
        """Makes up for what a crash left undone: blobs of unknown runs, dead letters that were not written."""
        swept = await self.blobs.sweep(self.projection, self._fenced, self._over)
        kept, late = await self._sweep_letters()
        refused = await self.inspector.all()
        return [
            await self.work.sweep(self.projection.unclaimed(), self._ended),
            Check("refused tickets", ok=True, text=f"{refused} made no sense, and are dead letters now"),
            await self.requests.sweep(self._unknown),
            Check("blobs", ok=True, text=swept.text),
            Check("wheels", ok=True, text=f"pieces of {await self.wheels.sweep()} uploads that never ended swept"),
            await self.keys.given_back(self._active()),
            Check("letters", ok=True, text=f"{kept} kept, {late} that a crash kept back written now"),
        ]

    async def _sweep_letters(self) -> tuple[int, int]:
        """Writes the dead letters that are missing and that nobody has dropped; counts those before, and these."""
        failed, dropped = self.projection.failed(), await self.letters.dropped()
        known = {letter.run_id for letter in await self.letters.read(100_000)}
        missing = [run for run in failed if run.id not in known and run.attempt > dropped.get(run.id, -1)]
        told = [(run, run.error) for run in missing if run.error is not None]
        for run, error in told:
            await self._write_letters(run, [f.RunFailed(at=run.updated_at, attempt=run.attempt, error=error)])
        await self.letters.forget_dropped(dropped.keys() - {run.id for run in failed})
        return len(known), len(told)

    def _active(self) -> list[Run]:
        tips = self.projection.search(Query(status=tuple(sorted(ACTIVE)), limit=sys.maxsize))
        return [tip.run for tip in tips if tip.run is not None]

    async def _fenced(self, run_id: str) -> bool:
        """Makes sure that a run of which only blobs are known is not just being submitted: its params come first."""
        try:
            if (tip := await self.chain.end(run_id)) is None:
                await self.reserve.urgently(lambda: self.chain.bury(run_id, None))
        except Passed:
            return False
        return tip is None or tip.run is None

    async def _unknown(self, run_id: str) -> bool:
        """Tells whether a run is no more, or never was."""
        try:
            return await self.chain.last(run_id) is None
        except StoreError:  # something is there that cannot be read
            return False

    async def _over(self, run_id: str) -> bool:
        """Tells whether nobody holds a run any more, nor writes anything of it."""
        tip = await self.chain.last(run_id)
        return tip is None or tip.run is None or tip.run.status.terminal

    async def _ended(self, run_id: str) -> bool:
        """Tells whether a run needs no ticket: it ended, or never was."""
        row = self.projection.row(run_id)
        if row is None or row.status.terminal:
            tip = await self.chain.last(run_id)
            row = None if tip is None else tip.run
        return row is None or row.status.terminal or row.private
