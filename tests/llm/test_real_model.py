"""A real model behind OpenAI's protocol: chat, stream, json_schema, cancel in the middle, eight at once."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from tsuzuki import flow, llm
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import CutOff, Question
from tsuzuki.llm.structured import asked
from tsuzuki.testing import run_flow
from tsuzuki.testing.stopwatch import Stopwatch


class Colour(BaseModel):
    """What the model is asked for."""

    colour: Literal["red", "green", "blue"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The model's address; it is loaded once."""
    command = [sys.executable, "-m", "tests.llm.model_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield f"{server.stdout.readline().strip()}/v1"
        server.kill()


@pytest.fixture
def provider(address: str) -> Provider:
    return llm.opened(llm.Address("llama.cpp", address, "smollm2"))


def short(prompt: str, tokens: int = 8) -> Question:
    return Question(prompt, temperature=0.0, max_tokens=tokens)


async def test_it_answers_streams_and_fits_a_schema(provider: Provider, address: str) -> None:
    assert provider.capability.local
    reply = await provider.complete(short("The capital of France is"))
    assert reply.text
    assert reply.usage.output > 0
    pieces = aiter(provider.stream(short("Count: one, two,")))
    assert await anext(pieces) + await anext(pieces)
    with pytest.raises(CutOff):  # eight tokens are too few for it
        [piece async for piece in pieces]
    question = llm.Request("Name one colour.", schema=Colour, max_tokens=40).question()
    assert (await asked(provider, question)).value["colour"] in ("red", "green", "blue")
    assert await provider.models()
    with openai.OpenAI(base_url=address, api_key="nobody's") as client:
        said: Any = [{"role": "user", "content": "The capital of France is"}]
        theirs = client.chat.completions.create(model="smollm2", messages=said, temperature=0.0, max_tokens=8)
    assert theirs.choices[0].message.content == reply.text
    await provider.close()


async def test_an_answer_that_is_cut_off_says_so(provider: Provider) -> None:
    assert (await provider.complete(short("Tell me a long story about otters.", 4))).finish == "length"
    await provider.close()


async def test_it_can_be_cancelled_in_the_middle(provider: Provider) -> None:
    got = asyncio.Event()

    async def read() -> None:
        async for _ in provider.stream(short("Write a long story about otters.", 200)):
            got.set()

    reading = asyncio.create_task(read())
    await got.wait()
    with Stopwatch() as since:
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert since.fair < 1
    await provider.close()


async def test_eight_at_once_in_a_run(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "llama.cpp")
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", address)

    @flow
    async def eight() -> list[str]:
        requests = [llm.Request(f"Say {n}.", temperature=0.0, schema=Colour, max_tokens=40) for n in range(8)]
        return [answer.data.colour for answer in await llm.ask_all(requests, concurrency=8)]

    done = await run_flow(eight)
    assert len(done.result) == 8
    assert done.row.failed == 0
