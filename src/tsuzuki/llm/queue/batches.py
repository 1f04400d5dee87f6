"""The batch strategy: intend, create, poll, collect; each thing is written down before the next is done.

A crash between any two lines here leads to no second batch: see the table in ADR 15.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import NAMESPACE_OID, uuid5

import msgspec

from tsuzuki.clock import Clock
from tsuzuki.errors import BadUsage, LLMError, ProviderRefused, ProviderUnavailable, ProviderUnclear
from tsuzuki.llm.answering import judged
from tsuzuki.llm.providers.interface import Batches, BatchState, Found, Intent, NoBatches, Provider
from tsuzuki.llm.questions import Question, Reply, after
from tsuzuki.llm.queue.cancelling import cancel, cancelled
from tsuzuki.llm.queue.jobs import SQL, JobQueue
from tsuzuki.llm.queue.keeping import ask_again, keep
from tsuzuki.llm.queue.submissions import (
    FIRST_LOOK,
    Collected,
    Followed,
    Placed,
    SendingLedger,
    Submission,
    Waiting,
    interval,
    pause,
    question_of,
    reply_of,
    settle,
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
PAGE: Final = 50
"""How many questions of a batch are in memory at once: one may be long."""
STORED: Final = 200
"""How many outcomes of a batch are stored in one transaction."""
READINGS: Final = 3
"""How often a file of outcomes is read that has unreadable lines: the end of it may have been lost on the way."""
RESULTS_KEPT: Final = 2 * 24 * 3600.0
"""For how long after it was sent a batch is looked at again whose outcomes cannot be found (seconds)."""


@dataclass(frozen=True, slots=True)
class BatchWork:
    """The batches of processes with one provider."""

    queue: JobQueue
    provider: Provider
    ledger: SendingLedger
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
            await self._begin(process_id, None)
        while True:
            state, waiting = await self._look(process_id)
            if only_open or not await self._follow(process_id):
                break
        waiting = waiting or (None if only_open else await self._rested(process_id))
        if waiting is not None:
            raise waiting
        return state

    async def _take_up(self, submission: Submission) -> None:
        """Goes on with the jobs of a batch, which wait where it was cancelled or left alone."""
        taken = {"id": submission.id, "now": self.queue.now()}
        await self.queue.write(lambda db: db.execute(SQL["begin_placed"], taken))
        if submission.state == "INTENDED":
            await self._submit(submission)

    async def _stopped(self, process_id: str) -> bool:
        """Tells whether a process was cancelled while it is worked on: then nothing more is sent."""
        return self.resumed is None and await cancelled(self.queue, process_id)

    async def _begin(self, process_id: str, followed: Followed | None) -> bool:
        """Creates batches for what waits: for the first time, or again after a batch. Returns whether there was any."""
        begun = False
        async for intent in self._chunks(process_id, followed):
            if await self._stopped(process_id):
                break
            await self._submit(await self._intended(intent, "" if followed is None else followed.id))
            begun = True
            if followed is not None and followed.most is not None:
                break
        return begun

    async def _follow(self, process_id: str) -> bool:
        """Creates the batches that follow those which are over; those of one that was too large one after the other."""
        begun = False
        for followed in await self._followed(process_id):
            if await self._stopped(process_id):
                break
            if followed.most is not None and (await self._submissions(process_id) or self._rest(followed) > 0):
                continue
            begun |= await self._begin(process_id, followed)
        return begun

    async def _rested(self, process_id: str) -> Waiting | None:
        """Returns for what the jobs of a batch that was too large wait, where nothing else is open."""
        waits = [self._rest(followed) for followed in await self._followed(process_id) if followed.most is not None]
        if not waits or await self._stopped(process_id):
            return None
        text = f"{self.provider.name} takes no more tokens in batches now: smaller ones are sent one after the other"
        return Waiting(max(min(waits), 0.1), text)

    def _rest(self, followed: Followed) -> float:
        return (followed.refused_at or 0.0) + interval() - self._now()

    async def _followed(self, process_id: str) -> list[Followed]:
        """Gives the batches of which jobs wait to be asked again."""
        rows = await self.queue.write(lambda db: db.execute(SQL["followed"], (process_id,)).fetchall())
        return [Followed(*row) for row in rows]

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

    async def _chunks(self, process_id: str, followed: Followed | None) -> AsyncIterator[Intent]:
        """Gives what goes into one batch each, by the provider's limits; what is placed is not given again.

        Its id comes of what is in it and which batch it follows: every machine gives it the same.
        """
        follows, most = ("", None) if followed is None else (followed.id, followed.most)
        while chunk := await self._chunk(process_id, follows, most):
            jobs = tuple(chunk)
            name = "/".join((follows or process_id, *jobs))
            yield Intent(str(uuid5(NAMESPACE_OID, name)), process_id, self._now(), jobs)

    async def _chunk(self, process_id: str, follows: str, most: int | None) -> list[str]:
        """Returns the next jobs of one model that fit into a batch: not every provider takes several models in one."""
        limits, chunk, size, after, model = self.batches.limits, list[str](), 0, 0, ""
        largest = limits.requests if most is None else min(most, limits.requests)
        while True:
            asked = {"process_id": process_id, "follows": follows, "after": after, "most": PAGE}
            rows = await self.queue.write(lambda db, asked=asked: db.execute(SQL["unplaced"], asked).fetchall())  # type: ignore[misc]
            for after, job, request, turns in rows:  # noqa: B007 - the next page begins after the last row
                question = question_of(request, turns)
                model = model or question.model or self.provider.model
                if (question.model or self.provider.model) != model:
                    continue
                size += len(self._line(job, question))
                if chunk and (size > limits.bytes or len(chunk) >= largest):
                    return chunk
                chunk.append(job)
            if len(rows) < PAGE:
                return chunk

    def _line(self, job: str, question: Question) -> bytes:
        rung = None if question.schema is None else self.provider.capability.rungs[0]
        return self.batches.line(job, question, rung)

    def _now(self) -> float:
        return self.queue.clock.now()

    async def _intended(self, meant: Intent, follows: str) -> Submission:
        """Writes an intent down."""
        intent, _ = await self.ledger.intend(meant)
        named = {"id": intent.id, "process_id": intent.process_id, "at": intent.at, "follows": follows}
        place = {"provider": self.provider.name, "base_url": redact(self.provider.base_url)}

        def work(db: sqlite3.Connection) -> Submission:
            db.execute(SQL["intend"], {**named, **place})
            db.executemany(SQL["place"], ((job, intent.id, number) for number, job in enumerate(meant.jobs)))
            db.execute(SQL["begin_placed"], {"id": intent.id, "now": self.queue.now()})
            return Submission(*db.execute(SQL["submission"], (intent.id,)).fetchone())

        return await self.queue.write(work)

    # Create

    async def _submit(self, submission: Submission) -> None:
        """Sees to it that the batch of an intent exists, once, and that its id is known."""
        jobs = await self._jobs(submission.id)
        intent = Intent(submission.id, submission.process_id, submission.intended_at, jobs)
        try:
            batch = await self.ledger.submitted(intent, lambda: self._created(intent))
        except ProviderUnclear as error:
            raise Waiting(FIRST_LOOK, f"whether a batch was created is not known, it is looked for: {error}") from error
        except ProviderUnavailable as error:
            raise Waiting(interval(), f"no batch can be created now: {error}") from error
        except NoBatches:
            await self._withdraw(submission.id)
            raise
        except ProviderRefused as error:
            if error.status not in GONE:
                raise  # whoever comes with the right key goes on: the jobs keep their place
            await self._end(submission.id, jobs, f"{type(error).__name__}: {error}")
            return
        await self._attach(intent.id, batch)
        if await self._stopped(intent.process_id):  # it was cancelled before anybody could find this batch
            await self.cancel(intent.process_id)

    async def _created(self, intent: Intent) -> str:
        """Returns the id of the batch of an intent: the one that an earlier try has created, else that of a new one.

        What was never sent need not be looked for. That it is sent is written down right before, when the questions
        are with the provider already: a holder that was frozen meanwhile and has lost its claim learns it there.
        """
        known = await self._submission(intent.id)
        if known.batch_job_id is not None:
            return known.batch_job_id
        times = [at for at in (known.sent_at, await self.ledger.last_sent(intent)) if at is not None]
        if times and (batch := await self._searched(intent, max(times))) is not None:
            return batch
        sent = False

        async def sending() -> None:
            nonlocal sent
            sent, now = True, self._now()
            await self.queue.write(lambda db: db.execute(SQL["sent"], (now, intent.id)))
            await self.ledger.sending(intent)

        try:
            batch = await self.batches.create(intent, self._lines(intent), sending)
        except ProviderUnclear:
            raise
        except LLMError:
            if sent:
                await self.queue.write(lambda db: db.execute(SQL["sent"], (None, intent.id)))
                await self.ledger.unsent(intent)
            raise
        await self._attach(intent.id, batch)
        return batch

    async def _lines(self, intent: Intent) -> AsyncIterator[bytes]:
        for jobs in _pages(intent.jobs):
            for job, placed in (await self._placed(intent.id, jobs)).items():
                yield self._line(job, placed.question)

    async def _jobs(self, submission: str) -> tuple[str, ...]:
        rows = await self.queue.write(lambda db: db.execute(SQL["placed"], (submission,)).fetchall())
        return tuple(row[0] for row in rows)

    async def _placed(self, submission: str, jobs: Iterable[str]) -> dict[str, Placed]:
        """Returns what some jobs of a batch ask there."""
        wanted = {"id": submission, "jobs": msgspec.json.encode(list(jobs)).decode()}
        rows = await self.queue.write(lambda db: db.execute(SQL["placed_jobs"], wanted).fetchall())
        return {job: Placed(question_of(request, turns), reply_of(tried)) for job, request, tried, turns in rows}

    async def _submission(self, submission: str) -> Submission:
        row = await self.queue.write(lambda db: db.execute(SQL["submission"], (submission,)).fetchone())
        return Submission(*row)

    async def _searched(self, intent: Intent, sent_at: float) -> str | None:
        """Looks for a batch that was sent, and may have been created; None when there is surely none."""
        found = await self.batches.find(intent, await self._of_others(intent))
        if found.id is not None:
            tell(logging.INFO, f"batch {found.id} was created before, and is attached", process_id=intent.process_id)
            return found.id
        if found.perhaps:
            raise Waiting(interval(), f"batch {found.perhaps[0]} may be ours: that is known when it is over")
        now = self._now()
        if (left := min(sent_at, now) + settle() - now) > 0:
            await self.queue.write(lambda db: db.execute(SQL["sent"], (min(sent_at, now), intent.id)))
            raise Waiting(left, "whether a batch was created is not known: it is looked for once more")
        return None  # it is sent again: should that be unclear too, the search begins again

    async def _withdraw(self, submission: str) -> None:
        """Lets the jobs of a batch wait that its provider can never create."""
        jobs = await self._jobs(submission)

        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL["unplace"], (submission,))
            db.execute(SQL["withdraw"], (submission,))
            for job in jobs:
                db.execute(SQL["put_back"], {"id": job, "now": self.queue.now()})

        await self.queue.write(work)

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
                seen = await self._collected(submission, state) if state.over else self._seen(state, age)
                if seen is None:
                    continue
            except ProviderUnavailable as error:
                tell(logging.WARNING, f"polling goes on: {error}", process_id=process_id)
                seen = Waiting(pause(age), f"batch {submission.batch_job_id} cannot be looked at: {error}")
            except ProviderRefused as error:
                if error.status not in GONE:
                    raise  # it is paid for: whoever comes with the right key collects it
                jobs = await self._jobs(submission.id)
                await self._end(submission.id, jobs, f"batch {submission.batch_job_id} is gone: {error}")
                continue
            waiting = seen if waiting is None or seen.seconds < waiting.seconds else waiting
        return last, waiting

    def _seen(self, state: BatchState, age: float) -> Waiting:
        text = f"batch {state.id} of {self.provider.name} is {state.status}: {state.done} of {state.total}"
        return Waiting(pause(age), text, state.done + state.failed, state.total)

    async def _collected(self, submission: Submission, state: BatchState) -> Waiting | None:
        """Collects a batch that is over; returns what is waited for where its outcomes cannot be found yet."""
        try:
            if state.crowded:
                await self._spread(submission, state.id)
            else:
                await self._collect(submission, state)
        except ProviderRefused as error:
            age = self._now() - submission.intended_at
            if error.status not in GONE or age > RESULTS_KEPT:
                raise
            tell(logging.WARNING, f"batch {state.id} is looked at again: {error}", process_id=submission.process_id)
            return Waiting(pause(age), f"the results of batch {state.id} cannot be found yet: {error}")
        return None

    async def _collect(self, submission: Submission, state: BatchState) -> None:
        """Stores what came of each job, by its id; what did not come has failed, or is asked for again."""
        reading = _Reading(submission, state, dict.fromkeys(await self._jobs(submission.id)))
        for _ in range(READINGS):
            if not await self._read(reading):
                break
            tell(logging.WARNING, f"the results of batch {state.id} have lines that cannot be read")
            await self.queue.clock.sleep(min(FIRST_LOOK, interval()))
        missing = [job for job in reading.jobs if job not in reading.stored]
        if state.status == "cancelled" and (submission.cancelled if self.resumed is None else self.resumed):
            missing = await self._ask_again(submission, missing)
        await self._end(submission.id, missing, state.reason or MISSING)
        if submission.follows:  # one that was too large before: as this one was not, the next may be larger
            grown = {"id": submission.follows, "most": 2 * len(reading.jobs)}
            await self.queue.write(lambda db: db.execute(SQL["take_most"], grown))

    async def _read(self, reading: "_Reading") -> int:
        """Reads the outcomes of a batch once; returns how many lines cannot be read."""
        unreadable, group = 0, dict[str, Reply]()
        seen: set[str] = set()
        async for job, reply in self.batches.outcomes(reading.state):
            if reply is None:
                unreadable += 1
            elif job not in reading.jobs:
                tell(logging.WARNING, f"batch {reading.state.id} has a result for nobody here: {job}")
            elif job in seen:
                reading.twice.add(job)
            else:
                seen.add(job)
                if job not in reading.stored:
                    group[job] = reply
            if len(group) >= STORED:
                await self._keep(reading, group)
                group = {}
        await self._keep(reading, group)
        return unreadable

    async def _keep(self, reading: "_Reading", replies: dict[str, Reply]) -> None:
        """Stores some outcomes of a batch, and that others came twice."""
        placed = await self._placed(reading.submission.id, replies)
        group = []
        for job, each in placed.items():
            told, wrong = judged(self.provider, each.question, replies[job], each.before)
            turns = again(each.question, replies[job].text, wrong).turns if wrong else None
            group.append(Collected(job, told, turns))
        await self._store(reading.submission, group)
        spoilt = {"error": TWICE, "batch": reading.state.id, "now": self.queue.now()}
        twice = [{"id": job, **spoilt} for job in reading.twice]
        await self.queue.write(lambda db: db.executemany(SQL["spoil"], twice))
        reading.stored.update(replies)

    async def _spread(self, submission: Submission, batch: str) -> None:
        """Lets wait again what a batch had in it that was too large for what its provider takes at once.

        It goes into batches of half as many, one after the other. It was never asked, so that is no try.
        """
        jobs = await self._jobs(submission.id)
        tell(
            logging.WARNING, f"batch {batch} of {len(jobs)} was too large for {self.provider.name}: it is sent in parts"
        )
        for page in _pages(jobs):
            placed = await self._placed(submission.id, page)
            group = [
                Collected(job, each.before or Reply(cost=0.0, tries=0), each.question.turns)
                for job, each in placed.items()
            ]
            await self._store(submission, group)
        half = {"most": max(len(jobs) // 2, 1), "at": self._now()}

        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL["refused"], {"id": submission.id, **half})
            db.execute(SQL["take_most"], {"id": submission.follows, "most": half["most"]})

        await self.queue.write(work)

    async def _ask_again(self, submission: Submission, jobs: Sequence[str]) -> list[str]:
        """Lets wait again what a batch that was cancelled has not done; gives those that were tried often enough."""
        left = list[str]()
        for page in _pages(jobs):
            group = list[Collected]()
            for job, placed in (await self._placed(submission.id, page)).items():
                tried = after(placed.before, Reply(cost=0.0, unasked=1))
                if tried.tries < TRIES:
                    group.append(Collected(job, tried, placed.question.turns))
                else:
                    left.append(job)
            await self._store(submission, group)
        return left

    async def _store(self, submission: Submission, group: list[Collected]) -> None:
        def work(db: sqlite3.Connection) -> None:
            for each in group:
                if each.turns is not None:
                    ask_again(self.queue, db, each.job, each.reply, follows=submission.id, turns=each.turns)
                else:
                    keep(self.queue, db, each.job, each.reply)

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
        jobs = await self._jobs(submission.id)
        intent = Intent(submission.id, submission.process_id, submission.intended_at, jobs)
        batch = await sought(self.batches, intent, await self._of_others(intent), self.queue.clock)
        await self._attach(submission.id, batch)
        return batch


def _pages(jobs: Sequence[str]) -> Iterator[Sequence[str]]:
    return (jobs[start : start + PAGE] for start in range(0, len(jobs), PAGE))


@dataclass(frozen=True, slots=True)
class _Reading:
    """The outcomes of a batch while they are read: which jobs it had, and which of them are stored."""

    submission: Submission
    state: BatchState
    jobs: dict[str, None]
    stored: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)


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
