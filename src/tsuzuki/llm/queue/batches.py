"""The batch strategy: intend, create, poll, collect; each thing is written down before the next is done.

A crash between any two lines here leads to no second batch: see the table in ADR 15.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from uuid import NAMESPACE_OID, uuid5

import msgspec

from tsuzuki import settings
from tsuzuki.errors import BadUsage, LLMError, ProviderRefused, ProviderUnavailable, ProviderUnclear
from tsuzuki.llm.answering import judged
from tsuzuki.llm.providers.interface import Batches, BatchState, Intent, Provider
from tsuzuki.llm.questions import Question, Reply
from tsuzuki.llm.queue.bulk import as_stored
from tsuzuki.llm.queue.jobs import PAGE, SQL, JobQueue
from tsuzuki.llm.queue.tracing import entered, tell

FIRST_LOOK: Final = 2.0
"""How soon a batch is looked at for the first time (seconds)."""
AN_HOUR: Final = 3600.0
MISSING: Final = "batch result missing for request"
TWICE: Final = "batch result came twice for request"


class Waiting(Exception):
    """A batch is not over, or not sure: look again after so many seconds."""

    def __init__(self, seconds: float, text: str, done: int = 0, total: int = 0) -> None:
        super().__init__(text)
        self.seconds, self.text, self.done, self.total = seconds, text, done, total


class Submission(NamedTuple):
    """A batch on its way, as its row has it."""

    id: str
    process_id: str
    provider: str
    base_url: str
    state: str
    batch_job_id: str | None
    intended_at: float
    searched_at: float | None


class Ledger(Protocol):
    """Where intents and the ids of batches are written down beside the queue: in a run, its journal."""

    async def intend(self, intent: Intent) -> tuple[Intent, bool]:
        """Writes an intent down; gives it as it was first written, and whether that is now."""
        ...

    async def submitted(self, intent: Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Gives the id of the batch: as written down, else what `create` gives, which is then written down."""
        ...


class NoLedger:
    """Nothing but the queue: its side tables are all there is."""

    async def intend(self, intent: Intent) -> tuple[Intent, bool]:
        """Has nothing to write."""
        return intent, True

    async def submitted(self, intent: Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Creates."""
        del intent
        return await create()


@dataclass(frozen=True, slots=True)
class BatchWork:
    """The batches of processes with one provider."""

    queue: JobQueue
    provider: Provider
    ledger: Ledger

    @property
    def batches(self) -> Batches:
        """The provider's batches."""
        found = self.provider.batches
        if found is None:
            raise BadUsage(f"{self.provider.name} has no batches")
        return found

    async def advance(self, process_id: str, *, only_open: bool = False) -> BatchState | None:
        """Goes on as far as it can; raises `Waiting` while batches are open. Gives the last state it saw.

        `only_open`: begins no new batch.
        """
        if only_open and not await self._submissions(process_id):
            return None
        with entered("AdvanceBatch", self.queue.clock, process_id=process_id) as result:
            await self._hold(process_id)
            try:
                for submission in await self._submissions(process_id):
                    if submission.state == "INTENDED":
                        await self._submit(submission, fresh=False)
                if not only_open:
                    await self._begin(process_id)
                state = await self._look(process_id)
                result["state"] = None if state is None else state.status
            finally:
                hold = {"process_id": process_id, "holder": self.queue.holder}
                await self.queue.write(lambda db: db.execute(SQL["release"], hold))
        return state

    async def _begin(self, process_id: str) -> None:
        """Creates batches for what waits."""
        async for intent in self._chunks(process_id):
            submission, fresh = await self._intended(intent)
            await self._submit(submission, fresh=fresh)

    async def _hold(self, process_id: str) -> None:
        """Works alone on a process: two who create would create two."""
        hold = {"process_id": process_id, "holder": self.queue.holder}
        if not await self.queue.write(lambda db: db.execute(SQL["hold"], hold).rowcount):
            await self.queue.recover()
            if not await self.queue.write(lambda db: db.execute(SQL["hold"], hold).rowcount):
                raise Waiting(FIRST_LOOK, f"another worker is at work on process {process_id}")

    async def _submissions(self, process_id: str) -> list[Submission]:
        rows = await self.queue.write(lambda db: db.execute(SQL["submissions"], (process_id,)).fetchall())
        return [Submission(*row) for row in rows]

    # Intend

    async def _chunks(self, process_id: str) -> AsyncIterator[Intent]:
        """Gives what goes into one batch each, by the provider's limits; what is placed is not given again."""
        while chunk := await self._chunk(process_id):
            jobs = tuple(chunk)
            yield Intent(str(uuid5(NAMESPACE_OID, "/".join((process_id, *jobs)))), process_id, self._now(), jobs)

    async def _chunk(self, process_id: str) -> list[str]:
        limits, chunk, size, after = self.batches.limits, list[str](), 0, 0
        while True:
            asked = {"process_id": process_id, "after": after, "most": PAGE}
            rows = await self.queue.write(lambda db, asked=asked: db.execute(SQL["unplaced"], asked).fetchall())  # type: ignore[misc]
            for after, job, request in rows:  # noqa: B007 - the next page begins after the last row
                size += len(self._line(job, msgspec.json.decode(request, type=Question)))
                if chunk and (size > limits.bytes or len(chunk) >= limits.requests):
                    return chunk
                chunk.append(job)
            if len(rows) < PAGE:
                return chunk

    def _line(self, job: str, question: Question) -> bytes:
        rung = None if question.schema is None else self.provider.capability.rungs[0]
        return self.batches.line(job, question, rung)

    def _now(self) -> float:
        return self.queue.clock.now()

    async def _intended(self, meant: Intent) -> tuple[Submission, bool]:
        """Writes an intent down, and tells whether that was the first time."""
        intent, first = await self.ledger.intend(meant)
        named = {"id": intent.id, "process_id": intent.process_id, "at": intent.at}
        place = {"provider": self.provider.name, "base_url": self.provider.base_url}

        def work(db: sqlite3.Connection) -> tuple[Submission, bool]:
            fresh = bool(db.execute(SQL["intend"], {**named, **place}).rowcount)
            db.executemany(SQL["place"], ((job, intent.id, number) for number, job in enumerate(meant.jobs)))
            db.execute(SQL["begin_placed"], {"id": intent.id, "now": self.queue.now()})
            return Submission(*db.execute(SQL["submission"], (intent.id,)).fetchone()), fresh

        submission, fresh = await self.queue.write(work)
        return submission, first and fresh

    # Create

    async def _submit(self, submission: Submission, *, fresh: bool) -> None:
        """Sees to it that the batch of an intent exists, once, and that its id is known."""
        jobs = await self._placed(submission.id)
        intent = Intent(submission.id, submission.process_id, submission.intended_at, tuple(jobs))
        tried = not fresh

        async def create() -> str:
            nonlocal tried
            if tried and (batch := await self._searched(intent)) is not None:
                return batch
            tried = True  # whoever calls again does not know what became of this
            lines = [self._line(job, question) for job, question in jobs.items()]
            batch = await self.batches.create(intent, lines)
            await self._attach(intent.id, batch)
            return batch

        try:
            batch = await self.ledger.submitted(intent, create)
        except ProviderUnclear as error:
            raise Waiting(FIRST_LOOK, f"whether a batch was created is not known, it is looked for: {error}") from error
        except ProviderUnavailable as error:
            raise Waiting(interval(), f"no batch can be created now: {error}") from error
        except ProviderRefused as error:
            await self._end(submission.id, jobs, f"{type(error).__name__}: {error}")
            return
        await self._attach(intent.id, batch)

    async def _placed(self, submission: str) -> dict[str, Question]:
        rows = await self.queue.write(lambda db: db.execute(SQL["placed"], (submission,)).fetchall())
        return {job: msgspec.json.decode(request, type=Question) for job, request, _ in rows}

    async def _searched(self, intent: Intent) -> str | None:
        """Looks for a batch that an earlier try may have created; None when there is surely none."""
        row = await self.queue.write(lambda db: db.execute(SQL["submission"], (intent.id,)).fetchone())
        submission = Submission(*row)
        if submission.batch_job_id is not None:
            return submission.batch_job_id
        others = await self.queue.write(lambda db: db.execute(SQL["known_batches"], (intent.id,)).fetchall())
        found = await self.batches.find(intent, frozenset(other for (other,) in others))
        if found.id is not None:
            tell(logging.INFO, f"batch {found.id} was created before, and is attached", process_id=intent.process_id)
            return found.id
        if found.perhaps:
            raise Waiting(interval(), f"batch {found.perhaps[0]} may be ours: that is known when it is over")
        now, settle = self._now(), float(settings.value("TSUZUKI_LLM_SETTLE_SEC"))
        since = submission.searched_at
        if since is None or now - since < settle:
            await self.queue.write(lambda db: db.execute(SQL["searched"], (now if since is None else since, intent.id)))
            left = settle if since is None else settle - (now - since)
            raise Waiting(left, "a batch may have been created just before a crash: it is looked for once more")
        # It is sent anew: should that be unclear too, the search begins anew.
        await self.queue.write(lambda db: db.execute(SQL["searched"], (None, intent.id)))
        return None

    async def _attach(self, submission: str, batch: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL["attach"], {"id": submission, "batch": batch})
            db.execute(SQL["attach_job"], {"id": submission, "batch": batch, "now": self.queue.now()})

        await self.queue.write(work)

    # Poll and collect

    async def _look(self, process_id: str) -> BatchState | None:
        """Looks at every open batch, and collects what is over; raises `Waiting` while one is not."""
        waiting: Waiting | None = None
        last = None
        for submission in await self._submissions(process_id):
            if submission.batch_job_id is None:
                continue
            age = self._now() - submission.intended_at
            try:
                last = state = await self.batches.look(submission.batch_job_id)
                if state.over:
                    await self._collect(submission, state)
                    continue
                text = f"batch {state.id} of {self.provider.name} is {state.status}: {state.done} of {state.total}"
                seen = Waiting(pause(age), text, state.done + state.failed, state.total)
            except ProviderUnavailable as error:
                tell(logging.WARNING, f"polling goes on: {error}", process_id=process_id)
                seen = Waiting(pause(age), f"batch {submission.batch_job_id} cannot be looked at: {error}")
            except ProviderRefused as error:
                jobs = await self._placed(submission.id)
                await self._end(submission.id, jobs, f"batch {submission.batch_job_id} is gone: {error}")
                continue
            waiting = seen if waiting is None or seen.seconds < waiting.seconds else waiting
        if waiting is not None:
            raise waiting
        return last

    async def _collect(self, submission: Submission, state: BatchState) -> None:
        """Stores what came of each job, by its id; what did not come has failed."""
        questions = await self._placed(submission.id)
        seen: set[str] = set()
        group: list[tuple[str, Reply]] = []
        async for job, reply in self.batches.outcomes(state):
            if job not in questions:
                tell(logging.WARNING, f"batch {state.id} has a result for nobody here: {job}")
                continue
            group.append((job, judged(self.provider, questions[job], reply)))
            if len(group) >= PAGE:
                await self._store(state.id, group, seen)
                group = []
        await self._store(state.id, group, seen)
        missing = [job for job in questions if job not in seen]
        await self._end(submission.id, missing, state.reason or MISSING)

    async def _store(self, batch: str, group: list[tuple[str, Reply]], seen: set[str]) -> None:
        def work(db: sqlite3.Connection) -> None:
            for job, reply in group:
                if job in seen:
                    db.execute(SQL["spoil"], {"id": job, "error": TWICE, "batch": batch, "now": self.queue.now()})
                else:
                    self.queue.store(db, job, *as_stored(reply))
                seen.add(job)

        await self.queue.write(work)

    async def _end(self, submission: str, missing: Iterable[str], error: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            for job in missing:
                self.queue.store(db, job, None, error)
            db.execute(SQL["end_submission"], (submission,))

        await self.queue.write(work)

    async def cancel(self, process_id: str) -> int:
        """Asks the provider to end the open batches of a process; what is done is collected as ever."""
        asked = 0
        for submission in await self._submissions(process_id):
            if submission.batch_job_id is not None:
                try:
                    await self.batches.cancel(submission.batch_job_id)
                    asked += 1
                except LLMError as error:
                    tell(logging.WARNING, f"batch {submission.batch_job_id} cannot be cancelled: {error}")
        return asked


def interval() -> float:
    """Gives how often an open batch is looked at (seconds)."""
    return float(settings.value("TSUZUKI_LLM_POLL_SEC"))


def pause(age: float) -> float:
    """Gives how long to wait before a batch of an age is looked at again: soon at first, later after an hour."""
    often = interval()
    if age > AN_HOUR:
        return min(often * age / AN_HOUR, 10 * often)
    return max(min(FIRST_LOOK, often), min(age / 4, often))
