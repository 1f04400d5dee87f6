"""How the function of a call is called: async here, sync on a thread; what it raises, and what cuts it off."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Protocol, TypeAlias

import msgspec

from tsuzuki import facts as f
from tsuzuki.context import FRAME, Frame, brief, in_async_code
from tsuzuki.errors import NotAwaited
from tsuzuki.execution import LANE, Abandoned, Execution
from tsuzuki.flow import Flow, Task
from tsuzuki.redact import problem
from tsuzuki.threads import Work


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """What is awaited beside the calls of tasks: a map, a flow inside a flow, an artifact."""

    name: str


Unawaited: TypeAlias = dict[Any, Coroutine[Any, Any, Any]]
"""What was called in a frame and has not begun, by its own frame or a `Named`: each takes itself out when it begins."""


class CallFrame(Frame, Protocol):
    """The frame of a call: what it is called by, and what it saved."""

    step: str
    key: str
    name: str
    saved: list[f.Artifact]
    spent: list[f.Spent] | None
    progress: str
    owner: "asyncio.Task[Any] | None"
    since: int
    tries: int
    item: bool
    inside: int
    unawaited: Unawaited | None

    def begin(self, tries: int, since: int) -> bool:
        """Begins a try, or the same one once more; tells whether calls were made before."""
        ...


class Call(msgspec.Struct, eq=False):
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


async def invoke(run: Execution, work: Call) -> Any:
    """Calls a function inside its frame: async here, sync on a thread."""
    task, frame = work.task, work.frame
    token = FRAME.set(frame)
    try:
        if not task.is_async:
            value = await _on_thread(run, work)
        else:
            if frame.owner is None:
                frame.owner = asyncio.current_task()
            called = task.function(*work.args, **work.kwargs)
            value = await (called if task.timeout is None else _before(run, task.timeout, called))
        if frame.unawaited:
            _refuse_unawaited(run, frame.unawaited)
        return value
    except SystemExit as error:  # it would end this whole process, and with it everybody else's work
        raise RuntimeError(f"{task.name} called sys.exit({error.code!r})") from error
    except (GeneratorExit, BaseExceptionGroup) as error:
        _refuse_to_go_under(run, work, error)
        raise
    except KeyboardInterrupt as error:
        raise interruption(run, task.name) from error
    except asyncio.CancelledError as error:
        _refuse_own_cancellation(run, work, error)
        raise
    except Exception as error:
        _refuse_unawaited(run, frame.unawaited, error)
        raise
    finally:
        FRAME.reset(token)
        if frame.unawaited:
            _close_unawaited(run, frame.unawaited)


def _refuse_own_cancellation(run: Execution, work: Call, error: asyncio.CancelledError) -> None:
    """Raise where a cancellation comes from the function itself: that is a failure like any other."""
    task, frame = work.task, work.frame
    if frame.step and _nobody_cancelled(run):
        said = f": {kept}" if (kept := problem(error).message) else ""
        raise RuntimeError(f"{task.name} raised CancelledError, though nobody had cancelled it{said}") from error
    if task.is_async:
        interrupted(run, frame)


def _refuse_unawaited(run: Execution, unawaited: Unawaited | None, error: Exception | None = None) -> None:
    """Raise where calls were not awaited; after an error only where that came of using one of them as its result."""
    used = "" if error is None else problem(error).said
    if not unawaited or run.stopping is not None or (error is not None and "coroutine" not in used):
        return
    if names := sorted({call.name for call, work in unawaited.items() if getcoroutinestate(work) == CORO_CREATED}):
        told = f"{' and '.join(f'{name}(…)' for name in names)} {'was' if len(names) == 1 else 'were'}"
        result = f"and used as a result ({used})" if used else "and did nothing"
        raise NotAwaited(f"{told} called but not awaited, {result}. Write `await {names[0]}(…)`.") from error


def _close_unawaited(run: Execution, unawaited: Unawaited) -> None:
    """Give up what was never awaited; a task that asyncio was about to start would find that the call is over."""
    tasks = {task.get_coro(): task for task in asyncio.all_tasks(run.loop)}
    for work in list(unawaited.values()):
        if getcoroutinestate(work) == CORO_CREATED:
            owner = tasks.get(work)
            _ = work.close() if owner is None else owner.cancel()
    unawaited.clear()


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
    if run.stopping is not None or run.winding_down or task is None:
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
        interrupted(run, frame)
        raise asyncio.CancelledError from None
    finally:
        if timer is not None:
            timer.cancel()


def finished(run: Execution, frame: CallFrame) -> None:
    """Notes that a call has ended; counts it where the run was being stopped."""
    if frame.progress:  # what ended has no progress to tell; one that waits for a `Later` still has
        run.log.finished(frame.progress)
    if run.stopping is not None and frame.step:
        run.calls.cut.finished_anyway += 1


def interrupted(run: Execution, frame: CallFrame) -> None:
    """Counts a call that a stop cut off."""
    if run.stopping is not None and frame.step:
        run.calls.cut.interrupted += 1


def _settled(run: Execution, frame: CallFrame, work: Work) -> Any:
    """Answers for a sync function that ended while the run was being stopped: what it did counts."""
    error = work.exception()
    if isinstance(error, Abandoned | asyncio.CancelledError):
        interrupted(run, frame)
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
