"""OpenAI's batches: a file of questions, a batch over it, and files of outcomes."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final

import msgspec

from tsuzuki.errors import ProviderRefused
from tsuzuki.llm.capability import BatchLimits, Rung
from tsuzuki.llm.providers.interface import (
    LEEWAY,
    BatchState,
    BatchStatus,
    Chat,
    Found,
    Intent,
    NoBatches,
    Sending,
    out_of_a_batch,
    readable,
    spooled,
)
from tsuzuki.llm.questions import Question, Reply
from tsuzuki.llm.wire import Wire

MARK: Final = "tsuzuki_intent"
ENDPOINT: Final = "/v1/chat/completions"
PAGE: Final = 100
REFUSED: Final = 400
UNKNOWN: Final = frozenset({404, 405, 501})
"""What a service answers that has no files, and so no batches."""
PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
"""How long to wait for a file that was uploaded and is not found yet (seconds)."""
TOKENS: Final = "token_limit_exceeded"
"""Why a batch fails where too many tokens of batches wait to be asked already."""
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

    async def create(self, intent: Intent, lines: AsyncIterable[bytes], sending: Sending) -> str:
        """Uploads the questions, unless an earlier try did, and creates the batch."""
        name = f"tsuzuki-{intent.id}.jsonl"
        file = await self._uploaded(name) or await self._upload(name, lines)
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {MARK: intent.id, "tsuzuki_process": intent.process_id},
        }
        for pause in (*PAUSES, None):
            await sending()
            try:
                made = await self._wire.json("POST", "/batches", body, once=True)
                return str(made["id"])
            except ProviderRefused as error:
                if pause is None or not _not_there_yet(error, file):
                    raise
                await self._wire.clock.sleep(pause)
        raise AssertionError

    async def _upload(self, name: str, lines: AsyncIterable[bytes]) -> str:
        with await spooled(lines) as content:
            try:
                made = await self._wire.json(
                    "POST", "/files", files={"file": (name, content, "application/jsonl")}, fields={"purpose": "batch"}
                )
            except ProviderRefused as error:
                if error.status not in UNKNOWN:
                    raise
                raise NoBatches(f"there are no batches at this address: {error}", error.status) from error
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
            since = self._wire.there(intent.at) - LEEWAY
            if (each.get("created_at") or since) < since:
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
        crowded = status == "failed" and any(each.get("code") == TOKENS for each in _errors(found))
        return BatchState(batch, status, total, done, failed, self._reason(found, status), files, crowded)

    def _reason(self, found: dict[str, Any], status: BatchStatus) -> str:
        if status not in ("failed", "cancelled"):
            return ""
        told = [str(each.get("message") or "") for each in _errors(found)]
        return self._wire.clean(f"batch {found.get('status')}" + (f": {'; '.join(told)}" if told else ""))

    async def outcomes(self, state: BatchState) -> AsyncIterator[tuple[str, Reply | None]]:
        """Reads the files of outcomes, line by line."""
        for file in state.files:
            async with self._wire.lines("GET", f"/files/{file}/content") as lines:
                async for found in readable(lines):
                    if found is None:
                        yield "", None
                    elif _code(found) != CANCELLED:
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


def _errors(batch: dict[str, Any]) -> list[dict[str, Any]]:
    return (batch.get("errors") or {}).get("data") or []


def _not_there_yet(error: ProviderRefused, file: str) -> bool:
    """Return whether a batch was refused because the file that it is made of is not found yet."""
    said = str(error).lower()
    return error.status in (REFUSED, 404) and ("find" in said or "found" in said) and (file in said or " file" in said)
