"""Others' idea of the protocols: `llmock` and `aimock` answer, stream, take files and batches, and inject faults."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from llmock.scenarios import Fail
from llmock.testing import LLMockServer

from tests.llm.test_batches import answers
from tests.llm.test_queue import process, questions
from tsuzuki import llm
from tsuzuki.llm.questions import Question
from tsuzuki.llm.structured import asked

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


@contextmanager
def aimock(*refusals: int) -> Iterator[str]:
    """Runs `@copilotkit/aimock` with node, of the machine or of the wheel that `make check` installs."""
    places = os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent)))
    node = shutil.which("node", path=places)
    assert node is not None, "node is missing: `make test` installs it"
    command = [node, str(Path(__file__).with_name("aimock.mjs")), *map(str, refusals)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


AIMOCK = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta", "ollama": ""}


async def test_aimock_is_understood_by_every_adapter() -> None:
    with aimock() as url:
        for name, path in AIMOCK.items():
            provider = llm.opened(llm.Address(name, url + path, MODELS.get(name, "llama3.2")))
            assert (await provider.complete(Question("why?"))).text == "because", name
            assert "".join([piece async for piece in provider.stream(Question("why?"))]) == "because", name
            held = Question("a colour", name="Colour", schema=COLOUR)
            assert (await asked(provider, held)).value == {"colour": "red"}, name
            await provider.close()


COLOUR = {"title": "Colour", "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


async def test_faults_of_aimock_are_survived_and_its_batches_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    mine = process()
    with aimock(429, 503) as url:
        there = llm.Address("openai", f"{url}/v1", "gpt-4o-mini")
        provider = llm.opened(there)
        assert (await provider.complete(Question("why?"))).text == "because"
        await provider.close()
        async with llm.JobQueue() as queue:
            await queue.enqueue(mine, questions(3))
            assert await llm.QueueWorker(queue, there).process(mine, "batch") == {"COMPLETED": 3}
            assert await answers(queue, mine) == ["Mock batch completion"] * 3
