"""The sync strategy: the jobs of a process asked directly, so many at a time, each answer stored as it arrives."""

import asyncio
import sqlite3
from functools import partial

import msgspec

from tsuzuki.errors import LLMError
from tsuzuki.llm.answering import attempted
from tsuzuki.llm.cached import wanted
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import Question, Reply, failed
from tsuzuki.llm.queue.jobs import Job, JobQueue
from tsuzuki.llm.queue.keeping import keep
from tsuzuki.llm.queue.progress import ProgressEvent, Telling
from tsuzuki.llm.queue.tracing import entered


async def execute_bulk_sync(
    queue: JobQueue,
    process_id: str,
    provider: Provider,
    concurrency: int,
    telling: Telling,
    *,
    cache: bool | None = None,
) -> None:
    """Asks every waiting job of a process; a failure is that job's own."""
    with entered("ExecuteBulkSync", queue.clock, process_id=process_id, concurrency=concurrency) as result:
        counts = await queue.counts(process_id)
        tally = Tally(process_id, sum(counts.values()), counts.get("COMPLETED", 0), counts.get("FAILED", 0), telling)
        tally.tell()
        kept = wanted() if cache is None else cache
        async with asyncio.TaskGroup() as lanes:
            for _ in range(max(1, min(concurrency, counts.get("PENDING", 0)))):
                lanes.create_task(_lane(queue, process_id, provider, tally, kept))
        result.update({"completed": tally.done, "failed": tally.failed})


async def _lane(queue: JobQueue, process_id: str, provider: Provider, tally: "Tally", cache: bool) -> None:
    job = await queue.claim(process_id)
    while job is not None:
        try:
            reply = await _asked(provider, job, cache)
        except BaseException:  # cancelled, or a bug: the job waits for the next who comes
            await queue.put_back(job.id)
            raise
        job = await queue.finish_and_claim(job, partial(_kept, queue, job.id, reply))
        tally.count(bad=bool(reply.error))


def _kept(queue: JobQueue, job_id: str, reply: Reply, db: sqlite3.Connection) -> bool:
    return keep(queue, db, job_id, reply)


async def _asked(provider: Provider, job: Job, cache: bool) -> Reply:
    try:
        question = msgspec.json.decode(job.request_json, type=Question)
    except msgspec.DecodeError as error:
        return failed(LLMError(f"the request is no question: {error}"))
    return await attempted(provider, question, cache=cache)


class Tally:
    """Counts what has ended, and tells of it."""

    def __init__(self, process_id: str, total: int, completed: int, failed: int, telling: Telling) -> None:
        self._process_id, self._total, self._telling = process_id, total, telling
        self.done, self.failed = completed, failed

    def count(self, *, bad: bool) -> None:
        """Takes note that one more has ended."""
        self.failed += bad
        self.done += not bad
        self.tell()

    def tell(self) -> None:
        """Tells how far the process is."""
        ended = self.done + self.failed
        self._telling.tell(
            ProgressEvent(self._process_id, "IN_PROGRESS", "Processing...", self._total, ended, self.failed)
        )
