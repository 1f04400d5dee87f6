"""`FakeLLM` answers as a test says, whichever provider is asked, and everything around it is as in production."""

import pytest
from pydantic import BaseModel

from tsuzuki import flow, llm
from tsuzuki.errors import BadUsage, ProviderRefused
from tsuzuki.spending import usage
from tsuzuki.testing import FakeLLM, run_flow


class Verdict(BaseModel):
    """What is asked for."""

    fits: bool
    why: str


@flow
async def review(pages: list[str], strategy: str | None = None) -> list[str]:
    first = await llm.ask(str, f"About otters? {pages[0]}", provider="anthropic")
    requests = [llm.Request(page, schema=Verdict) for page in pages]
    answers = await llm.ask_all(requests, strategy=strategy, provider="openai")
    return [first, *(answer.data.why if answer.ok else str(answer.error) for answer in answers)]


@pytest.mark.parametrize("strategy", ["sync", "batch"])
async def test_it_answers_by_schema_whoever_is_asked(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.01")
    answers = {Verdict: Verdict(fits=True, why="otters"), str: "yes"}
    with FakeLLM(answers, usage=llm.Usage(1000, 100), polls=2) as model:
        done = await run_flow(review, pages=["a", "b"], strategy=strategy)
    assert done.result == ["yes", "otters", "otters"]
    assert model.prompts == ["About otters? a", "a", "b"]
    assert [len(batch) for batch in model.batches] == ([2] if strategy == "batch" else [])
    found = usage(done.row.spent)
    assert found is not None
    assert (found["requests"], found["input_tokens"], found["unpriced"]) == (3, 3000, 0)
    with pytest.raises(BadUsage, match="needs a key"):
        llm.opened(llm.Address("openai"))


async def test_it_says_one_thing_after_another_and_may_refuse() -> None:
    with FakeLLM(
        ["yes", "no JSON", Verdict(fits=True, why="in the end"), ProviderRefused("not that")], batches=False
    ) as model:
        done = await run_flow(review, pages=["a", "b"], strategy="batch")
        assert done.result == ["yes", "in the end", "ProviderRefused: not that"]
        assert "no JSON" in model.questions[2].turns[0].text
        with pytest.raises(BadUsage, match="no answer left"):
            await llm.ask(str, "one more")
    with FakeLLM(lambda question: question.prompt.upper(), delay=0.001):
        assert await llm.ask(str, "loud") == "LOUD"
        provider = llm.opened()
        assert "".join([piece async for piece in provider.stream(llm.Question("a longer text than a piece"))]).isupper()
        assert (await provider.models(), await provider.health()) == (["rules"], "a fake for tests")
    with FakeLLM({str: "x"}), pytest.raises(BadUsage, match="no answer for Verdict"):
        await llm.ask(Verdict, "?")
