"""Anthropic's message batches.

A batch has no metadata here. One that may be ours is told by its results, which name our jobs: see `find`.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

import msgspec

from tsuzuki.llm.capability import BatchLimits, Rung
from tsuzuki.llm.providers.interface import (
    LEEWAY,
    BatchState,
    BatchStatus,
    Chat,
    Found,
    Intent,
    Sending,
    out_of_a_batch,
    readable,
    spooled,
)
from tsuzuki.llm.questions import Question, Reply
from tsuzuki.llm.wire import Wire

PLACE: Final = "/v1/messages/batches"
PAGE: Final = 100
CANCELED: Final = "canceled"
"""What is said of a question that a cancelled batch did not come to: there is no outcome of it."""


class AnthropicBatches:
    """Creates and follows batches."""

    def __init__(self, wire: Wire, chat: Chat, limits: BatchLimits) -> None:
        self._wire, self._chat, self.limits = wire, chat, limits

    def line(self, job: str, question: Question, rung: Rung | None) -> bytes:
        """Gives one request of a batch."""
        return msgspec.json.encode({"custom_id": job, "params": self._chat.body(question, rung)})

    async def create(self, intent: Intent, lines: AsyncIterable[bytes], sending: Sending) -> str:
        """Creates the batch; its requests go with it."""
        del intent
        with await spooled(lines, b'{"requests":[', b",", b"]}") as content:
            await sending()
            made = await self._wire.json("POST", PLACE, content=content, once=True)
        return str(made["id"])

    async def find(self, intent: Intent, known: frozenset[str]) -> Found:
        """Looks for a batch created since the intent, as large, nobody else's, and with our jobs in its results.

        One that is still at work cannot be told yet: it is given as `perhaps`, and waited for.
        """
        perhaps = []
        async for each in self._pages():
            if datetime.fromisoformat(each["created_at"]).timestamp() < self._wire.there(intent.at) - LEEWAY:
                break
            state = _state(each)
            if state.id in known or state.total != len(intent.jobs):
                continue
            if not state.over:
                perhaps.append(state.id)
            elif await self._is_ours(state, intent):
                return Found(state.id)
        return Found(perhaps=tuple(perhaps))

    async def _is_ours(self, state: BatchState, intent: Intent) -> bool:
        async with aclosing(self.outcomes(state)) as outcomes:
            async for job, reply in outcomes:
                if reply is not None:
                    return job in set(intent.jobs)
        return False

    async def _pages(self) -> AsyncIterator[dict[str, Any]]:
        after: dict[str, str] = {}
        while True:
            page = await self._wire.json("GET", PLACE, params={"limit": str(PAGE), **after})
            for each in page.get("data") or ():
                yield each
            if not page.get("has_more") or after.get("after_id") == page.get("last_id"):
                return
            after = {"after_id": page["last_id"]}

    async def look(self, batch: str) -> BatchState:
        """Looks how far a batch is."""
        return _state(await self._wire.json("GET", f"{PLACE}/{batch}"))

    async def outcomes(self, state: BatchState) -> AsyncGenerator[tuple[str, Reply | None]]:
        """Reads the results, line by line."""
        for place in state.files:
            async with self._wire.lines("GET", place) as lines:
                async for found in readable(lines):
                    if found is None:
                        yield "", None
                        continue
                    outcome = found.get("result") or {}
                    if outcome.get("type") != CANCELED:
                        yield str(found.get("custom_id") or ""), self._outcome(outcome)

    def _outcome(self, found: dict[str, Any]) -> Reply:
        kind = found.get("type")
        if kind == "succeeded":
            return out_of_a_batch(self._chat, found.get("message"))
        error = found.get("error") or {}
        error = error.get("error") or error
        told = error.get("message") or f"batch {kind}"
        return Reply(error=self._wire.clean(str(told)), finish="error")

    async def cancel(self, batch: str) -> None:
        """Asks for the end of a batch; what is done stays."""
        await self._wire.json("POST", f"{PLACE}/{batch}/cancel")


def _state(found: dict[str, Any]) -> BatchState:
    counts = found.get("request_counts") or {}
    done, expired, cancelled = (counts.get(key) or 0 for key in ("succeeded", "expired", "canceled"))
    failed = (counts.get("errored") or 0) + expired + cancelled
    total = done + failed + (counts.get("processing") or 0)
    status: BatchStatus = "running"
    reason = ""
    if found.get("processing_status") == "ended":
        if cancelled or found.get("cancel_initiated_at"):
            status, reason = "cancelled", "batch cancelled"
        elif not failed:
            status = "completed"
        else:
            status = "partial_failed" if done else "failed"
            reason = "batch expired" if expired else ""
    # Results are asked for below our own address, whatever the answer says: a key goes to its provider alone.
    files = (f"{PLACE}/{found['id']}/results",) if status != "running" else ()
    return BatchState(str(found["id"]), status, total, done, failed, reason, files)
