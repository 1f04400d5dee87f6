"""Submissions, claims and requests: each decided by `lifecycle`, and by who extends the chain first."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Claim
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import ApiError, Unclear, fault
from tsuzuki.backends.nats.frames import Frame, Tip
from tsuzuki.backends.nats.keys import Keys, Taken
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import BadParams, Conflict, StoreError, StoreUnavailable
from tsuzuki.lifecycle import Run, RunUpdateResult, claim_facts, claimable, request_facts

logger: Final = logging.getLogger("tsuzuki.nats")

TRIES: Final = 4
"""How often a request tries to get in beside a busy holder before it asks him to let it in."""
WINDOW: Final = 8
"""Among how many times as many runs a worker chooses once others were quicker: so that not all want the same."""

Written = Callable[[Tip, Sequence[f.Fact]], Awaitable[None]]


class Wanted(msgspec.Struct, frozen=True):
    """Who asks for which runs, and how many."""

    worker: str
    tags: Sequence[str]
    limit: int
    dead: frozenset[str]
    fingerprints: Mapping[str, str]
    flows: Collection[str] | None = None


class Queue:
    """The runs that wait, and whoever wants something of them."""

    def __init__(
        self,
        wire: Wire,
        topology: Topology,
        options: Options,
        clock: Clock,
        *,
        chain: Chain,
        keys: Keys,
        projection: Projection,
        written: Written,
    ) -> None:
        self._wire, self._topology, self._options, self._clock = wire, topology, options, clock
        self._chain, self._keys, self._projection, self._written = chain, keys, projection, written
        self._reserved: set[str] = set()
        self._doubts: dict[str, list[tuple[Run, Tip, Frame, Run, list[f.Fact]]]] = {}
        self._fences: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Leaves."""
        for task in self._fences:
            task.cancel()
        await asyncio.gather(*self._fences, return_exceptions=True)

    # Submitting

    async def submit(self, run: Run, fact: f.Fact) -> Run:
        """Accepts a run: its number, its idempotency key, its key, and then the message that makes it."""
        if len(run.params) > self._wire.largest * 3 // 4:
            raise BadParams(
                f"the params have {len(run.params)} bytes, more than the server takes in a message; "
                "pass a path or a link instead, or raise its max_payload"
            )
        try:
            await self._keys.take_once(run)
        except Taken as taken:
            return taken.run
        try:
            await self._keys.take(run)
        except BaseException:
            await self._keys.free_once(run)
            raise
        return await self._make(run, fact)

    async def _make(self, run: Run, fact: f.Fact) -> Run:
        try:
            number = await self._wire.publish(self._topology.number, b"")
        except (Unclear, ApiError):
            await self._give_up_keys(run)
            raise
        encoded = [f.encode(fact)]
        row = frames.folded(msgspec.structs.replace(run, number=number), [fact], encoded)
        row = msgspec.structs.replace(row, updated_at=self._projection.stamp())
        frame = Frame(self._chain.mark(), row.position, 0, frames.encode_row(row), encoded)
        try:
            tip = await self._chain.extend(run.id, None, frame, row, patience=2 * self._options.timeout)
        except Passed:
            raise Conflict(f"run {run.id} is there already; give every run an id of its own") from None
        except StoreUnavailable as error:
            if isinstance(error.__cause__, ApiError):  # refused: it is not there
                await self._give_up_keys(run)
                raise
            # It may have been written. Whoever was told of an error must not see it run.
            fence = asyncio.get_running_loop().create_task(self._take_back(row, frame))
            self._fences.add(fence)
            fence.add_done_callback(self._fences.discard)
            raise
        await self._written(tip, [fact])
        return row

    async def _give_up_keys(self, run: Run) -> None:
        with contextlib.suppress(StoreError, Unclear, ApiError):  # what stays is taken over after a while
            await self._keys.free(run)
            await self._keys.free_once(run)

    async def _take_back(self, run: Run, frame: Frame) -> None:
        """Fences a submission whose answer was an error; where it had landed, it is cancelled."""
        while not self._wire.closed:
            await self._wire.connected(self._options.timeout)
            try:
                try:
                    await self._chain.bury(run.id, None)
                except Passed as passed:
                    if passed.tip is not None and passed.tip.mark == frame.mark:
                        ask = f.CancelAsked(at=self._clock.now(), by="submit", reason="its submission was unclear")
                        await self.ask(run.id, ask, frozenset())
                await self._keys.free(run)
                await self._keys.free_once(run)
                return
            except (StoreError, Unclear, ApiError) as error:
                logger.debug("run %s is not fenced yet: %s", run.id, error)
                await asyncio.sleep(1.0)

    # Claiming

    async def claim(self, wanted: Wanted) -> list[Claim]:
        """Claims runs by tag; a run that only kills its workers is ended, and the next one taken instead."""
        claims = await self.resolved(wanted.worker)
        tried: set[str] = set()
        beaten = False
        while len(claims) < wanted.limit:
            tips = self._candidates(wanted, tried, wanted.limit - len(claims), beaten=beaten)
            if not tips:
                break
            ids = {tip.run.id for tip in tips if tip.run is not None}
            tried |= ids
            self._reserved |= ids
            try:
                answers = await asyncio.gather(*(self._claim(tip, wanted) for tip in tips), return_exceptions=True)
            finally:
                self._reserved -= ids
            claims += [answer for answer in answers if isinstance(answer, Claim)]
            beaten = any(isinstance(answer, Passed) for answer in answers)
            error = next((x for x in answers if isinstance(x, BaseException) and not isinstance(x, Passed)), None)
            if error is not None and not claims:
                raise error
            if error is not None:
                break
        return claims

    def _candidates(self, wanted: Wanted, tried: set[str], limit: int, *, beaten: bool) -> list[Tip]:
        now = self._clock.now()
        avoided = tried | self._reserved
        most = limit * (WINDOW if beaten else 1) + len(avoided)
        found = self._projection.candidates(wanted.tags, wanted.flows, now, wanted.dead, most)
        tips = [tip for run_id in found if run_id not in avoided and (tip := self._projection.get(run_id))]
        tips = [tip for tip in tips if tip.run is not None and claimable(tip.run, now, wanted.dead)]
        if beaten and len(tips) > limit:
            chosen = sorted(random.sample(range(len(tips)), limit))
            return [tips[at] for at in chosen]
        return tips[:limit]

    async def claim_by_id(self, run_id: str, wanted: Wanted) -> list[Claim]:
        """Claims one run, a private one too."""
        resolved = [claim for claim in await self.resolved(wanted.worker) if claim.run.id == run_id]
        while not resolved:
            tip = await self._last(run_id)
            if tip is None or tip.run is None or not claimable(tip.run, self._clock.now(), wanted.dead):
                return []
            try:
                claim = await self._claim(tip, wanted)
            except Passed:
                continue
            return [] if claim is None else [claim]
        return resolved

    async def _claim(self, tip: Tip, wanted: Wanted) -> Claim | None:
        tip = await self._chain.whole(tip)
        run = tip.run
        if run is None:
            return None
        facts = claim_facts(run, wanted.worker, self._clock.now(), wanted.fingerprints.get(run.flow, ""))
        frame, row = self._frame(tip, run, facts)
        try:
            written = await self._chain.extend(run.id, tip, frame, row, patience=self._options.timeout)
        except Passed as passed:
            if passed.tip is not None:
                self._projection.put(passed.tip)
            raise
        except StoreUnavailable:
            # It may have been written: then we hold the run, and must learn of it as soon as we can.
            self._doubts.setdefault(wanted.worker, []).append((run, tip, frame, row, facts))
            raise
        return await self._claimed(run, written, facts, wanted.worker)

    async def _claimed(self, before: Run, tip: Tip, facts: Sequence[f.Fact], worker: str) -> Claim | None:
        await self._written(tip, facts)
        row = tip.run
        if row is None or row.status.terminal:
            return None
        return Claim(row, worker, row.attempt, before.fingerprint)

    async def resolved(self, worker: str) -> list[Claim]:
        """Learns what became of claims whose acknowledgement got lost: what was written is given."""
        doubts, claims = self._doubts.pop(worker, []), []
        while doubts:
            before, tip, frame, row, facts = doubts[-1]
            try:
                written = await self._chain.extend(before.id, tip, frame, row, patience=self._options.timeout)
            except Passed:
                doubts.pop()
                continue
            except StoreUnavailable:
                self._doubts.setdefault(worker, []).extend(doubts)
                raise
            doubts.pop()
            claim = await self._claimed(before, written, facts, worker)
            if claim is not None:
                claims.append(claim)
        return claims

    # Asking

    async def ask(self, run_id: str, fact: f.Fact, dead: frozenset[str]) -> tuple[RunUpdateResult, Run | None]:
        """Appends a request to the chain; beside a holder that writes all the time, he is asked to let it in."""
        tries = 0
        while True:
            tip = await self._last(run_id)
            if tip is None or tip.run is None:
                return RunUpdateResult.NOT_FOUND, None
            run = tip.run
            facts = request_facts(run, fact, dead)
            if not facts:
                ended = run.status.terminal
                return (RunUpdateResult.ALREADY_TERMINAL if ended else RunUpdateResult.UPDATED), run
            frame, row = self._frame(tip, run, facts)
            if run.status.terminal:
                await self._keys.take(row)
            try:
                written = await self._chain.extend(run_id, tip, frame, row, patience=self._options.timeout)
            except Passed:
                tries += 1
                if tries >= TRIES and run.holder is not None:
                    await self._ask_holder(run_id, fact)
                continue
            await self._written(written, facts)
            return RunUpdateResult.UPDATED, row

    async def _ask_holder(self, run_id: str, fact: f.Fact) -> None:
        """Asks whoever holds the run to let a request in; the chain shows whether he did."""
        try:
            await self._wire.ask(self._topology.request(run_id), f.encode(fact), timeout=0.5)
        except Unclear:
            logger.debug("nobody let the request for run %s in; trying again", run_id)

    # Folding anew

    async def rebuild(self, run_id: str, facts: Callable[[], Awaitable[list[f.Fact | f.Unknown]]]) -> Run | None:
        """Folds a journal anew and appends the row; what is shown of the progress stays."""
        while True:
            tip = await self._last(run_id)
            if tip is None or tip.run is None:
                return None
            row = frames.refolded(tip.run, await facts())
            row = msgspec.structs.replace(row, updated_at=self._projection.stamp())
            frame = Frame(self._chain.mark(), row.position, tip.first, frames.encode_row(row), [])
            try:
                written = await self._chain.extend(run_id, tip, frame, row, patience=self._options.timeout)
            except Passed:
                continue
            await self._written(written, [])
            return row

    def _frame(self, tip: Tip, run: Run, facts: Sequence[f.Fact]) -> tuple[Frame, Run]:
        encoded = [f.encode(fact) for fact in facts]
        row = frames.folded(run, facts, encoded)
        row = msgspec.structs.replace(row, updated_at=self._projection.stamp())
        return Frame(self._chain.mark(), row.position, tip.first, frames.encode_row(row), encoded), row

    async def _last(self, run_id: str) -> Tip | None:
        try:
            return await self._chain.last(run_id)
        except (Unclear, ApiError) as error:
            raise fault(error, self._options.url) from error
