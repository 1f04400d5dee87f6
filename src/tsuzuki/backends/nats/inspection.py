"""Tickets that make no sense: found wherever they lie, taken out of the queue, and kept as dead letters.

A worker is dealt tickets of runs that wait, so one that belongs to no run may lie there unseen for good. Workers
therefore look through the queue: each of them once at every ticket that is still there some seconds after it came.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import DeadLetter
from tsuzuki.backends.nats import frames, tickets, topology
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import NO_MESSAGE_AT, ApiError, Unclear
from tsuzuki.backends.nats.frames import Tip
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.shared import Letters
from tsuzuki.backends.nats.tickets import Ticket
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.errors import StoreError
from tsuzuki.lifecycle import Run, Status

logger: Final = logging.getLogger("tsuzuki.nats")

LOOK: Final = 2.0
"""How often a worker looks through what has come to the queue; by then most tickets have gone (seconds)."""
MOST: Final = 500
"""How many tickets are read at once."""
INVALID: Final = "invalid_job"
ERROR_ID: Final = "ERR-TSUZUKI-0012"
_ERROR: Final = "InvalidJob"

Written = Callable[[Tip, Sequence[f.Fact]], Awaitable[None]]


class Inspector:
    """Looks through the work queue, and ends what makes no sense there."""

    def __init__(
        self,
        wire: Wire,
        names: Topology,
        options: Options,
        *,
        chain: Chain,
        projection: Projection,
        letters: Letters,
        written: Written,
    ) -> None:
        self._wire, self._topology, self._options = wire, names, options
        self._chain, self._projection, self._letters, self._written = chain, projection, letters, written
        self._next, self._end = 1, 0
        self._looked_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Looks no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def look(self, worker: str) -> None:
        """Looks through what is new in the queue, aside, if it is time to."""
        loop = asyncio.get_running_loop()
        if (self._looking is None or self._looking.done()) and loop.time() - self._looked_at >= LOOK:
            self._looked_at = loop.time()
            self._looking = loop.create_task(self._look(worker), name="tsuzuki-inspection")

    async def _look(self, worker: str) -> None:
        try:
            told = await self._wire.api(topology.stream_info(self._topology.work))
            old, self._end = self._end, int(told["state"]["last_seq"])
            await self._inspect(tickets.ours(self._topology, told["config"]), old, worker)
        except (Unclear, ApiError, StoreError, sqlite3.Error) as error:
            logger.debug("the work queue cannot be looked through just now: %s", error)

    async def all(self) -> int:
        """Looks through the whole queue; gives how many tickets made no sense."""
        told = await self._wire.api(topology.stream_info(self._topology.work))
        self._next = int(told["state"]["first_seq"])
        return await self._inspect(tickets.ours(self._topology, told["config"]), int(told["state"]["last_seq"]), "")

    async def _inspect(self, subjects: str, last: int, worker: str) -> int:
        """Looks at the tickets up to a sequence that were not looked at yet; gives how many made no sense."""
        found = 0
        while self._next <= last:
            page = [ticket for ticket in await self._page(subjects, self._next) if ticket.seq <= last]
            strangers = {ticket.run_id for ticket in page}
            strangers -= self._projection.known(sorted(strangers))
            for ticket in page:
                self._next = ticket.seq
                checked = await self._checked(ticket) if ticket.run_id in strangers else ticket
                if checked.problem:
                    await self.refuse(checked, worker)
                    found += 1
            self._next = page[-1].seq + 1 if page else last + 1
        return found

    async def _page(self, subjects: str, first: int) -> list[Ticket]:
        request = {"seq": first, "next_by_subj": subjects, "batch": MOST}
        answers = await self._wire.many(topology.direct_get(self._topology.work), msgspec.json.encode(request))
        return [tickets.kept(answer) for answer in answers]

    async def _checked(self, ticket: Ticket) -> Ticket:
        """Looks whether there is the run of a ticket, or a tombstone that tells that there was."""
        if ticket.problem or await self._chain.end(ticket.run_id) is not None:
            return ticket
        return msgspec.structs.replace(ticket, problem=tickets.NO_RUN)

    # What becomes of them

    async def refuse(self, ticket: Ticket, worker: str) -> None:
        """Ends a ticket that makes no sense: a dead letter tells of it, and a run that waits for it has failed.

        The letter comes first, and bears a name by which the server knows it: two who find the ticket, or one who
        was killed before it was taken out, write one letter.
        """
        error = f.Problem(_ERROR, f"the ticket {ticket.subject} is refused: {ticket.problem}")
        while True:
            tip = await self._chain.last(ticket.run_id)
            run = None if tip is None else tip.run
            if tip is None or run is None or run.status is not Status.PENDING:
                break
            try:
                await self._fail(tip, run, error, worker)
            except Passed:
                continue
        if run is None or run.error is None or run.error.type != _ERROR:
            letter = self._letter(ticket, run, error, worker)
            await self._letters.write(letter, once=f"{self._topology.work}-{ticket.seq}")
        self._log(self._letter(ticket, run, error, worker), error)
        await self._take_out(ticket)

    def _log(self, letter: DeadLetter, error: f.Problem) -> None:
        about = {"run_id": letter.run_id, "flow_name": letter.flow, "tag": letter.tag, "worker_id": letter.worker}
        more = {"reason": INVALID, "err_id": ERROR_ID, "details": error.logged}
        logger.error("%s; it is a dead letter now", error.message, extra={**about, **more})

    async def _fail(self, tip: Tip, run: Run, error: f.Problem, worker: str) -> None:
        facts = [
            f.RunFailed(at=self._projection.stamp(), attempt=run.attempt, error=error, reason=INVALID, worker=worker)
        ]
        frame, row = frames.extended(tip, run, facts, self._chain.mark(), self._projection.stamp())
        written = await self._chain.extend(run.id, tip, frame, row, patience=self._options.timeout)
        await self._written(written, facts)

    def _letter(self, ticket: Ticket, run: Run | None, error: f.Problem, worker: str) -> DeadLetter:
        group = self._topology.group_in(ticket.subject)
        return DeadLetter(
            run_id=ticket.run_id,
            number=0 if run is None else run.number,
            flow=run.flow if run is not None else group.flow,
            tag=run.tag if run is not None else group.tag,
            reason=INVALID,
            error=error.message,
            at=self._projection.stamp(),
            tags=() if run is None else run.tags,
            worker=worker,
            attempt=ticket.delivered,
            tenant="" if run is None else run.tenant,
            subject=ticket.subject,
        )

    async def _take_out(self, ticket: Ticket) -> None:
        """Takes a ticket out of the queue: with a word if it was dealt to us, by its number if it was found."""
        if ticket.reply:
            await self._wire.tell(ticket.reply, tickets.NO_MORE)
            return
        try:
            await self._wire.api(topology.delete_message(self._topology.work), seq=ticket.seq, no_erase=True)
        except ApiError as refused:
            if refused.error not in NO_MESSAGE_AT:  # otherwise somebody else took it out
                logger.warning("the ticket %s makes no sense and stays in the queue: %s", ticket.subject, refused)
