"""The batch strategy: intend, create, poll, collect; each thing is written down before the next is done.

A crash between any two lines here leads to no second batch: see the table in ADR 15.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from tsuzuki import settings
from tsuzuki.clock import Clock
from tsuzuki.errors import BadUsage, LLMError, ProviderRefused, ProviderUnavailable, ProviderUnclear
from tsuzuki.llm.answering import judged
from tsuzuki.llm.providers.interface import Batches, BatchState, Found, Intent, Provider
from tsuzuki.llm.questions import Question, Reply, after
from tsuzuki.llm.queue.cancelling import cancel, cancelled
from tsuzuki.llm.queue.jobs import PAGE, SQL, JobQueue
from tsuzuki.llm.queue.keeping import ask_again, keep
from tsuzuki.llm.queue.submissions import (
    FIRST_LOOK,
    Collected,
    Ledger,
    Placed,
    Submission,
    Waiting,
    interval,
    pause,
    question_of,
    reply_of,
)
from tsuzuki.llm.queue.tracing import entered, tell
from tsuzuki.llm.structured import TRIES, again
from tsuzuki.redact import redact

MISSING: Final = "batch result missing for request"
LOOK_AGAIN: Final = 1.0
"""How soon a batch is looked for a second time when its process is cancelled (seconds)."""
GONE: Final = frozenset({400, 404, 410, 422})
"""What a provider answers of a batch that it does not know. A key or an account that it refuses says nothing of one."""
TWICE: Final = "batch result came twice for request"


@dataclass(frozen=True, slots=True)
class BatchWork:
    """The batches of processes with one provider."""

    queue: JobQueue
    provider: Provider
    ledger: Ledger
    resumed: bool | None = None
    """Whether it goes on after it had been cancelled: then what a cancelled batch has not done is asked again.

    None: the queue tells; its asker works on a process again, and what was cancelled here is no failure.
    """

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
            hold = {"process_id": process_id, "holder": self.queue.holder, "due": self._now()}
            try:
                state = await self._go_on(process_id, only_open=only_open)
                result["state"] = None if state is None else state.status
            except Waiting as waiting:
                hold["due"] = self._now() + waiting.seconds
                raise
            finally:
                await self.queue.write(lambda db: db.execute(SQL["release"], hold))
        return state

    async def _go_on(self, process_id: str, *, only_open: bool) -> BatchState | None:
        for submission in await self._submissions(process_id):
            if not await self._stopped(process_id):
                await self._take_up(submission)
        if not only_open:
            await self._begin(process_id, "")
        while True:
            state, waiting = await self._look(process_id)
            followed = [] if only_open or await self._stopped(process_id) else await self._followed(process_id)
            for follows in followed:
                await self._begin(process_id, follows)
            if not followed:
                break
        if waiting is not None:
            raise waiting
        return state

    async def _take_up(self, submission: Submission) -> None:
        """Goes on with the jobs of a batch, which wait where it was cancelled or left alone."""
        taken = {"id": submission.id, "now": self.queue.now()}
        await self.queue.write(lambda db: db.execute(SQL["begin_placed"], taken))
        if submission.state == "INTENDED":
            await self._submit(submission, fresh=False)

    async def _stopped(self, process_id: str) -> bool:
        """Tells whether a process was cancelled while it is worked on: then nothing more is sent."""
        return self.resumed is None and await cancelled(self.queue, process_id)

    async def _begin(self, process_id: str, follows: str) -> None:
        """Creates batches for what waits: for the first time, or again after a batch."""
        async for intent in self._chunks(process_id, follows):
            if await self._stopped(process_id):
                return
            submission, fresh = await self._intended(intent)
            await self._submit(submission, fresh=fresh)

    async def _followed(self, process_id: str) -> list[str]:
        """Gives the batches of which jobs wait to be asked again."""
        rows = await self.queue.write(lambda db: db.execute(SQL["followed"], (process_id,)).fetchall())
        return [row[0] for row in rows]

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

    async def _chunks(self, process_id: str, follows: str) -> AsyncIterator[Intent]:
        """Gives what goes into one batch each, by the provider's limits; what is placed is not given again.

        Its id comes of what is in it and which batch it follows: every machine gives it the same.
        """
        while chunk := await self._chunk(process_id, follows):
            jobs = tuple(chunk)
            name = "/".join((follows or process_id, *jobs))
            yield Intent(str(uuid5(NAMESPACE_OID, name)), process_id, self._now(), jobs)

    async def _chunk(self, process_id: str, follows: str) -> list[str]:
        limits, chunk, size, after = self.batches.limits, list[str](), 0, 0
        while True:
            asked = {"process_id": process_id, "follows": follows, "after": after, "most": PAGE}
            rows = await self.queue.write(lambda db, asked=asked: db.execute(SQL["unplaced"], asked).fetchall())  # type: ignore[misc]
            for after, job, request, turns in rows:  # noqa: B007 - the next page begins after the last row
                size += len(self._line(job, question_of(request, turns)))
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
        place = {"provider": self.provider.name, "base_url": redact(self.provider.base_url)}

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
            lines = [self._line(job, placed.question) for job, placed in jobs.items()]
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
            if not fresh and error.status not in GONE:
                raise  # an earlier try may have created it, and who is not let in cannot look for it
            await self._end(submission.id, jobs, f"{type(error).__name__}: {error}")
            return
        await self._attach(intent.id, batch)
        if await self._stopped(intent.process_id):  # it was cancelled before anybody could find this batch
            await self.cancel(intent.process_id)

    async def _placed(self, submission: str) -> dict[str, Placed]:
        rows = await self.queue.write(lambda db: db.execute(SQL["placed"], (submission,)).fetchall())
        return {job: Placed(question_of(request, turns), reply_of(tried)) for job, request, tried, turns in rows}

    async def _searched(self, intent: Intent) -> str | None:
        """Looks for a batch that an earlier try may have created; None when there is surely none."""
        row = await self.queue.write(lambda db: db.execute(SQL["submission"], (intent.id,)).fetchone())
        submission = Submission(*row)
        if submission.batch_job_id is not None:
            return submission.batch_job_id
        found = await self.batches.find(intent, await self._of_others(intent))
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
            raise Waiting(left, "whether a batch was created is not known: it is looked for once more")
        # It is sent anew: should that be unclear too, the search begins anew.
        await self.queue.write(lambda db: db.execute(SQL["searched"], (None, intent.id)))
        return None

    async def _of_others(self, intent: Intent) -> frozenset[str]:
        rows = await self.queue.write(lambda db: db.execute(SQL["known_batches"], (intent.id,)).fetchall())
        return frozenset(other for (other,) in rows)

    async def _attach(self, submission: str, batch: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL["attach"], {"id": submission, "batch": batch})
            db.execute(SQL["attach_job"], {"id": submission, "batch": batch, "now": self.queue.now()})

        await self.queue.write(work)

    # Poll and collect

    async def _look(self, process_id: str) -> tuple[BatchState | None, Waiting | None]:
        """Looks at every open batch, and collects what is over; gives the last state, and what is to be waited for."""
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
                if error.status not in GONE:
                    raise  # it is paid for: whoever comes with the right key collects it
                jobs = await self._placed(submission.id)
                await self._end(submission.id, jobs, f"batch {submission.batch_job_id} is gone: {error}")
                continue
            waiting = seen if waiting is None or seen.seconds < waiting.seconds else waiting
        return last, waiting

    async def _collect(self, submission: Submission, state: BatchState) -> None:
        """Stores what came of each job, by its id; what did not come has failed, or is asked for again."""
        jobs = await self._placed(submission.id)
        seen: set[str] = set()
        group: list[Collected] = []
        async for job, reply in self.batches.outcomes(state):
            if job not in jobs:
                tell(logging.WARNING, f"batch {state.id} has a result for nobody here: {job}")
                continue
            told, wrong = judged(self.provider, jobs[job].question, reply, jobs[job].before)
            turns = again(jobs[job].question, reply.text, wrong).turns if wrong else None
            group.append(Collected(job, told, turns))
            if len(group) >= PAGE:
                await self._store(submission, state.id, group, seen)
                group = []
        await self._store(submission, state.id, group, seen)
        missing = [job for job in jobs if job not in seen]
        if state.status == "cancelled" and (submission.cancelled if self.resumed is None else self.resumed):
            missing = await self._ask_again(submission, {job: jobs[job] for job in missing}, state.id)
        await self._end(submission.id, missing, state.reason or MISSING)

    async def _ask_again(self, submission: Submission, jobs: dict[str, Placed], batch: str) -> list[str]:
        """Lets wait again what a batch that was cancelled has not done; gives those that were tried often enough."""
        left, group = list[str](), list[Collected]()
        for job, placed in jobs.items():
            tried = after(placed.before, Reply(cost=0.0, unasked=1))
            if tried.tries < TRIES:
                group.append(Collected(job, tried, placed.question.turns))
            else:
                left.append(job)
        await self._store(submission, batch, group, set())
        return left

    async def _store(self, submission: Submission, batch: str, group: list[Collected], seen: set[str]) -> None:
        def work(db: sqlite3.Connection) -> None:
            for each in group:
                if each.job in seen:
                    db.execute(SQL["spoil"], {"id": each.job, "error": TWICE, "batch": batch, "now": self.queue.now()})
                elif each.turns is not None:
                    ask_again(self.queue, db, each.job, each.reply, follows=submission.id, turns=each.turns)
                else:
                    keep(self.queue, db, each.job, each.reply)
                seen.add(each.job)

        await self.queue.write(work)

    async def _end(self, submission: str, missing: Iterable[str], error: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            for job in missing:
                self.queue.store(db, job, None, error)
            db.execute(SQL["end_submission"], (submission,))

        await self.queue.write(work)

    async def cancel(self, process_id: str) -> int:
        """Asks the provider to end the open batches of a process; what is done is collected as ever.

        One that may have been created just now is looked for: it would be paid for with nobody waiting for it.
        """
        asked = 0
        await cancel(self.queue, process_id)
        for submission in await self._submissions(process_id):
            try:
                batch = submission.batch_job_id or await self._sought(submission)
                await self.batches.cancel(batch)
                asked += 1
            except LLMError as error:
                which = submission.batch_job_id or "that was to be created"
                tell(logging.WARNING, f"batch {which} cannot be cancelled: {error}", process_id=process_id)
        return asked

    async def _sought(self, submission: Submission) -> str:
        jobs = tuple(await self._placed(submission.id))
        intent = Intent(submission.id, submission.process_id, submission.intended_at, jobs)
        batch = await sought(self.batches, intent, await self._of_others(intent), self.queue.clock)
        await self._attach(submission.id, batch)
        return batch


async def sought(batches: Batches, intent: Intent, known: frozenset[str], clock: Clock) -> str:
    """Gives the batch of an intent whose id is not known; raises `ProviderUnclear` where none is sure to be it.

    The request that creates it may have been under way a moment ago: who finds nothing looks once more.
    """
    found = await batches.find(intent, known)
    if found == Found():
        await clock.sleep(LOOK_AGAIN)
        found = await batches.find(intent, known)
    if found.id is not None:
        return found.id
    if found.perhaps:  # to end somebody else's would be worse
        raise ProviderUnclear(f"{found.perhaps[0]} may be it, which is known only when that is over")
    raise ProviderUnclear("none is found; should one appear all the same, a resume attaches it")
