"""A map: lanes that share one input, skip what the journal has, perform and record the rest, in bounded memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, MutableSet
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Entry
from tsuzuki.context import MapOptions, brief, item_key
from tsuzuki.errors import DuplicateItem, ItemsFailure, StepFailure
from tsuzuki.execution import LANE, Execution
from tsuzuki.flow import Task
from tsuzuki.invoking import Call, CallFrame, interruption, leave_if_stopping
from tsuzuki.journal import LARGE, Recorded, failure_of, success_of
from tsuzuki.keyindex import KeyIndex
from tsuzuki.redact import problem
from tsuzuki.results import Collected, Counts, Failure
from tsuzuki.steps import Failed, decoded, failure, perform, spent_in
from tsuzuki.streams import END, Arrivals, CountOnly, KeepAll, Sink, Source, Window
from tsuzuki.winding import entrust, held_back, relieve

BATCH: Final = 500
"""How many recorded values are fetched at once."""


@dataclass(frozen=True, slots=True)
class MapCall:
    """A call of `task.map`: who it is, and how it is to be run."""

    run: Execution
    task: Task[..., Any]
    step: str
    outer: CallFrame
    """The frame that it is made in."""
    shared: Mapping[str, Any]
    how: MapOptions
    frame: Callable[[str], CallFrame]
    since: int = 0
    """Items that failed up to this position of the journal are tried again: what maps is."""


class Map:
    """One map while it runs."""

    def __init__(self, call: MapCall, source: Source, sink: Sink) -> None:
        self._run = call.run
        self._task = call.task
        self._step = call.step
        self._outer = call.outer
        self._shared = call.shared
        self._how = call.how
        self._frame = call.frame
        self._since = call.since
        self._steps = {call.step}
        self._source = source
        self._sink = sink
        self._counted = isinstance(sink, CountOnly)
        self._seen = KeyIndex()
        keyed = call.how.key is not None
        self._given = call.task.given.map(call.shared, call.run.inputs_kept, keyed=keyed)
        self._known: list[tuple[int, str, str, Recorded, bool]] = []
        self._started = 0
        self._error: BaseException | None = None
        lanes, total = call.how.concurrency, source.total
        self._lanes = lanes if total is None else max(1, min(lanes, total))
        self._progress = call.run.log.step(call.step, call.how.name or call.task.name, total)
        self._progress.lanes = self._lanes

    async def work(self) -> None:
        """Runs the lanes until the input is used up; raises the first failure after the others have settled."""
        run, outer = self._run, self._outer
        if self._how.prepare is not None:
            try:
                self._progress.lanes = self._lanes = await self._how.prepare(self._position_of)
            except BaseException:
                run.log.finished(self._step)
                raise
        self._note(self._step)
        if not self._task.is_async:
            run.threads.at_least(self._lanes)
        lanes = [asyncio.create_task(self._lane(), name=LANE + self._task.name) for _ in range(self._lanes)]
        entered = run.enter(asyncio.current_task())
        outer.inside = entrust(run, outer.inside) if outer.step else 0
        cancelled = await settle(lanes, run.calls.cancelled)
        outer.inside = relieve(run, outer.inside) if outer.step else 0
        run.leave(entered)
        run.log.finished(self._step)
        if cancelled or run.stopping is not None:
            if self._source.total is not None:
                run.calls.cut.never_started += max(self._source.total - self._started, 0)
            raise asyncio.CancelledError
        if self._error is not None:
            raise self._error
        if any(lane.cancelled() for lane in lanes):
            if run.winding_down:
                raise asyncio.CancelledError
            raise RuntimeError(f"{self._task.name} cancelled the task it runs in, and with it items that follow")

    def _note(self, step: str) -> None:
        """Notes that a step has begun: the map itself, or the items of it that are tried again."""
        run = self._run
        self._steps.add(step)
        total = self._source.total if step == self._step else None
        named = {"step": step, "name": self._task.name, "parent": self._outer.step, "takes": self._given.takes}
        run.journal.note(run.fact(f.StepStarted, **named, map=True, total=total))

    async def _lane(self) -> None:
        plain, run, sink = self._source.plain, self._run, self._sink
        key_of, name = self._how.key, self._task.name
        me = asyncio.current_task()
        done_before = len(run.replay) > 0 or run.inherited is not None
        told_apart = self._source.distinct and key_of is None
        try:
            while self._error is None and run.stopping is None:
                if sink.full:
                    await self._flush()
                    await sink.room()
                item = next(plain, END) if plain is not None else await self._source.pull()
                if item is END:
                    break
                if run.winding_down:
                    await held_back(run)
                key = item_key(name, item, key_of)
                if not told_apart and not self._seen.put("", key, 1) and self._repeats(key):
                    continue
                self._started += 1
                number = sink.open()
                step = self._knows(number, key) if done_before else self._step
                if not step:
                    if self._started % BATCH == 0:
                        await self._flush()
                else:
                    if self._known:
                        await self._flush()
                    await self._item(number, key, item, step, me)
            await self._flush()
        except asyncio.CancelledError:
            raise
        except KeyboardInterrupt:  # from the input
            self._stop(interruption(run, f"the input of {name}.map"))
        except BaseException as error:  # noqa: BLE001 - kept for the map to raise once all lanes have settled
            self._stop(error)

    def _repeats(self, key: str) -> bool:
        if self._how.duplicates == "skip":
            return True
        raise DuplicateItem(
            f"{self._task.name}.map: two items have the key {brief(key)!r}; give items keys of their own (key=…), "
            'or leave the repeated ones out with duplicates="skip"'
        )

    def _stop(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error

    # What the journal has

    def _knows(self, number: int, key: str) -> str:
        """Notes an item that the journal has, or that of the run which this one continues; else gives its step."""
        run, inherited = self._run, False
        step, found = run.replay.answer(self._step, key, self._since)
        if found is None and run.inherited is not None:
            found, inherited = run.inherited.find(self._step, key), True
        if found is None:
            return step
        if self._counted and not inherited and not found.failed:
            self._sink.put(number, None)
            self._progress.done += 1
        else:
            self._known.append((number, key, self._step if inherited else step, found, inherited))
        return ""

    def _position_of(self, key: str) -> int:
        """Return where the outcome of an item stands; 1 if another run has made it, 0 if it is still to be made."""
        _, recorded = self._run.replay.answer(self._step, key, self._since)
        if recorded is not None:
            return recorded.position
        return int(self._run.inherited is not None and self._run.inherited.find(self._step, key) is not None)

    async def _flush(self) -> None:
        """Gives what is known of items on, with the values that are fetched for them."""
        known, self._known = self._known, []
        run = self._run
        own = {found.position for _, _, _, found, inherited in known if not inherited}
        theirs = {found.position for _, _, _, found, inherited in known if inherited}
        entries = {e.position: e for e in await run.journal.fetch(sorted(own))} if own else {}
        carried: dict[int, Entry] = {}
        if theirs and run.claim.run.continues:
            carried = {e.position: e for e in await run.backend.fetch(run.claim.run.continues, sorted(theirs))}
        for number, key, step, found, inherited in known:
            if inherited:
                await self._carry_over(number, key, carried[found.position])
            elif found.failed:
                fact = failure_of(entries[found.position], step, key)
                self._failed(number, key, fact, None)
            else:
                success = success_of(entries[found.position], step, key)
                data = bytes(success.result)
                if success.blob:
                    data = await run.recorded(run.run_id, data, success.blob)
                self._progress.done += 1
                self._sink.put(number, decoded(self._task, key, data))
        await asyncio.sleep(0)  # heartbeats have their turn

    async def _carry_over(self, number: int, key: str, entry: Entry) -> None:
        """Takes the result of the run that this one continues, and keeps it here too: that run may be purged."""
        run, success = self._run, success_of(entry, self._step, key)
        origin = run.claim.run.continues or ""
        data = await run.recorded(origin, bytes(success.result), success.blob)
        kept, blob = await run.blob(data)
        fact = run.fact(
            f.ItemSkipped,
            step=self._step,
            key=key,
            result=msgspec.Raw(kept),
            blob=blob,
            origin=origin,
            tries=success.tries,
            inputs=success.inputs,
            inputs_cut=success.inputs_cut,
        )
        value = decoded(self._task, key, data)
        ack = run.journal.record(fact)
        self._progress.skipped += 1
        if number % BATCH == BATCH - 1 or blob:
            await ack
        self._sink.put(number, value)

    # What is done now

    async def _item(self, number: int, key: str, item: Any, step: str, lane: "asyncio.Task[Any] | None") -> None:
        run, task, progress = self._run, self._task, self._progress
        if step not in self._steps:
            self._note(step)
        frame = self._frame(key)
        frame.step, frame.owner = step, lane
        progress.running += 1
        call = Call(task, frame, (item,), self._shared)
        inputs, cut = self._given.of(item)  # the function may change it
        try:
            done = await perform(run, task, call)
        except Failed as failed:
            await self._fail(number, key, step, failed, {"spent": spent_in(frame), "inputs": inputs, "inputs_cut": cut})
            call.leave_if_interrupted()
            return
        finally:
            progress.running -= 1
        if lane is not None and lane.cancelling():
            await self._absorb(lane)
        data, blob = (done.data, "") if len(done.data) <= LARGE else await run.blob(done.data)
        await run.journal.record(
            f.ItemDone(
                at=run.clock.now(),
                attempt=run.claim.attempt,
                step=step,
                key=key,
                took=done.took,
                tries=done.tries,
                result=msgspec.Raw(data),
                blob=blob,
                artifacts=tuple(frame.saved),
                spent=spent_in(frame),
                inputs=inputs,
                inputs_cut=cut,
            )
        )
        progress.done += 1
        progress.seconds += done.took
        progress.timed += 1
        run.log.dirty = True
        self._sink.put(number, done.value)
        if run.stopping is not None:
            leave_if_stopping(run)
        if call.interrupted:
            call.leave_if_interrupted()

    async def _absorb(self, lane: "asyncio.Task[Any]") -> None:
        """Takes a cancellation that an item has left behind for its own lane: those that follow are not to have it."""
        if self._run.stopping is None and lane not in self._run.calls.cancelled:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            while lane.cancelling():
                lane.uncancel()

    async def _fail(self, number: int, key: str, step: str, failed: Failed, more: Mapping[str, Any]) -> None:
        kept, took = problem(failed.error), failed.took
        now, attempt = self._run.clock.now(), self._run.claim.attempt
        fact = f.ItemFailed(
            at=now, attempt=attempt, step=step, key=key, error=kept, took=took, tries=failed.tries, **more
        )
        await self._run.journal.record(fact)
        self._progress.seconds += failed.took
        self._progress.timed += 1
        self._run.log.dirty = True
        self._failed(number, key, fact, failed.error)
        leave_if_stopping(self._run)

    def _failed(self, number: int, key: str, fact: f.StepFailed | f.ItemFailed, cause: BaseException | None) -> None:
        kept, tries = fact.error, fact.tries
        self._progress.failed += 1
        self._sink.put(number, Failure(key, kept.message, kept.type, tries, kept.detail, fact.spent))
        if self._how.on_error == "fail":
            self._stop(items_failure(failure(self._task.name, key, kept, tries), cause))


def items_failure(first: StepFailure, cause: BaseException | None) -> ItemsFailure:
    """Makes the error that a map raises for its first failed item."""
    error = ItemsFailure(str(first), task=first.task, key=first.key, error_type=first.error_type, tries=first.tries)
    error.__cause__ = cause
    return error


async def settle(tasks: list["asyncio.Task[None]"], told: "MutableSet[asyncio.Task[Any]] | None" = None) -> bool:
    """Waits until all tasks have ended, passing a cancellation on to them; tells whether there was one, and to whom."""
    cancelled = False
    pending = set(tasks)
    while pending:
        try:
            _, pending = await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
            for task in pending:
                if told is not None:
                    told.add(task)
                task.cancel()
    return cancelled


async def run_map(make: Callable[[Sink], Map], how: MapOptions) -> Any:
    """Runs a map to its end and gives what it is to give."""
    if not how.keep_results:
        count = CountOnly()
        await make(count).work()
        return Counts(count.succeeded, count.failed)
    keep = KeepAll()
    await make(keep).work()
    return Collected(keep.outcomes) if how.on_error == "collect" else keep.outcomes


async def stream_map(make: Callable[[Sink], Map], how: MapOptions) -> AsyncIterator[Any]:
    """Runs a map and gives its outcomes while it goes on, in input order or as they come."""
    window = (Window if how.ordered else Arrivals)(max(4 * how.concurrency, 64))
    work = asyncio.create_task(make(window).work(), name="tsuzuki-stream")
    work.add_done_callback(lambda _: window.close())
    try:
        while (outcome := await window.take(work.done)) is not END:
            if isinstance(outcome, Failure) and how.on_error == "fail":
                break
            yield outcome
        await work
    finally:
        if not work.done():
            work.cancel()
            window.close()
        await settle([work])
        if not work.cancelled():
            work.exception()  # a reader that has left does not want it; what nobody looks at asyncio complains of
