"""A worker: claims runs by tag, executes several at once, shows that it lives, and leaves in order.

To stop is: take no more, finish or hand back within the grace period, leave.
"""

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from tsuzuki import facts as f
from tsuzuki import settings
from tsuzuki.backends import Backend, Claim, Query
from tsuzuki.clock import Clock
from tsuzuki.errors import BadUsage, ClaimLost, NewerStore, StoreError
from tsuzuki.execution import Execution
from tsuzuki.flow import Flow
from tsuzuki.lifecycle import Run, Status
from tsuzuki.limits import Limits
from tsuzuki.presence import Badge, Presence, Watch
from tsuzuki.runlog import CAPTURE
from tsuzuki.runner import Compile, execute
from tsuzuki.strays import Look, Unattended
from tsuzuki.threads import Threads

logger: Final = logging.getLogger("tsuzuki.worker")

FLUSH: Final = 0.25
"""How often log lines and progress are written (seconds)."""
LOOK: Final = 1.0
"""How often a worker looks for the dead, for cancel requests and for runs whose time has come (seconds)."""
AHEAD: Final = 0.1
"""How much work is claimed ahead: what the runs seen so far would take (seconds)."""
MOST_AHEAD: Final = 100


class Worker:
    """Executes runs of the flows it knows; `async with` it, then `run()` until `stop()`."""

    def __init__(
        self,
        backend: Backend,
        flows: Iterable[Flow[..., Any]] = (),
        *,
        tags: Sequence[str] | None = None,
        concurrency: int = 10,
        name: str | None = None,
        clock: Clock | None = None,
        lease: float | None = None,
        grace: float | None = None,
        workflows: Compile | None = None,
    ) -> None:
        if concurrency < 1:
            raise BadUsage(f"Worker(concurrency=…) must be at least 1, not {concurrency!r}")
        self.id = name or f"worker-{uuid.uuid4().hex[:12]}"
        self._backend = backend
        self._flows = _by_name(flows)
        self._workflows = workflows
        self._fingerprints: Mapping[str, str] = {}
        self._tags = (settings.default_tag(),) if tags is None else tuple(tags)
        self._concurrency = concurrency
        self._clock = clock or backend.clock
        self._lease = lease or settings.lease(one_machine=backend.one_machine)
        self._grace = grace or settings.grace_period()
        self._watch = Watch(self._lease, one_machine=backend.one_machine)
        self._dead: frozenset[str] = frozenset()
        self._running: dict[str, Execution] = {}
        self._queue: deque[Claim] = deque()
        self._dropped: set[str] = set()
        self._unattended = Unattended()
        self._typical = LOOK
        self._stopping = asyncio.Event()
        self._resting: asyncio.Task[None] | None = None
        self._looping = False
        self._freed = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []

    # Life

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._presence = Presence(self.id, self._backend.url)
        self._threads = Threads()
        self._limits = Limits(self._backend, self._clock, self.id, lambda: self._dead)
        CAPTURE.install()
        self._fingerprints = {name: flow.fingerprint for name, flow in self._flows.items()}
        self._badge = Badge(self._presence, self.id, self._tags, self._flows, self._clock)
        try:
            # What a worker of our name held before us: it was killed, and nobody else may think it dead while we live.
            self._dropped |= await self._beat()
            await self._look_for_the_dead()
        except BaseException:
            self._close()
            raise
        self._loops = [
            asyncio.create_task(self._beating(), name="tsuzuki-heartbeat"),
            asyncio.create_task(self._watching(), name="tsuzuki-watch"),
            asyncio.create_task(self._flushing(), name="tsuzuki-flush"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        try:
            await self._hand_back()
            for loop in self._loops:
                loop.cancel()
            await asyncio.gather(*self._loops, return_exceptions=True)
            with contextlib.suppress(StoreError):
                await self._beat(stopped="stopped in order")
        finally:
            self._close()

    def _close(self) -> None:
        CAPTURE.remove()
        self._threads.close()
        self._presence.close()

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
        while not self._stopping.is_set():
            room = self._room()
            claims = await self._claim(room) if room > 0 else []
            self._queue.extend(claims)
            self._start_queued()
            if not claims:
                await self._rest(full=room <= 0)
        await self._drain()

    async def carry_out(self, run_id: str) -> Run:
        """Executes one run, a private one too, until it has ended or is stopped; gives its row."""
        while True:
            claims = await self._backend.claim(self.id, run_id=run_id, dead=self._dead, fingerprints=self._fingerprints)
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
            if not await self._wait_until(row.not_before):
                return row

    def interrupt(self) -> None:
        """Stops everything under way now, so that it can go on later; finished work is recorded."""
        self.stop()
        for run in self._running.values():
            run.stop("release")

    async def _wait_until(self, at: float) -> bool:
        """Waits for a time; tells whether it came before the worker was stopped."""
        while (left := at - self._clock.now()) > 0 and not self._stopping.is_set():
            await self._clock.sleep(min(left, 0.2))
        return not self._stopping.is_set()

    def _room(self) -> int:
        """Says how many runs to claim: the free places, and more ahead the shorter runs are; many at once, or none."""
        ahead = min(int(AHEAD / max(self._typical, 1e-4)), MOST_AHEAD)
        most = self._concurrency + ahead
        room = most - len(self._running) - len(self._queue)
        idle = not self._queue and len(self._running) < self._concurrency
        return room if idle or room > most // 2 else 0

    async def _claim(self, limit: int) -> list[Claim]:
        try:
            return await self._backend.claim(
                self.id,
                tags=self._tags,
                flows=self._flows,
                limit=limit,
                dead=self._dead,
                fingerprints=self._fingerprints,
            )
        except StoreError as error:
            logger.warning("cannot claim just now: %s", error)
            await self._clock.sleep(LOOK)
            return []

    def _start_queued(self) -> None:
        while self._queue and len(self._running) < self._concurrency and not self._stopping.is_set():
            self._start(self._queue.popleft(), self._ended)

    def _start(self, claim: Claim, ended: Callable[[Execution, BaseException | None], None]) -> None:
        run = Execution(self._backend, claim, self._clock, self._threads, self._limits, ended, grace=self._grace)
        self._running[claim.run.id] = run
        run.start(execute(run, self._flows.get(claim.run.flow), self._workflows))

    def _ended(self, run: Execution, error: BaseException | None) -> None:
        self._leave(run)
        took = self._clock.monotonic() - run.began
        self._typical += (took - self._typical) / (4 if took > self._typical else 8)
        if error is not None:
            self._tell(run, error)
        self._start_queued()

    def _leave(self, run: Execution) -> None:
        if self._running.get(run.run_id) is run:  # not another attempt at it, after this one was lost
            del self._running[run.run_id]
            self._badge.ended = run.run_id
        self._freed.set()
        if run.interrupted:  # by its own code, as if by Ctrl-C
            self.interrupt()

    def _tell(self, run: Execution, error: BaseException) -> None:
        number = run.claim.run.number
        if isinstance(error, ClaimLost):
            logger.warning("run %s: %s", number, error)
            return
        if isinstance(error, StoreError):
            logger.error("run %s stopped: %s", number, error)
        else:
            logger.error("run %s stopped: a fault of ours", number, exc_info=error)
        self._dropped.add(run.run_id)

    async def _carry(self, claim: Claim) -> None:
        """Executes one run and waits for its end."""
        over: asyncio.Future[BaseException | None] = self._loop.create_future()

        def ended(run: Execution, error: BaseException | None) -> None:
            self._leave(run)
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
            self._resting = asyncio.create_task(self._work())
            await asyncio.wait([self._resting])

    async def _work(self, timeout: float = LOOK) -> None:
        """Waits for news; a store that cannot even be read is asked again in a while."""
        try:
            await self._backend.work(timeout)
        except StoreError as error:
            logger.warning("cannot look for work just now: %s", error)
            await asyncio.sleep(LOOK)

    # Leaving

    async def _drain(self) -> None:
        """Lets what is under way end within the grace period."""
        await self._release_queued()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._all_ended()

    async def _hand_back(self) -> None:
        """Hands back what has not ended."""
        await self._release_queued()
        for run in self._running.values():
            run.stop("release")
        await self._all_ended()

    async def _all_ended(self) -> None:
        while self._running:
            self._freed.clear()
            await self._freed.wait()

    async def _release_queued(self) -> None:
        queued, self._queue = self._queue, deque()
        for claim in queued:
            await self._release(claim, "the worker stopped before it began")

    async def _release(self, claim: Claim, reason: str) -> None:
        with contextlib.suppress(ClaimLost, StoreError):
            fact = f.Released(at=self._clock.now(), attempt=claim.attempt, reason=reason)
            await self._backend.append(claim, [fact])

    # Showing that it lives, and seeing who does not

    async def _beat(self, stopped: str = "") -> set[str]:
        record = await self._badge.record(self._backend, self._current(), stopped)
        running = list(self._running.values())
        held = {(h.run_id, h.attempt) for h in await self._backend.beat(record)}
        now = self._clock.monotonic()
        self._watch.heard(now)
        ours = {(run.run_id, run.claim.attempt) for run in running} | {(c.run.id, c.attempt) for c in self._queue}
        self._dropped |= self._unattended.look(held, ours, now)
        for run in running:
            if (run.run_id, run.claim.attempt) not in held and await self._is_lost(run):
                run.stop("lost")
        return {run_id for run_id, _ in held}

    def _current(self) -> str | None:
        return next(iter(self._running), None)

    async def _is_lost(self, run: Execution) -> bool:
        row = await self._backend.get(run.run_id)
        return row is None or (row.attempt != run.claim.attempt and run.journal.broken is None)

    async def _beating(self) -> None:
        asleep = self._clock.elapsed() - self._clock.monotonic()
        while True:
            await asyncio.sleep(settings.heartbeat(self._lease))  # real time, whatever the clock of the runs says
            slept = self._clock.elapsed() - self._clock.monotonic() - asleep
            if slept > LOOK:
                asleep += slept
                logger.warning("this machine slept for %.0f s; looking whether its runs are still ours", slept)
            try:
                await self._beat()
            except StoreError:
                self._watch.blind()  # nobody else can be heard either, though what is there can perhaps be read

    async def _watching(self) -> None:
        looked = self._clock.monotonic()
        while True:
            await self._work(max(0.01, looked + LOOK - self._clock.monotonic()))
            with contextlib.suppress(StoreError):
                await self._see_cancels()
                if self._clock.monotonic() - looked >= LOOK:
                    looked = self._clock.monotonic()
                    await self._look_for_the_dead()
                    if self._badge.outdated(self._current()):
                        await self._beat()
                    await self._take_up_again()
                    await self._take_strays()

    async def _take_up_again(self) -> None:
        """Claims anew what a fault made us drop: we hold it still, so that nobody else may have it."""
        for run_id in tuple(self._dropped):
            if self._stopping.is_set():
                return  # others may have it as soon as we have left
            claims = await self._backend.claim(
                self.id, run_id=run_id, dead=frozenset({self.id}), fingerprints=self._fingerprints
            )
            self._dropped.discard(run_id)
            self._queue.extend(claim for claim in claims if claim.run.workflow or claim.run.flow in self._flows)
            self._start_queued()
            for claim in claims:
                if not claim.run.workflow and claim.run.flow not in self._flows:
                    await self._release(claim, "its worker was killed, and does not know the flow any more")

    async def _take_strays(self) -> None:
        """Claims runs of flows that no living worker of their tag knows: somebody has to say so."""
        if self._stopping.is_set() or not self._tags or not self._looping:
            return
        look = Look(self._backend, self.id, self._tags, self._flows, self._watch, self._clock)
        for row in await look.strays(self._dead):
            self._queue.extend(await self._backend.claim(self.id, run_id=row.id, dead=self._dead))
        self._start_queued()

    async def _see_cancels(self) -> None:
        if not self._running:
            return
        for row in await self._backend.search(Query(holder=self.id, status=(Status.CANCELLING,), limit=1000)):
            run = self._running.get(row.id)
            if run is not None and run.stopping is None:
                run.journal.note(run.fact(f.CancelSeen))
                run.stop("cancel")

    async def _look_for_the_dead(self) -> None:
        try:
            workers = await self._backend.workers(holding=True)
        except StoreError:
            self._watch.blind()
            raise
        records = [record for record in workers if record.id != self.id]
        self._dead = self._watch.dead(records, self._clock.monotonic())

    async def _flushing(self) -> None:
        while True:
            await asyncio.sleep(FLUSH)
            await asyncio.gather(*(run.log.flush() for run in self._running.values()))


def _by_name(flows: Iterable[Flow[..., Any]]) -> dict[str, Flow[..., Any]]:
    known: dict[str, Flow[..., Any]] = {}
    for flow in flows:
        if known.setdefault(flow.name, flow) is not flow:
            raise BadUsage(f"two flows are called {flow.name!r}: give one of them another name, @flow(name=…)")
    return known
