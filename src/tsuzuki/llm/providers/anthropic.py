"""Anthropic's messages."""

from collections.abc import AsyncIterator
from typing import Any, Final

from tsuzuki.llm.capability import BatchLimits, Capability, Rung
from tsuzuki.llm.providers.anthropic_batches import AnthropicBatches
from tsuzuki.llm.providers.interface import Batches, Piece, Spoken, broken, told_beforehand
from tsuzuki.llm.questions import Question, Reply, Usage
from tsuzuki.llm.schemas import ANTHROPIC, express
from tsuzuki.llm.wire import events

ADDRESS: Final = "https://api.anthropic.com"
MODEL: Final = "claude-haiku-4-5"
VERSION: Final = "2023-06-01"
LONGEST: Final = 4096
"""How many tokens an answer may have where nobody says: this protocol wants a number."""
CAPABILITY: Final = Capability(rungs=("json_schema", "prompt"), batch=BatchLimits(100_000, 256_000_000))

_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class Anthropic(Spoken):
    """Anthropic's messages."""

    path = "/v1/messages"

    @property
    def batches(self) -> Batches | None:
        """Message batches."""
        limits = self.capability.batch
        return None if limits is None else AnthropicBatches(self.wire, self, limits)

    def body(self, question: Question, rung: Rung | None, *, stream: bool = False) -> dict[str, Any]:
        """Says a question; a schema that has no equal in Anthropic's subset is said in words."""
        held = None if question.schema is None or rung != "json_schema" else express(question.schema, ANTHROPIC)
        system = told_beforehand(question, "prompt" if held is None else rung)
        said = [{"role": "user", "content": question.prompt}]
        said += [{"role": turn.role, "content": turn.text} for turn in question.turns]
        body: dict[str, Any] = {
            "model": question.model or self.model,
            "max_tokens": question.max_tokens or LONGEST,
            "messages": said,
        }
        if system:
            body["system"] = system
        if held is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": held}}
        if question.temperature is not None:
            body["temperature"] = question.temperature
        if stream:
            body["stream"] = True
        return body

    def read(self, found: Any) -> Reply:
        """Reads an answer."""
        text = "".join(part.get("text") or "" for part in found["content"] if part.get("type") == "text")
        usage = found.get("usage") or {}
        fresh, read, written = (
            usage.get(key) or 0 for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        reason = found.get("stop_reason") or "stop"
        return Reply(
            text=text,
            usage=Usage(fresh + read + written, usage.get("output_tokens") or 0, read, written),
            model=found.get("model") or self.model,
            finish=_FINISH.get(reason, reason),
        )

    async def pieces(self, lines: AsyncIterator[str]) -> AsyncIterator[Piece]:
        """Reads a streamed answer."""
        async for event in events(lines):
            if event.get("type") == "error":
                raise broken(self.wire, event.get("error"))
            delta = event.get("delta") or {}
            reason = delta.get("stop_reason") or ("stop" if event.get("type") == "message_stop" else "")
            yield Piece(delta.get("text") or "", _FINISH.get(reason, reason))

    async def models(self) -> list[str]:
        """Lists the models."""
        found = await self.wire.json("GET", "/v1/models", params={"limit": "1000"})
        return sorted(each["id"] for each in found.get("data") or ())
