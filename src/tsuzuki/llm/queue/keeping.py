"""What a job keeps of its replies: a response or an error, and what those took that were not enough."""

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from tsuzuki.llm.questions import Reply, Turn, Usage
from tsuzuki.llm.queue.jobs import SQL, Job, JobQueue

NOTHING: Final[Mapping[str, Reply]] = MappingProxyType({})


def as_stored(reply: Reply) -> tuple[str | None, str | None]:
    """Gives the response of a job or its error."""
    return (None, reply.error) if reply.error else (msgspec.json.encode(reply).decode(), None)


def as_reply(job: Job, tried: Mapping[str, Reply] = NOTHING) -> Reply:
    """Gives the reply that a job keeps; one that failed with what its tries took, where that is known."""
    if job.response_json is not None:
        return msgspec.json.decode(job.response_json, type=Reply)
    error = job.error_message or "there is no answer"
    return msgspec.structs.replace(tried.get(job.id, Reply(finish="error")), value=None, error=error)


def keep(queue: JobQueue, db: sqlite3.Connection, job_id: str, reply: Reply) -> bool:
    """Stores what came of a job, inside a transaction; a failure with the last answer and what it took."""
    stored = queue.store(db, job_id, *as_stored(reply))
    if reply.error and (reply.usage != Usage() or reply.uncertain):
        _tried(db, job_id, None, reply, ())
    return stored


def ask_again(
    queue: JobQueue, db: sqlite3.Connection, job_id: str, reply: Reply, *, follows: str, turns: tuple[Turn, ...]
) -> None:
    """Lets a job of a batch wait again, to be asked with these turns in one that follows it."""
    if db.execute(SQL["again"], {"id": job_id, "now": queue.now()}).rowcount:
        _tried(db, job_id, follows, reply, turns)
        db.execute(SQL["forget_place"], (job_id,))


def _tried(db: sqlite3.Connection, job_id: str, follows: str | None, reply: Reply, turns: tuple[Turn, ...]) -> None:
    took = msgspec.structs.replace(reply, value=None)
    said = {"reply": msgspec.json.encode(took).decode(), "turns": msgspec.json.encode(turns).decode()}
    db.execute(SQL["tried"], {"id": job_id, "follows": follows, **said})


async def tries_of(queue: JobQueue, process_id: str) -> dict[str, Reply]:
    """Gives what the tries of the jobs of a process took that were not enough."""
    rows = await queue.write(lambda db: db.execute(SQL["tries"], (process_id,)).fetchall())
    return {job: msgspec.json.decode(reply, type=Reply) for job, reply in rows}
