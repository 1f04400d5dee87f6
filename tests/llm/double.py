"""A provider for tests: a real HTTP server that speaks the documented protocols, their batches and their faults.

It counts what it is asked, so that tests can say what would have been billed.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from tests.llm.double_answers import KEY, Batch, Plan, message
from tests.llm.double_batches import Batching
from tests.llm.double_schemas import refused

__all__ = ["KEY", "Double", "Plan", "Stage", "running", "staged"]


class Double(Batching):
    """The provider; `url` is its address. Here are Anthropic's batches and the routes."""

    async def create_messages(self, request: Request) -> Response:
        body = await request.json()
        await self._at("before batch")
        batch = self.made(body["requests"], {}, "msgbatch_")
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
        if self.lost_results:
            self.lost_results -= 1
            return JSONResponse({"error": {"message": "not found"}}, 404)
        lines = []
        for number, each in self.delivered(batch):
            if number in batch.plan.refuse:
                error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
                result: dict[str, Any] = {"type": "errored", "error": error}
            elif bad := refused(each["params"]):
                result = {"type": "errored", "error": {"type": "error", "error": bad}}
            else:
                text = self.answer(str(each["params"]["messages"][-1]["content"]))
                said = {} if number in batch.plan.hollow else message(each["params"], text, "end_turn", self.usage)
                result = {"type": "succeeded", "message": said}
            line = json.dumps({"custom_id": each["custom_id"], "result": result})
            lines.append(line[: len(line) // 2] if number in batch.plan.garbled else line)
        lines += [json.dumps({"custom_id": job, "result": {"type": "canceled"}}) for job in self.left_out(batch)]
        return Response("\n".join(lines), media_type="application/x-jsonl")

    async def cancel_messages(self, request: Request) -> Response:
        batch = self.batches[request.path_params["batch"]]
        batch.cancelled = True
        return JSONResponse(self._message_batch(batch))

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
                Route("/v1/messages/batches/{batch}/cancel", self.cancel_messages, methods=post),
                Route("/v1/messages/batches/{batch}/results", self.results, methods=get),
                Route("/v1beta/models", self.gemini_models, methods=get),
                Route("/v1beta/models/{name:path}", self.gemini, methods=post),
                Route("/api/chat", self.ollama, methods=post),
                Route("/api/tags", self.ollama_models, methods=get),
            ]
        )


class Stage:
    """The server of all tests of a process; each test has a double of its own on it."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self._app = Starlette()
        self._double = Double()

    def play(self, double: Double | None = None) -> Double:
        double = double or Double()
        double.url = self.url
        self._app, self._double = double.app(), double
        return double

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                date = formatdate(time.time() + self._double.ahead, usegmt=True)
                message["headers"] = [*message["headers"], (b"date", date.encode())]
            await send(message)

        await self._app(scope, receive, dated)


@contextmanager
def running() -> Iterator[Double]:
    """Runs a double on a free port, for whoever wants one alone."""
    with staged() as stage:
        yield stage.play()


@contextmanager
def staged() -> Iterator[Stage]:
    """Runs a stage on a free port, in a thread."""
    stage = Stage()
    server = uvicorn.Server(
        uvicorn.Config(stage, host="127.0.0.1", port=0, log_level="error", lifespan="off", date_header=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the double did not start"
        time.sleep(0.005)
    stage.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield stage
    server.should_exit = server.force_exit = True
    thread.join(10)
