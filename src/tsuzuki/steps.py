"""One durable call: look in the journal; perform, with its retries, only what is not there; record; answer."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from tsuzuki import facts as f
from tsuzuki.cautions import warn_if_changed
from tsuzuki.context import brief
from tsuzuki.errors import ClaimLost, StepFailure, StoreError, TsuzukiError, ValueChanged
from tsuzuki.execution import Abandoned, Execution
from tsuzuki.flow import Task
from tsuzuki.invoking import Call, CallFrame, finished, interrupted, invoke, leave_if_stopping
from tsuzuki.journal import LARGE, failure_of, success_of
from tsuzuki.redact import problem
from tsuzuki.retry import Later
from tsuzuki.spending import added, usage
from tsuzuki.winding import entrust, held_back, relieve


@dataclass(slots=True)
class Done:
    """A call that returned: its JSON, the value this JSON stands for, and what it took."""

    data: bytes
    value: Any
    took: float
    tries: int


class Failed(Exception):
    """A call that failed for good."""

    def __init__(self, error: BaseException, took: float, tries: int) -> None:
        super().__init__()
        self.error = error
        self.took = took
        self.tries = tries


async def call(run: Execution, task: Task[..., Any], work: Call, outer: CallFrame) -> Any:
    """Answers a call of a task, made in a frame, from the journal, or performs and records it."""
    frame = work.frame
    if outer.unawaited:
        outer.unawaited.pop(frame, None)
    frame.step, found = run.replay.answer(frame.step, frame.key, frame.since)
    if found is not None:
        return await _replayed(run, task, frame, found.position, failed=found.failed)
    frame.owner = asyncio.current_task(run.loop)
    entered = run.enter(frame.owner)
    if outer.step:
        outer.inside = entrust(run, outer.inside)
    try:
        return await _recorded(run, task, work, outer.step)
    finally:
        if outer.step:
            outer.inside = relieve(run, outer.inside)
        run.leave(entered)


async def _recorded(run: Execution, task: Task[..., Any], work: Call, parent: str) -> Any:
    frame = work.frame
    step, key, name, now, attempt = frame.step, frame.key, task.name, run.clock.now, run.claim.attempt
    begun = f.StepStarted(at=now(), attempt=attempt, step=step, key=key, name=name, parent=parent)
    run.journal.note(begun)
    inputs, cut = task.given.call(work.said, work.args, work.kwargs, run.inputs_kept)
    work.said = None
    try:
        done = await perform(run, task, work)
    except Failed as failed:
        kept = problem(failed.error)
        outcome = f.StepFailed(
            at=now(),
            attempt=attempt,
            step=step,
            key=key,
            name=name,
            parent=parent,
            inputs=inputs,
            inputs_cut=cut,
            error=kept,
            took=failed.took,
            tries=failed.tries,
            spent=spent_in(frame),
        )
        await run.journal.conclude(outcome, begun, alone=run.alone)
        work.leave_if_interrupted()
        raise failure(task.name, frame.key, kept, failed.tries, outcome.spent) from failed.error
    if work.content is not None and task.name not in run.calls.told:
        warn_if_changed(run, frame, work.args, work.kwargs, work.content)
    data, blob = (done.data, "") if len(done.data) <= LARGE else await run.blob(done.data)
    success = f.StepDone(
        at=now(),
        attempt=attempt,
        step=step,
        key=key,
        name=name,
        parent=parent,
        inputs=inputs,
        inputs_cut=cut,
        result=msgspec.Raw(data),
        blob=blob,
        took=done.took,
        tries=done.tries,
        artifacts=tuple(frame.saved),
        spent=spent_in(frame),
    )
    await run.journal.conclude(success, begun, alone=run.alone)
    leave_if_stopping(run)
    work.leave_if_interrupted()
    return done.value


def spent_in(frame: CallFrame) -> tuple[f.Spent, ...]:
    """Gives what a call has used that is paid for, in all its tries."""
    return added(frame.spent) if frame.spent else ()


async def _replayed(run: Execution, task: Task[..., Any], frame: CallFrame, position: int, *, failed: bool) -> Any:
    run.log.replayed += 1
    [entry] = await run.journal.fetch([position])
    if failed:
        fact = failure_of(entry, frame.step, frame.key)
        raise failure(task.name, frame.key, fact.error, fact.tries, fact.spent)
    success = success_of(entry, frame.step, frame.key)
    return decoded(task, frame.key, await run.recorded(run.run_id, bytes(success.result), success.blob))


def decoded(task: Task[..., Any], key: str, data: bytes) -> Any:
    """Decodes a recorded value; one that the task's annotation does not take any more fails by name."""
    try:
        return task.codec.decode(data)
    except ValueChanged as error:
        what = f"{task.name}[{brief(key)}]" if key else task.name
        hint = "Restore the annotation, or start the flow afresh"
        raise ValueChanged(f"the recorded result of {what} no longer fits: {error}. {hint}") from error


def failure(task: str, key: str, kept: f.Problem, tries: int, spent: tuple[f.Spent, ...] = ()) -> StepFailure:
    """Makes the error that a flow sees: the same, word for word, the first time and on replay."""
    what = f"{task}[{brief(key)}]" if key else task
    count = f" after {tries} tries" if tries > 1 else ""
    text = f"{what} failed{count}: {kept.said}"
    error = StepFailure(text, task=task, key=key, error_type=kept.type, tries=tries)
    error.cost = (usage(spent) or {}).get("cost")
    return error


async def perform(run: Execution, task: Task[..., Any], work: Call) -> Done:
    """Calls the function, again where its `Retry` says so; raises `Failed` when that is used up."""
    clock, tries = run.clock, 0
    if run.replay.tried:
        tries = await _count_on(run, work)
    run.active += 1
    try:
        while True:
            run.begun += 1
            tries += 1
            started = clock.monotonic()
            try:
                value = await (_limited(run, task, work) if task.limited else invoke(run, work))
                data, value = task.codec.record(value)
                if run.stopping is not None or work.frame.progress:
                    finished(run, work.frame)
                return Done(data, value, clock.monotonic() - started, tries)
            except Later as later:
                work.leave_if_interrupted()
                with _waiting(run, work.frame):
                    await run.postpone(later.seconds, later.reason)
                    await _begin(run, work, tries, since=work.frame.since)
                tries -= 1
            except (ClaimLost, StoreError, Abandoned):
                raise
            except Exception as error:  # noqa: BLE001 - whatever user code raises is its failure
                ours = isinstance(error, TsuzukiError) and not isinstance(error, StepFailure)
                if ours or not task.retry.again(tries, error):
                    finished(run, work.frame)
                    raise Failed(error, clock.monotonic() - started, tries) from None
                with _waiting(run, work.frame):
                    leave_if_stopping(run)
                    work.leave_if_interrupted()
                    await _begin(run, work, tries + 1, since=await _pause(run, task, work.frame, tries, error))
    finally:
        run.active -= 1


@contextmanager
def _waiting(run: Execution, frame: CallFrame, *, tried: bool = True) -> Iterator[None]:
    """Counts a call that a stop meets while it waits for a try; before the first one it has never started."""
    try:
        yield
    except asyncio.CancelledError:
        if tried:
            interrupted(run, frame)
        elif run.stopping is not None:
            run.calls.cut.never_started += 1
        raise


async def _begin(run: Execution, work: Call, tries: int, since: int) -> None:
    """Begins a try: what its calls did before is found; those that failed before a position are made again."""
    if run.winding_down:
        await _held_back(run)
    if work.frame.begin(tries, since):
        await run.catch_up()


async def _held_back(run: Execution) -> None:
    run.active -= 1
    try:
        await held_back(run)
    finally:
        run.active += 1


async def _count_on(run: Execution, work: Call) -> int:
    """Continue with the tries of an earlier holder: return how many failed, and find what they called."""
    frame = work.frame
    position = run.replay.last_try(frame.step, frame.key, frame.since)
    if not position:
        return 0
    [entry] = await run.journal.fetch([position])
    tries = entry.fact.tries if isinstance(entry.fact, f.TryFailed) else 0
    frame.begin(tries + 1, position)
    return tries


async def _pause(run: Execution, task: Task[..., Any], frame: CallFrame, tries: int, error: Exception) -> int:
    """Record that a try failed, and wait for the next one; return the position up to which calls are made again."""
    delay = task.retry.delay(tries)
    kept = problem(error)
    named = {"step": frame.step, "key": frame.key, "name": task.name}
    recorded = run.journal.record(
        run.fact(f.TryFailed, **named, tries=tries, error=msgspec.structs.replace(kept, traceback=""))
    )
    text = f"try {tries} of {task.retry.attempts} failed ({kept.said}); again in {delay:.1f} s"
    run.log.line(text, "warning", step=frame.step, name=task.name, key=frame.key)
    with run.idle(delay):
        await run.clock.sleep(delay)
    return int(await recorded)


async def _limited(run: Execution, task: Task[..., Any], work: Call) -> Any:
    with _waiting(run, work.frame, tried=work.frame.tries > 1):
        await run.limits.enter(task)
    try:
        if run.winding_down and work.frame.item:
            await _held_back(run)
        return await invoke(run, work)
    finally:
        if work.thread is None or work.thread.ended:
            await run.limits.leave(task)
        else:  # given up, but still at work: it keeps its place until it really ends
            work.thread.then = lambda: run.afterwards(run.limits.leave(task))
