"""Claims: the work queue deals out candidates, and whoever extends the chain of a run first has it.

The projection tells what waits, in order; the queue, which of it is for us. Straight through the chain go the runs
of dead holders, those whose delay is over, and those that wait and are not dealt out.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import NO_FINGERPRINTS, Claim
from tsuzuki.backends.nats import frames, tickets
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import TOO_LARGE, ApiError, Unclear, fault
from tsuzuki.backends.nats.frames import Frame, Tip
from tsuzuki.backends.nats.inspection import Inspector
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.reserve import Reserve, is_full
from tsuzuki.backends.nats.tickets import Ticket
from tsuzuki.backends.nats.topology import Group
from tsuzuki.backends.nats.work import Candidate, Work, has_tickets
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreUnavailable
from tsuzuki.lifecycle import Run, Status, claim_facts, claimable, executed_alone, must_be_alone

WINDOW: Final = 8
"""Among how many times as many runs a worker chooses once others were quicker: so that not all want the same."""
LATER: Final = 2.0
"""When a ticket is dealt out again whose run could not be claimed for a fault that passes (seconds)."""

Written = Callable[[Tip, Sequence[f.Fact]], Awaitable[None]]


class Wanted(msgspec.Struct, frozen=True):
    """Who asks for which runs, and how many."""

    worker: str
    tags: Sequence[str]
    limit: int
    dead: frozenset[str]
    fingerprints: Mapping[str, str]
    flows: Collection[str] | None = None
    workflows: bool = True
    wheels: Mapping[str, str] = NO_FINGERPRINTS
    alone: bool = False


class _Rounds:
    """What one call has learned so far: which runs it tried, which groups have no more tickets or do not answer.

    And which runs come first, because their workers died.
    """

    def __init__(self) -> None:
        self.tried: set[str] = set()
        self.short: set[Group] = set()
        self.silent: set[Group] = set()
        self.first: set[str] = set()
        self.beaten = False


class Claims:
    """Who gets which run."""

    def __init__(
        self,
        options: Options,
        clock: Clock,
        *,
        chain: Chain,
        projection: Projection,
        work: Work,
        written: Written,
        inspector: Inspector,
        reserve: Reserve,
    ) -> None:
        self._options, self._clock, self._chain, self._projection = options, clock, chain, projection
        self._work, self._written, self._inspector, self._reserve = work, written, inspector, reserve
        self._reserved: set[str] = set()
        self._doubts: dict[str, list[tuple[Run, Tip, Frame, Run, list[f.Fact]]]] = {}

    async def claim(self, wanted: Wanted) -> list[Claim]:
        """Claims runs by tag; a run that only kills its workers is ended, and the next one taken instead."""
        claims, rounds = await self.resolved(wanted.worker), _Rounds()
        while len(claims) < wanted.limit:
            if claims and wanted.alone:  # from now on it executes something, perhaps a run that must be alone
                if executed_alone(claims[0].run):
                    break
                wanted = msgspec.structs.replace(wanted, alone=False)
            plan = self._plan(wanted, rounds, wanted.limit - len(claims))
            if not plan:
                break
            ids = {candidate.id for candidate in plan}
            rounds.first |= {candidate.id for candidate in plan if not candidate.turn}
            self._reserved |= ids
            try:
                answers = await self._take(plan, wanted, rounds)
            finally:
                self._reserved -= ids
            claims += [answer for answer in answers if isinstance(answer, Claim)]
            rounds.beaten = any(isinstance(answer, Passed) for answer in answers)
            error = next((x for x in answers if isinstance(x, BaseException) and not _is_its_own(x)), None)
            if error is not None and not claims:
                raise error
            if error is not None:
                break
        return sorted(
            claims, key=lambda claim: (claim.run.id not in rounds.first, -claim.run.priority, claim.run.number)
        )

    # Who is wanted

    def _plan(self, wanted: Wanted, rounds: _Rounds, room: int) -> list[Candidate]:
        """Chooses the next candidates in order; after others were quicker, some among many."""
        avoided = rounds.tried | self._reserved
        wide = WINDOW if rounds.beaten or rounds.short else 1
        most = room * wide + len(avoided)
        found = self._projection.candidates(
            *(wanted.tags, wanted.flows, self._clock.now(), wanted.dead, most),
            most=self._options.max_deliver,
            workflows=wanted.workflows,
            alone=wanted.alone,
        )
        plan = [c for c in found if c.id not in avoided and (c.group not in rounds.short or self._straight(c, rounds))]
        if rounds.beaten and len(plan) > room:
            return [plan[at] for at in sorted(random.sample(range(len(plan)), room))]
        return plan[:room]

    def _straight(self, candidate: Candidate, rounds: _Rounds) -> bool:
        """Tells whether a run is claimed without a ticket."""
        ticketless = not candidate.waits or not has_tickets(candidate.group)
        return ticketless or candidate.group in rounds.silent or self._work.missed(candidate.id)

    async def _take(
        self, plan: Sequence[Candidate], wanted: Wanted, rounds: _Rounds
    ) -> list[Claim | BaseException | None]:
        straight = {candidate for candidate in plan if self._straight(candidate, rounds)}
        dealt = await self._work.deal([candidate for candidate in plan if candidate not in straight])
        rounds.short |= dealt.short
        rounds.silent |= dealt.silent
        # What was planned and is neither straight nor dealt out comes again in the next round: with the next ticket of
        # its group, straight where the queue does not answer, and not at all where the group has no more tickets.
        rounds.tried |= {candidate.id for candidate in straight} | {ticket.run_id for ticket in dealt.tickets}
        now, attempts = self._clock.now(), list[Awaitable[Claim | None]]()
        for candidate in straight:
            tip = self._projection.tip(candidate.id)
            if tip is None or tip.run is None or not claimable(tip.run, now, wanted.dead, patient=True):
                continue
            suspect = self._must_be_alone(tip.run)
            if not suspect or (wanted.alone and len(plan) == 1):
                attempts.append(self._claim(tip, wanted, alone=suspect))
        attempts += [self._claim_by_ticket(ticket, wanted) for ticket in dealt.tickets]
        return await asyncio.gather(*attempts, return_exceptions=True)

    # Tickets

    async def _claim_by_ticket(self, ticket: Ticket, wanted: Wanted) -> Claim | None:
        """Claims the run of a ticket; whatever comes in between, others may have the ticket."""
        try:
            tip = await self._look(ticket, wanted)
            return None if tip is None else await self._claim(tip, wanted, ticket)
        except Passed:
            await self._work.say(ticket, tickets.back(self._options.ack_progress))
            raise
        except BaseException:
            await self._work.say(ticket, tickets.back(LATER))
            raise

    async def _look(self, ticket: Ticket, wanted: Wanted) -> Tip | None:
        """Gives the chain to extend for a ticket, or says to the queue why not."""
        now, tip = self._clock.now(), self._projection.tip(ticket.run_id)
        if tip is None or tip.run is None or not claimable(tip.run, now, wanted.dead):
            tip = await self._end(ticket.run_id)  # what is known here may be a moment old
        if tip is None:
            ticket = msgspec.structs.replace(ticket, problem=ticket.problem or tickets.NO_RUN)
        if ticket.problem:
            await self._inspector.refuse(ticket, wanted.worker)
            return None
        run = None if tip is None else tip.run
        if run is None or run.status.terminal or run.private:
            await self._work.say(ticket, tickets.ACK)
        elif claimable(run, now, wanted.dead, patient=True) and not self._must_be_alone(run):
            return tip
        elif run.status is Status.PENDING and run.not_before > now:
            await self._work.postpone(ticket, run.not_before)
        elif not self._work.attach(run, ticket):
            # Somebody holds it who was not dealt this ticket, or it must be alone, or needs a newer Tsuzuki.
            await self._work.say(ticket, tickets.back(self._options.ack_wait))
        return None

    # The chain decides

    async def claim_by_id(self, run_id: str, wanted: Wanted) -> list[Claim]:
        """Claims one run, a private one too."""
        resolved = [claim for claim in await self.resolved(wanted.worker) if claim.run.id == run_id]
        while not resolved:
            tip = await self._last(run_id)
            if tip is None or tip.run is None or not claimable(tip.run, self._clock.now(), wanted.dead):
                return []
            try:
                claim = await self._claim(tip, wanted, alone=wanted.alone)
            except Passed:
                continue
            return [] if claim is None else [claim]
        return resolved

    def _must_be_alone(self, run: Run) -> bool:
        return must_be_alone(run, self._options.max_deliver)

    async def _claim(
        self, tip: Tip, wanted: Wanted, ticket: Ticket | None = None, *, alone: bool = False
    ) -> Claim | None:
        tip = await self._chain.whole(tip)
        run = tip.run
        if run is None:
            return None
        code = wanted.fingerprints.get(run.flow, "")
        most = self._options.max_deliver
        facts = claim_facts(run, wanted.worker, self._clock.now(), code, wheels=wanted.wheels, most=most, alone=alone)
        frame, row = frames.extended(tip, run, facts, self._chain.mark(), self._projection.stamp())
        write = partial(self._chain.extend, run.id, tip, frame, row, patience=self._options.timeout)
        ends = row.status.terminal or row.cancel_asked_at is not None
        if not ends:
            await self._reserve.spare()
        try:
            written = await (self._reserve.urgently(write) if ends else write())
        except Passed as passed:
            if passed.tip is not None:
                self._projection.put(frames.lean(passed.tip))
            raise
        except StoreUnavailable as error:
            if is_full(error):
                raise  # refused: it is not there
            # It may have been written: then we hold the run, and must learn of it as soon as we can.
            self._doubts.setdefault(wanted.worker, []).append((run, tip, frame, row, facts))
            raise
        return await self._claimed(run, written, facts, wanted.worker, ticket)

    async def _claimed(
        self, before: Run, tip: Tip, facts: Sequence[f.Fact], worker: str, ticket: Ticket | None = None
    ) -> Claim | None:
        row = tip.run
        if row is not None:
            self._work.hold(row, ticket)
        await self._written(tip, facts)
        if row is None or row.holder != worker:
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

    async def _last(self, run_id: str) -> Tip | None:
        tip = await self._end(run_id)
        return None if tip is None or tip.run is None else tip

    async def _end(self, run_id: str) -> Tip | None:
        try:
            return await self._chain.end(run_id)
        except (Unclear, ApiError) as error:
            raise fault(error, self._options.url) from error


def _is_its_own(error: BaseException) -> bool:
    """Tells whether a claim failed for its own run alone: others were quicker, or its row fits into no message."""
    cause = error.__cause__
    return isinstance(error, Passed) or (isinstance(cause, ApiError) and cause.error == TOO_LARGE)
