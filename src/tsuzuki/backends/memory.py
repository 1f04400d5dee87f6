"""The store in memory: the whole port without a disk, for tests and for trying things out.

It keeps facts encoded, as every other store does, so that what cannot be written down shows here too.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Collection, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import (
    ALWAYS,
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
    claim_lost,
    dead_letter,
    forgettable,
    key_held,
)
from tsuzuki.backends.bell import Bell
from tsuzuki.backends.filters import NO_PARAMS
from tsuzuki.backends.memory_record import Record, matches
from tsuzuki.backends.memory_wheels import MemoryWheels
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import Conflict, StoreError
from tsuzuki.lifecycle import (
    ACTIVE,
    Run,
    RunUpdateResult,
    Status,
    choose,
    claim_facts,
    claimable,
    fold,
    holder_facts,
    must_be_alone,
    precedence,
    refold,
    request_facts,
)
from tsuzuki.tallies import SIZES, sizes

TICK: Final = 1e-6
"""The least by which `updated_at` grows from one write to the next."""


class MemoryBackend:
    """Keeps everything in this process, in one event loop; gone when it is."""

    url = "memory:"
    one_machine = True

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self._work = Bell()
        self._records: dict[str, Record] = {}
        self._active: dict[str, Record] = {}
        self._keys: dict[tuple[str, str], Record] = {}
        self._first: dict[tuple[str, str | None], Record] = {}
        self._workers: dict[str, WorkerRecord] = {}
        self._letters: dict[str, DeadLetter] = {}
        self._numbered = 0
        self._documents: dict[str, dict[str, bytes]] = {}
        self._turns: dict[str, float] = {}
        self._places: dict[str, Counter[str]] = {}
        self._number = 0
        self._updated_at = 0.0
        self.writes = sizes()
        self.wheels = MemoryWheels(self.clock)

    # The journal

    def append(self, claim: Claim, facts: Sequence[f.Fact], *, alone: bool = False) -> Awaitable[int]:
        """Writes at once, and acknowledges on the next turn of the loop, as a store with a disk would."""
        del alone
        loop = asyncio.get_running_loop()
        done: asyncio.Future[int] = loop.create_future()
        try:
            record = self._held(claim)
            self._write(record, record.new(facts))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits for the answer
            loop.call_soon(_unless_done, done, None, error)
        else:
            loop.call_soon(_unless_done, done, record.row.position, None)
        return done

    async def read(self, run_id: str, *, after: int = 0, limit: int = 2000) -> list[Entry]:
        record = self._records.get(run_id)
        return list(record.entries(after, after + limit)) if record else []

    async def outcomes(self, run_id: str, *, after: int = 0, limit: int = 5000) -> list[Mark]:
        record = self._records.get(run_id)
        return record.index(after, limit) if record else []

    async def fetch(self, run_id: str, positions: Sequence[int]) -> list[Entry]:
        record = self._records.get(run_id)
        return [entry for position in positions for entry in record.entries(position - 1, position)] if record else []

    async def changed(self, run_id: str, position: int, timeout: float) -> None:
        record = self._records.get(run_id)
        if record is None or record.row.position <= position:
            await (record.bell if record else Bell()).wait(timeout)

    # The log

    async def log(self, run_id: str, lines: Sequence[Line], progress: bytes | None = None) -> None:
        record = self._records.get(run_id)
        if record is None:  # purged meanwhile: the log is lossy
            return
        record.write(lines)
        if progress is not None:
            self._store(record, msgspec.structs.replace(record.row, progress=msgspec.Raw(progress)))
        record.bell.ring()

    async def read_log(self, run_id: str, *, after: int = 0, limit: int = 1000) -> list[Line]:
        record = self._records.get(run_id)
        return [line for line in record.lines if line.number > after][:limit] if record else []

    # The queue

    async def submit(self, run: Run, fact: f.Fact, *, claimed: f.Claimed | None = None) -> Run:
        once = (run.tenant, run.idempotency_key)
        if once in self._first:
            return self._first[once].row
        if run.id in self._records:
            raise Conflict(f"run {run.id} is there already; give every run an id of its own")
        self._check_key(run)
        self._number += 1
        record = Record(msgspec.structs.replace(run, number=self._number))
        self._records[run.id] = record
        if run.idempotency_key is not None:
            self._first[once] = record
        self._write(record, [fact] if claimed is None else [fact, claimed])
        return record.row

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
        now = self.clock.now()

        def suits(run: Run) -> bool:
            known = workflows if run.workflow else flows is None or run.flow in flows
            return claimable(run, now, dead, patient=run_id is None) and (known or run_id is not None)

        found = [record for record in self._candidates(tags, run_id) if suits(record.row)]
        if run_id is None:
            found = choose([(record, record.row) for record in found], now, alone=alone)
        claims: list[Claim] = []
        for record in found:
            if len(claims) >= limit:
                break
            run, by_itself = record.row, alone and (run_id is not None or must_be_alone(record.row))
            code = fingerprints.get(run.flow, "")
            self._write(record, claim_facts(run, worker, now, code, wheels=wheels, alone=by_itself))
            if record.row.holder == worker:
                claims.append(Claim(record.row, worker, record.row.attempt, run.fingerprint))
        return claims

    async def ask(
        self, run_id: str, fact: f.Fact, *, dead: frozenset[str] = frozenset()
    ) -> tuple[RunUpdateResult, Run | None]:
        record = self._records.get(run_id)
        if record is None:
            return RunUpdateResult.NOT_FOUND, None
        facts = request_facts(record.row, fact, dead)
        if record.row.status.terminal:
            if not facts:
                return RunUpdateResult.ALREADY_TERMINAL, record.row
            self._check_key(record.row)
        self._write(record, facts)
        return RunUpdateResult.UPDATED, record.row

    async def work(self, timeout: float) -> None:
        now = self.clock.now()
        due = [record.row.not_before - now for record in self._active.values() if record.row.not_before > now]
        await self._work.wait(min([timeout, *due]))

    # Workers

    async def beat(self, worker: WorkerRecord) -> list[Holding]:
        if worker.id not in self._workers:
            for forgotten in forgettable([*self._workers.values()], self._holders(), self.clock.now()):
                del self._workers[forgotten]
        before = self._workers.get(worker.id, worker)
        hidden = worker.id in self._workers and before.hidden
        self._workers[worker.id] = msgspec.structs.replace(worker, beats=before.beats + 1, hidden=hidden)
        held = [record for record in self._active.values() if record.row.holder == worker.id]
        for record in held:
            seen = max(worker.heartbeat_at, record.row.heartbeat_at or 0.0)
            record.row = msgspec.structs.replace(record.row, heartbeat_at=seen)
        return [Holding(run.id, run.attempt, run.cancel_asked_at is not None) for run in (r.row for r in held)]

    async def workers(self, *, holding: bool = False) -> list[WorkerRecord]:
        holders = self._holders() if holding else self._workers.keys()
        found = (worker for worker in self._workers.values() if worker.id in holders)
        return sorted(found, key=lambda worker: worker.heartbeat_at, reverse=True)

    def _holders(self) -> set[str]:
        places = {worker for taken in self._places.values() for worker, count in taken.items() if count > 0}
        return places | {record.row.holder or "" for record in self._active.values()}

    async def hide(self, worker_id: str, hidden: bool) -> bool:
        known = self._workers.get(worker_id)
        if known is not None:
            self._workers[worker_id] = msgspec.structs.replace(known, hidden=hidden)
        return known is not None

    # The index

    async def get(self, run_id: str) -> Run | None:
        return self._records[run_id].row if run_id in self._records else None

    async def search(self, query: Query) -> list[Run]:
        found = (record.row for record in self._records.values() if matches(record.row, query))
        page = sorted(found, key=lambda run: (run.updated_at, run.id), reverse=True)[: query.limit]
        return page if query.params else [msgspec.structs.replace(row, params=NO_PARAMS) for row in page]

    async def counts(
        self,
        *,
        flow: str | None = None,
        tag: str | None = None,
        tenant: str | None = None,
        updated_after: float = 0.0,
        updated_by: float = ALWAYS,
    ) -> dict[str, int]:
        wanted = Query(flow=flow, tag=tag, tenant=tenant)
        rows = (record.row for record in self._records.values() if matches(record.row, wanted))
        return dict(Counter(row.status.value for row in rows if updated_after < row.updated_at <= updated_by))

    async def waiting_since(self) -> float | None:
        now, rows = self.clock.now(), (record.row for record in self._active.values())
        waiting = (row for row in rows if row.status is Status.PENDING and not row.private and row.not_before <= now)
        return min((max(row.updated_at, row.not_before) for row in waiting), default=None)

    async def dead_letters(self, *, limit: int = 100, before: str | None = None) -> list[DeadLetter]:
        older = (
            letter for letter in reversed(self._letters.values()) if before is None or int(letter.id) < int(before)
        )
        return list(islice(older, limit))

    async def count_letters(self) -> int:
        return len(self._letters)

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        return self._letters.get(letter)

    async def drop_letter(self, letter: str) -> bool:
        return self._letters.pop(letter, None) is not None

    # Records

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        self._documents.setdefault(kind, {})[name] = bytes(body)

    async def record(self, kind: str, name: str) -> bytes | None:
        return self._documents.get(kind, {}).get(name)

    async def records(self, kind: str) -> list[tuple[str, bytes]]:
        return sorted(self._documents.get(kind, {}).items())

    async def drop_record(self, kind: str, name: str) -> bool:
        return self._documents.get(kind, {}).pop(name, None) is not None

    # Blobs

    async def put_blob(self, run_id: str, data: bytes) -> str:
        record = self._records.get(run_id)
        if record is None:
            raise StoreError(f"there is no run {run_id} to keep a blob for")
        blob = hashlib.sha256(data).hexdigest()
        record.blobs[blob] = bytes(data)
        return blob

    async def get_blob(self, run_id: str, blob: str) -> bytes:
        record = self._records.get(run_id)
        if record is None or blob not in record.blobs:
            raise StoreError(f"blob {blob} of run {run_id} is not there; was the run purged?")
        return record.blobs[blob]

    # Shared limits

    async def take(self, limit: str, *, interval: float, burst: int = 1) -> float:
        now = self.clock.monotonic()
        turn = max(self._turns.get(limit, now), now)
        self._turns[limit] = turn + interval
        return max(0.0, turn - (burst - 1) * interval - now)

    async def enter(self, limit: str, *, places: int, worker: str, dead: frozenset[str] = frozenset()) -> bool:
        taken = self._places.setdefault(limit, Counter())
        for gone in dead & taken.keys():
            del taken[gone]
        free = taken.total() < places
        taken[worker] += free
        return free

    async def leave(self, limit: str, *, worker: str) -> None:
        taken = self._places.get(limit, Counter())
        taken[worker] -= taken[worker] > 0

    # The store itself

    async def rebuild(self, run_id: str) -> Run | None:
        record = self._records.get(run_id)
        if record is None:
            return None
        self._store(record, refold(record.row, (entry.fact for entry in record.entries(0, len(record.journal)))))
        return record.row

    async def purge(self, run_ids: Sequence[str]) -> int:
        ended = {run_id for run_id in run_ids if run_id in self._records and run_id not in self._active}
        for run_id in ended:
            run = self._records.pop(run_id).row
            self._first.pop((run.tenant, run.idempotency_key), None)
        return len(ended)

    async def compact(self) -> Check:
        return Check("compact", ok=True, text="memory is given back by itself")

    async def examine(self) -> list[Check]:
        return [Check("memory", ok=True, text=f"{len(self._records)} runs, kept until this process ends")]

    async def close(self) -> None:
        self._work.ring()
        for record in self._records.values():
            record.bell.ring()

    # What every write goes through

    def _held(self, claim: Claim) -> Record:
        record = self._active.get(claim.run.id)
        if record is None or (record.row.holder, record.row.attempt) != (claim.worker, claim.attempt):
            raise claim_lost(claim)
        return record

    def _write(self, record: Record, facts: Sequence[f.Fact]) -> None:
        """Folds first, then keeps: a refused fact leaves no trace of its batch."""
        facts = holder_facts(record.row, facts)
        self.writes.add(1, SIZES)
        before = row = record.row
        encoded = [f.encode(fact) for fact in facts]
        for raw in encoded:
            row = fold(row, f.decode(raw))
        for fact, raw in zip(facts, encoded, strict=True):
            record.keep(fact, raw)
            if isinstance(fact, f.RunFailed):
                self._numbered += 1
                letter = msgspec.structs.replace(dead_letter(before, fact), id=str(self._numbered))
                self._letters[letter.id] = letter
        self._store(record, row)
        record.bell.ring()
        if row.holder is None or row.status is Status.CANCELLING:  # to be claimed, or to be seen by its holder
            self._work.ring()

    def _store(self, record: Record, row: Run) -> None:
        """Sets the row, the time of its update and what is found by its status."""
        self._updated_at = max(self.clock.now(), self._updated_at + TICK)
        record.row = msgspec.structs.replace(row, updated_at=self._updated_at)
        if row.status in ACTIVE:
            self._active[row.id] = record
            if row.key is not None:
                self._keys[row.tenant, row.key] = record
        elif self._active.pop(row.id, None) and row.key is not None:
            del self._keys[row.tenant, row.key]

    def _check_key(self, run: Run) -> None:
        holder = self._keys.get((run.tenant, run.key)) if run.key is not None else None
        if holder is not None:
            raise key_held(run.key, holder.row.number, holder.row.status, holder.row.id)

    def _candidates(self, tags: Sequence[str], run_id: str | None) -> list[Record]:
        if run_id is not None:
            return [self._active[run_id]] if run_id in self._active else []
        shared = (record for record in self._active.values() if not record.row.private and record.row.tag in tags)
        return sorted(shared, key=lambda record: precedence(record.row))


def _unless_done(done: asyncio.Future[int], position: int | None, error: Exception | None) -> None:
    if done.done():  # whoever waited was cancelled; the write stands
        return
    if error is not None:
        done.set_exception(error)
    elif position is not None:
        done.set_result(position)
