"""Executes one claimed run: replays its journal, calls the flow, records how it ended.

There is no code for starting, going on or retrying: whoever claims a run reads what it did and calls the flow;
a step or an item with a recorded outcome is answered from the journal.
"""

import asyncio
from typing import Any, Final, Protocol

import msgspec

from tsuzuki import facts as f
from tsuzuki.errors import (
    BadCallable,
    BadParams,
    BadRequest,
    ClaimLost,
    FlowNotFound,
    NotAwaited,
    StoreError,
    TsuzukiError,
)
from tsuzuki.execution import Execution
from tsuzuki.flow import Flow
from tsuzuki.frames import RunFrame, root_frame
from tsuzuki.invoking import Call, invoke, leave_if_stopping
from tsuzuki.journal import LARGE, Replay
from tsuzuki.lifecycle import Status
from tsuzuki.redact import problem
from tsuzuki.retry import GiveUp, Later

_NOTHING_YET: Final = 2
"""The position of a run that was submitted and claimed, and has done nothing."""
_TRIES: Final = 12
"""How many attempts a workflow has to find a worker that allows what it calls, where there are several."""
_MOMENT: Final = 0.1
"""After how long another worker may take it (seconds)."""


class Compile(Protocol):
    """Makes a flow of the YAML text that a run brings, and a name."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the registered tasks that such a text may call without naming their module."""
        ...

    def __call__(self, text: str, name: str, /) -> Flow[..., Any]:
        """Compile a text; raise `BadRequest` if it is not a workflow that can run here."""
        ...


async def execute(run: Execution, flow: Flow[..., Any] | None, compiled: Compile | None = None) -> None:
    """Carries a claimed run as far as it goes; raises only when the store or the claim is lost."""
    try:
        ending = await _ending(run, flow, compiled)
        if ending is not None:
            if run.unsaid:
                await run.log.flush()
            await run.end(ending)
    finally:
        if not run.given_up:
            run.journal.close()


async def _ending(run: Execution, flow: Flow[..., Any] | None, compiled: Compile | None) -> f.Fact | None:
    """Gives the fact that ends this attempt, unless that was recorded already."""
    row = run.claim.run
    if row.status is Status.CANCELLING:
        return run.fact(f.RunCancelled)
    if row.workflow:
        try:
            flow = await _brought(run, compiled)
        except BadRequest as error:
            if isinstance(error, BadCallable) and await _others_may_allow(run):
                return _left_to_others(run, error)
            return _failed(run, f.Problem(type(error).__name__, str(error)), "invalid_job")
    if flow is None:
        known = f"flow_not_found: no flow called {row.flow!r} is known to worker {run.claim.worker}"
        return _failed(run, f.Problem("FlowNotFound", known), "flow_not_found")
    try:
        params = flow.params.decode(row.params)
    except BadParams as error:
        return _failed(run, f.Problem("BadParams", str(error)), "invalid_job")
    if row.position > _NOTHING_YET or row.continues:
        await _load(run)
        _tell_change(run, flow)
    return await _outcome(run, flow, params)


async def _brought(run: Execution, compiled: Compile | None) -> Flow[..., Any]:
    """Gives the flow that a run brings as YAML, in its first fact; a large text is parsed beside the loop."""
    if compiled is None:
        raise FlowNotFound(f"worker {run.claim.worker} runs no YAML flows: start it with `tsuzuki worker`")
    [entry] = await run.backend.read(run.run_id, limit=1)
    text = entry.fact.workflow if isinstance(entry.fact, f.Submitted) else ""
    return await asyncio.to_thread(compiled, text, run.claim.run.flow)


async def _others_may_allow(run: Execution) -> bool:
    """Tells whether another worker may allow what a workflow calls; who gets a run is chance, so it has a few tries."""
    row, me = run.claim.run, run.claim.worker
    records = await run.backend.workers() if run.claim.attempt < _TRIES else ()
    return any(r.workflows and row.tag in r.tags and r.id != me and not r.stopped for r in records)


def _left_to_others(run: Execution, error: BadCallable) -> f.Fact:
    told = f"worker {run.claim.worker} does not allow what its workflow calls: {error}"
    return run.released(_MOMENT, told)


def _failed(run: Execution, error: f.Problem, reason: str = "execution_error") -> f.Fact:
    return run.fact(f.RunFailed, error=error, reason=reason, worker=run.claim.worker)


def _cancelled(error: asyncio.CancelledError) -> f.Problem:
    told = "the flow was cancelled from inside, by its own code or a task's"
    kept = problem(error)
    return f.Problem(kept.type, f"{told}: {kept.message}" if kept.message else told)


async def _load(run: Execution) -> None:
    row = run.claim.run
    if row.position > _NOTHING_YET:
        expected = row.done + row.failed + row.skipped + row.steps
        run.replay = await Replay.load(run.backend, run.run_id, expected=expected)
    if row.continues:
        run.inherited = await Replay.load(run.backend, row.continues, items_only=True)


def _tell_change(run: Execution, flow: Flow[..., Any]) -> None:
    if text := flow.changed_since(run.claim.was):
        run.log.line(text, "warning", name=flow.name)


async def _outcome(run: Execution, flow: Flow[..., Any], params: dict[str, Any]) -> f.Fact | None:
    frame = root_frame(run, flow.name, blocking=not flow.is_async)
    value, error = await _called(run, Call(flow, frame, (), params))
    run.failure = error
    if run.given_up:
        return None
    _stop_the_rest(run, error)
    if run.stopping is not None:
        if run.stopping != "lost":
            await run.settled()
        if run.stopping == "lost":
            raise run.lost()
    match error:
        case None:
            return await _completed(run, flow, frame, value)
        case asyncio.CancelledError():
            return run.stopped() if run.stopping in ("cancel", "release") else _failed(run, _cancelled(error))
        case Later():
            return run.released(error.seconds, error.reason)
        case NotAwaited(__cause__=None):  # its traceback would show no line of the user
            return _failed(run, f.Problem("NotAwaited", str(error)))
        case GiveUp():
            return _failed(run, f.Problem("GiveUp", error.reason))
        case StoreError() | ClaimLost():
            raise error
        case BadCallable() if run.claim.run.workflow and await _others_may_allow(run):
            return _left_to_others(run, error)
        case _:
            return _failed(run, problem(error))


def _stop_the_rest(run: Execution, error: BaseException | None) -> None:
    """Stops what goes on although the flow is over, unless that was done."""
    if run.winding_down and isinstance(error, asyncio.CancelledError):  # of a call that saw it, and left by itself
        run.stop("release")
    elif run.has_calls:  # branches that the flow has left behind
        run.stop("ended")


async def _called(run: Execution, call: Call) -> tuple[Any, BaseException | None]:
    """Calls the flow; gives what it returned, or what it raised. Nobody interrupts the task after that."""
    value: Any = None
    error: BaseException | None = None
    run.in_flow = True
    try:
        leave_if_stopping(run)
        value = await invoke(run, call)
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - it becomes the end of the run
        error = raised
    run.in_flow = False
    if run.main is not None and run.main.cancelling():
        late = await _late_cancel(run.main)
        error = error or (None if run.stopping else late)
    return value, error


async def _late_cancel(task: "asyncio.Task[None]") -> asyncio.CancelledError | None:
    """Lets a cancellation come that the flow was over before it met, and gives it."""
    late = None
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError as cancelled:
        late = cancelled
    while task.cancelling():
        task.uncancel()
    return late


async def _completed(run: Execution, flow: Flow[..., Any], frame: RunFrame, value: Any) -> f.Fact:
    try:
        data, _ = flow.codec.record(value)
    except TsuzukiError as error:
        return _failed(run, f.Problem(type(error).__name__, f"flow {flow.name}: {error}"))
    kept, blob = (data, "") if len(data) <= LARGE else await run.blob(data)
    now, attempt = run.clock.now(), run.claim.attempt
    return f.RunCompleted(at=now, attempt=attempt, result=msgspec.Raw(kept), blob=blob, artifacts=tuple(frame.saved))
