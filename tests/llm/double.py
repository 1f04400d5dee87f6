"""A provider for tests: a real HTTP server that speaks the documented protocols, their batches and their faults.

It counts what it is asked, so that tests can say what would have been billed.
"""

import asyncio
import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

KEY = "sk-double-0123456789abcdef"


@dataclass
class Plan:
    """What the double does with the next batches."""

    polls: int = 1
    """How often it is looked at before it is over."""
    ends: str = "completed"
    refuse: set[int] = field(default_factory=set)
    """Questions (by their number in the batch) that fail."""
    missing: set[int] = field(default_factory=set)
    twice: set[int] = field(default_factory=set)
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
    outcomes: list[dict[str, Any]] | None = None

    @property
    def over(self) -> bool:
        return self.cancelled or self.looked >= self.plan.polls


class Double:
    """The server; `url` is its address."""

    def __init__(self) -> None:
        self.answer: Callable[[str], str] = lambda prompt: f"answer to {prompt}"
        self.finish = "stop"
        self.delay = 0.0
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.seen: list[dict[str, Any]] = []
        self.prompts: Counter[str] = Counter()
        self.billed: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.headers: list[dict[str, str]] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, Batch] = {}
        self.plan = Plan()
        self.pause: Callable[[str], Awaitable[None]] | None = None
        """Called at the boundaries of the batch path with their name: a test holds the client there, and kills it."""
        self.poll_refusals: list[int] = []
        self.gone: set[str] = set()
        """Answers that are lost on the way: the thing is done, the client hears nothing."""
        self.url = ""

    # Completions

    async def _guarded(
        self, request: Request, prompt_of: Callable[[Any], str], reply: Callable[[Any, str], Any]
    ) -> Response:
        self.headers.append(dict(request.headers))
        body = await request.json()
        self.seen.append(body)
        if self.refusals:
            status, headers = self.refusals.pop(0)
            return JSONResponse({"error": {"message": f"refused with {headers or status} and {KEY}"}}, status, headers)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        prompt = prompt_of(body)
        self.prompts[prompt] += 1
        try:
            await asyncio.sleep(self.delay)
            answer = reply(body, self.answer(prompt))
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        finally:
            self.at_once -= 1

    async def chat(self, request: Request) -> Response:
        return await self._guarded(request, lambda body: str(body["messages"][-1]["content"]), self._chat)

    def _chat(self, body: Any, text: str) -> Any:
        if body.get("stream"):
            pieces = [{"choices": [{"delta": {"content": text[i : i + 5]}}]} for i in range(0, len(text), 5)]
            return StreamingResponse(_events([*map(json.dumps, pieces), "[DONE]"]), media_type="text/event-stream")
        return completion(body, text, self.finish)

    async def messages(self, request: Request) -> Response:
        return await self._guarded(request, lambda body: str(body["messages"][-1]["content"]), self._message)

    def _message(self, body: Any, text: str) -> Any:
        if body.get("stream"):
            pieces = [
                {"type": "content_block_delta", "delta": {"text": text[i : i + 5]}} for i in range(0, len(text), 5)
            ]
            return StreamingResponse(_events(map(json.dumps, pieces)), media_type="text/event-stream")
        return message(body, text, {"length": "max_tokens"}.get(self.finish, "end_turn"))

    async def gemini(self, request: Request) -> Response:
        def reply(body: Any, text: str) -> Any:
            del body
            found = {
                "content": {"parts": [{"text": text}]},
                "finishReason": "MAX_TOKENS" if self.finish == "length" else "STOP",
            }
            answer = {"candidates": [found], "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}}
            if "stream" in request.url.path:
                return StreamingResponse(_events([json.dumps(answer)]), media_type="text/event-stream")
            return answer

        return await self._guarded(request, lambda body: str(body["contents"][-1]["parts"][0]["text"]), reply)

    async def ollama(self, request: Request) -> Response:
        def reply(body: Any, text: str) -> Any:
            if body.get("stream"):
                lines = "\n".join(json.dumps({"message": {"content": piece}}) for piece in text.split(" "))
                return PlainTextResponse(lines)
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

    # OpenAI's files and batches

    async def upload(self, request: Request) -> Response:
        async with request.form() as form:
            file: Any = form["file"]
            filename, content = str(file.filename), await file.read()
        await self._at("before file")
        name = f"file-{uuid.uuid4().hex[:12]}"
        self.files[name] = (filename, content)
        await self._at("after file")
        return JSONResponse(self._file(name))

    def _file(self, name: str) -> dict[str, Any]:
        filename, content = self.files[name]
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": int(time.time()),
            "filename": filename,
            "purpose": "batch",
            "status": "processed",
        }

    async def list_files(self, request: Request) -> Response:
        del request
        return JSONResponse({"object": "list", "data": [self._file(name) for name in self.files], "has_more": False})

    async def content(self, request: Request) -> Response:
        return Response(self.files[request.path_params["file"]][1], media_type="application/jsonl")

    async def create(self, request: Request) -> Response:
        body = await request.json()
        await self._at("before batch")
        lines = self.files[body["input_file_id"]][1].splitlines()
        batch = self._made([json.loads(line) for line in lines], body.get("metadata") or {}, "batch_")
        await self._at("after batch")
        if "batch" in self.gone:
            self.gone.discard("batch")
            return JSONResponse({"error": {"message": "bad gateway"}}, 502)
        return JSONResponse(self._batch(batch))

    def _made(self, requests: list[dict[str, Any]], metadata: dict[str, str], prefix: str) -> Batch:
        batch = Batch(f"{prefix}{uuid.uuid4().hex[:12]}", requests, metadata, self.plan)
        self.batches[batch.id] = batch
        for each in requests:
            self.billed[each["custom_id"]] += 1
        return batch

    async def list_batches(self, request: Request) -> Response:
        newest = sorted(self.batches.values(), key=lambda batch: -batch.created)
        after = request.query_params.get("after")
        if after:
            ids = [batch.id for batch in newest]
            newest = newest[ids.index(after) + 1 :]
        limit = int(request.query_params.get("limit", 20))
        page = [self._batch(batch) for batch in newest[:limit]]
        return JSONResponse({"object": "list", "data": page, "has_more": len(newest) > limit})

    async def look(self, request: Request) -> Response:
        if self.poll_refusals:
            return JSONResponse({"error": {"message": "try later"}}, self.poll_refusals.pop(0))
        batch = self.batches[request.path_params["batch"]]
        batch.looked += 1
        return JSONResponse(self._batch(batch))

    async def cancel(self, request: Request) -> Response:
        batch = self.batches[request.path_params["batch"]]
        batch.cancelled = True
        return JSONResponse(self._batch(batch) if batch.id.startswith("batch_") else self._message_batch(batch))

    def _batch(self, batch: Batch) -> dict[str, Any]:
        total = len(batch.requests)
        refused = len(batch.plan.refuse)
        status = ("cancelled" if batch.cancelled else batch.plan.ends) if batch.over else "in_progress"
        done = total - refused if batch.over else total * batch.looked // (batch.plan.polls + 1)
        found: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file-x",
            "completion_window": "24h",
            "created_at": int(batch.created),
            "status": status,
            "metadata": batch.metadata,
            "request_counts": {"total": total, "completed": done, "failed": refused if batch.over else 0},
        }
        if batch.over and status != "failed":
            good, bad = f"out-{batch.id}", f"err-{batch.id}"
            if good not in self.files:
                self._write(batch, good, bad)
            found |= {"output_file_id": good, "error_file_id": bad if batch.plan.refuse else None}
        return found

    def _write(self, batch: Batch, good: str, bad: str) -> None:
        lines: list[str] = []
        errors: list[str] = []
        for number, each in self._delivered(batch):
            head = {"id": f"r-{number}", "custom_id": each["custom_id"]}
            if number in batch.plan.refuse:
                errors.append(json.dumps({**head, "response": None, "error": {"code": "bad", "message": f"no {KEY}"}}))
                continue
            body = completion(each["body"], self.answer(str(each["body"]["messages"][-1]["content"])), self.finish)
            lines.append(json.dumps({**head, "response": {"status_code": 200, "body": body}, "error": None}))
        self.files[good] = ("out.jsonl", "\n".join(lines).encode())
        self.files[bad] = ("err.jsonl", "\n".join(errors).encode())

    def _delivered(self, batch: Batch) -> list[tuple[int, dict[str, Any]]]:
        plan = batch.plan
        order = [(n, each) for n, each in enumerate(batch.requests) if n not in plan.missing]
        order += [(n, each) for n, each in order if n in plan.twice]
        order += [(n, {**batch.requests[0], "custom_id": str(uuid.uuid4())}) for n in range(-plan.strangers, 0)]
        if plan.ends == "expired" or batch.cancelled:
            order = order[: len(order) // 2]
        if plan.shuffled:
            random.Random(7).shuffle(order)
        return order

    # Anthropic's message batches

    async def create_messages(self, request: Request) -> Response:
        body = await request.json()
        await self._at("before batch")
        batch = self._made(body["requests"], {}, "msgbatch_")
        await self._at("after batch")
        return JSONResponse(self._message_batch(batch))

    async def list_message_batches(self, request: Request) -> Response:
        del request
        newest = sorted(self.batches.values(), key=lambda batch: -batch.created)
        page = [self._message_batch(batch) for batch in newest]
        last = page[-1]["id"] if page else None
        return JSONResponse({"data": page, "has_more": False, "first_id": None, "last_id": last})

    async def look_messages(self, request: Request) -> Response:
        batch = self.batches[request.path_params["batch"]]
        batch.looked += 1
        return JSONResponse(self._message_batch(batch))

    def _message_batch(self, batch: Batch) -> dict[str, Any]:
        total, refused = len(batch.requests), len(batch.plan.refuse)
        counts = {"processing": total, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        if batch.over:
            counts |= {"processing": 0, "succeeded": total - refused, "errored": refused}
        at = datetime.fromtimestamp(batch.created, UTC).isoformat()
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.over else "in_progress",
            "request_counts": counts,
            "created_at": at,
            "expires_at": at,
            "ended_at": at if batch.over else None,
            "archived_at": None,
            "cancel_initiated_at": at if batch.cancelled else None,
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if batch.over else None,
        }

    async def results(self, request: Request) -> Response:
        batch = self.batches[request.path_params["batch"]]
        lines = []
        for number, each in self._delivered(batch):
            if number in batch.plan.refuse:
                error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
                result: dict[str, Any] = {"type": "errored", "error": error}
            else:
                text = self.answer(str(each["params"]["messages"][-1]["content"]))
                result = {"type": "succeeded", "message": message(each["params"], text, "end_turn")}
            lines.append(json.dumps({"custom_id": each["custom_id"], "result": result}))
        return Response("\n".join(lines), media_type="application/x-jsonl")

    async def _at(self, boundary: str) -> None:
        if self.pause is not None:
            await self.pause(boundary)

    def app(self) -> Starlette:
        get, post = ["GET"], ["POST"]
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=post),
                Route("/v1/models", self.models, methods=get),
                Route("/v1/files", self.upload, methods=post),
                Route("/v1/files", self.list_files, methods=get),
                Route("/v1/files/{file}/content", self.content, methods=get),
                Route("/v1/batches", self.create, methods=post),
                Route("/v1/batches", self.list_batches, methods=get),
                Route("/v1/batches/{batch}", self.look, methods=get),
                Route("/v1/batches/{batch}/cancel", self.cancel, methods=post),
                Route("/v1/messages", self.messages, methods=post),
                Route("/v1/messages/batches", self.create_messages, methods=post),
                Route("/v1/messages/batches", self.list_message_batches, methods=get),
                Route("/v1/messages/batches/{batch}", self.look_messages, methods=get),
                Route("/v1/messages/batches/{batch}/cancel", self.cancel, methods=post),
                Route("/v1/messages/batches/{batch}/results", self.results, methods=get),
                Route("/v1beta/models", self.gemini_models, methods=get),
                Route("/v1beta/models/{name:path}", self.gemini, methods=post),
                Route("/api/chat", self.ollama, methods=post),
                Route("/api/tags", self.ollama_models, methods=get),
            ]
        )


async def _events(texts: Any) -> Any:
    for text in texts:
        yield f"data: {text}\n\n"


def completion(body: Any, text: str, finish: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def message(body: Any, text: str, reason: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1, "owned_by": "double", "type": "model", "display_name": name}


@contextmanager
def running() -> Iterator[Double]:
    """Runs a double on a free port, in a thread."""
    double = Double()
    config = uvicorn.Config(double.app(), host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the double did not start"
        time.sleep(0.005)
    double.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield double
    server.should_exit = server.force_exit = True
    thread.join(10)
