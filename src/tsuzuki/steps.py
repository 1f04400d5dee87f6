"""One durable call: look in the journal; perform, with its retries, only what is not there; record; answer."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec

from tsuzuki import facts as f
from tsuzuki.cautions import warn_if_changed
from tsuzuki.context import FRAME, Frame, brief, in_async_code
from tsuzuki.errors import ClaimLost, StepFailure, StoreError, TsuzukiError, ValueChanged
from tsuzuki.execution import LANE, Abandoned, Execution
from tsuzuki.flow import Flow, Task
from tsuzuki.journal import LARGE, failure_of, success_of
from tsuzuki.redact import problem
from tsuzuki.retry import Later
from tsuzuki.spending import added
from tsuzuki.threads import Work


class CallFrame(Frame, Protocol):
    """The frame of a call: what it is called by, and what it saved."""

    step: str
    key: str
    name: str
    saved: list[f.Artifact]
    spent: list[f.Spent] | None
    owner: "asyncio.Task[Any] | None"
    since: int
    tries: int

    def begin(self, tries: int, since: int) -> bool:
        """Begins a try, or the same one once more; tells whether calls were made before."""
        ...


@dataclass(slots=True)
class Call:
    """A call on its way; `content` says its arguments where they could be changed, `said` as JSON until it begins."""

    task: Task[..., Any] | Flow[..., Any]
    frame: CallFrame
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    content: bytes | None = None
    said: bytes | None = None
    thread: Work | None = None
    interrupted: bool = False
    """Whether the flow's own code cancelled it (a timeout, a group) while it ran on a thread, where it goes on."""

    def leave_if_interrupted(self) -> None:
        """Passes the cancellation on, once what the function did is recorded."""
        if self.interrupted:
            raise asyncio.CancelledError


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


async def call(run: Execution, task: Task[..., Any], work: Call, parent: str) -> Any:
    """Answers a call of a task from the journal, or performs and records it."""
    frame = work.frame
    frame.step, found = run.replay.answer(frame.step, frame.key, frame.since)
    if found is not None:
        return await _replayed(run, task, frame, found.position, failed=found.failed)
    frame.owner = asyncio.current_task(run.loop)
    entered = run.enter(frame.owner)
    try:
        return await _recorded(run, task, work, parent)
    finally:
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
        raise failure(task.name, frame.key, kept, failed.tries) from failed.error
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
        raise failure(task.name, frame.key, fact.error, fact.tries)
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


def failure(task: str, key: str, kept: f.Problem, tries: int) -> StepFailure:
    """Makes the error that a flow sees: the same, word for word, the first time and on replay."""
    what = f"{task}[{brief(key)}]" if key else task
    count = f" after {tries} tries" if tries > 1 else ""
    text = f"{what} failed{count}: {kept.type}: {kept.message}"
    return StepFailure(text, task=task, key=key, error_type=kept.type, tries=tries)


async def perform(run: Execution, task: Task[..., Any], work: Call) -> Done:
    """Calls the function, again where its `Retry` says so; raises `Failed` when that is used up."""
    clock = run.clock
    tries = 0
    run.active += 1
    try:
        while True:
            run.begun += 1
            tries += 1
            started = clock.monotonic()
            try:
                value = await (_limited(run, task, work) if task.limited else invoke(run, work))
                data, value = task.codec.record(value)
                if run.stopping is not None:
                    _finished(run, work.frame)
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
                    _finished(run, work.frame)
                    raise Failed(error, clock.monotonic() - started, tries) from None
                with _waiting(run, work.frame):
                    leave_if_stopping(run)
                    work.leave_if_interrupted()
                    await _pause(run, task, work.frame, tries, error)
                    await _begin(run, work, tries + 1, since=run.journal.position)
    finally:
        run.active -= 1


@contextmanager
def _waiting(run: Execution, frame: CallFrame, *, tried: bool = True) -> Iterator[None]:
    """Counts a call that a stop meets while it waits for a try; before the first one it has never started."""
    try:
        yield
    except asyncio.CancelledError:
        if tried:
            _interrupted(run, frame)
        elif run.stopping is not None:
            run.calls.cut.never_started += 1
        raise


async def _begin(run: Execution, work: Call, tries: int, since: int) -> None:
    """Begins a try: what its calls did before is found; those that failed before a position are made again."""
    if work.frame.begin(tries, since):
        await run.catch_up()


async def _pause(run: Execution, task: Task[..., Any], frame: CallFrame, tries: int, error: Exception) -> None:
    delay = task.retry.delay(tries)
    kept = problem(error)
    text = f"try {tries} of {task.retry.attempts} failed ({kept.type}: {kept.message}); again in {delay:.1f} s"
    run.log.line(text, "warning", step=frame.step, name=task.name, key=frame.key)
    run.active -= 1
    try:
        await run.clock.sleep(delay)
    finally:
        run.active += 1


async def _limited(run: Execution, task: Task[..., Any], work: Call) -> Any:
    with _waiting(run, work.frame, tried=work.frame.tries > 1):
        await run.limits.enter(task)
    try:
        return await invoke(run, work)
    finally:
        if work.thread is None or work.thread.ended:
            await run.limits.leave(task)
        else:  # given up, but still at work: it keeps its place until it really ends
            work.thread.then = lambda: run.afterwards(run.limits.leave(task))


async def invoke(run: Execution, work: Call) -> Any:
    """Calls a function inside its frame: async here, sync on a thread."""
    task, frame = work.task, work.frame
    token = FRAME.set(frame)
    try:
        if not task.is_async:
            return await _on_thread(run, work)
        if frame.owner is None:
            frame.owner = asyncio.current_task()
        if task.timeout is None:
            return await task.function(*work.args, **work.kwargs)
        return await _before(run, task.timeout, task.function(*work.args, **work.kwargs))
    except SystemExit as error:  # it would end this whole process, and with it everybody else's work
        raise RuntimeError(f"{task.name} called sys.exit({error.code!r})") from error
    except (GeneratorExit, BaseExceptionGroup) as error:
        _refuse_to_go_under(run, work, error)
        raise
    except KeyboardInterrupt as error:
        raise interruption(run, task.name) from error
    except asyncio.CancelledError as error:
        if frame.step and _nobody_cancelled(run):  # it comes from the function itself: a failure like any other
            said = f": {kept}" if (kept := problem(error).message) else ""
            raise RuntimeError(f"{task.name} raised CancelledError, though nobody had cancelled it{said}") from error
        if task.is_async:
            _interrupted(run, frame)
        raise
    finally:
        FRAME.reset(token)


def interruption(run: Execution, what: str) -> BaseException:
    """Says what becomes of a KeyboardInterrupt from user code: to asyncio it would mean to drop everything.

    In a script it stops the run in order, as Ctrl-C does; in a worker it would end everybody else's work.
    """
    if not run.claim.run.private:
        return RuntimeError(f"{what} raised KeyboardInterrupt")
    run.interrupted = True
    run.stop("release")
    return asyncio.CancelledError()


def _nobody_cancelled(run: Execution) -> bool:
    """Tells whether a cancellation comes from the function itself; its own lane of a map nobody cancels but the map."""
    task = asyncio.current_task()
    if run.stopping is not None or task is None:
        return False
    if task.get_name().startswith(LANE) and task not in run.calls.cancelled:
        while task.cancelling():
            task.uncancel()
    return not task.cancelling()


def _refuse_to_go_under(run: Execution, work: Call, error: BaseException) -> None:
    """Makes a failure like any other of what no `except Exception` would catch.

    A GeneratorExit of the interpreter, which closes a coroutine that nobody runs any more, is let through.
    """
    ours = in_async_code() and asyncio.current_task() is (work.frame.owner or run.main)
    if not isinstance(error, Exception) and (ours or not isinstance(error, GeneratorExit)):
        told = f"{work.task.name} raised {type(error).__name__}: {problem(error).message}"
        raise RuntimeError(told.rstrip(": ")) from error


async def _before(run: Execution, timeout: float, awaited: Awaitable[Any]) -> Any:
    """Awaits an async function and interrupts it when its time is up; cheaper than `asyncio.timeout` by half.

    What it returns after that is late, and refused; also where it kept the loop from telling it.
    """
    task = asyncio.current_task()
    expired, until = False, run.clock.monotonic() + timeout

    def expire() -> None:
        nonlocal expired
        expired = True
        if task is not None:
            task.cancel()

    timer = run.clock.call_later(timeout, expire)
    try:
        value = await awaited
    except asyncio.CancelledError:
        if not expired or task is None or task.uncancel() > 0:
            raise
        raise TimeoutError(f"timed out after {timeout:g} s") from None
    finally:
        timer.cancel()
    late = f"timed out after {timeout:g} s; it returned later all the same, which is refused"
    if expired and task is not None:
        task.uncancel()
        raise TimeoutError(late)
    if run.clock.monotonic() > until:
        raise TimeoutError(f"{late} (it blocks the event loop: make it a plain def, which runs on a thread)")
    return value


async def _on_thread(run: Execution, work: Call) -> Any:
    frame, timeout = work.frame, work.task.timeout
    what = f"{frame.name}[{brief(frame.key)}]" if frame.key else frame.name
    started = work.thread = run.threads.start(
        copy_context(), work.task.function, work.args, work.kwargs, lambda: run.late(what)
    )
    started.what = what
    timer = None
    if timeout is not None:
        error = TimeoutError(f"timed out after {timeout:g} s")
        timer = run.clock.call_later(timeout, partial(started.abandon, error))
    try:
        return await run.track(started)
    except asyncio.CancelledError:
        work.interrupted = run.stopping is None and not _nobody_cancelled(run)
        return _settled(run, frame, started)
    except Abandoned:
        _interrupted(run, frame)
        raise asyncio.CancelledError from None
    finally:
        if timer is not None:
            timer.cancel()


def _finished(run: Execution, frame: CallFrame) -> None:
    if run.stopping is not None and frame.step:
        run.calls.cut.finished_anyway += 1


def _interrupted(run: Execution, frame: CallFrame) -> None:
    if run.stopping is not None and frame.step:
        run.calls.cut.interrupted += 1


def _settled(run: Execution, frame: CallFrame, work: Work) -> Any:
    """Answers for a sync function that ended while the run was being stopped: what it did counts."""
    error = work.exception()
    if isinstance(error, Abandoned | asyncio.CancelledError):
        _interrupted(run, frame)
        raise asyncio.CancelledError(*error.args)
    if error is not None:
        raise error
    return work.result()


def leave_if_stopping(run: Execution) -> None:
    """Goes no further once a run is being stopped: what was finished has been recorded."""
    if run.stopping is not None:
        raise asyncio.CancelledError


def refuse_when_stopping(run: Execution) -> None:
    """Starts nothing in a run that is being stopped."""
    if run.stopping is not None:
        run.calls.cut.never_started += 1
        raise asyncio.CancelledError
