"""Runs, claims and facts for tests, in a line each."""
# ruff: noqa: S101 - it is part of tests, and a broken premise must fail them

import asyncio
from typing import Any
from uuid import uuid4

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Claim, Entry
from tsuzuki.lifecycle import Run, Status, stamp

AT = 1_750_000_000.0
"""When the facts of these tests happen; a store orders by position and never by this."""

OOPS = f.Problem("ValueError", "oops")


def a_run(**fields: Any) -> Run:
    """Makes a run that nobody has submitted yet."""
    return Run(**{"id": str(uuid4()), "flow": "crawl", "created_at": stamp(AT)} | fields)


async def submitted(backend: Backend, *, claimed: f.Claimed | None = None, **fields: Any) -> Run:
    """Submits a run; gives the stored row."""
    run = a_run(**fields)
    fact = f.Submitted(at=AT, flow=run.flow, params=run.params, tag=run.tag)
    return await backend.submit(run, fact, claimed=claimed)


async def claim_of(
    backend: Backend, run_id: str, worker: str = "worker", *, dead: str = "", alone: bool = False
) -> Claim:
    """Claims one run by its id."""
    claims = await backend.claim(worker, run_id=run_id, dead=frozenset({dead} - {""}), alone=alone)
    assert [claim.run.id for claim in claims] == [run_id], f"{worker} could not claim the run"
    return claims[0]


async def claimed(backend: Backend, worker: str = "worker", **fields: Any) -> Claim:
    """Submits a run and claims it."""
    run = await submitted(backend, **fields)
    return await claim_of(backend, run.id, worker)


async def ended(backend: Backend, status: Status, **fields: Any) -> Run:
    """Submits a run and lets it end as asked; a COMPLETED one has a failed item."""
    claim = await claimed(backend, **fields)
    await backend.append(claim, [item_failed("broken"), ending(status)])
    return await row(backend, claim.run.id)


async def row(backend: Backend, run_id: str) -> Run:
    """Reads the row of a run that must be there."""
    run = await backend.get(run_id)
    assert run is not None, f"the run {run_id} is not there"
    return run


async def journal(backend: Backend, run_id: str) -> list[Entry]:
    """Reads a whole journal."""
    return await backend.read(run_id, limit=100_000)


async def kinds(backend: Backend, run_id: str) -> list[str]:
    """Names the facts of a run in order."""
    return [f.kind(entry.fact) for entry in await journal(backend, run_id)]


def item(key: str, *, step: str = "fetch", attempt: int = 1, result: object = None) -> f.ItemDone:
    """Makes the success of an item."""
    raw = msgspec.Raw(msgspec.json.encode(result))
    return f.ItemDone(at=AT, attempt=attempt, step=step, key=key, name="fetch", result=raw)


def item_failed(key: str, *, step: str = "fetch", attempt: int = 1) -> f.ItemFailed:
    """Makes the final failure of an item."""
    return f.ItemFailed(at=AT, attempt=attempt, step=step, key=key, name="fetch", error=OOPS)


def ending(status: Status, attempt: int = 1) -> f.Fact:
    """Makes the fact that ends a run with a status."""
    if status is Status.COMPLETED:
        return f.RunCompleted(at=AT, attempt=attempt, result=msgspec.Raw(b'{"ok":1}'))
    if status is Status.FAILED:
        return f.RunFailed(at=AT, attempt=attempt, error=OOPS)
    return f.RunCancelled(at=AT, attempt=attempt)


def cancel(by: str = "somebody") -> f.CancelAsked:
    """Makes a request to cancel."""
    return f.CancelAsked(at=AT, by=by, reason="no longer needed")


def resume(*, failed: bool = True) -> f.ResumeAsked:
    """Makes a request to go on."""
    return f.ResumeAsked(at=AT, by="somebody", failed=failed)


async def waiting(task: "asyncio.Task[None]") -> None:
    """Gives a task the time to begin its wait, in a store with threads too."""
    await asyncio.wait({task}, timeout=0.05)
    assert not task.done(), "it did not wait"
