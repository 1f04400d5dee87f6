"""Google's Gemini."""

from collections.abc import AsyncIterator
from typing import Any, Final

from tsuzuki.llm.capability import Capability, Rung
from tsuzuki.llm.providers.interface import Piece, Spoken, broken, told_beforehand
from tsuzuki.llm.questions import Question, Reply, Usage
from tsuzuki.llm.wire import events

ADDRESS: Final = "https://generativelanguage.googleapis.com/v1beta"
MODEL: Final = "gemini-2.5-flash"
CAPABILITY: Final = Capability()

_FINISH: Final = {"STOP": "stop", "MAX_TOKENS": "length"}


class Gemini(Spoken):
    """Gemini's generateContent."""

    path = "/models/{}:generateContent"
    stream_path = "/models/{}:streamGenerateContent?alt=sse"

    def place(self, question: Question, *, stream: bool = False) -> str:
        """Says where the question goes: the model is part of the address."""
        return super().place(question, stream=stream).format(question.model or self.model)

    def body(self, question: Question, rung: Rung | None, *, stream: bool = False) -> dict[str, Any]:
        """Says a question."""
        del stream
        system = told_beforehand(question, rung)
        said = [_part("user", question.prompt)]
        said += [_part("model" if turn.role == "assistant" else "user", turn.text) for turn in question.turns]
        how: dict[str, Any] = {}
        if rung in ("json_schema", "json_object"):
            how["responseMimeType"] = "application/json"
        if rung == "json_schema" and question.schema is not None:
            how["responseJsonSchema"] = question.schema
        if question.temperature is not None:
            how["temperature"] = question.temperature
        if question.max_tokens is not None:
            how["maxOutputTokens"] = question.max_tokens
        body: dict[str, Any] = {"contents": said}
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        return body | {"generationConfig": how} if how else body

    def read(self, found: Any) -> Reply:
        """Reads an answer."""
        candidate = _blocked(found) or found["candidates"][0]
        usage = found.get("usageMetadata") or {}
        reason = candidate.get("finishReason") or "STOP"
        spent = (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0)
        return Reply(
            text=_text(candidate),
            usage=Usage(usage.get("promptTokenCount") or 0, spent, usage.get("cachedContentTokenCount") or 0),
            model=found.get("modelVersion") or self.model,
            finish=_FINISH.get(reason, reason.lower()),
        )

    async def pieces(self, lines: AsyncIterator[str]) -> AsyncIterator[Piece]:
        """Reads a streamed answer."""
        async for event in events(lines):
            if "error" in event:
                raise broken(self.wire, event["error"])
            blocked = _blocked(event)
            for candidate in [blocked] if blocked else event.get("candidates") or ():
                reason = candidate.get("finishReason") or ""
                yield Piece(_text(candidate), _FINISH.get(reason, reason.lower()))

    async def models(self) -> list[str]:
        """Lists the models."""
        found = await self.wire.json("GET", "/models", params={"pageSize": "1000"})
        return sorted(each["name"].removeprefix("models/") for each in found.get("models") or ())


def _part(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def _blocked(found: Any) -> dict[str, Any] | None:
    """Gives what stands for an answer where the question itself was blocked; None where it was not."""
    return {"finishReason": "SAFETY"} if (found.get("promptFeedback") or {}).get("blockReason") else None


def _text(candidate: dict[str, Any]) -> str:
    parts = (candidate.get("content") or {}).get("parts") or ()
    return "".join(part.get("text") or "" for part in parts if not part.get("thought"))
