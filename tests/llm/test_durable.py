"""Questions inside a run are steps: what was answered is not asked again, and a batch is created once."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.llm.conftest import Fact
from tests.llm.double import Double, Plan
from tests.llm.test_queue import rows
from tsuzuki import Runs, flow, llm, task
from tsuzuki import facts as f
from tsuzuki.backends import Query
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.cli import render
from tsuzuki.errors import BadUsage
from tsuzuki.lifecycle import Status
from tsuzuki.llm.providers import offline
from tsuzuki.testing import Crash, FaultyBackend, run_flow

pytestmark = pytest.mark.usefixtures("asked_there")


@flow
async def one(prompt: str) -> str:
    found = await llm.ask(Fact, prompt, system="be brief")
    return found.text + await llm.ask(str, prompt)


@flow
async def many(count: int, strategy: str | None = None) -> list[str]:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy=strategy)
    await tick()
    return [answer.text or str(answer.error) for answer in answers]


@task
async def tick() -> None: ...


@flow
def blocking(count: int) -> list[Any]:
    answers: Any = llm.ask_all([llm.Request(f"q{n}", schema=Fact) for n in range(count)], concurrency=2)
    single: Any = llm.ask(Fact, "one")
    return [answer.data.text for answer in answers] + [single.text]


async def test_an_answer_is_an_instance_and_a_fact(double: Double) -> None:
    double.answer = lambda prompt: '{"text": "yes"}' if "JSON" in prompt or prompt == "why?" else prompt
    store = MemoryBackend()
    done = await run_flow(one, backend=store, prompt="why?")
    assert (done.status, done.result) == (Status.COMPLETED, 'yes{"text": "yes"}')
    assert double.prompts["why?"] == 2


async def test_many_are_asked_at_once_and_given_in_order(double: Double) -> None:
    double.delay = 0.02
    done = await run_flow(many, count=20)
    assert done.result == [f"answer to q{n}" for n in range(20)]
    assert double.most_at_once == 5
    assert done.row.done == 20
    assert any("20 questions" in line and "tokens" in line for line in done.log)


def test_a_sync_flow_asks_too(double: Double) -> None:
    double.answer = lambda prompt: '{"text": "yes"}'
    done = asyncio.run(run_flow(blocking, count=3))
    assert done.result == ["yes"] * 4


async def test_outside_a_run_it_is_a_plain_call(double: Double, tmp_path: Path) -> None:
    answers = await llm.ask_all([llm.Request("a"), llm.Request("b")], strategy="batch")
    assert [answer.text for answer in answers] == ["answer to a", "answer to b"]
    assert all(answer.ok and answer.usage.input == 10 and answer.cost is not None for answer in answers)
    assert await llm.ask(str, "c") == "answer to c"
    with pytest.raises(BadUsage, match="strategy"):
        llm.ask_all([], strategy="never")
    with pytest.raises(BadUsage, match="Request"):
        llm.ask_all(["a"])  # type: ignore[list-item] # as somebody without types writes it
    assert await llm.ask_all([]) == []


crashing = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
"""For a crash that is only played: what was being connected just then is nobody's to close, as after a real one."""


@crashing
@pytest.mark.parametrize("at", [2, 4, 6, 9, 12])
async def test_a_run_that_crashed_asks_again_at_most_what_was_under_way(double: Double, at: int) -> None:
    store = MemoryBackend()
    try:
        done = await run_flow(many, backend=FaultyBackend(store, fail="append", crash=True, at=at), count=12)
        assert at > 6, "it was over before the crash"
    except Crash:
        done = await run_flow(many, backend=store, count=12)
    assert done.result == [f"answer to q{n}" for n in range(12)]
    assert sum(double.prompts.values()) <= 12 + 5


@crashing
async def test_an_answer_that_only_the_queue_has_is_not_asked_for_again(double: Double) -> None:
    """The crash comes between the queue's commit and the journal's."""
    store = MemoryBackend()
    with pytest.raises(Crash):
        await run_flow(many, backend=FaultyBackend(store, fail="append", crash=True, at=3), count=1)
    asked = sum(double.prompts.values())
    done = await run_flow(many, backend=store, count=1)
    assert done.result == ["answer to q0"]
    assert sum(double.prompts.values()) == max(asked, 1) == 1


async def test_one_failure_is_that_answers_own_and_is_tried_again_on_resume(double: Double) -> None:
    double.refusals = [(400, {})]
    done = await run_flow(many, count=3)
    assert done.status is Status.COMPLETED
    assert sum("HTTP 400" in each for each in done.result) == 1
    assert done.row.failed == 1


async def test_a_refused_account_fails_the_run_and_a_resume_asks_only_the_rest(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota."}

    def answer(prompt: str) -> str:
        if double.prompts.total() == 3:
            double.denies = (429, quota)
        return prompt

    double.answer = answer
    store = MemoryBackend()
    monkeypatch.setenv("TSUZUKI_LLM_CONCURRENCY", "1")
    failed = await run_flow(many, backend=store, count=20)
    assert failed.row.status is Status.FAILED
    assert "You exceeded your current quota" in str(failed.error)
    assert "17 of 20 questions are not answered" in str(failed.error)
    assert len(double.seen) == 4
    double.denies = None
    await Runs(store).resume(failed.row.id)
    done = await run_flow(many, backend=store, count=20)
    assert done.row.status is Status.COMPLETED
    assert double.prompts == {f"q{n}": 1 for n in range(20)}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_batch_in_a_run(double: Double, provider: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if provider == "anthropic":
        monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", provider)
        monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", double.url)
    double.plan = Plan(polls=3, shuffled=True)
    done = await run_flow(many, count=6, strategy="batch")
    assert done.result == [f"answer to q{n}" for n in range(6)]
    [batch] = double.batches.values()
    steps = {fact.name: fact for fact in done.facts if isinstance(fact, f.StepDone)}
    assert {"llm.plan", "llm.intent", "llm.submit", "llm.batch", "llm.delivered"} <= steps.keys()
    assert bytes(steps["llm.submit"].result).decode() == f'"{batch.id}"'
    async with llm.JobQueue() as queue:
        assert rows(queue, "SELECT count(*) FROM llm_jobs") == [(0,)]


async def test_a_run_that_waits_for_a_batch_holds_no_worker_and_says_what_for(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "1.2")
    double.plan = Plan(polls=2)
    store = MemoryBackend()
    run = asyncio.create_task(run_flow(many, backend=store, count=4, strategy="batch"))
    seen = ""
    while not seen and not run.done():
        [*rows] = await Runs(store).list(Query())
        seen = next((render.waits_for(row) for row in rows), "")
        await asyncio.sleep(0.01)
    assert seen.startswith("batch batch_"), seen
    done = await run
    released = [fact for fact in done.facts if isinstance(fact, f.Released)]
    assert released
    assert "is running: " in released[0].reason
    assert released[0].not_before > time.time() - 60
    assert len(double.batches) == 1
    assert done.result == [f"answer to q{n}" for n in range(4)]


@crashing
@pytest.mark.parametrize("lost", [False, True], ids=["same machine", "another machine"])
@pytest.mark.parametrize("at", range(2, 10))
async def test_a_crash_anywhere_creates_one_batch(
    double: Double, at: int, lost: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The journal refuses its n-th write, as if the process had died there; another machine has an empty queue."""
    double.plan = Plan(polls=2)
    store = MemoryBackend()
    monkeypatch.setenv("TSUZUKI_LLM_STRATEGY", "batch")
    faulty = FaultyBackend(store, fail="append", crash=True, after=lost, at=at)
    try:
        done = await run_flow(many, backend=faulty, count=5)
        assert at > 6, "it was over before the crash"
    except Crash:
        if lost:
            monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path / "elsewhere"))
        # A setting that changed meanwhile changes nothing once there is a plan: that is a fact.
        monkeypatch.setenv("TSUZUKI_LLM_STRATEGY", "sync" if at > 2 else "batch")
        done = await run_flow(many, backend=store, count=5)
    assert done.result == [f"answer to q{n}" for n in range(5)]
    assert len(double.batches) == 1
    assert set(double.billed.values()) == {1}


async def test_an_unclear_answer_in_a_run_leads_to_no_second_batch(double: Double) -> None:
    double.gone = {"batch"}
    done = await run_flow(many, count=3, strategy="batch")
    assert done.result == [f"answer to q{n}" for n in range(3)]
    assert len(double.batches) == 1
    waited = next(fact.reason for fact in done.facts if isinstance(fact, f.Released))
    assert waited.startswith("whether a batch was created is not known"), "it held its worker"


async def test_local_and_offline_providers_fall_back_to_sync_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "offline")
    offline.register()(lambda question: question.prompt.upper())
    try:
        done = await run_flow(many, count=3, strategy="batch")
    finally:
        offline.unregister()
    assert done.result == ["Q0", "Q1", "Q2"]
    assert any("has no batches" in line for line in done.log)


async def test_a_service_without_batches_is_asked_directly_with_one_warning(double: Double) -> None:
    double.has_batches = False
    store = MemoryBackend()
    done = await run_flow(many, backend=store, count=3, strategy="batch")
    assert done.result == [f"answer to q{n}" for n in range(3)]
    assert sum("the questions are asked one by one" in line for line in done.log) == 1
    assert double.prompts == {f"q{n}": 1 for n in range(3)}


async def test_equal_questions_are_asked_each(double: Double) -> None:
    @flow
    async def twice() -> list[str]:
        answers = await llm.ask_all([llm.Request("same")] * 3)
        return [answer.text for answer in answers]

    assert (await run_flow(twice)).result == ["answer to same"] * 3
    assert double.prompts["same"] == 3


@crashing
async def test_branches_that_ask_at_once_keep_their_answers_apart(double: Double) -> None:
    @flow
    async def branches() -> list[list[str]]:
        async def ask(word: str) -> list[str]:
            return [a.text for a in await llm.ask_all([llm.Request(f"{word}{n}") for n in range(3)])]

        return list(await asyncio.gather(*(ask(word) for word in "abc")))

    store = MemoryBackend()
    with pytest.raises(Crash):
        await run_flow(branches, backend=FaultyBackend(store, fail="append", crash=True, at=5))
    done = await run_flow(branches, backend=store)
    assert done.result == [[f"answer to {word}{n}" for n in range(3)] for word in "abc"]
