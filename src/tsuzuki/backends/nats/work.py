"""The work queue: enqueues runs that wait, deals them out, and says what became of the tickets we hold.

It deals out candidates, so that not all workers want the same run, and gives a ticket again whose holder fell silent.
The chain alone decides. Whatever may be lost here (a ticket that was never written, one dealt to a process that
was killed) is made up for: a run that waits and is not dealt out is claimed straight through its chain.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, NamedTuple

from tsuzuki.backends import Check
from tsuzuki.backends.nats import objects, tickets, topology
from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.tickets import Dealer, Ticket
from tsuzuki.backends.nats.topology import BROUGHT, Group, Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.lifecycle import Run

logger: Final = logging.getLogger("tsuzuki.nats")

PATIENCE: Final = 0.1
"""How long the ticket of a run that waits is waited for: its submitter writes it just after the run (seconds)."""
MOMENT: Final = 0.5
"""How long a submitter waits for the ticket to be written: the run is there, and needs no ticket (seconds)."""
MISSED: Final = 2.0
"""After so many seconds a run that waits and is not dealt out is claimed without a ticket."""
MOST_MISSED: Final = 10_000
PRIORITIES: Final = range(-100, 101)
"""Runs of other priorities have no tickets, and are claimed straight through their chains: each priority needs a
consumer, and whoever gives every run one of its own (a time, a price) would have a consumer made for each."""
LONGEST: Final = 1000
"""Runs whose tag and flow have more bytes together have none either: a server turns out whoever writes to a subject of
more than 4 KB, and a byte may take three letters there."""
HASTE: Final = 3
"""How often the queue is told that a run is under way, in the time after which it would deal it out again, where that
is shorter than what we were set to."""


class Candidate(NamedTuple):
    """A run that may be claimed, in the order of claiming; `waits` tells whether a ticket is to be expected for it."""

    turn: int
    urgency: int
    number: int
    id: str
    group: Group
    waits: bool


class Dealt(NamedTuple):
    """What the queue gave: tickets, the groups that have no more, and those that did not answer."""

    tickets: list[Ticket]
    short: set[Group]
    silent: set[Group]


class _Held:
    """A claim of this process, with its ticket where we have it."""

    __slots__ = ("attempt", "ticket", "worker")

    def __init__(self, worker: str, attempt: int, ticket: Ticket | None) -> None:
        self.worker, self.attempt, self.ticket = worker, attempt, ticket

    def matches(self, run: Run | None) -> bool:
        return run is not None and (run.holder, run.attempt) == (self.worker, self.attempt)


class Work:
    """The work queue as one process sees it."""

    def __init__(
        self, wire: Wire, names: Topology, options: Options, clock: Clock, row: Callable[[str], Run | None]
    ) -> None:
        self._wire, self._topology, self._options, self._clock, self._row = wire, names, options, clock, row
        self._dealers: dict[Group, Dealer] = {}
        self._held: dict[str, _Held] = {}
        self._missed: dict[str, float] = {}
        self._unsent: list[Ticket] = []
        self._aside: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None
        self._pace = options.ack_progress
        self._hurry = asyncio.Event()
        self._noted = False

    def start(self) -> None:
        """Begins to show that what we hold is under way."""
        self._loop = asyncio.get_running_loop().create_task(self._show_progress(), name="tsuzuki-tickets")

    async def close(self) -> None:
        """Leaves; what is still to be said is said, if the server is there."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        if self._aside and await self._wire.connected(0):
            await asyncio.wait(self._aside, timeout=self._options.timeout)
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)

    # Enqueueing

    async def written(self, run: Run) -> None:
        """Takes note of what this process wrote: a run that waits is enqueued, one that ended needs no ticket."""
        if run.private or (run.holder is not None and not run.status.terminal):
            return
        held = self._held.pop(run.id, None)
        ticket = held.ticket if held is not None else None
        if run.status.terminal and ticket is not None:
            await self.say(ticket, tickets.ACK)
        elif run.status.terminal:
            self._do_aside(self._remove(self._topology.ticket(group_of(run), run.id)))
        elif ticket is not None:
            await self.postpone(ticket, run.not_before)
        elif self._is_dealt(run):
            await asyncio.wait({self._do_aside(self.enqueue(run))}, timeout=MOMENT)

    def _is_dealt(self, run: Run) -> bool:
        return has_tickets(group_of(run)) and run.not_before - self._clock.now() <= self._options.ack_wait

    async def postpone(self, ticket: Ticket, until: float) -> None:
        """Lets others have a ticket when its time comes.

        A long delay needs no ticket, since a run whose delay is over is claimed without one; and delayed tickets count
        as dealt out, so that many of them would keep back those that are due.
        """
        delay = until - self._clock.now()
        await self.say(ticket, tickets.back(delay) if delay <= self._options.ack_wait else tickets.ACK)

    async def enqueue(self, run: Run) -> None:
        """Writes the ticket of a run, unless it is there; one that cannot be written is missed, and made up for."""
        try:
            await self._wire.publish(self._topology.ticket(group_of(run), run.id), tickets.write(run))
        except ApiError as error:
            if not error.there_already:
                logger.warning("run %s waits without a ticket, and is claimed a little later: %s", run.number, error)
        except Unclear as error:
            logger.debug("run %s perhaps waits without a ticket: %s", run.number, error)

    async def _remove(self, subject: str) -> None:
        try:
            await self._wire.api(topology.purge_stream(self._topology.work), filter=subject)
        except (ApiError, Unclear) as error:
            logger.debug("the ticket %s of a run that ended stays for now: %s", subject, error)

    def _do_aside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return task

    # Dealing

    async def deal(self, candidates: Sequence[Candidate]) -> Dealt:
        """Asks each group for as many tickets as it has candidates."""
        groups: dict[Group, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(candidate.group, []).append(candidate)
        dealt = Dealt([], set(), set())
        answers = await asyncio.gather(
            *(self._deal(group, among) for group, among in groups.items()), return_exceptions=True
        )
        for (group, among), answer in zip(groups.items(), answers, strict=True):
            if isinstance(answer, Unclear | ApiError):
                logger.debug("no tickets from the queue of %s: %s", group, answer)
                dealt.silent.add(group)
            elif isinstance(answer, BaseException):
                await self._hand_back_all(answers)
                raise answer
            else:
                dealt.tickets.extend(answer)
                if len(answer) < len(among):
                    dealt.short.add(group)
                    self._miss(among, answer)
        return dealt

    async def _deal(self, group: Group, among: Sequence[Candidate]) -> list[Ticket]:
        dealer = self._dealers.get(group)
        if dealer is None:
            dealer = self._dealers[group] = Dealer(self._wire, self._topology, group, self._learned)
        fresh = any(candidate.id not in self._missed for candidate in among)
        return await dealer.deal(len(among), PATIENCE if fresh else 0.0)

    def _learned(self, ack_wait: float, note: str) -> None:
        """Keeps pace with a consumer that waits less than we thought, and tells once that settings differ."""
        if 0 < ack_wait <= self._pace:
            self._pace = ack_wait / HASTE
            self._hurry.set()
        if note and not self._noted:
            self._noted = True
            logger.warning("a consumer of the stream %s %s", self._topology.work, note)

    async def _hand_back_all(self, answers: Iterable[list[Ticket] | BaseException]) -> None:
        for answer in answers:
            for ticket in answer if isinstance(answer, list) else ():
                await self.say(ticket, tickets.back())

    def _miss(self, among: Sequence[Candidate], dealt: Sequence[Ticket]) -> None:
        """Notes which runs should have been dealt out, and were not: to somebody else, or they have no ticket."""
        given = {ticket.run_id for ticket in dealt}
        for candidate in among:
            if candidate.id not in given:
                self._missed.setdefault(candidate.id, self._clock.monotonic())
        while len(self._missed) > MOST_MISSED:
            del self._missed[next(iter(self._missed))]

    def missed(self, run_id: str) -> bool:
        """Tells whether a run waits for so long that there is no ticket for it, or none for us."""
        since = self._missed.get(run_id)
        return since is not None and self._clock.monotonic() - since >= MISSED

    # What we hold

    def hold(self, run: Run, ticket: Ticket | None) -> None:
        """Keeps the ticket of a run that this process has claimed, or that of its claim before."""
        self._missed.pop(run.id, None)
        before = self._held.get(run.id)
        if run.private:
            return
        ticket = ticket or (before.ticket if before is not None else None)
        self._held[run.id] = _Held(run.holder or "", run.attempt, ticket)

    def attach(self, run: Run, ticket: Ticket) -> bool:
        """Keeps a ticket that came later than the claim, if the claim is ours."""
        held = self._held.get(run.id)
        if held is None or not held.matches(run):
            return False
        held.ticket = ticket
        return True

    async def say(self, ticket: Ticket, word: bytes) -> None:
        """Says what became of a ticket; an acknowledgement that cannot be sent just now is sent later."""
        try:
            await self._wire.tell(ticket.reply, word)
        except Unclear:
            if word == tickets.ACK:
                self._unsent.append(ticket)

    async def _show_progress(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace):  # real time: the server counts in it
                    await self._hurry.wait()
            self._hurry.clear()
            unsent, self._unsent = self._unsent, []
            for ticket in unsent:
                await self.say(ticket, tickets.ACK)
            for run_id, held in list(self._held.items()):
                if held.matches(self._row(run_id)):
                    if held.ticket is not None:
                        await self.say(held.ticket, tickets.UNDER_WAY)
                elif self._held.get(run_id) is held:
                    del self._held[run_id]  # somebody else has the run, and its ticket is his: not a word

    # Looking after it

    async def sweep(self, waiting: Sequence[Run], ended: Callable[[str], Coroutine[Any, Any, bool]]) -> Check:
        """Enqueues runs that wait without a ticket, and removes the tickets of runs that ended or never were."""
        subjects = await self._subjects()
        expected = {self._topology.ticket(group_of(run), run.id): run for run in waiting if self._is_dealt(run)}
        missing = [run for subject, run in expected.items() if subject not in subjects]
        for run in missing:
            await self.enqueue(run)
        over = [subject for subject in subjects if await ended(topology.last_token(subject))]
        for subject in over:
            await self._remove(subject)
        text = f"{len(subjects)} tickets, {len(over)} of them of no use and removed, {len(missing)} missing and written"
        return Check("tickets", ok=True, text=text)

    async def _subjects(self) -> set[str]:
        stream = self._topology.work
        queue = (await self._wire.api(topology.stream_info(stream)))["config"]
        return set(await objects.subjects(self._wire, stream, tickets.ours(self._topology, queue)))


def group_of(run: Run) -> Group:
    """Tells among which runs the ticket of a run is dealt out."""
    return Group(run.tag, run.priority, BROUGHT if run.workflow else run.flow)


def has_tickets(group: Group) -> bool:
    """Tells whether the runs of a group have tickets at all."""
    return group.priority in PRIORITIES and len(f"{group.tag}{group.flow}".encode()) <= LONGEST
