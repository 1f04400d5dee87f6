"""A worker: claims runs by tag, executes several at once, shows that it lives, and leaves in order.

To stop is: take no more, finish or hand back within the grace period, leave.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Self

import msgspec

from tsuzuki import facts as f
from tsuzuki import options, settings
from tsuzuki.appetite import Appetite
from tsuzuki.backends import Backend, Claim, Query
from tsuzuki.backends.address import open_backend
from tsuzuki.clock import Clock, until_tick
from tsuzuki.endings import suspect, tell
from tsuzuki.errors import ClaimLost, Conflict, NewerStore, StoreError
from tsuzuki.execution import Execution
from tsuzuki.flow import Flow
from tsuzuki.flowset import FlowSet, Resolver
from tsuzuki.held import Held
from tsuzuki.lifecycle import CLOCKS_APART, Run, Status, executed_alone, holds_up, must_be_alone
from tsuzuki.limits import Limits
from tsuzuki.loops import kept_going
from tsuzuki.presence import Badge, Presence, Watch, looking
from tsuzuki.runlog import CAPTURE
from tsuzuki.runner import Compile, execute
from tsuzuki.strays import Look, Unattended
from tsuzuki.supply import Goods, Stock, Supply
from tsuzuki.tallies import Tallies
from tsuzuki.threads import Threads
from tsuzuki.version import VERSION

logger: Final = logging.getLogger("tsuzuki.worker")

_PAGE: Final = 500
LOOK: Final = 1.0
"""How often a worker looks for the dead, for cancel requests and for runs whose time has come (seconds)."""
TELL_INTERVAL_S: Final = 0.1
"""How soon others see that a run begins or has left, and how often they are told of it at most."""


class Worker:
    """Executes runs of the flows it knows; `async with` it, then `run()` until `stop()`."""

    def __init__(
        self,
        backend: Backend,
        flows: Iterable[Flow[..., Any]] | FlowSet = (),
        *,
        tags: Sequence[str] | None = None,
        concurrency: int = 10,
        name: str | None = None,
        clock: Clock | None = None,
        lease: float | None = None,
        grace: float | None = None,
        workflows: Compile | None = None,
        supply: Supply | None = None,
    ) -> None:
        options.worker(tags, concurrency, name, lease, grace)
        self.id = name or f"worker-{uuid.uuid4().hex[:12]}"
        self._backend = backend
        known = flows if isinstance(flows, FlowSet) else FlowSet(flows)
        self.stock = Stock(Goods(known, workflows), supply)
        self.tags = (settings.default_tag(),) if tags is None else tuple(tags)
        self._concurrency = concurrency
        self._clock = clock or backend.clock
        self._lease = lease or settings.lease(one_machine=backend.one_machine)
        self._grace = grace or settings.grace_period()
        self._watch = Watch(self._lease, one_machine=backend.one_machine)
        self._dead: frozenset[str] = frozenset()
        self._held = Held(backend, self._clock)
        self._running, self._queue, self._freed = self._held.running, self._held.queue, self._held.freed
        self._dropped: set[str] = set()
        self._unattended = Unattended()
        self._appetite = Appetite(concurrency)
        self._tallies = Tallies(writes=backend.writes)
        self._stopping = asyncio.Event()
        self._ahead = self._clock.now() - self._clock.elapsed()
        self._beat_lock = asyncio.Lock()
        self._resting: asyncio.Task[None] | None = None
        self._looping = False
        self._alone: str | None = None
        """The run that no other is executed beside: it may end this worker."""
        self._claiming_alone = False
        """Whether nothing may begin, since a run that must be alone may be on its way here."""
        self._held_up = False
        """Whether nothing is claimed, since a run that must be alone waits for this worker to become idle."""
        self._loops: list[asyncio.Task[None]] = []
        self._opened: Backend | None = None

    # Life

    @classmethod
    async def connect(
        cls,
        backend: Backend | str | None = None,
        *,
        flow_resolver: Resolver | None = None,
        flows: Iterable[Flow[..., Any]] = (),
        worker_id: str | None = None,
        tags: Sequence[str] | None = None,
        workflows: Compile | None = None,
    ) -> Self:
        """Gives a worker that takes one run whenever it is asked to (`run_once`), until `close`.

        The store is given by its address, or is the default one; a KeyError of `flow_resolver` says: no such flow.
        """
        known = FlowSet(flows, flow_resolver)
        given = None if backend is None or isinstance(backend, str) else backend
        opened = given or await open_backend(settings.backend_url(backend if isinstance(backend, str) else None))
        try:
            worker = cls(opened, known, tags=options.connected(tags), name=worker_id, workflows=workflows)
            await worker.__aenter__()
        except BaseException:
            if given is None:
                await opened.close()
            raise
        worker._opened = opened if given is None else None
        return worker

    async def close(self) -> None:
        """Leaves in order: hands back what has not ended, and closes the store that `connect` opened."""
        await self.__aexit__(None, None, None)
        if self._opened is not None:
            await self._opened.close()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._presence = Presence(self.id, self._backend.url)
        self._threads = Threads()
        self._limits = Limits(self._backend, self._clock, self.id, lambda: self._dead)
        CAPTURE.install()
        try:
            told = await self.stock.begun(self._backend, self.tags) | {"tallies": self._tallies, "version": VERSION}
            self._badge = Badge(self._presence, self.id, self.tags, self._clock, **told)
            # What a worker of our name held before us: it was killed, and nobody else may think it dead while we live.
            self._dropped |= await self._beat()
            await self._look_for_the_dead()
        except BaseException:
            self._close()
            raise
        self._loops = [
            kept_going(self._beating, "tsuzuki-heartbeat"),
            kept_going(self._telling, "tsuzuki-state"),
            kept_going(self._watching, "tsuzuki-watch"),
            kept_going(partial(looking, self._look_for_the_dead, LOOK), "tsuzuki-dead"),
            kept_going(self._held.flushing, "tsuzuki-flush"),
        ]
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._stopping.set()
        told = False
        try:
            await self._held.hand_back()
            for loop in self._loops:
                loop.cancel()
            await asyncio.gather(*self._loops, return_exceptions=True)
            with contextlib.suppress(StoreError):
                await self._beat(stopped="stopped in order")
                told = True
        finally:
            self._close(told=told)

    def _close(self, *, told: bool = False) -> None:
        CAPTURE.remove()
        self._threads.close()
        self._presence.close(told=told)
        self.stock.close()

    def stop(self) -> None:
        """Takes no more runs; `run()` returns once those under way have ended or the grace period is over."""
        self._stopping.set()
        self._freed.set()
        if self._resting is not None:
            self._resting.cancel()

    # Work

    async def run(self) -> None:
        """Claims and executes until stopped."""
        self._looping = True
        await self.stock.flows.publish(self._backend)  # again, where the store was away when we came
        while not self._stopping.is_set():
            await self._renew()
            blocked = self._held_up or self._alone is not None
            room = 0 if blocked else self._appetite.room(len(self._running), len(self._queue))
            claims = await self._claim(room) if room > 0 else []
            self._held.take(claims)
            self._start_queued()
            if not claims:
                await self._rest(full=room <= 0)
        await self._held.drain(self._grace)

    async def run_once(self, timeout: float = 1.0) -> str | None:
        """Claims one run and executes it; gives its id, or None where none came within the time (seconds)."""
        until = self._clock.monotonic() + timeout
        while not self._stopping.is_set():
            await self._renew()
            for claim in await self._claim(1):
                with contextlib.suppress(ClaimLost):  # somebody else goes on with it
                    await self._carry(claim, told=True)
                return claim.run.id
            if (left := until - self._clock.monotonic()) <= 0:
                break
            await self._work(min(left, LOOK))
        return None

    async def carry_out(
        self, run_id: str, claim: Claim | None = None, waiting: Callable[[Run], None] | None = None
    ) -> Run:
        """Executes one run, a private one too, until it has ended or is stopped; gives its row.

        `waiting` is called with the row whenever the run waits for a time to come.
        """
        while True:
            claims = [claim] if claim is not None else await self._claim_again(run_id, self._dead, self._idle)
            claim = None
            if claims:
                await self._carry(claims[0])
            row = await self._backend.get(run_id)
            if row is None:
                raise ClaimLost(f"run {run_id} is gone")
            if row.status.terminal or self._stopping.is_set():
                return row
            if not claims:
                if row.version > f.VERSION:
                    raise NewerStore(f"a newer Tsuzuki wrote run {row.number}; upgrade to go on with it")
                if row.holder is not None and row.holder not in self._dead:
                    return row
                await asyncio.sleep(0.01)  # somebody else was quicker; look again what became of it
                await self._look_for_the_dead()
            if not await self._wait_with(row, waiting):
                return row

    def interrupt(self, *, at_once: bool = True) -> None:
        """Stops everything under way, so that it can go on later; not at once, what it has begun may end before."""
        self.stop()
        self._held.interrupt(at_once=at_once)

    async def _wait_with(self, row: Run, waiting: Callable[[Run], None] | None) -> bool:
        """Wait until a run is due or somebody changed it; return False if the worker was stopped."""
        clock, longest = self._clock, row.wait or row.not_before - self._clock.now()
        until = clock.elapsed() + longest
        if min(longest, row.not_before - clock.now()) > 0:
            await self._show_wait(row, waiting)
        while (left := min(until - clock.elapsed(), row.not_before - clock.now())) > 0 and not self._stopping.is_set():
            await clock.sleep(min(left, 0.2))
            with contextlib.suppress(StoreError):
                after = await self._backend.get(row.id)
                if after is None or after.position != row.position:
                    break  # it was woken, cancelled or removed
        else:
            if row.wait and row.not_before > clock.now() and not self._stopping.is_set():
                await self._wake(row)  # the wall clock was set back
        self._held.awaited = None
        return not self._stopping.is_set()

    async def _show_wait(self, row: Run, waiting: Callable[[Run], None] | None) -> None:
        self._held.awaited = row
        with contextlib.suppress(StoreError):  # the next heartbeat shows it
            await self._beat()
        if waiting is not None:
            waiting(row)

    async def _wake(self, row: Run) -> None:
        """Let a run that waits continue now."""
        ask = f.ResumeAsked(at=self._clock.now(), attempt=row.attempt, by=self.id, failed=False)
        with contextlib.suppress(StoreError, Conflict):  # somebody else was quicker, or it waits a little longer
            await self._backend.ask(row.id, ask)

    async def _renew(self) -> None:
        """Takes in new wheels before the next claim, once nothing is under way any more."""
        if await self.stock.renewed(self._held, self._stopping):
            self._badge.note(**await self.stock.told(self._backend, self.tags))
            with contextlib.suppress(StoreError):  # the next heartbeat tells it
                await self._beat()

    async def _claim(self, limit: int) -> list[Claim]:
        try:
            with self._if_idle() as alone:
                return await self._backend.claim(
                    self.id,
                    tags=self.tags,
                    flows=self.stock.flows.claimable,
                    workflows=self.stock.workflows is not None,
                    limit=limit,
                    dead=self._dead,
                    fingerprints=self.stock.fingerprints,
                    wheels=self.stock.digests,
                    alone=alone,
                )
        except StoreError as error:
            logger.warning("cannot claim just now: %s", error)
            await self._clock.sleep(LOOK)
            return []

    async def _claim_again(self, run_id: str, dead: frozenset[str], alone: bool) -> list[Claim]:
        codes, wheels = self.stock.fingerprints, self.stock.digests
        return await self._backend.claim(
            self.id, run_id=run_id, dead=dead, fingerprints=codes, wheels=wheels, alone=alone
        )

    @property
    def _idle(self) -> bool:
        """Whether nothing is executed here, nor about to be."""
        return not self._running and not self._queue and not self._claiming_alone

    @contextlib.contextmanager
    def _if_idle(self) -> Iterator[bool]:
        """Tell whether this worker is idle, and keep it idle until the answer to a claim is here."""
        alone = self._idle
        self._claiming_alone |= alone
        try:
            yield alone
        finally:
            self._claiming_alone &= not alone

    def _start_queued(self) -> None:
        blocked = self._stopping.is_set() or self.stock.renewing or self._claiming_alone
        while (
            not blocked and self._queue and len(self._running) < self._concurrency and self._may_begin(self._queue[0])
        ):
            claim = self._queue.popleft()
            suspect(claim)
            self._start(claim, self._ended)

    def _may_begin(self, claim: Claim) -> bool:
        """Return whether a run may begin beside those that are executed: one that must be alone waits for them."""
        return self._alone is None and not (self._running and executed_alone(claim.run))

    def _start(self, claim: Claim, ended: Callable[[Execution, BaseException | None], None]) -> None:
        self._tallies.claims += 1
        threads, limits, grace, tallies = self._threads, self._limits, self._grace, self._tallies
        run = Execution(self._backend, claim, self._clock, threads, limits, ended, grace, tallies, loop=self._loop)
        self._running[claim.run.id] = run
        if executed_alone(claim.run):
            self._alone = claim.run.id
        self._held.begun.set()
        self._held.changed.set()
        run.start(execute(run, self.stock.goods.flows.find(claim.run.flow), self.stock.goods.workflows))

    def _ended(self, run: Execution, error: BaseException | None) -> None:
        self._leave(run)
        self._appetite.learn(self._clock.monotonic() - run.began)
        tell(run, error, self._held.stumbles)
        self._start_queued()

    def _leave(self, run: Execution) -> None:
        if self._running.get(run_id := run.claim.run.id) is run:  # not another attempt at it, after this one was lost
            del self._running[run_id]
            self._alone = None if self._alone == run_id else self._alone
            self._badge.ended = run_id
            self._held.changed.set()
            self._tallies.ended(run.ending, self._clock.monotonic() - run.began)
        self._freed.set()
        if run.interrupted:  # by its own code, as if by Ctrl-C
            self.interrupt()

    async def _carry(self, claim: Claim, *, told: bool = False) -> None:
        """Executes one run and waits for its end, which is told to the log or not."""
        over: asyncio.Future[BaseException | None] = self._loop.create_future()

        def ended(run: Execution, error: BaseException | None) -> None:
            self._leave(run)
            if told:
                tell(run, error, self._held.stumbles)
            if not over.done():
                over.set_result(error)

        self._start(claim, ended)
        if (error := await over) is not None:
            raise error

    async def _rest(self, *, full: bool) -> None:
        self._freed.clear()
        if full:
            await self._freed.wait()
        elif not self._stopping.is_set():
            self._resting = asyncio.create_task(self._work(until_tick(self._loop.time(), LOOK)))
            await asyncio.wait([self._resting])

    async def _work(self, timeout: float) -> None:
        """Waits for news; a store that cannot even be read is asked again in a while."""
        try:
            await self._backend.work(timeout)
        except StoreError as error:
            logger.warning("cannot look for work just now: %s", error)
            await asyncio.sleep(LOOK)

    # Showing that it lives, and seeing who does not

    async def _beat(self, stopped: str = "") -> set[str]:
        async with self._beat_lock:  # so that others see what is told last
            self._presence.renew()
            self._badge.note(**self.stock.state())
            record = await self._badge.record(self._backend, self._held.current, stopped)
            running = list(self._running.values())
            held = {(h.run_id, h.attempt) for h in await self._backend.beat(record)}
            self._badge.told(record)
        now = self._clock.monotonic()
        self._watch.heard(now)
        self._dropped |= self._unattended.look(held, self._held.ours(), now)
        for run in running:
            if (run.run_id, run.claim.attempt) in held or self._running.get(run.run_id) is not run:
                continue
            if await self._is_lost(run):
                run.stop("lost")
        return {run_id for run_id, _ in held}

    async def _is_lost(self, run: Execution) -> bool:
        row = await self._backend.get(run.run_id)
        return row is None or (row.attempt != run.claim.attempt and run.journal.broken is None)

    async def _beating(self) -> None:
        asleep = self._clock.elapsed() - self._clock.monotonic()
        often, seldom = settings.heartbeat(self._lease, working=True), settings.heartbeat(self._lease)
        while True:
            if not self._running:
                await self._held.wait_for_one(seldom - often)
            await asyncio.sleep(until_tick(self._loop.time(), often))  # real time, whatever the clock of the runs says
            slept = self._clock.elapsed() - self._clock.monotonic() - asleep
            if slept > LOOK:
                asleep += slept
                logger.warning("this machine slept for %.0f s; looking whether its runs are still ours", slept)
            try:
                await self._beat()
            except StoreError:
                self._watch.blind()  # nobody else can be heard either, though what is there can perhaps be read

    async def _telling(self) -> None:
        """Tell others soon after a run has begun or left, apart from the path of runs that end in a moment."""
        while True:
            await self._held.changed.wait()
            await asyncio.sleep(TELL_INTERVAL_S)
            self._held.changed.clear()
            if self._badge.outdated(self._held.current):
                with contextlib.suppress(StoreError):  # the next heartbeat tells it
                    await self._beat()

    async def _watching(self) -> None:
        due = self._clock.monotonic() + LOOK
        while True:
            await self._work(max(0.01, due - self._clock.monotonic()))
            with contextlib.suppress(StoreError):
                await self._held.see_cancels(self.id)
                if (now := self._clock.monotonic()) >= due:
                    due = now + until_tick(now, LOOK)
                    if await self._held.release_stuck(LOOK):
                        self._appetite = Appetite(self._concurrency)  # what it has learned is not true any more
                    await self._end_isolation()
                    await self._take_up_again()
                    await self._take_strays()
                    await self._see_the_clock()

    async def _take_up_again(self) -> None:
        """Goes on with what is ours and not under way: a fault has stopped it, or its claim got lost on its way."""
        await self._held.go_on(self.id)
        self._start_queued()
        held_up = False
        for run_id in tuple(self._dropped):
            if self._stopping.is_set():
                return  # others may have it as soon as we have left
            row = await self._backend.get(run_id)
            if row is not None and must_be_alone(row) and not self._idle:
                held_up |= holds_up(row, self._clock.now())
            else:
                await self._take_dropped(run_id)
        if self._held_up and not held_up:
            self._freed.set()
        self._held_up = held_up

    async def _take_dropped(self, run_id: str) -> None:
        """Claim and begin a run that is ours by the store's word; alone where nothing is executed."""
        with self._if_idle() as alone:
            claims = await self._claim_again(run_id, frozenset({self.id}), alone)
        self._dropped.discard(run_id)
        for claim in claims:
            if self.stock.executes(claim.run):
                self._held.take([claim])
            else:  # it was known to a worker of our name before us
                await self._held.release(claim, "its worker was killed, and does not know the flow any more")
        self._start_queued()

    async def _end_isolation(self) -> None:
        """Let other runs begin beside one that had to be alone, once it has recorded an outcome."""
        if self._alone is not None:
            row = await self._backend.get(self._alone)
            if row is None or not executed_alone(row):
                self._alone = None
                self._freed.set()
                self._start_queued()

    async def _take_strays(self) -> None:
        """Claims runs of flows that no living worker of their tag knows: somebody has to say so."""
        if self._stopping.is_set() or not self.tags or not self._looping:
            return
        look = Look(self._backend, self.id, self.tags, self.stock.flows, self._watch, self._clock)
        for row in await look.strays(self._dead):
            self._queue.extend(await self._backend.claim(self.id, run_id=row.id, dead=self._dead))
        self._start_queued()

    async def _see_the_clock(self) -> None:
        """Wake the runs that wait for a length of time when the wall clock was set back: they would wait longer."""
        ahead = self._clock.now() - self._clock.elapsed()
        back, self._ahead = self._ahead - ahead, ahead
        if back <= CLOCKS_APART or not self._looping:
            return
        logger.warning("the clock was set back by %.0f s; waking the runs that wait for a length of time", back)
        query: Query | None = Query(status=(Status.PENDING,), private=False, params=False, limit=_PAGE)
        while query is not None:
            rows = await self._backend.search(query)
            for row in rows:
                if row.wait > 0:
                    await self._wake(row)
            before = (rows[-1].updated_at, rows[-1].id) if len(rows) == _PAGE else None
            query = None if before is None else msgspec.structs.replace(query, before=before)

    async def _look_for_the_dead(self) -> None:
        known, self._dead = self._dead, await self._watch.look(self._backend, self.id, self._clock)
        if self._resting is not None and not self._dead <= known:
            self._resting.cancel()  # what they held is claimed now, and not with the next look for work
