"""What the holder of a run writes: one message under way, and all that gathers meanwhile in the next one.

The rules are those of `lifecycle`; here they are packed, fenced and put in order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Claim, claim_lost
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import ApiError, Unclear, fault
from tsuzuki.backends.nats.frames import Frame, Tip
from tsuzuki.backends.nats.reserve import SMALL, Reserve
from tsuzuki.errors import ClaimLost, MoveRefused, StoreError
from tsuzuki.keyindex import KeyIndex
from tsuzuki.lifecycle import Run, holder_facts, request_facts
from tsuzuki.settled import Settled

NEVER: Final = 1 << 62
NOBODY: Final[frozenset[str]] = frozenset()
URGENT: Final = (f.RunCompleted, f.RunFailed, f.RunCancelled, f.Released, f.CancelAsked, f.CancelSeen)
"""What is written in the reserve of a full server, if need be: it lets a run end."""


class Batch:
    """Facts that go in together, and who waits for them; `ask` is a request that the holder lets in."""

    __slots__ = ("ask", "encoded", "facts", "future", "position", "request")

    def __init__(self, facts: Sequence[f.Fact], future: Settled, ask: f.Fact | None = None, request: int = 0) -> None:
        self.facts, self.future, self.ask, self.request = facts, future, ask, request
        self.encoded: list[bytes] = []
        self.position = 0


class Desk:
    """What a pen writes with: the chain, the time of a write, and who is told of it."""

    def __init__(
        self,
        chain: Chain,
        *,
        url: str,
        stamp: Callable[[], float],
        written: Callable[[Tip, Sequence[f.Fact]], Awaitable[None]],
        largest: Callable[[], int],
        reserve: Reserve,
        patience: float,
    ) -> None:
        self.chain, self.url, self.stamp, self.written = chain, url, stamp, written
        self.largest, self.reserve, self.patience = largest, reserve, patience


class Pen:
    """Writes the facts of one claim."""

    def __init__(self, desk: Desk, claim: Claim, tip: Tip | None, ended: Callable[["Pen"], None]) -> None:
        self._desk, self.claim, self._tip, self._ended = desk, claim, tip, ended
        self.since = tip.seq if tip is not None else NEVER
        """Which message of the chain was the claim: requests that came before it are not for the holder to let in."""
        self._waiting: list[Batch] = []
        self._recorded = KeyIndex()
        self._fresh = False
        self.task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    def append(self, facts: Sequence[f.Fact], ask: f.Fact | None = None, request: int = 0) -> Settled:
        """Writes facts, or lets a request in; await what it gives to know that they are kept."""
        future = Settled(loop=self._loop)
        self._waiting.append(Batch(facts, future, ask, request))
        if self.task is None:
            self.task = self._loop.create_task(self._write_all())
        return future

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await self._write()
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait for the answer
            self._fail(error)
        finally:
            self.task = None
            if self._tip is None or not self._holds(self._tip.run):
                self._ended(self)

    async def _write(self) -> None:
        tip = self._tip = self._tip or await self._patiently(self._load)
        run = tip.run
        if run is None or not self._holds(run):
            raise claim_lost(self.claim)
        packed, row, stale = self._pack(run)
        if stale:
            self._waiting[:0] = packed
            self._tip, self._fresh = await self._patiently(self._read), True
            return
        self._fresh = False
        if not packed:
            return
        facts = [fact for batch in packed for fact in batch.facts]
        if facts:
            row = msgspec.structs.replace(row, updated_at=self._desk.stamp())
            written = await self._extend(tip, packed, row)
            if written is None:
                return
            self._tip = written
            await self._desk.written(written, facts)
        for batch in packed:
            if not batch.future.done():
                batch.future.set_result(batch.position)

    async def _patiently(self, read: Callable[[], Awaitable[Tip]]) -> Tip:
        return await self._desk.chain.patiently(read, self._desk.patience)

    async def _extend(self, tip: Tip, packed: list[Batch], row: Run) -> Tip | None:
        encoded = [raw for batch in packed for raw in batch.encoded]
        asked = [batch.request for batch in packed if batch.request and batch.facts]
        frame = Frame(self._desk.chain.mark(), row.position, tip.first, frames.encode_row(row), encoded, asked)
        write = partial(self._desk.chain.extend, row.id, tip, frame, row, patience=self._desk.patience)
        urgent = _is_urgent(packed) and len(frame.row or b"") + sum(map(len, encoded)) <= SMALL
        try:
            written = await (self._desk.reserve.urgently(write) if urgent else write())
        except Passed as passed:
            # Somebody asked for something, or claimed the run: fold again what waits, or learn that it is lost.
            self._tip = passed.tip
            self._waiting[:0] = packed
            if passed.tip is None:
                raise claim_lost(self.claim) from None
            return None
        except BaseException:
            self._waiting[:0] = packed  # whoever waits for them is told
            raise
        for batch in packed:
            self._remember(batch.facts)
        return written

    def _pack(self, run: Run) -> tuple[list[Batch], Run, bool]:
        """Takes what waits and fits into a message; what is refused goes alone, and does no harm to the others.

        A move that our row refuses may be allowed by now, when somebody asked for something: then it is stale.
        """
        packed: list[Batch] = []
        room = self._desk.largest() * 3 // 4 - 2 * len(run.result or b"") - 16_384
        taken: set[tuple[int, str, str]] = set()
        while self._waiting and self._holds(run):
            batch = self._waiting[0]
            try:
                facts = self._facts(run, batch, taken)
                encoded = [f.encode(fact) for fact in facts]
                size = sum(map(len, encoded))
                if packed and size > room:
                    break
                if size > room:
                    batch = self._part(batch, facts, encoded, room)
                    facts, encoded = batch.facts, batch.encoded
                run = frames.folded(run, facts, encoded)
            except MoveRefused as refused:
                if not self._fresh:
                    return packed, run, True
                self._refuse(refused)
                continue
            except Exception as error:  # noqa: BLE001 - what cannot be written down belongs to whoever waits for it
                self._refuse(error)
                continue
            if self._waiting[0] is batch:
                self._waiting.pop(0)
            batch.facts, batch.encoded, batch.position = facts, encoded, run.position
            taken.update((x.attempt, x.step, x.key) for x in facts if isinstance(x, f.Outcome))
            room -= size
            packed.append(batch)
        return packed, run, False

    def _refuse(self, error: Exception) -> None:
        batch = self._waiting.pop(0)
        if not batch.future.done():
            batch.future.set_exception(error)

    def _facts(self, run: Run, batch: Batch, taken: set[tuple[int, str, str]]) -> Sequence[f.Fact]:
        """Says what of a batch is to be written: the first write of an outcome wins, inside a batch too."""
        if batch.ask is not None:
            return request_facts(run, batch.ask, NOBODY)
        fresh: list[f.Fact] = []
        seen: set[tuple[int, str, str]] = set()
        for fact in batch.facts:
            if isinstance(fact, f.Outcome):
                name = fact.attempt, fact.step, fact.key
                if name in seen or name in taken or self._recorded.get(_step(name), name[2]):
                    continue
                seen.add(name)
            fresh.append(fact)
        return holder_facts(run, fresh)

    def _part(self, batch: Batch, facts: Sequence[f.Fact], encoded: list[bytes], room: int) -> Batch:
        """Takes as much of a batch as fits into a message, at least a fact; the rest stays, with who waits for it."""
        size = fits = 0
        while fits < len(encoded) and (not fits or size + len(encoded[fits]) <= room):
            size += len(encoded[fits])
            fits += 1
        if fits == len(encoded):
            batch.facts, batch.encoded = facts, encoded
            return batch
        part = Batch(facts[:fits], Settled(loop=self._loop))
        part.encoded = encoded[:fits]
        batch.facts = facts[fits:]
        return part

    async def _load(self) -> Tip:
        """Reads where the chain ends, and what was recorded under this claim by a pen before this one."""
        tip = await self._read()
        if tip.run is not None and tip.run.position > self.claim.run.position:
            for frame in await self._desk.chain.upto(self.claim.run.id, tip):
                for name in frames.outcome_names(frame):
                    self._recorded.put(_step(name), name[2], 1)
        return tip

    async def _read(self) -> Tip:
        tip = await self._desk.chain.last(self.claim.run.id)
        if tip is None or not self._holds(tip.run):
            raise claim_lost(self.claim)
        return tip

    def _remember(self, facts: Sequence[f.Fact]) -> None:
        for fact in facts:
            if isinstance(fact, f.Outcome):
                self._recorded.put(_step((fact.attempt, fact.step, fact.key)), fact.key, 1)

    def lost(self, run: Run | None) -> bool:
        """Tells whether a row, which may be an old one, says that another has the run by now, or nobody."""
        return run is None or (run.position > self.claim.run.position and not self._holds(run))

    def _holds(self, run: Run | None) -> bool:
        return run is not None and (run.holder, run.attempt) == (self.claim.worker, self.claim.attempt)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        known = self._told(error)
        for batch in waiting:
            if not batch.future.done():
                batch.future.set_exception(known)
                batch.future.exception()  # nobody may be waiting any more; that is not worth a warning
        self._tip = None  # what the store has is read before anything else is written

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, Unclear | ApiError):
            return fault(error, self._desk.url)
        return error if isinstance(error, ClaimLost | StoreError) else StoreError(f"a fault of ours: {error!r}")


class Pens:
    """The pens of this process, by the claims that they write for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._pens: dict[tuple[str, str, int], Pen] = {}

    def append(self, claim: Claim, facts: Sequence[f.Fact]) -> Settled:
        """Writes the facts of a holder; await what it gives to know that they are kept."""
        pen = self._pens.get(_name(claim))
        return (self._taken(claim, None) if pen is None else pen).append(facts)

    def holds(self, claim: Claim) -> bool:
        """Tells whether something is kept of a claim."""
        return _name(claim) in self._pens

    def take(self, claim: Claim, tip: Tip | None) -> None:
        """Makes ready to write for a new claim, where its chain ends as it is known here."""
        if tip is not None and tip.run is not None and tip.run.position == claim.run.position:
            self._taken(claim, msgspec.structs.replace(tip, run=claim.run))

    def _taken(self, claim: Claim, tip: Tip | None) -> Pen:
        pen = self._pens[_name(claim)] = Pen(self._desk, claim, tip, self._put_away)
        return pen

    def _put_away(self, pen: Pen) -> None:
        self._pens.pop(_name(pen.claim), None)

    def put_away_lost(self, worker: str, tip: Callable[[str], Tip | None]) -> None:
        """Puts the pens of a worker away whose runs others have by now: nobody will write with them."""
        for pen in [pen for pen in self._pens.values() if pen.claim.worker == worker and pen.task is None]:
            known = tip(pen.claim.run.id)
            if known is not None and pen.lost(known.run):
                self._put_away(pen)

    def let_in(self, run_id: str, request: int, fact: f.Fact) -> None:
        """Lets the request of somebody else in, if the run is held here; the chain shows whether it got in."""
        for pen in [pen for pen in self._of(run_id) if pen.since < request]:
            pen.append([], fact, request).add_done_callback(Settled.exception)

    def held_since(self, run_id: str) -> int | None:
        """Tells which message was the claim of a run that is held here."""
        return min((pen.since for pen in self._of(run_id)), default=None)

    def _of(self, run_id: str) -> list[Pen]:
        return [pen for (held, _, _), pen in self._pens.items() if held == run_id]

    @property
    def under_way(self) -> "list[asyncio.Task[None]]":
        """What is being written."""
        return [pen.task for pen in self._pens.values() if pen.task is not None]


def _name(claim: Claim) -> tuple[str, str, int]:
    return claim.run.id, claim.worker, claim.attempt


def _is_urgent(packed: Sequence[Batch]) -> bool:
    """Tells whether the holder lets go of its run, or makes way for a cancel."""
    return any(isinstance(fact, URGENT) for batch in packed for fact in batch.facts)


def _step(name: tuple[int, str, str]) -> str:
    return f"{name[0]} {name[1]}"
