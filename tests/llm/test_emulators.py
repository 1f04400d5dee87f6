"""Somebody else's idea of the protocols: `llmock` answers, streams, takes batches and injects faults."""

import time
from collections.abc import Iterator

import pytest
from llmock.scenarios import Fail
from llmock.testing import LLMockServer

from tests.llm.test_batches import answers
from tests.llm.test_queue import process, questions
from tsuzuki import llm
from tsuzuki.llm.questions import Question

# It never closes the files that are uploaded to it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PROVIDERS = pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-3-5-haiku-20241022", "gemini": "gemini-1.5-flash"}


@pytest.fixture
def server() -> Iterator[LLMockServer]:
    with LLMockServer() as server:
        yield server


def address(server: LLMockServer, name: str) -> llm.Address:
    url = server.base_url(name)
    return llm.Address(name, f"{url}/v1beta" if name == "gemini" else url, MODELS[name])


@PROVIDERS
async def test_it_answers_and_streams(server: LLMockServer, name: str) -> None:
    provider = llm.opened(address(server, name))
    reply = await provider.complete(Question("why?"))
    assert reply.text
    assert reply.finish == "stop"
    assert reply.usage.output > 0
    assert "".join([piece async for piece in provider.stream(Question("why?"))])
    await provider.close()


async def test_its_faults_are_survived(server: LLMockServer) -> None:
    server.state.scenarios.add(Fail(429))
    server.state.scenarios.add(Fail(503))
    provider = llm.opened(address(server, "openai"))
    assert (await provider.complete(Question("why?"))).text
    await provider.close()


@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_its_batches_come_back(server: LLMockServer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    mine = process()
    async with llm.JobQueue() as queue:
        await queue.enqueue(mine, questions(3))
        started = time.monotonic()
        assert await llm.QueueWorker(queue, address(server, name)).process(mine, "batch") == {"COMPLETED": 3}
        assert time.monotonic() - started < 30
        assert all(await answers(queue, mine))
