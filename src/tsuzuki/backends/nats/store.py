"""The store on NATS JetStream: the verbs of the port, each handed to the part that knows how."""

import asyncio
import contextlib
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import (
    ALWAYS,
    API_KEYS,
    NO_FINGERPRINTS,
    Check,
    Claim,
    DeadLetter,
    Entry,
    Holding,
    Line,
    Mark,
    Query,
    WorkerRecord,
    forgettable,
)
from tsuzuki.backends.nats import frames, options, streams
from tsuzuki.backends.nats.claims import Wanted
from tsuzuki.backends.nats.faults import ApiError, Unclear, fault
from tsuzuki.backends.nats.frames import Tip
from tsuzuki.backends.nats.parts import Parts
from tsuzuki.backends.nats.pen import Pens
from tsuzuki.backends.nats.records import Records
from tsuzuki.backends.nats.servertime import ServerTime
from tsuzuki.backends.nats.topology import last_token, unescaped
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreClosed, StoreError
from tsuzuki.lifecycle import Run, RunUpdateResult
from tsuzuki.tallies import Histogram

_fact: Final = f.decode
_DIGITS: Final = 18
BURST: Final = 1.0
"""For new workers that come within so many seconds, the records of all are read once."""


class NatsBackend:
    """Keeps everything in the streams of a NATS server or cluster."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._clock = parts, parts.clock
        self._pens = Pens(parts.desk)
        self._forgot_at, self._closed = 0.0, False
        self.wheels = parts.wheels
        self.wheels.faults = self._faults

    @classmethod
    async def open(
        cls, url: str, *, clock: Clock | None = None, prefix: str | None = None, **settings: Any
    ) -> "NatsBackend":
        """Opens the store at an address; what is missing there is made."""
        clock = clock or ServerTime()
        chosen = options.parse(url, prefix=prefix, **settings)
        wire = Wire(chosen)
        await wire.connect()
        try:
            parts = await Parts.assemble(wire, chosen, clock)
            store = cls(parts)
            await parts.start(store._pens.let_in, store._pens.held_since)
        except BaseException as error:
            await wire.close()
            if isinstance(error, Unclear | ApiError):
                raise fault(error, chosen.url) from error
            raise
        return store

    @property
    def one_machine(self) -> bool:
        return False

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def url(self) -> str:
        """The address that opens this store again; it tells no secret."""
        return self._parts.options.url

    @property
    def writes(self) -> Histogram:
        return self._parts.chain.sizes

    # The journal

    def append(self, claim: Claim, facts: Sequence[f.Fact], *, alone: bool = False) -> Awaitable[int]:
        del alone  # the first message of a run goes at once, and what comes meanwhile is packed
        return self._pens.append(claim, facts)

    async def read(self, run_id: str, *, after: int = 0, limit: int = 2000) -> list[Entry]:
        with self._faults():
            return await self._unfolded(run_id, await self._parts.journals.page(run_id, after, limit, frames.entries))

    async def _unfolded(self, run_id: str, entries: list[Entry]) -> list[Entry]:
        """Puts params that are kept apart in their place, in the first fact of a run."""
        if entries and isinstance(first := entries[0].fact, f.Submitted) and first.blob:
            entries[0] = Entry(entries[0].position, await self._parts.chain.unfolded(run_id, first))
        return entries

    async def outcomes(self, run_id: str, *, after: int = 0, limit: int = 5000) -> list[Mark]:
        with self._faults():
            return await self._parts.patiently(
                run_id, lambda: self._parts.journals.page(run_id, after, limit, frames.marks)
            )

    async def fetch(self, run_id: str, positions: Sequence[int]) -> list[Entry]:
        with self._faults():
            found = await self._parts.patiently(run_id, lambda: self._parts.journals.fetch(run_id, positions))
            return await self._unfolded(run_id, found)

    async def changed(self, run_id: str, position: int, timeout: float) -> None:
        with self._faults():
            if self._parts.projection.position(run_id) > position:
                return
            await self._parts.follower.watch(run_id)
            await self._parts.bells.listen(run_id)
        if self._parts.projection.position(run_id) <= position:
            await self._parts.bells.run(run_id, timeout)

    # The log

    async def log(self, run_id: str, lines: Sequence[Line], progress: bytes | None = None) -> None:
        projection = self._parts.projection
        with self._faults():
            if not projection.position(run_id) and await self._parts.chain.last(run_id) is None:
                return  # purged meanwhile: the log is lossy
            if lines:
                position = projection.position(run_id)
                placed = [msgspec.structs.replace(line, position=line.position or position) for line in lines]
                await self._parts.logs.write(run_id, placed)
            if progress is not None:
                await self._parts.progressed(run_id, progress)
        self._parts.bells.ring(run_id)

    async def read_log(self, run_id: str, *, after: int = 0, limit: int = 1000) -> list[Line]:
        with self._faults():
            return await self._parts.logs.read(run_id, after, limit)

    # The queue

    async def submit(self, run: Run, fact: f.Fact, *, claimed: f.Claimed | None = None) -> Run:
        with self._faults():
            row = await self._parts.queue.submit(run, [fact] if claimed is None else [fact, claimed])
        if claimed is not None and row.id == run.id:
            self._pens.take(Claim(row, claimed.worker, row.attempt), self._parts.projection.tip(row.id))
        return row

    async def claim(
        self,
        worker: str,
        *,
        tags: Sequence[str] = (),
        limit: int = 1,
        flows: Collection[str] | None = None,
        workflows: bool = True,
        dead: frozenset[str] = frozenset(),
        run_id: str | None = None,
        fingerprints: Mapping[str, str] = NO_FINGERPRINTS,
        wheels: Mapping[str, str] = NO_FINGERPRINTS,
        alone: bool = False,
    ) -> list[Claim]:
        wanted = Wanted(worker, tags, limit, dead, fingerprints, flows, workflows, wheels, alone)
        with self._faults():
            if run_id is not None:
                claims = await self._parts.claims.claim_by_id(run_id, wanted)
            else:
                await self._parts.follower.asked(self._parts.projection.begin_to_claim, lists=False)
                claims = await self._parts.claims.claim(wanted)
        for claim in claims:
            self._pens.take(claim, self._parts.projection.tip(claim.run.id))
        return claims

    async def ask(
        self, run_id: str, fact: f.Fact, *, dead: frozenset[str] = frozenset()
    ) -> tuple[RunUpdateResult, Run | None]:
        with self._faults():
            return await self._parts.queue.ask(run_id, fact, dead)

    async def work(self, timeout: float) -> None:
        self._parts.follower.start()
        now = self._clock.now()
        due = self._parts.projection.due(now)
        await self._parts.bells.work.wait(timeout if due is None else min(timeout, due - now))

    # Workers

    async def beat(self, worker: WorkerRecord) -> list[Holding]:
        with self._faults():
            beaten = await self._parts.workers.beat(worker)
            self._parts.heart.beaten(beaten)
            self._parts.inspector.look(beaten.id)
        self._parts.projection.saw(beaten.id, beaten.heartbeat_at)
        if beaten.beats == 1 and abs(self._clock.now() - self._forgot_at) >= BURST:
            self._forgot_at = self._clock.now()
            await self._forget_workers(beaten.id)
        with self._faults():  # what a worker of this name held before a restart is told too
            held = partial(self._parts.projection.held, worker.id)
            holds = await self._parts.follower.asked(held, lists=False)
        self._pens.put_away_lost(worker.id, self._parts.projection.tip)
        return holds

    async def workers(self, *, holding: bool = False) -> list[WorkerRecord]:
        with self._faults():
            holders = await self._holders() if holding else set[str]()
            found = await self._parts.workers.all(hidden=not holding) if holders or not holding else []
        return [worker for worker in found if not holding or worker.id in holders]

    async def _holders(self) -> set[str]:
        holders = await self._parts.follower.asked(self._parts.projection.holders, lists=False)
        return holders | await self._parts.limits.holders()

    async def hide(self, worker_id: str, hidden: bool) -> bool:
        with self._faults():
            return await self._parts.workers.hide(worker_id, hidden)

    async def _forget_workers(self, new: str) -> None:
        others = [worker for worker in await self.workers() if worker.id != new]
        with self._faults():
            forgotten = forgettable(others, await self._holders(), self._clock.now())
            await self._parts.workers.forget(forgotten)

    # The index

    async def get(self, run_id: str) -> Run | None:
        with self._faults():
            tip = await self._parts.chain.last(run_id)
            if tip is None:
                return None
            self._parts.projection.put(frames.lean(tip))
            return await self._whole(self._parts.projection.shown(tip))

    async def search(self, query: Query) -> list[Run]:
        with self._faults():
            projection = self._parts.projection
            search = partial(projection.search, query)
            found = await self._parts.follower.current(search, lists=not projection.of_claims(query))
            return [run for tip in found if (run := await self._whole(tip) if query.params else frames.bare(tip))]

    async def _whole(self, tip: Tip) -> Run | None:
        return (await self._parts.chain.whole(tip)).run

    async def counts(
        self,
        *,
        flow: str | None = None,
        tag: str | None = None,
        tenant: str | None = None,
        updated_after: float = 0.0,
        updated_by: float = ALWAYS,
    ) -> dict[str, int]:
        with self._faults():
            projection = self._parts.projection
            if not flow is tag is tenant is None:
                wanted = {"flow": flow, "tag": tag, "tenant": tenant, "after": updated_after, "by": updated_by}
                return await self._parts.follower.current(partial(projection.counts_of, wanted))
            counts = partial(projection.counts, updated_after, updated_by)
            return await self._parts.follower.current(counts, lists=not projection.counted(updated_after, updated_by))

    async def waiting_since(self) -> float | None:
        with self._faults():
            since = partial(self._parts.projection.waiting_since, self._clock.now())
            return await self._parts.follower.current(since)

    async def dead_letters(self, *, limit: int = 100, before: str | None = None) -> list[DeadLetter]:
        with self._faults():
            return await self._parts.letters.read(limit, None if before is None else _number(before))

    async def count_letters(self) -> int:
        with self._faults():
            return await self._parts.letters.count()

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        with self._faults():
            return await self._parts.letters.get(_number(letter))

    async def drop_letter(self, letter: str) -> bool:
        with self._faults():
            return await self._parts.letters.drop(_number(letter))

    # Records

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        with self._faults():
            await self._parts.wire.publish(self._parts.topology.document(kind, name), body)

    async def record(self, kind: str, name: str) -> bytes | None:
        with self._faults():
            found = await self._records_of(kind).all(self._parts.topology.document(kind, name))
        return found[0][1] if found else None

    async def records(self, kind: str) -> list[tuple[str, bytes]]:
        with self._faults():
            found = await self._records_of(kind).all(self._parts.topology.documents(kind))
        return sorted((unescaped(last_token(subject)), body) for subject, body in found)

    async def drop_record(self, kind: str, name: str) -> bool:
        with self._faults():
            return await self._records_of(kind).drop(self._parts.topology.document(kind, name))

    def _records_of(self, kind: str) -> Records:
        return self._parts.auth if kind == API_KEYS else self._parts.records

    # Blobs

    async def put_blob(self, run_id: str, data: bytes) -> str:
        with self._faults():
            if not self._parts.projection.position(run_id) and await self._parts.chain.last(run_id) is None:
                raise StoreError(f"there is no run {run_id} to keep a blob for")
            return await self._parts.patiently(run_id, lambda: self._parts.blobs.put(run_id, data))

    async def get_blob(self, run_id: str, blob: str) -> bytes:
        with self._faults():
            return await self._parts.patiently(run_id, lambda: self._parts.blobs.get(run_id, blob))

    # Shared limits

    async def take(self, limit: str, *, interval: float, burst: int = 1) -> float:
        with self._faults():
            return await self._parts.limits.take(limit, interval, burst)

    async def enter(self, limit: str, *, places: int, worker: str, dead: frozenset[str] = frozenset()) -> bool:
        with self._faults():
            return await self._parts.limits.enter(limit, places, worker, dead)

    async def leave(self, limit: str, *, worker: str) -> None:
        with self._faults():
            await self._parts.limits.leave(limit, worker)

    # The store itself

    async def rebuild(self, run_id: str) -> Run | None:
        async def facts() -> list[f.Fact | f.Unknown]:
            entries = await self._parts.journals.page(run_id, 0, 1 << 62, frames.entries)
            return [entry.fact for entry in entries]

        with self._faults():
            return await self._parts.queue.rebuild(run_id, facts)

    async def purge(self, run_ids: Sequence[str]) -> int:
        with self._faults():
            purged = sum([await self._parts.purge(run_id) for run_id in dict.fromkeys(run_ids)])
            await self._parts.reserve.refill()
            return purged

    async def compact(self) -> Check:
        return Check("compact", ok=True, text="the server gives space back by itself")

    async def examine(self) -> list[Check]:
        with self._faults():
            runs = await self._parts.known_runs()
            checks = await streams.examine(self._parts.wire, self._parts.topology, runs)
            return [*checks, *await self._parts.sweep(), await self._parts.reserve.examined()]

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        under_way = self._pens.under_way
        if under_way and await self._parts.wire.connected(0):
            await asyncio.wait(under_way, timeout=self._parts.options.timeout)
        await self._parts.close()
        if under_way:  # whoever waits for what could not be written is told, now that the wire is closed
            await asyncio.wait(under_way)

    async def remove(self) -> None:
        """Deletes the store with all it holds; for tests, and for those who move away."""
        with self._faults():
            await streams.remove(self._parts.wire, self._parts.topology)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        if self._closed:
            raise StoreClosed(f"{self.url} was closed; open it again")
        try:
            yield
        except (Unclear, ApiError) as error:
            raise fault(error, self.url) from error


def _number(letter: str) -> int:
    """Reads the id of a dead letter; one that was never given belongs to none."""
    return int(letter) if letter.isascii() and letter.isdigit() and len(letter) <= _DIGITS else 0
