"""The part of the double that takes OpenAI's files and batches."""

import json
import random
import time
import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.llm.double_answers import KEY, Answering, Batch, completion
from tests.llm.double_schemas import refused


class Batching(Answering):
    """Takes files and batches, and plays what their plans say."""

    async def upload(self, request: Request) -> Response:
        if not self.has_batches:
            await request.body()
            return JSONResponse({"error": {"message": "Not Found"}}, 404)
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
        content = self.files[request.path_params["file"]][1]
        if self.lost_results:
            self.lost_results -= 1
            return JSONResponse({"error": {"message": "No such File object"}}, 404)
        if self.torn:
            self.torn -= 1
            content = content[: len(content) // 2]
        return Response(content, media_type="application/jsonl")

    async def create(self, request: Request) -> Response:
        body = await request.json()
        await self._at("before batch")
        if self.unfound:
            self.unfound -= 1
            return JSONResponse({"error": {"message": f"cannot find file {body['input_file_id']}"}}, 400)
        lines = self.files[body["input_file_id"]][1].splitlines()
        batch = self.made([json.loads(line) for line in lines], body.get("metadata") or {}, "batch_")
        await self._at("after batch")
        if "batch" in self.gone:
            self.gone.discard("batch")
            return JSONResponse({"error": {"message": "bad gateway"}}, 502)
        return JSONResponse(self._batch(batch))

    def made(self, requests: list[dict[str, Any]], metadata: dict[str, str], prefix: str) -> Batch:
        plan = self.plans.pop(0) if self.plans else self.plan
        batch = Batch(f"{prefix}{uuid.uuid4().hex[:12]}", requests, metadata, plan, created=time.time() + self.ahead)
        batch.errors = self._refused(requests)
        self.batches[batch.id] = batch
        for each in requests if not batch.errors else ():
            self.billed[each["custom_id"]] += 1
        return batch

    def _refused(self, requests: list[dict[str, Any]]) -> list[dict[str, str]]:
        if len({each["body"]["model"] for each in requests if "body" in each}) > 1:
            return [{"code": "mismatched_model", "message": "all requests of a batch take the same model"}]
        waiting = sum(len(each.requests) for each in self.batches.values() if not each.over and not each.errors)
        if self.most_enqueued is not None and waiting + len(requests) > self.most_enqueued:
            said = "Enqueued token limit reached. Please try again once some in_progress batches have been completed."
            return [{"code": "token_limit_exceeded", "message": said}]
        return []

    async def list_batches(self, request: Request) -> Response:
        await self._at("before list")
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
        await self._at("before cancel")
        batch = self.batches[request.path_params["batch"]]
        batch.cancelled = True
        await self._at("after cancel")
        return JSONResponse(self._batch(batch))

    def _batch(self, batch: Batch) -> dict[str, Any]:
        total = len(batch.requests)
        refused = len(batch.plan.refuse)
        status = ("cancelled" if batch.cancelled else batch.plan.ends) if batch.over else "in_progress"
        status = "failed" if batch.errors else status
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
        if batch.errors:
            found |= {"errors": {"object": "list", "data": batch.errors}}
        if batch.over and status != "failed":
            good, bad = f"out-{batch.id}", f"err-{batch.id}"
            if good not in self.files:
                self._write(batch, good, bad)
            found |= {"output_file_id": good, "error_file_id": bad if self.files[bad][1] else None}
        return found

    def _write(self, batch: Batch, good: str, bad: str) -> None:
        lines: list[str] = []
        errors: list[str] = []
        for number, each in self.delivered(batch):
            head = {"id": f"r-{number}", "custom_id": each["custom_id"]}
            if number in batch.plan.refuse:
                errors.append(json.dumps({**head, "response": None, "error": {"code": "bad", "message": f"no {KEY}"}}))
                continue
            if error := refused(each["body"]):
                said = {"status_code": 400, "body": {"error": error}}
                errors.append(json.dumps({**head, "response": said, "error": None}))
                continue
            body = completion(
                each["body"], self.answer(str(each["body"]["messages"][-1]["content"])), self.finish, self.usage
            )
            body = {"choices": []} if number in batch.plan.hollow else body
            line = json.dumps({**head, "response": {"status_code": 200, "body": body}, "error": None})
            lines.append(line[: len(line) // 2] if number in batch.plan.garbled else line)
        ended = {"code": "batch_cancelled", "message": "This request was not executed: the batch was cancelled."}
        left_out = [{"custom_id": job, "response": None, "error": ended} for job in self.left_out(batch)]
        errors += [json.dumps(line) for line in left_out]
        self.files[good] = ("out.jsonl", "\n".join(lines).encode())
        self.files[bad] = ("err.jsonl", "\n".join(errors).encode())

    def left_out(self, batch: Batch) -> list[str]:
        """Gives the questions that a cancelled batch did not come to; it names them among its results."""
        known = {each["custom_id"] for _, each in self.delivered(batch)}
        asked = [each["custom_id"] for each in batch.requests] if batch.cancelled else []
        return [job for job in asked if job not in known]

    def delivered(self, batch: Batch) -> list[tuple[int, dict[str, Any]]]:
        plan = batch.plan
        order = [(n, each) for n, each in enumerate(batch.requests) if n not in plan.missing]
        order += [(n, each) for n, each in order if n in plan.twice]
        order += [(n, {**batch.requests[0], "custom_id": str(uuid.uuid4())}) for n in range(-plan.strangers, 0)]
        if plan.ends == "expired" or batch.cancelled:
            order = order[: len(order) // 2]
        if plan.shuffled:
            random.Random(7).shuffle(order)
        return order
