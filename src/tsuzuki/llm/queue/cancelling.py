"""A process that is cancelled: its unfinished jobs wait, and each keeps its place in the batch that may still have it.

The place decides what is sent, never the status: a job that waits and has a place in a batch that is not over is
answered by that batch.
"""

import sqlite3

from tsuzuki.llm.queue.jobs import SQL, JobQueue
from tsuzuki.llm.queue.tracing import entered


async def cancel(queue: JobQueue, process_id: str) -> int:
    """Lets the unfinished jobs of a process wait, and nothing more of it be sent; gives how many waited for a batch.

    One transaction, before any provider is asked: a crash leaves nothing between.
    """

    def work(db: sqlite3.Connection) -> int:
        db.execute(SQL["cancel_process"], {"process_id": process_id, "now": queue.now()})
        db.execute(SQL["cancel_submissions"], (process_id,))
        return db.execute(SQL["wait_placed"], {"process_id": process_id, "now": queue.now()}).rowcount

    with entered("Cancel", queue.clock, process_id=process_id) as result:
        result["waiting"] = waiting = await queue.write(work)
    return waiting


async def go_on(queue: JobQueue, process_id: str) -> None:
    """Lets a process that was cancelled be worked on again."""
    await queue.write(lambda db: db.execute(SQL["go_on"], (process_id,)))


async def cancelled(queue: JobQueue, process_id: str) -> bool:
    """Tells whether a process is cancelled."""
    row = await queue.write(lambda db: db.execute(SQL["cancelled"], (process_id,)).fetchone())
    return row is not None
