"""OpenAI's protocol: OpenAI itself, and every server that speaks it (vLLM, LM Studio, llama.cpp, …)."""

from collections.abc import AsyncIterator
from typing import Any, Final

from tsuzuki.llm.capability import BatchLimits, Capability, Rung, is_local
from tsuzuki.llm.checking import referred
from tsuzuki.llm.providers.interface import Batches, Piece, Spoken, broken, told_beforehand
from tsuzuki.llm.providers.openai_batches import OpenAIBatches
from tsuzuki.llm.questions import Question, Reply, Usage
from tsuzuki.llm.schemas import OPENAI, SERVER, Subset, express
from tsuzuki.llm.wire import DONE, events

ADDRESS: Final = "https://api.openai.com/v1"
MODEL: Final = "gpt-4o-mini"
BATCH: Final = BatchLimits(50_000, 200_000_000)


class OpenAI(Spoken):
    """OpenAI's chat completions."""

    path = "/chat/completions"

    @property
    def batches(self) -> Batches | None:
        """Files and batches, where the provider has them."""
        limits = self.capability.batch
        return None if limits is None else OpenAIBatches(self.wire, self, limits)

    def body(self, question: Question, rung: Rung | None, *, stream: bool = False) -> dict[str, Any]:
        """Says a question; OpenAI itself answers with objects alone, so that other schemas are said in words."""
        held = None
        if rung == "json_schema" and question.schema is not None:
            held = held_to(question.schema, question.name, OPENAI if self.name == "openai" else SERVER)
            rung = "prompt" if held is None else rung
        body: dict[str, Any] = {"model": question.model or self.model, "messages": messages(question, rung)}
        if held is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": held}
        elif rung == "json_object":
            body["response_format"] = {"type": "json_object"}
        if question.temperature is not None:
            body["temperature"] = question.temperature
        if question.max_tokens is not None:
            body["max_tokens" if self.capability.local else "max_completion_tokens"] = question.max_tokens
        if stream:
            body["stream"] = True
        return body

    def read(self, found: Any) -> Reply:
        """Reads an answer."""
        choice = found["choices"][0]
        usage = found.get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        text, refusal = choice["message"].get("content") or "", choice["message"].get("refusal") or ""
        return Reply(
            text=text or refusal,
            usage=Usage(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0, cached),
            model=found.get("model") or self.model,
            finish="refusal" if refusal and not text else choice.get("finish_reason") or "stop",
        )

    async def pieces(self, lines: AsyncIterator[str]) -> AsyncIterator[Piece]:
        """Reads a streamed answer."""
        async for event in events(lines):
            if event is DONE:
                yield Piece("", "stop")  # not every server says why
            elif "error" in event:
                raise broken(self.wire, event["error"])
            for choice in event.get("choices") or ():
                yield Piece((choice.get("delta") or {}).get("content") or "", choice.get("finish_reason") or "")

    async def models(self) -> list[str]:
        """Lists the models."""
        found = await self.wire.json("GET", "/models")
        return sorted(each["id"] for each in found.get("data") or ())


def messages(question: Question, rung: Rung | None) -> list[dict[str, str]]:
    """Gives the messages of a chat: system, prompt, and what was said since."""
    system = told_beforehand(question, rung)
    said = [{"role": "system", "content": system}] if system else []
    said.append({"role": "user", "content": question.prompt})
    return said + [{"role": turn.role, "content": turn.text} for turn in question.turns]


def held_to(schema: dict[str, Any], name: str, subset: Subset) -> dict[str, Any] | None:
    """Return a schema as this protocol takes it: strict if the subset can express it, else as it is.

    None if the answer is not an object, and the provider answers with nothing else.
    """
    strict = express(schema, subset)
    as_it_is = {**referred(schema["$ref"], schema), **schema} if "$ref" in schema else schema
    if strict is None and subset.root_object and as_it_is.get("type") != "object":
        return None
    as_it_is = {key: value for key, value in as_it_is.items() if key != "$ref"}
    safe = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)[:64] or "answer"
    return {"name": safe, "schema": as_it_is if strict is None else strict, "strict": strict is not None}


def capability(provider: str, base_url: str) -> Capability:
    """Says what a server that speaks this protocol can do: batches are OpenAI's own."""
    return Capability(local=is_local(provider, base_url), batch=BATCH if provider == "openai" else None)
