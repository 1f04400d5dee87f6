"""A crash at any write, before it or after it, and a journal that ends anywhere: the run goes on and ends alike."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.acceptance.invariants import check_journal
from tsuzuki import Retry, Runs, Status, Worker, flow, task
from tsuzuki import facts as f
from tsuzuki.backends import Backend, WorkerRecord
from tsuzuki.errors import StepFailure, StoreError, TsuzukiError
from tsuzuki.testing import Crash, FaultyBackend, MemoryBackend, builders

CALLS: Counter[str] = Counter()
"""How often each call was made, by its name and argument."""
TRIED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def no_calls_yet() -> Iterator[None]:
    CALLS.clear()
    TRIED.clear()
    yield


async def some_time() -> None:
    """Lets others go first, or not."""
    for _ in range(random.randrange(4)):
        await asyncio.sleep(0)


@task
async def load(name: str) -> list[str]:
    await some_time()
    CALLS[f"load {name}"] += 1
    return [f"{name}{number}" for number in range(3)]


@task
async def clean(chunk: str) -> str:
    await some_time()
    CALLS[f"clean {chunk}"] += 1
    if chunk == "b1":
        raise ValueError("b1 is always broken")
    return chunk.upper()


@task
def sign(text: str) -> str:
    CALLS[f"sign {text}"] += 1
    return f"<{text}>"


@task
async def bind(name: str) -> str:
    pages = await clean.map([f"{name}{number}" for number in range(3)], key=lambda page: page[-1], concurrency=2)
    CALLS[f"bind {name}"] += 1
    return await sign("".join(pages))


@task(retry=Retry(attempts=2, backoff=0.001))
async def second_time(name: str) -> str:
    TRIED[name] += 1
    if TRIED[name] % 2:
        raise ConnectionError("not the first time")
    CALLS[f"second_time {name}"] += 1
    return name


async def pipeline(name: str) -> list[str]:
    chunks = await load(name)
    await some_time()
    cleaned = await clean.map(chunks, key=lambda chunk: chunk[-1], on_error="collect")
    return [*cleaned.succeeded, *(f"{failure.key}: {failure.error}" for failure in cleaned.failed)]


@flow
async def everything(names: list[str]) -> dict[str, Any]:
    first, *rest = await asyncio.gather(second_time("x"), *(pipeline(name) for name in names))
    bound = await bind.map(["c", "d"], concurrency=2)
    try:
        wrong = await clean("b1")
    except StepFailure as error:
        wrong = str(error)
    signed = [await sign(text) for text in ("same", "same", "other")]
    return {"first": first, "rest": rest, "bound": bound, "wrong": wrong, "signed": signed}


NAMES = ["a", "b"]
PARAMS = {"names": NAMES}


async def start(backend: Backend) -> str:
    return (await Runs(backend).submit(everything, PARAMS, private=True)).id


async def carry_out(backend: Backend, run_id: str) -> Any:
    async with Worker(backend, [everything], tags=()) as worker:
        row = await worker.carry_out(run_id)
    assert row.status is Status.COMPLETED, row.error
    return await Runs(backend).result(run_id)


async def undisturbed() -> Any:
    backend = MemoryBackend()
    return await carry_out(backend, await start(backend))


async def recorded(backend: Backend, run_id: str) -> set[tuple[str, str]]:
    """Names the outcomes of a run: one for each call."""
    entries = await builders.journal(backend, run_id)
    return {(e.fact.step, e.fact.key) for e in entries if isinstance(e.fact, f.Outcome)}


@pytest.mark.parametrize("after", [False, True], ids=["before it is written", "after it was written"])
async def test_a_crash_at_any_append_changes_nothing_and_repeats_nothing_recorded(after: bool) -> None:
    expected = await undisturbed()
    once = Counter(CALLS)
    number, crashed = 0, True
    while crashed:
        number += 1
        CALLS.clear()
        inner = MemoryBackend()
        run_id = await start(inner)
        faulty = FaultyBackend(inner, fail="append", at=number, crash=True, after=after)
        with contextlib.suppress(Crash, TsuzukiError):
            await carry_out(faulty, run_id)
        crashed = faulty.crashed
        before, known = CALLS.total(), len(await recorded(inner, run_id))
        assert await carry_out(inner, run_id) == expected
        await check_journal(inner, run_id)
        assert CALLS.total() - before == once.total() - known, f"crash at append {number}: exactly the rest is called"
    assert number > 10, "there were too few writes for this to mean anything"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_replay_after_any_prefix_of_a_journal_gives_the_same_outcome(cut: float, seed: int) -> None:
    asyncio.run(_replay_of_a_prefix(cut, seed))


async def _replay_of_a_prefix(cut: float, seed: int) -> None:
    random.seed(seed)
    whole = MemoryBackend()
    run_id = await start(whole)
    expected = await carry_out(whole, run_id)
    facts = [entry.fact for entry in await builders.journal(whole, run_id)]
    body = [fact for fact in facts if not isinstance(fact, f.Submitted | f.Claimed | f.RunCompleted | f.Unknown)]

    CALLS.clear()
    prefix = body[: round(cut * len(body))]
    backend = MemoryBackend()
    copy = await start(backend)
    claim = await builders.claim_of(backend, copy, "the worker before")
    if prefix:
        await backend.append(claim, prefix)
    await backend.beat(WorkerRecord(id="the worker before", state="STOPPED_GRACEFUL"))
    assert await carry_out(backend, copy) == expected
    assert await recorded(backend, copy) == await recorded(whole, run_id)
    done = {(fact.step, fact.key) for fact in prefix if isinstance(fact, f.Outcome)}
    later = [entry.fact for entry in (await builders.journal(backend, copy))[len(prefix) + 2 :]]
    assert not [fact for fact in later if isinstance(fact, f.Outcome) and (fact.step, fact.key) in done]


async def test_a_lost_acknowledgement_stops_the_run_and_the_next_start_finds_what_was_written() -> None:
    expected = await undisturbed()
    backend = MemoryBackend()
    run_id = await start(backend)
    with pytest.raises(StoreError):
        await carry_out(FaultyBackend(backend, fail="append", at=3, after=True), run_id)
    written = await recorded(backend, run_id)
    assert await carry_out(backend, run_id) == expected
    assert written <= await recorded(backend, run_id)
    await check_journal(backend, run_id)
