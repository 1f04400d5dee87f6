"""The part of the double that answers questions: what is asked, who waits, what goes wrong, and how it is counted."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from tests.llm.double_schemas import refused

KEY = "sk-double-0123456789abcdef"


@dataclass
class Plan:
    """What the double does with the next batches."""

    polls: int = 1
    """How often it is looked at before it is over."""
    ends: str = "completed"
    refuse: set[int] = field(default_factory=set)
    """Questions (by their number in the batch) that fail."""
    hollow: set[int] = field(default_factory=set)
    """Questions that are said to be answered, without an answer."""
    missing: set[int] = field(default_factory=set)
    twice: set[int] = field(default_factory=set)
    garbled: set[int] = field(default_factory=set)
    """Questions whose line among the results cannot be read."""
    strangers: int = 0
    shuffled: bool = False


@dataclass
class Batch:
    id: str
    requests: list[dict[str, Any]]
    metadata: dict[str, str]
    plan: Plan
    created: float = field(default_factory=time.time)
    looked: int = 0
    cancelled: bool = False
    errors: list[dict[str, str]] = field(default_factory=list)
    """Why it fails as a whole, and is not billed."""
    outcomes: list[dict[str, Any]] | None = None

    @property
    def over(self) -> bool:
        return self.cancelled or self.looked >= self.plan.polls


class Limiter:
    """Lets so many requests through in a second, and no more in any tenth of it than its share."""

    def __init__(self, per_second: int, *, announced: bool = True) -> None:
        self._per_second, self._announced = per_second, announced
        self._room, self._at = 5.0, time.monotonic()

    def headers(self) -> dict[str, str]:
        if not self._announced:
            return {}
        limit = {"limit": str(60 * self._per_second), "remaining": str(int(self._room)), "reset": "1s"}
        return {f"x-ratelimit-{name}-requests": text for name, text in limit.items()}

    def refused(self) -> bool:
        now = time.monotonic()
        self._room = min(5.0, self._room + (now - self._at) * self._per_second)
        self._at = now
        if self._room < 1:
            return True
        self._room -= 1
        return False


class Answering:
    """Answers questions by the protocols of all providers."""

    def __init__(self) -> None:
        self.answer: Callable[[str], str] = lambda prompt: f"answer to {prompt}"
        self.finish = "stop"
        self.breaks = False
        """Whether streams break off before their end."""
        self.delay = 0.0
        self.hangs: Callable[[str], bool] = lambda _: False
        """Which questions are taken and not answered, as long as it says so."""
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.unknown_forms: set[str] = set()
        self.usage: dict[str, Any] = {}
        """What answers say that they took, beside what they always say."""
        self.limit: Limiter | None = None
        self.denies: tuple[int, dict[str, Any]] | None = None
        """The error with which every question is refused."""
        self.denials: list[tuple[int, dict[str, Any]]] = []
        self.garbled = 0
        """How many answers are replaced by a page on their way."""
        self.seen: list[dict[str, Any]] = []
        self.prompts: Counter[str] = Counter()
        self.billed: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.headers: list[dict[str, str]] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, Batch] = {}
        self.plan = Plan()
        self.plans: list[Plan] = []
        """What becomes of the next batches, before the plan counts again."""
        self.pause: Callable[[str], Awaitable[None]] | None = None
        """Called at the boundaries of the batch path with their name: a test holds the client there, and kills it."""
        self.poll_refusals: list[int] = []
        self.torn = 0
        """How many files of outcomes are sent by half."""
        self.lost_results = 0
        """How often the results of a batch are not found."""
        self.unfound = 0
        """How often a file that was uploaded is not found yet when a batch is created of it."""
        self.most_enqueued: int | None = None
        """How many questions may wait in batches that are not over."""
        self.has_batches = True
        self.ahead = 0.0
        """By how much its clock is ahead (seconds)."""
        self.gone: set[str] = set()
        """Answers that are lost on the way: the thing is done, the client hears nothing."""
        self.url = ""

    async def _guarded(
        self, request: Request, prompt_of: Callable[[Any], str], reply: Callable[[Any, str], Any]
    ) -> Response:
        self.headers.append(dict(request.headers))
        body = await request.json()
        self.seen.append(body)
        if self.refusals:
            status, headers = self.refusals.pop(0)
            return JSONResponse({"error": {"message": f"refused with {headers or status} and {KEY}"}}, status, headers)
        if denied := self.denials.pop(0) if self.denials else self.denies:
            return JSONResponse({"error": denied[1]}, denied[0])
        if self.limit is not None and self.limit.refused():
            wait = {"retry-after-ms": "100"} | self.limit.headers()
            return JSONResponse({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, 429, wait)
        if self.garbled:
            self.garbled -= 1
            return PlainTextResponse("<html>one moment</html>")
        form = (body.get("response_format") or {}).get("type")
        if form in self.unknown_forms:
            return JSONResponse({"error": {"message": f"response_format of type {form} is not known"}}, 400)
        if error := refused(body):
            return JSONResponse({"type": "error", "error": error}, 400)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        prompt = prompt_of(body)
        self.prompts[prompt] += 1
        try:
            await asyncio.sleep(self.delay)
            while self.hangs(prompt):
                await asyncio.sleep(0.01)
            answer = reply(body, self.answer(prompt))
            limits = None if self.limit is None else self.limit.headers()
            return answer if isinstance(answer, Response) else JSONResponse(answer, headers=limits)
        finally:
            self.at_once -= 1

    async def chat(self, request: Request) -> Response:
        return await self._guarded(request, lambda body: str(body["messages"][-1]["content"]), self._chat)

    def _chat(self, body: Any, text: str) -> Any:
        if body.get("stream"):
            pieces: list[Any] = [{"choices": [{"delta": {"content": piece}}]} for piece in _cut(text)]
            end = [{"choices": [{"delta": {}, "finish_reason": self.finish}]}] if self.finish else []
            return self._streamed(pieces, end, "[DONE]")
        return completion(body, text, self.finish, self.usage)

    async def messages(self, request: Request) -> Response:
        return await self._guarded(request, lambda body: str(body["messages"][-1]["content"]), self._message)

    def _message(self, body: Any, text: str) -> Any:
        reason = {"length": "max_tokens", "stop": "end_turn"}.get(self.finish, self.finish)
        if body.get("stream"):
            pieces = [{"type": "content_block_delta", "delta": {"text": piece}} for piece in _cut(text)]
            end = [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]
            return self._streamed(pieces, end)
        return message(body, text, reason, self.usage)

    async def gemini(self, request: Request) -> Response:
        def reply(body: Any, text: str) -> Any:
            del body
            found = {
                "content": {"parts": [{"text": text}]},
                "finishReason": {"length": "MAX_TOKENS"}.get(self.finish, self.finish.upper()),
            }
            if self.finish == "blocked":
                no = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}
                return self._streamed([no], []) if "stream" in request.url.path else no
            if "stream" in request.url.path:
                said = {"content": found["content"]}
                end = {"content": {}, "finishReason": found["finishReason"]}
                return self._streamed([{"candidates": [said]}], [{"candidates": [end]}])
            return {"candidates": [found], "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}}

        return await self._guarded(request, lambda body: str(body["contents"][-1]["parts"][0]["text"]), reply)

    async def ollama(self, request: Request) -> Response:
        def reply(body: Any, text: str) -> Any:
            if body.get("stream"):
                lines: list[Any] = [{"message": {"content": piece}} for piece in text.split(" ")]
                lines += [] if self.breaks else [{"message": {"content": ""}, "done": True, "done_reason": self.finish}]
                return PlainTextResponse("\n".join(map(json.dumps, lines)))
            return {"model": body["model"], "message": {"content": text}, "done_reason": self.finish, "eval_count": 3}

        return await self._guarded(request, lambda body: str(body["messages"][-1]["content"]), reply)

    async def models(self, request: Request) -> Response:
        del request
        return JSONResponse({"object": "list", "has_more": False, "data": [model("m-1"), model("m-2")]})

    async def gemini_models(self, request: Request) -> Response:
        del request
        return JSONResponse({"models": [{"name": "models/m-1"}]})

    async def ollama_models(self, request: Request) -> Response:
        del request
        return JSONResponse({"models": [{"name": "m-1"}]})

    def _streamed(self, pieces: list[Any], end: list[Any], *last: str) -> Response:
        texts = map(json.dumps, pieces if self.breaks else [*pieces, *end])
        return StreamingResponse(_events([*texts, *(() if self.breaks else last)]), media_type="text/event-stream")

    async def _at(self, boundary: str) -> None:
        if self.pause is not None:
            await self.pause(boundary)


def _cut(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]


async def _events(texts: Any) -> Any:
    for text in texts:
        yield f"data: {text}\n\n"


def completion(body: Any, text: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} | usage,
    }


def message(body: Any, text: str, reason: str, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5} | usage,
    }


def model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1, "owned_by": "double", "type": "model", "display_name": name}
