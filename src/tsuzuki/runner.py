"""Executes one claimed run: replays its journal, calls the flow, records how it ended.

There is no code for starting, going on or retrying: whoever claims a run reads what it did and calls the flow;
a step or an item with a recorded outcome is answered from the journal.
"""

import asyncio
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.errors import BadParams, ClaimLost, StoreError, TsuzukiError
from tsuzuki.execution import Execution
from tsuzuki.flow import Flow
from tsuzuki.frames import RunFrame, root_frame
from tsuzuki.journal import Replay
from tsuzuki.lifecycle import Status
from tsuzuki.redact import problem
from tsuzuki.retry import GiveUp, Later
from tsuzuki.steps import Call, invoke

_NOTHING_YET: Final = 2
"""The position of a run that was submitted and claimed, and has done nothing."""


_CANCELLED: Final = f.Problem("CancelledError", "the flow was cancelled from inside, by its own code or a task's")


async def execute(run: Execution, flow: Flow[..., Any] | None) -> None:
    """Carries a claimed run as far as it goes; raises only when the store or the claim is lost."""
    try:
        ending = await _ending(run, flow)
        await run.log.flush()
        await run.journal.end(ending)
    finally:
        run.journal.close()


async def _ending(run: Execution, flow: Flow[..., Any] | None) -> f.Fact:
    """Gives the fact that ends this attempt."""
    row = run.claim.run
    if row.status is Status.CANCELLING:
        return run.fact(f.RunCancelled)
    if flow is None:
        known = f"flow_not_found: no flow called {row.flow!r} is known to worker {run.claim.worker}"
        return run.fact(f.RunFailed, error=f.Problem("FlowNotFound", known), reason="flow_not_found")
    try:
        params = flow.params.decode(row.params)
    except BadParams as error:
        return run.fact(f.RunFailed, error=f.Problem("BadParams", str(error)), reason="invalid_job")
    await _load(run)
    _tell_change(run, flow)
    return await _outcome(run, flow, params)


async def _load(run: Execution) -> None:
    if run.claim.run.position > _NOTHING_YET:
        run.replay = await Replay.load(run.backend, run.run_id)
    if run.claim.run.continues:
        run.inherited = await Replay.load(run.backend, run.claim.run.continues, items_only=True)


def _tell_change(run: Execution, flow: Flow[..., Any]) -> None:
    was = run.claim.was
    if was and was != flow.fingerprint:
        change = f"{was[:8]} → {flow.fingerprint[:8]}"
        text = f"flow {flow.name} has changed since the last attempt ({change}); going on by name and key"
        run.log.line(text, "warning", name=flow.name)


async def _outcome(run: Execution, flow: Flow[..., Any], params: dict[str, Any]) -> f.Fact:
    frame = root_frame(run, flow.name, blocking=not flow.is_async)
    work = invoke(run, Call(flow, frame, (), params))
    run.main = run.loop.create_task(work)
    if run.stopping is not None:
        run.main.cancel()
    run.main.add_done_callback(run.finish)
    await run.over
    if run.stopping is None and run.under_way:  # branches that the flow has left behind
        run.stop("ended")
    if run.stopping not in (None, "lost"):
        await run.settled()
    if run.stopping == "lost":
        _forget(run.main)
        raise run.journal.broken or ClaimLost("another worker holds the run now")
    if not run.main.done():
        run.cut.interrupted += 1
        _forget(run.main)
        return _stopped(run)
    if run.main.cancelled():
        return _stopped(run) if run.stopping in ("cancel", "release") else run.fact(f.RunFailed, error=_CANCELLED)
    error = run.main.exception()
    match error:
        case None:
            return await _completed(run, flow, frame, run.main.result())
        case Later():
            return run.fact(f.Released, reason="later", not_before=run.clock.now() + error.seconds)
        case GiveUp():
            return run.fact(f.RunFailed, error=f.Problem("GiveUp", error.reason))
        case StoreError() | ClaimLost():
            raise error
        case _:
            return run.fact(f.RunFailed, error=problem(error))


def _forget(task: "asyncio.Task[Any]") -> None:
    """Takes note of an outcome that no longer matters, so that asyncio does not complain of it."""
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _stopped(run: Execution) -> f.Fact:
    if run.stopping == "cancel":
        cut = run.cut
        return run.fact(
            f.RunCancelled,
            never_started=cut.never_started,
            finished_anyway=cut.finished_anyway,
            interrupted=cut.interrupted,
        )
    return run.fact(f.Released, reason="stopped on the way", not_before=run.not_before)


async def _completed(run: Execution, flow: Flow[..., Any], frame: RunFrame, value: Any) -> f.Fact:
    try:
        data, _ = flow.codec.record(value)
    except TsuzukiError as error:
        return run.fact(f.RunFailed, error=f.Problem(type(error).__name__, f"flow {flow.name}: {error}"))
    kept, blob = await run.blob(data)
    return run.fact(f.RunCompleted, result=msgspec.Raw(kept), blob=blob, artifacts=tuple(frame.saved))
