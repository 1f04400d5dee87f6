"""Ollama's own protocol."""

from collections.abc import AsyncIterator
from typing import Any, Final

from tsuzuki.llm.capability import Capability, Rung, is_local
from tsuzuki.llm.providers.interface import Piece, Spoken, broken
from tsuzuki.llm.providers.openai import messages
from tsuzuki.llm.questions import Question, Reply, Usage
from tsuzuki.llm.wire import objects

ADDRESS: Final = "http://127.0.0.1:11434"
MODEL: Final = "llama3.2"


class Ollama(Spoken):
    """Ollama's chat."""

    path = "/api/chat"

    def body(self, question: Question, rung: Rung | None, *, stream: bool = False) -> dict[str, Any]:
        """Says a question."""
        said = messages(question, rung)
        body: dict[str, Any] = {"model": question.model or self.model, "messages": said, "stream": stream}
        if rung == "json_schema":
            body["format"] = question.schema
        elif rung == "json_object":
            body["format"] = "json"
        how = {"temperature": question.temperature, "num_predict": question.max_tokens}
        if options := {name: value for name, value in how.items() if value is not None}:
            body["options"] = options
        return body

    def read(self, found: Any) -> Reply:
        """Reads an answer."""
        return Reply(
            text=found["message"]["content"],
            usage=Usage(found.get("prompt_eval_count") or 0, found.get("eval_count") or 0),
            model=found.get("model") or self.model,
            finish=found.get("done_reason") or "stop",
        )

    async def pieces(self, lines: AsyncIterator[str]) -> AsyncIterator[Piece]:
        """Reads a streamed answer: an object a line."""
        async for event in objects(lines):
            if "error" in event:
                raise broken(self.wire, event["error"])
            finish = (event.get("done_reason") or "stop") if event.get("done") else ""
            yield Piece((event.get("message") or {}).get("content") or "", finish)

    async def models(self) -> list[str]:
        """Lists the models that were pulled."""
        found = await self.wire.json("GET", "/api/tags")
        return sorted(each["name"] for each in found.get("models") or ())


def capability(base_url: str) -> Capability:
    """Says what an Ollama server can do."""
    return Capability(local=is_local("ollama", base_url))
