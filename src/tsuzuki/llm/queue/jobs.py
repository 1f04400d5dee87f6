"""The jobs in `llm_jobs.db`: enqueued under a process id, taken under a lease, handed over, deleted.

The queue knows nothing of who asks, and nothing of what is asked: `request_json` is text to it.
"""

import logging
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar

import msgspec

from tsuzuki import settings
from tsuzuki.backends import WorkerRecord
from tsuzuki.backends.statements import parse
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import BadUsage, NotJSON
from tsuzuki.llm.database import Database
from tsuzuki.llm.queue.tracing import entered, tell, trace_id
from tsuzuki.presence import Presence, is_gone, this_host

Status: TypeAlias = Literal["PENDING", "IN_PROGRESS", "COMPLETED", "FAILED"]
Given = TypeVar("Given")

FILE: Final = "llm_jobs.db"
STRATEGY: Final = "llm.bulk_strategy"
PAGE: Final = 500
UNATTENDED: Final = 60.0
"""How long after its time a batch may be looked at before its jobs are said to wait (seconds)."""

SQL: Final = parse(Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as its row has it."""

    id: str
    process_id: str
    request_json: str
    status: Status
    batch_job_id: str | None
    response_json: str | None
    error_message: str | None
    created_at: str
    updated_at: str

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.status in ("COMPLETED", "FAILED")


class JobQueue:
    """The queue in one file; `async with` it. Whoever opens it is a holder of jobs while it lives."""

    def __init__(self, path: Path | None = None, *, clock: Clock | None = None) -> None:
        self.path = path or settings.data_dir() / FILE
        self.clock: Clock = clock or SystemClock()
        self.holder = f"llm-{uuid.uuid4().hex}"
        self._database = Database(self.path, Path(__file__).with_name("migrations"), self.clock)
        self._presence: Presence | None = None

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        try:
            self._presence = Presence(self.holder, str(self.path))
            host, presence = this_host(), self._presence.path
            await self.write(lambda db: db.execute(SQL["arrive"], (self.holder, host, presence, self.now())))
            await self.recover()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the jobs it holds, and of the file."""
        presence, self._presence = self._presence, None
        try:
            if presence is not None:
                await self.write(lambda db: self._take_back(db, self.holder))
        finally:  # where the file takes nothing more, others see that nobody is here, and take the jobs back
            if presence is not None:
                presence.close()
            await self._database.close()

    async def write(self, call: Callable[[sqlite3.Connection], Given]) -> Given:
        """Does something in a transaction."""
        return await self._database.write(call)

    def now(self) -> str:
        """Gives the time as rows have it: UTC, ISO 8601."""
        return datetime.fromtimestamp(self.clock.now(), UTC).isoformat(timespec="microseconds")

    # Who asks

    async def enqueue(self, process_id: str, requests: Iterable[Any], *, ids: Sequence[str] | None = None) -> list[str]:
        """Adds a job for each request, all or none, and gives their ids in order.

        Ids of one's own make it idempotent: a job that is there already stays as it is.
        """
        process = process_of(process_id)
        asked = list(requests)
        with entered("Enqueue", self.clock, process_id=process, job_count=len(asked)) as result:
            chosen = [str(uuid.uuid4()) for _ in asked] if ids is None else [str(uuid.UUID(each)) for each in ids]
            if len(chosen) != len(asked):
                raise BadUsage(f"{len(asked)} requests need as many ids, not {len(chosen)}")
            trace, statement = trace_id(), SQL["enqueue" if ids is None else "enqueue_once"]

            def work(db: sqlite3.Connection) -> int:
                now = self.now()
                before = db.total_changes
                rows = zip(chosen, map(_json, asked), strict=True)  # as text only one at a time: they may be long
                named = ({"id": i, "process_id": process, "request": text, "now": now} for i, text in rows)
                db.executemany(statement, named)
                inserted = db.total_changes - before
                if asked:
                    db.execute(SQL["know_process"], (process, trace, now))
                return inserted

            result["inserted"] = await self.write(work)
        return chosen

    async def get_results(self, process_id: str) -> list[Job]:
        """Gives the jobs of a process that have ended, failed ones too, in the order in which they were asked for.

        They stay until they are deleted: save them first.
        """
        with entered("GetResults", self.clock, process_id=process_id) as result:
            found = [job async for job in self.each_result(process_id)]
            result["returned"] = len(found)
        return found

    async def each_result(self, process_id: str) -> AsyncIterator[Job]:
        """Gives the jobs of a process that have ended, a page at a time."""
        async for job in self._pages("results", process_id):
            yield job

    async def jobs(self, process_id: str) -> AsyncIterator[Job]:
        """Gives all jobs of a process."""
        async for job in self._pages("jobs", process_id):
            yield job

    async def result_page(self, process_id: str, after: int = 0) -> tuple[list[Job], int]:
        """Return some jobs of a process that have ended, and after which row the next ones follow."""
        return await self._page("results", process_id, after)

    async def _pages(self, query: str, process_id: str) -> AsyncIterator[Job]:
        after = 0
        while True:
            jobs, after = await self._page(query, process_id, after)
            for job in jobs:
                yield job
            if len(jobs) < PAGE:
                return

    async def _page(self, query: str, process_id: str, after: int) -> tuple[list[Job], int]:
        asked = {"process_id": process_id, "after": after, "most": PAGE}
        rows = await self.write(lambda db: db.execute(SQL[query], asked).fetchall())
        return [Job(*row[1:]) for row in rows], rows[-1][0] if rows else after

    async def delete(self, *ids: str) -> int:
        """Deletes jobs that were saved elsewhere; one that is not there is no matter."""
        with entered("Delete", self.clock, job_count=len(ids)) as result:
            result["deleted"] = deleted = await self.write(lambda db: self._delete(db, ids))
        return deleted

    async def delete_process(self, process_id: str, *, abandoned: bool = False) -> int:
        """Deletes all jobs of a process; an abandoned one with its batches that are not over."""

        def work(db: sqlite3.Connection) -> int:
            if abandoned:
                db.execute(SQL["abandon"], (process_id,))
            return self._delete(db, [row[0] for row in db.execute(SQL["ids"], (process_id,))], process_id)

        with entered("DeleteProcess", self.clock, process_id=process_id) as result:
            result["deleted"] = deleted = await self.write(work)
        return deleted

    def _delete(self, db: sqlite3.Connection, ids: Sequence[str], process_id: str = "") -> int:
        processes = {process_id} - {""}
        deleted = 0
        for each in ids:
            row = db.execute(SQL["job"], (each,)).fetchone()
            if row is not None:
                processes.add(row[1])
                deleted += db.execute(SQL["delete"], (each,)).rowcount
                db.execute(SQL["unlease"], (each,))
                db.execute(SQL["forget_place"], (each,))
                db.execute(SQL["forget_tries"], (each,))
        for process in processes:
            db.execute(SQL["forget_submissions"], {"process_id": process})
            db.execute(SQL["forget_process"], {"process_id": process})
        return deleted

    async def counts(self, process_id: str) -> dict[str, int]:
        """Gives how many jobs a process has, by status."""
        rows = await self.write(lambda db: db.execute(SQL["counts"], (process_id,)).fetchall())
        return dict(rows)

    async def processes(self) -> list[tuple[Any, ...]]:
        """Gives the processes with their jobs by status: process, status, count, batch, first and last change."""
        return await self.write(lambda db: db.execute(SQL["processes"]).fetchall())

    async def job(self, job_id: str) -> Job | None:
        """Gives one job."""
        row = await self.write(lambda db: db.execute(SQL["job"], (job_id,)).fetchone())
        return None if row is None else Job(*row)

    async def trace_of(self, process_id: str) -> str:
        """Gives the trace that began when a process was enqueued."""
        row = await self.write(lambda db: db.execute(SQL["trace"], (process_id,)).fetchone())
        return row[0] if row else trace_id()

    # Who works

    async def claim(self, process_id: str) -> Job | None:
        """Takes the next job of a process that waits, under a lease; none of a process that is cancelled."""
        return await self.write(lambda db: self._claim(db, process_id))

    async def begin(self, process_id: str, job_id: str, request: Any) -> Job:
        """Takes one job, which is added if it is not there, from whoever had it; one that is COMPLETED is as it is."""
        text = _json(request)

        def work(db: sqlite3.Connection) -> Job:
            now = self.now()
            db.execute(SQL["enqueue_once"], {"id": job_id, "process_id": process_id, "request": text, "now": now})
            db.execute(SQL["know_process"], (process_id, trace_id(), now))
            job = Job(*db.execute(SQL["job"], (job_id,)).fetchone())
            return job if job.status == "COMPLETED" else self._taken(db, job)

        return await self.write(work)

    def _claim(self, db: sqlite3.Connection, process_id: str) -> Job | None:
        row = db.execute(SQL["next"], {"process_id": process_id}).fetchone()
        return None if row is None else self._taken(db, Job(*row))

    def _taken(self, db: sqlite3.Connection, job: Job) -> Job:
        now = self.now()
        db.execute(SQL["take"], {"id": job.id, "now": now})
        db.execute(SQL["unfail"], (job.id,))
        db.execute(SQL["lease"], (job.id, self.holder, now))
        return Job(*db.execute(SQL["job"], (job.id,)).fetchone())

    async def finish(self, job_id: str, response: str | None, error: str | None = None) -> bool:
        """Stores what came of a job; tells whether it was still under way: what comes late is refused."""
        return await self.write(lambda db: self.store(db, job_id, response, error))

    async def finish_and_claim(self, job: Job, finish: Callable[[sqlite3.Connection], object]) -> Job | None:
        """Stores what came of a job and takes the next one, in one transaction."""

        def work(db: sqlite3.Connection) -> Job | None:
            finish(db)
            return self._claim(db, job.process_id)

        return await self.write(work)

    def store(self, db: sqlite3.Connection, job_id: str, response: str | None, error: str | None) -> bool:
        """Stores what came of a job, inside a transaction."""
        status = "COMPLETED" if error is None else "FAILED"
        found = {"id": job_id, "status": status, "response": response if error is None else None, "error": error}
        stored = db.execute(SQL["finish"], {**found, "now": self.now()}).rowcount
        db.execute(SQL["unlease"], (job_id,))
        return bool(stored)

    async def put_back(self, job_id: str) -> None:
        """Lets a job that was taken wait again."""

        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL["put_back"], {"id": job_id, "now": self.now()})
            db.execute(SQL["unlease"], (job_id,))

        await self.write(work)

    async def recover(self) -> int:
        """Takes back the jobs of holders that are dead, and lets those wait at whose batch nobody looks any more.

        What is in a batch stays there, to be polled: its place is kept, whatever its status.
        """
        with entered("Recover", self.clock) as result:
            holders = await self.write(lambda db: db.execute(SQL["holders"]).fetchall())
            records = [WorkerRecord(id=row[0], host=row[1], presence=row[2]) for row in holders]
            now = self.clock.now()  # holders have no heartbeats: without its file one has ended
            dead = [each.id for each in records if each.id != self.holder and is_gone(each, one_machine=True, now=now)]
            recovered = 0
            for each in dead:
                recovered += await self.write(lambda db, each=each: self._take_back(db, each))  # type: ignore[misc]
            late = {"now": self.now(), "late": self.clock.now() - UNATTENDED}
            await self.write(lambda db: db.execute(SQL["unattended"], late))
            result["recovered"] = recovered
        if recovered:
            tell(logging.INFO, f"recovered {recovered} jobs of {len(dead)} holders that are gone", recovered=recovered)
        return recovered

    def _take_back(self, db: sqlite3.Connection, holder: str) -> int:
        now = self.now()
        stranded = [row[0] for row in db.execute(SQL["stranded"], (holder,))]
        count = sum(db.execute(SQL["put_back"], {"id": each, "now": now}).rowcount for each in stranded)
        db.execute(SQL["drop_leases"], (holder,))
        db.execute(SQL["drop_holds"], (holder,))
        db.execute(SQL["leave"], (holder,))
        return count

    # What is stored of the configuration

    async def configured(self, key: str) -> str | None:
        """Gives what is stored under a key, for example `llm.bulk_strategy`."""
        row = await self.write(lambda db: db.execute(SQL["configuration"], (key,)).fetchone())
        return None if row is None else str(row[0])

    async def configure(self, key: str, value: str) -> None:
        """Stores it; it counts from the next time that a process is worked on."""
        await self.write(lambda db: db.execute(SQL["configure"], (key, value)))


def process_of(process_id: str) -> str:
    """Gives a process id as rows have it; what is no UUID is refused."""
    try:
        return str(uuid.UUID(process_id))
    except (ValueError, TypeError, AttributeError):
        raise BadUsage(f"a process id is a UUID, not {process_id!r}") from None


def _json(request: Any) -> str:
    try:
        return request if isinstance(request, str) else msgspec.json.encode(request).decode()
    except (TypeError, ValueError) as error:
        raise NotJSON(f"a request cannot be written as JSON: {error}; nothing was enqueued") from None
