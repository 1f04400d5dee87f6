"""The official clients read the same servers as ours, and see the same."""

from typing import Any

import anthropic
import openai

from tests.llm.double import KEY, Double


def test_the_official_clients_read_the_double_as_we_do(double: Double) -> None:
    with openai.OpenAI(base_url=f"{double.url}/v1", api_key=KEY) as client:
        said: Any = [{"role": "user", "content": "why?"}]
        assert client.chat.completions.create(model="m-1", messages=said).choices[0].message.content == "answer to why?"
        assert [each.id for each in client.models.list()] == ["m-1", "m-2"]
    with anthropic.Anthropic(base_url=double.url, api_key=KEY) as other:
        found = other.messages.create(model="m-1", max_tokens=5, messages=said)
        assert found.content[0].text == "answer to why?"  # type: ignore[union-attr]
