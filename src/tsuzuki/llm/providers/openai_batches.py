"""OpenAI's batches: a file of questions, a batch over it, and files of outcomes."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from tsuzuki.errors import ProviderRefused
from tsuzuki.llm.capability import BatchLimits, Rung
from tsuzuki.llm.providers.interface import LEEWAY, BatchState, BatchStatus, Chat, Found, Intent, out_of_a_batch
from tsuzuki.llm.questions import Question, Reply
from tsuzuki.llm.wire import Wire, objects

MARK: Final = "tsuzuki_intent"
ENDPOINT: Final = "/v1/chat/completions"
PAGE: Final = 100
REFUSED: Final = 400
CANCELLED: Final = "batch_cancelled"
"""What is said of a question that a cancelled batch did not come to: there is no outcome of it."""

_STATES: Final[dict[str, BatchStatus]] = {
    "validating": "queued",
    "in_progress": "running",
    "finalizing": "running",
    "cancelling": "running",
    "completed": "completed",
    "failed": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
}


class OpenAIBatches:
    """Creates and follows batches."""

    def __init__(self, wire: Wire, chat: Chat, limits: BatchLimits) -> None:
        self._wire, self._chat, self.limits = wire, chat, limits

    def line(self, job: str, question: Question, rung: Rung | None) -> bytes:
        """Gives a line of the file."""
        body = self._chat.body(question, rung)
        return msgspec.json.encode({"custom_id": job, "method": "POST", "url": ENDPOINT, "body": body}) + b"\n"

    async def create(self, intent: Intent, lines: Sequence[bytes]) -> str:
        """Uploads the questions, unless an earlier try did, and creates the batch."""
        name = f"tsuzuki-{intent.id}.jsonl"
        file = await self._uploaded(name) or await self._upload(name, b"".join(lines))
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {MARK: intent.id, "tsuzuki_process": intent.process_id},
        }
        made = await self._wire.json("POST", "/batches", body, once=True)
        return str(made["id"])

    async def _upload(self, name: str, content: bytes) -> str:
        made = await self._wire.json(
            "POST", "/files", files={"file": (name, content, "application/jsonl")}, fields={"purpose": "batch"}
        )
        return str(made["id"])

    async def _uploaded(self, name: str) -> str | None:
        """Looks for the file of an earlier try: one costs nothing, two are a mess. Not every server lists them."""
        try:
            async for each in self._pages("/files", {"purpose": "batch"}):
                if each.get("filename") == name and each.get("status") != "error":
                    return str(each["id"])
        except ProviderRefused:
            pass
        return None

    async def find(self, intent: Intent, known: frozenset[str]) -> Found:
        """Looks for the batch that has the intent in its metadata, from the newest one back to the intent."""
        del known
        async for each in self._pages("/batches", {}):
            if (each.get("metadata") or {}).get(MARK) == intent.id:
                return Found(str(each["id"]))
            if (each.get("created_at") or intent.at) < intent.at - LEEWAY:
                break
        return Found()

    async def _pages(self, path: str, params: dict[str, str]) -> AsyncIterator[dict[str, Any]]:
        after: dict[str, str] = {}
        while True:
            page = await self._wire.json("GET", path, params={**params, "limit": str(PAGE), **after})
            rows = page.get("data") or []
            for each in rows:
                yield each
            if not page.get("has_more") or not rows or after.get("after") == rows[-1]["id"]:
                return
            after = {"after": rows[-1]["id"]}

    async def look(self, batch: str) -> BatchState:
        """Looks how far a batch is."""
        found = await self._wire.json("GET", f"/batches/{batch}")
        counts = found.get("request_counts") or {}
        status = _STATES.get(found.get("status"), "running")
        failed = counts.get("failed") or 0
        if status == "completed" and failed:
            status = "partial_failed"
        files = tuple(found[key] for key in ("output_file_id", "error_file_id") if found.get(key))
        done, total = counts.get("completed") or 0, counts.get("total") or 0
        return BatchState(batch, status, total, done, failed, self._reason(found, status), files)

    def _reason(self, found: dict[str, Any], status: BatchStatus) -> str:
        if status not in ("failed", "cancelled"):
            return ""
        told = [str(each.get("message") or "") for each in (found.get("errors") or {}).get("data") or ()]
        return self._wire.clean(f"batch {found.get('status')}" + (f": {'; '.join(told)}" if told else ""))

    async def outcomes(self, state: BatchState) -> AsyncIterator[tuple[str, Reply]]:
        """Reads the files of outcomes, line by line."""
        for file in state.files:
            async with self._wire.lines("GET", f"/files/{file}/content") as lines:
                async for found in objects(lines):
                    if _code(found) != CANCELLED:
                        yield str(found.get("custom_id") or ""), self._outcome(found)

    def _outcome(self, found: dict[str, Any]) -> Reply:
        response, error = found.get("response") or {}, found.get("error")
        body = response.get("body") or {}
        if not error and (response.get("status_code") or 0) >= REFUSED:
            error = body.get("error") or body
        if error:
            told = error.get("message") or error.get("code") if isinstance(error, dict) else error
            return Reply(error=self._wire.clean(str(told or "the provider gave no reason")), finish="error")
        return out_of_a_batch(self._chat, body)

    async def cancel(self, batch: str) -> None:
        """Asks for the end of a batch; what is done stays."""
        await self._wire.json("POST", f"/batches/{batch}/cancel")


def _code(found: dict[str, Any]) -> str:
    error = found.get("error")
    return str(error.get("code") or "") if isinstance(error, dict) else ""
