"""What a run used of models, and what that cost: summed from its journal, failures included, and shown everywhere."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import genai_prices
import pytest
from click.testing import CliRunner

from tests.llm.conftest import Fact
from tests.llm.double import Double, Plan
from tests.llm.test_batches import PATHS
from tsuzuki import Runs, flow, llm, spending, task
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.cli import main
from tsuzuki.errors import StepFailure
from tsuzuki.facts import Spent
from tsuzuki.spending import dollars, usage
from tsuzuki.testing import Crash, FaultyBackend, run_flow

MODEL = "gpt-4o-mini"


@pytest.fixture(autouse=True)
def priced(asked_there: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_MODEL", MODEL)


@flow
async def mixed(strategy: str = "sync") -> list[str | None]:
    """Asks two models: three questions fit, one never does."""
    first = await llm.ask(str, "plain", model="gpt-4o")
    answers = await llm.ask_all([llm.Request(f"q{n}", schema=Fact) for n in range(4)], strategy=strategy)
    return [first, *(answer.error for answer in answers)]


def half(prompt: str) -> str:
    """Answers rightly, but never what is asked with q0."""
    return "no idea" if "q0" in prompt or "does not fit" in prompt else json.dumps({"text": prompt})


def sums(used: dict[str, Any] | None) -> dict[str, Any]:
    assert used is not None
    return {model["model"]: model for model in used["models"]}


@pytest.mark.parametrize("strategy", ["sync", "batch"])
async def test_every_answer_counts_also_those_that_did_not_fit(double: Double, strategy: str) -> None:
    double.answer = half
    done = await run_flow(mixed, strategy=strategy)
    assert [error is None for error in done.result[1:]] == [False, True, True, True]
    assert "3 tries" in done.result[1]
    found = sums(usage(done.row.spent))
    assert found[MODEL]["requests"] == 3 + 3  # one was asked three times
    assert (found[MODEL]["input_tokens"], found[MODEL]["output_tokens"]) == (60, 30)
    assert found["gpt-4o"]["requests"] == 1
    assert found[MODEL]["cost"] > 0
    assert found["gpt-4o"]["cost"] > found[MODEL]["cost"] / 6
    if strategy == "sync":
        assert sums(usage((await run_flow(mixed, strategy="batch")).row.spent))[MODEL]["cost"] * 2 == pytest.approx(
            found[MODEL]["cost"]
        )


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
async def test_a_run_that_goes_on_after_a_crash_counts_nothing_twice(double: Double) -> None:
    double.answer = half
    store = MemoryBackend()
    with pytest.raises(Crash):
        await run_flow(mixed, backend=FaultyBackend(store, fail="append", crash=True, at=5))
    done = await run_flow(mixed, backend=store)
    assert sums(usage(done.row.spent))["gpt-4o"]["requests"] == 1
    assert 6 <= sums(usage(done.row.spent))[MODEL]["requests"] <= 6
    [found] = await Runs(store).list()
    assert found.spent == done.row.spent


@task
async def stubborn(number: int) -> float:
    """Asks in vain, and then in other words; gives what that has cost."""
    try:
        await llm.ask(Fact, f"q0 {number}")
    except StepFailure as failure:
        answer = await llm.answer(llm.Request(f"plain {number}"))
        return (failure.cost or 0.0) + (answer.cost or 0.0)
    raise AssertionError


@flow
async def twice() -> float:
    """Gives what two stubborn calls have cost."""
    return sum(await stubborn.map([1, 2], concurrency=1))


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("at", range(2, 7))
async def test_a_failed_question_tells_its_cost_also_when_it_is_replayed(double: Double, at: int) -> None:
    double.answer = half
    store = MemoryBackend()
    with contextlib.suppress(Crash):
        await run_flow(twice, backend=FaultyBackend(store, fail="append", crash=True, at=at))
    done = await run_flow(twice, backend=store)
    assert done.result == pytest.approx((usage(done.row.spent) or {})["cost"])
    assert done.result > 0


async def test_a_model_without_a_known_price_costs_nothing_that_is_known(double: Double) -> None:
    @flow
    async def strange() -> str:
        return await llm.ask(str, "q", model="nobody-knows-it")

    found = usage((await run_flow(strange)).row.spent)
    assert found is not None
    assert (found["requests"], found["unpriced"], found["cost"]) == (1, 1, None)


def test_dollars_are_told_as_exactly_as_it_matters() -> None:
    assert [dollars(amount) for amount in (0.0, 0.000123, 1.5, 1234.5)] == ["$0.00", "$0.000123", "$1.50", "$1,234.50"]
    assert dollars(sum([2.25e-6] * 6)) == dollars(6 * 2.25e-6)
    assert [dollars(amount) for amount in (0.5, 0.0000001)] == ["$0.50", "less than $0.000001"]


def test_what_came_from_the_cache_makes_no_price_known() -> None:
    unknown, kept = Spent("openai", "m", requests=3, unpriced=3), Spent("openai", "m", requests=2, cached=2)
    assert [(usage(each) or {})["cost"] for each in ([unknown, kept], [kept], [unknown])] == [None, 0.0, None]


FLOWS = """
from tsuzuki import flow, llm

@flow
async def asks(count: int) -> int:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(count)])
    await llm.ask(str, "one more", model="gpt-4o")
    await llm.ask(str, "and one", model="nobody-knows-it")
    return len(answers)
"""


def test_the_command_line_tells_it_after_the_run_and_later(double: Double, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS)
    there = ["--data-dir", str(tmp_path)]

    def told(*words: str) -> Any:
        found = CliRunner().invoke(main, [*words, *there])
        assert found.exit_code == 0, found.output
        return found

    ran = told("run", f"{tmp_path}/flows.py:asks", "-p", "count=3")
    assert f"openai/{MODEL}: 3 requests, 30 tokens in, 15 out, $0." in ran.stderr
    assert "usage 5 requests, 50 tokens in, 25 out, $0." in ran.stderr
    shown = told("get", "1")
    assert "usage       5 requests" in shown.stdout
    assert "openai/gpt-4o: 1 request, " in shown.stdout
    found = json.loads(told("get", "1", "--json").stdout)["usage"]
    assert (found["requests"], found["input_tokens"], len(found["models"])) == (5, 50, 3)
    cost = told("llm", "cost")
    assert "gpt-4o" in cost.stdout
    assert "* without 1 request of unknown price" in cost.stdout
    assert json.loads(told("llm", "cost", "--json").stdout)["usage"] == found


async def test_the_cache_is_asked_where_a_call_says_so(double: Double) -> None:
    @flow
    async def cached(again: int) -> list[str]:
        one = await llm.ask(str, "q", cache=True)
        answers = await llm.ask_all([llm.Request("q"), llm.Request("other")], cache=True)
        return [one, *(answer.text for answer in answers), await llm.ask(str, "q")]

    first, second = await run_flow(cached, again=1), await run_flow(cached, again=2)
    assert first.result == second.result
    assert double.prompts == {"q": 3, "other": 1}
    found = usage(second.row.spent)
    assert found is not None
    assert (found["requests"], found["cached"], found["input_tokens"]) == (4, 3, 10)


async def test_usage_outside_a_run_is_with_the_answers(double: Double) -> None:
    double.answer = half
    answers = await llm.ask_all([llm.Request(f"q{n}", schema=Fact) for n in range(2)])
    assert [answer.usage.input for answer in answers] == [30, 10]
    double.plan = Plan(polls=0)
    batched = await llm.ask_all([llm.Request(f"q{n}", schema=Fact) for n in range(2)], strategy="batch")
    assert [answer.usage.input for answer in batched] == [30, 10]
    assert batched[1].cost == pytest.approx((answers[1].cost or 0) / 2)
    await asyncio.sleep(0)


async def test_a_question_that_took_too_long_is_told_as_a_possible_charge(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "0.3")
    double.hangs = lambda prompt: prompt == "slow"

    @flow
    async def slow() -> list[str | None]:
        return [answer.error for answer in await llm.ask_all([llm.Request("slow"), llm.Request("quick")])]

    done = await run_flow(slow)
    assert "1 request may have been charged" in done.result[0]
    found = usage(done.row.spent)
    assert found is not None
    assert (found["requests"], found["uncertain"], found["input_tokens"]) == (2, 1, 10)
    assert "1 without an answer that may have been charged" in spending.told(found)
    assert double.prompts["slow"] == 1


USED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "openai": (
        {"prompt_tokens": 6000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 3000}},
        genai_prices.Usage(input_tokens=6000, output_tokens=100, cache_read_tokens=3000),
        "gpt-4o-mini",
    ),
    "anthropic": (
        {
            "input_tokens": 10,
            "output_tokens": 100,
            "cache_read_input_tokens": 5000,
            "cache_creation_input_tokens": 1000,
        },
        genai_prices.Usage(input_tokens=6010, output_tokens=100, cache_read_tokens=5000, cache_write_tokens=1000),
        "claude-haiku-4-5",
    ),
}


@pytest.mark.parametrize("strategy", ["sync", "batch"])
@pytest.mark.parametrize("name", USED)
async def test_tokens_from_and_into_the_cache_of_a_provider_have_their_own_price(
    double: Double, name: str, strategy: str
) -> None:
    double.usage, used, model = USED[name]
    where: Any = {"provider": name, "base_url": double.url + PATHS[name], "model": model}
    [answer] = await llm.ask_all([llm.Request("q")], strategy=strategy, **where)
    assert answer.usage.input == used.input_tokens
    price = float(genai_prices.calc_price(used, model, provider_id=name).total_price)
    assert answer.cost == pytest.approx(price / (2 if strategy == "batch" else 1))
