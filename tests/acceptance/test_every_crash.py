"""A crash at any write, before it or after it, and a journal that ends anywhere: the run goes on and ends alike."""

import asyncio
import contextlib
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.acceptance.invariants import check_journal
from tsuzuki import Retry, Runs, Status, Worker, current, flow, task
from tsuzuki import facts as f
from tsuzuki.backends import Backend, WorkerRecord
from tsuzuki.errors import StepFailure, StoreError, TsuzukiError
from tsuzuki.testing import Crash, FaultyBackend, MemoryBackend, builders

CALLS: Counter[str] = Counter()
"""How often each call was made, by its name and argument."""
MADE: Counter[int] = Counter()
"""How many calls each attempt made; a thread of a crashed one may still be making some."""
TRIED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def no_calls_yet() -> None:
    forget()


def forget() -> None:
    for counter in (CALLS, MADE, TRIED):
        counter.clear()


def called(name: str) -> None:
    CALLS[name] += 1
    MADE[current().attempt] += 1


async def some_time() -> None:
    """Lets others go first, or not."""
    for _ in range(random.randrange(4)):
        await asyncio.sleep(0)


@task
async def load(name: str) -> list[str]:
    await some_time()
    called(f"load {name}")
    return [f"{name}{number}" for number in range(3)]


@task
async def clean(chunk: str) -> str:
    await some_time()
    called(f"clean {chunk}")
    if chunk == "b1":
        raise ValueError("b1 is always broken")
    return chunk.upper()


@task
def sign(text: str) -> str:
    called(f"sign {text}")
    return f"<{text}>"


@task
async def bind(name: str) -> str:
    pages = await clean.map([f"{name}{number}" for number in range(3)], key=lambda page: page[-1], concurrency=2)
    called(f"bind {name}")
    return await sign("".join(pages))  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow


@task(retry=Retry(attempts=3, backoff=0.001))
async def second_time(name: str) -> str:
    TRIED[name] += 1
    if TRIED[name] % 2:
        raise ConnectionError("not the first time")
    called(f"second_time {name}")
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
    signed = [await sign(text) for text in ("same", "same", "other")]  # type: ignore[misc] # a sync task, awaited in an async flow
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
    once = CALLS.total()
    number, crashed = 0, True
    while crashed:
        number += 1
        forget()
        inner = MemoryBackend()
        run_id = await start(inner)
        faulty = FaultyBackend(inner, fail="append", at=number, crash=True, after=after)
        with contextlib.suppress(Crash, TsuzukiError):
            await carry_out(faulty, run_id)
        crashed = faulty.crashed
        known = len(await recorded(inner, run_id))
        assert await carry_out(inner, run_id) == expected
        await check_journal(inner, run_id)
        assert MADE[2] == once - known, f"crash at append {number}: exactly the rest is called"
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


@task
async def stamp(of: tuple[str, int]) -> str:
    await some_time()
    return f"{of[0]}{of[1]}"


async def straight_to_the_map(name: str) -> str:
    await asyncio.sleep(random.uniform(0, 0.01))
    return ",".join(await stamp.map([(name, number) for number in range(3)], key=lambda of: of[1]))


@flow
async def unordered() -> list[str]:
    return await asyncio.gather(*(straight_to_the_map(name) for name in "abcdef"))


@pytest.mark.parametrize("number", range(1, 7))
async def test_pipelines_that_begin_with_a_map_in_any_order_get_their_own_items_back(number: int) -> None:
    backend = MemoryBackend()
    run = await Runs(backend).submit(unordered, private=True)
    faulty = FaultyBackend(backend, fail="append", at=number, crash=True, after=True)
    with contextlib.suppress(Crash, TsuzukiError):
        async with Worker(faulty, [unordered], tags=()) as worker:
            await worker.carry_out(run.id)
    async with Worker(backend, [unordered], tags=()) as worker:
        await worker.carry_out(run.id)
    assert await Runs(backend).result(run.id) == [f"{name}0,{name}1,{name}2" for name in "abcdef"]
    await check_journal(backend, run.id)


@task
def leaf(number: int) -> int:
    return number + 1


@task
def branch(number: int) -> int:
    below: list[int] = leaf.map(range(3))
    return leaf(number) + sum(below)


@flow
def tree(items: int) -> int:
    branches: list[int] = branch.map(range(items), concurrency=100)
    return sum(branches)


async def test_sync_tasks_that_wait_for_sync_tasks_never_run_out_of_threads() -> None:
    backend = MemoryBackend()
    run = await Runs(backend).submit(tree, {"items": 200}, private=True)
    async with Worker(backend, [tree], tags=()) as worker:
        await asyncio.wait_for(worker.carry_out(run.id), 60)
    assert await Runs(backend).result(run.id) == sum(number + 1 + 6 for number in range(200))
