"""Submissions and requests: each decided by `lifecycle`, and by who extends the chain first."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends.nats import frames, leaders
from tsuzuki.backends.nats.blobs import Blobs
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import ApiError, Unclear, fault, unclear, unclear_request
from tsuzuki.backends.nats.frames import ELSEWHERE, HUGE_PARAMS, Frame, Tip
from tsuzuki.backends.nats.keys import SUBMITTER, Keys, Taken, is_taken_back
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.requests import Fate, Requests
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import Conflict, StoreError, StoreUnavailable, TooLarge
from tsuzuki.lifecycle import Run, RunUpdateResult, cancel_facts, refold, request_facts

logger: Final = logging.getLogger("tsuzuki.nats")

ELECTION: Final = 10.0
"""So long, or longer where a store says so, an asker waits for it: a cluster that has lost its leader needs 4 to 7."""

SUBMIT_PATIENCE_S: Final = 4.5
"""So long, or twice the timeout of a store, a submission waits for a new leader. Clients give up after 5 s: one that
was not told of an error by then would submit a second run."""

Answer = TypeVar("Answer")
Written = Callable[[Tip, Sequence[f.Fact]], Coroutine[Any, Any, None]]


class _Asking:
    """What somebody asks of a run, until when a store that is away is waited for, and how far that has come."""

    def __init__(self, run_id: str, fact: f.Fact, dead: frozenset[str], until: float) -> None:
        self.run_id, self.fact, self.dead, self.until = run_id, fact, dead, until
        self.request, self.begun = 0, False


class Queue:
    """The way in: new runs, and what others than the holder want of a run."""

    def __init__(
        self,
        wire: Wire,
        topology: Topology,
        options: Options,
        clock: Clock,
        *,
        chain: Chain,
        blobs: Blobs,
        reserve: Reserve,
        keys: Keys,
        requests: Requests,
        projection: Projection,
        written: Written,
    ) -> None:
        self._wire, self._topology, self._options, self._clock = wire, topology, options, clock
        self._chain, self._blobs, self._reserve, self._keys = chain, blobs, reserve, keys
        self._requests, self._projection, self._written = requests, projection, written
        self._fences: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Leaves; what is to be taken back is, if the store answers soon."""
        if self._fences:
            await asyncio.wait(self._fences, timeout=self._options.timeout)
        for task in self._fences:
            task.cancel()
        await asyncio.gather(*self._fences, return_exceptions=True)

    # Submitting

    async def submit(self, run: Run, facts: Sequence[f.Fact]) -> Run:
        """Accepts a run: its number, its idempotency key, its key, and then the message that makes it."""
        self._refuse_unclaimable(run)
        await self._reserve.spare()
        first = facts[0]
        if isinstance(first, f.Submitted) and self._are_huge(run):
            # Before the keys: whoever has taken one and does not come soon is fenced off.
            blob = await self._blobs.put(run.id, bytes(run.params))
            facts = [msgspec.structs.replace(first, params=ELSEWHERE, blob=blob), *facts[1:]]
        until = self._clock.monotonic() + max(SUBMIT_PATIENCE_S, 2 * self._options.timeout)
        try:
            await self._take_keys(run, until)
        except Taken as taken:
            await self._forget_params(run)
            return taken.run
        except Unclear:
            self._do_aside(self._give_up(run))
            raise
        except BaseException:
            await self._forget_params(run)
            await self._keys.free_once(run)
            raise
        return await self._make(run, facts, until)

    async def _take_keys(self, run: Run, until: float) -> None:
        left = until - self._clock.monotonic()
        try:
            async with asyncio.timeout(left):
                await self._keys.take_once(run, left)
                await self._keys.take(run, left)
        except TimeoutError:
            raise Unclear("it has no leader yet that answers") from None

    def _refuse_unclaimable(self, run: Run) -> None:
        """Refuses a run of which all messages would be too large but the first: each of them repeats its row."""
        size, most = len(frames.encode_row(run)), self._wire.largest // 4
        if size > most:
            raise TooLarge(
                f"a run of {run.flow[:40]!r} with names, keys and labels of {size:,} bytes is not taken: at most "
                f"{most:,} go into each of its messages; put what is large into its params"
            )

    def _are_huge(self, run: Run) -> bool:
        return len(run.params) > min(HUGE_PARAMS, self._wire.largest // 4)

    async def _forget_params(self, run: Run) -> None:
        """Removes the params of a run that is not made; where that fails, they are nobody's, and swept."""
        if self._are_huge(run):
            with contextlib.suppress(Unclear, ApiError):
                await self._blobs.purge(run.id)

    async def _make(self, run: Run, facts: Sequence[f.Fact], until: float) -> Run:
        try:
            number = await leaders.in_short_tries(self._wire, self._next_number, until - self._clock.monotonic())
        except (Unclear, ApiError):
            self._do_aside(self._give_up(run))
            raise
        encoded = [f.encode(fact) for fact in facts]
        row = frames.folded(msgspec.structs.replace(run, number=number), facts, encoded)
        row = msgspec.structs.replace(row, updated_at=self._projection.stamp())
        frame = Frame(self._chain.mark(), row.position, 0, frames.encode_row(row), encoded)
        try:
            tip = await self._chain.extend(run.id, None, frame, row, patience=until - self._clock.monotonic())
        except Passed as passed:
            if passed.tip is not None and passed.tip.run is None:
                return await self._overtaken(run)
            raise Conflict(f"run {run.id} is there already; give every run an id of its own") from None
        except StoreError as error:
            if not isinstance(error, StoreUnavailable) or isinstance(error.__cause__, ApiError):
                await self._give_up(run)  # refused: it is not there
                raise
            # It may have been written. Whoever was told of an error must not see it run.
            self._do_aside(self._take_back(row, frame))
            raise unclear(error) from error.__cause__
        telling = self._do_aside(self._written(tip, facts))
        await asyncio.wait({telling}, timeout=max(until - self._clock.monotonic(), 0))
        if telling.done():
            telling.result()
        return row

    async def _next_number(self, timeout: float) -> int:
        return await self._wire.publish(self._topology.number, b"", timeout=timeout)

    def _do_aside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do what nobody waits for any longer; `close` gives it a moment to end."""
        task = asyncio.get_running_loop().create_task(work)
        self._fences.add(task)
        task.add_done_callback(self._fences.discard)
        return task

    async def _overtaken(self, run: Run) -> Run:
        """Says who has the key of a submission that took so long that others fenced it off and went on."""
        try:
            await self._keys.take_once(run)
            await self._keys.take(run)
        except Taken as taken:
            return taken.run
        finally:
            await self._forget_params(run)
        await self._give_up(run)
        raise StoreUnavailable(
            f"{self._options.url}: this process stood still while it submitted, and others went on with its key; "
            "nothing was submitted: try again"
        )

    async def _give_up(self, run: Run) -> None:
        await self._forget_params(run)
        with contextlib.suppress(StoreError, Unclear, ApiError):  # what stays is taken over after a while
            await self._keys.free(run)
            await self._keys.free_once(run)

    async def _take_back(self, run: Run, frame: Frame) -> None:
        """Fences a submission whose answer was an error; where it had landed, it is cancelled."""
        while not self._wire.closed:
            await self._wire.connected(self._options.timeout)
            try:
                if await self._keys.may_take_back(run) and await self._is_taken_back(run, frame):
                    await self._keys.free(run)
                    await self._keys.free_once(run)
                return
            except (StoreError, Unclear, ApiError) as error:
                logger.debug("run %s is not fenced yet: %s", run.id, error)
                await asyncio.sleep(1.0)

    async def _is_taken_back(self, run: Run, frame: Frame) -> bool:
        """Fences or cancels a run; tells whether its keys are free: one that was claimed ends first, or has ended."""
        try:
            await self._chain.bury(run.id, None)
        except Passed as passed:
            tip = passed.tip
            if tip is None or tip.run is None or await self._chain.mark_at(tip.first) != frame.mark:
                return True  # others have fenced it
            ask = f.CancelAsked(at=self._clock.now(), by=SUBMITTER, reason="its submission was unclear")
            _, row = await self.ask(run.id, ask, frozenset({run.holder or ""}))  # he was told of an error too
            return row is None or is_taken_back(row)
        await self._forget_params(run)
        return True

    # Asking

    async def ask(self, run_id: str, fact: f.Fact, dead: frozenset[str]) -> tuple[RunUpdateResult, Run | None]:
        """Keeps a request and sees it into the chain: its holder lets it in, or where there is none, we do.

        A store that is away for a moment is waited for; nothing is asked twice by that.
        """
        patience = max(ELECTION, self._options.timeout)
        asking = _Asking(run_id, fact, dead, self._clock.monotonic() + patience)
        try:
            return await self._ask(asking)
        except StoreUnavailable as error:
            if not asking.begun or isinstance(error.__cause__, ApiError):  # nothing was asked, or it was refused
                raise
            raise unclear_request(error) from error.__cause__
        finally:
            self._requests.answered(asking.request)

    async def _ask(self, asking: _Asking) -> tuple[RunUpdateResult, Run | None]:
        run_id, fact, dead = asking.run_id, asking.fact, asking.dead
        while True:
            tip = await self._read(partial(self._chain.last, run_id), asking)
            if tip is None or tip.run is None:
                return RunUpdateResult.NOT_FOUND, None
            run, let_in = tip.run, False
            if 0 < asking.request < tip.seq:
                fate = await self._read(partial(self._requests.fate, run_id, asking.request), asking)
                let_in = fate is Fate.LET_IN
            facts = _left(run, fact, dead) if let_in else request_facts(run, fact, dead)
            if let_in and not facts:
                return RunUpdateResult.UPDATED, run
            if not facts:
                ended = run.status.terminal
                return (RunUpdateResult.ALREADY_TERMINAL if ended else RunUpdateResult.UPDATED), run
            if not asking.request and (row := await self._published(run, asking)) is not None:
                return RunUpdateResult.UPDATED, row
            request, patience = 0 if let_in else asking.request, self._left_for(asking)
            try:
                return RunUpdateResult.UPDATED, await self._let_in(tip, run, facts, request, patience)
            except Passed:
                continue

    async def _read(self, read: Callable[[], Awaitable[Answer]], asking: _Asking) -> Answer:
        try:
            return await self._chain.patiently(read, self._left_for(asking))
        except ApiError as error:
            raise fault(error, self._options.url) from error

    def _left_for(self, asking: _Asking) -> float:
        return max(asking.until - self._clock.monotonic(), 0.0)

    async def _published(self, run: Run, asking: _Asking) -> Run | None:
        """Keeps a request, and gives a living holder a moment to let it in; gives the row after it, where he did."""
        if run.status.terminal:  # refused without a trace where its key is held
            again = msgspec.structs.replace(run, attempt=run.attempt + 1)
            await self._read(partial(self._keys.take, again), asking)
        asking.begun = True
        request = asking.request = await self._requests.put(run.id, asking.fact, self._left_for(asking))
        if not request or run.holder is None or run.holder in asking.dead:
            return None
        tip = await self._requests.awaited(run.id, request)
        return None if tip is None else tip.run

    async def _let_in(self, tip: Tip, run: Run, facts: Sequence[f.Fact], request: int, patience: float) -> Run:
        """Extends the chain by what a request appends."""
        mark, stamp = self._chain.mark(), self._projection.stamp()
        frame, row = frames.extended(tip, run, facts, mark, stamp, request=request)
        if run.status.terminal:
            await self._chain.patiently(partial(self._keys.take, row), patience)
        write = partial(self._chain.extend, run.id, tip, frame, row, patience=patience)
        cancels = isinstance(facts[0], f.CancelAsked)
        written = await (self._reserve.urgently(write) if cancels else write())
        await self._written(written, facts)
        return row

    async def settle(self, run_id: str, request: int, fact: f.Fact) -> None:
        """Lets a request in whose asker has died."""
        while (tip := await self._last(run_id)) is not None and tip.run is not None:
            facts = request_facts(tip.run, fact, frozenset())
            try:
                if facts:
                    await self._let_in(tip, tip.run, facts, request, self._options.timeout)
                return
            except Passed:
                if await self._requests.fate(run_id, request) is not Fate.OPEN:
                    return

    # Folding anew

    async def rebuild(self, run_id: str, facts: Callable[[], Awaitable[list[f.Fact | f.Unknown]]]) -> Run | None:
        """Folds a journal anew and appends the row; what is shown of the progress stays."""
        while True:
            tip = await self._last(run_id)
            if tip is None or tip.run is None:
                return None
            row = refold(tip.run, await facts())
            row = msgspec.structs.replace(row, updated_at=self._projection.stamp())
            frame = Frame(self._chain.mark(), row.position, tip.first, frames.encode_row(row), [])
            try:
                written = await self._chain.extend(run_id, tip, frame, row, patience=self._options.timeout)
            except Passed:
                continue
            await self._written(written, [])
            return row

    async def _last(self, run_id: str) -> Tip | None:
        try:
            return await self._chain.last(run_id)
        except (Unclear, ApiError) as error:
            raise fault(error, self._options.url) from error


def _left(run: Run, fact: f.Fact, dead: frozenset[str]) -> list[f.Fact]:
    """Says what is left of a cancel that another let in, who did not know that the holder is dead."""
    if not isinstance(fact, f.CancelAsked) or run.holder not in dead:
        return []
    return [each for each in cancel_facts(run, fact, dead) if each is not fact]
