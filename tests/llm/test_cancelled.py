"""What a cancel leaves: unfinished jobs wait, their batch is known beside that, and nothing is sent twice."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.llm.double import Double, Plan
from tests.llm.takeover_flows import held
from tests.llm.test_batches import address, answers
from tests.llm.test_crashes import Boundary, Victim, enqueued, wait_for
from tests.llm.test_queue import Heard, process, questions
from tests.llm.test_takeover import Machine, until
from tsuzuki import Runs, Status
from tsuzuki.llm.capability import BatchLimits
from tsuzuki.llm.providers import opened
from tsuzuki.llm.questions import Question
from tsuzuki.llm.queue import looking
from tsuzuki.llm.queue.batches import BatchWork
from tsuzuki.llm.queue.jobs import UNATTENDED, JobQueue
from tsuzuki.llm.queue.submissions import NoLedger, Waiting
from tsuzuki.llm.queue.worker import QueueWorker
from tsuzuki.testing import FakeClock

OLDER = Path(__file__).with_name("older")
MIGRATIONS = Path(looking.__file__).with_name("migrations")
pytestmark = pytest.mark.usefixtures("quick")


async def begun(queue: JobQueue, double: Double, count: int) -> str:
    """Leaves a process with an open batch, as a run does that waits."""
    mine, provider = process(), opened(address(double))
    await queue.enqueue(mine, questions(count))
    with pytest.raises(Waiting):
        await BatchWork(queue, provider, NoLedger()).advance(mine)
    await provider.close()
    return mine


def sizes(double: Double) -> list[int]:
    """How many questions each batch had."""
    return [len(batch.requests) for batch in double.batches.values()]


def standing(folder: Path, process_id: str) -> set[tuple[str, str | None]]:
    """How the jobs of a process stand, and how it is with their batch."""
    return {(job["status"], job["batch_state"]) for job in looking.jobs(folder, process_id, 100)}


AT = {
    "before list": ("unclear", [3]),
    "before cancel": ("open", [3]),
    "after cancel": ("open", [3, 2]),
}
"""Where the process that cancels is killed: what is known of the batch then, and which batches there are in the end."""


class Held(Boundary):
    """Holds who comes to a boundary for good: what was asked for there is not done."""

    async def pause(self, boundary: str) -> None:
        if boundary == self._name and not self.reached:
            self.reached = True
            await asyncio.Event().wait()


@pytest.mark.parametrize("boundary", AT)
async def test_a_cancel_that_is_killed_anywhere_leaves_jobs_that_wait_and_a_batch_that_is_found(
    tmp_path: Path, double: Double, boundary: str
) -> None:
    file = tmp_path / "llm_jobs.db"
    double.plan = Plan(polls=10**9)
    at = Boundary(double, "after batch")
    mine = await enqueued(file, 3)
    victim = Victim(file, double, "openai", mine, "batch")
    victim.start()
    wait_for(lambda: at.reached)
    victim.kill()  # the batch is there, and its id is not known
    wait_for(lambda: bool(double.batches))
    at = Held(double, boundary)
    canceller = Victim(file, double, "openai", mine, "cancel")
    canceller.start()
    wait_for(lambda: at.reached)
    canceller.kill()
    state, created = AT[boundary]
    async with JobQueue(file) as queue:
        assert standing(tmp_path, mine) == {("PENDING", state)}
        if boundary == "after cancel":
            wait_for(lambda: all(batch.cancelled for batch in double.batches.values()))
        for batch in double.batches.values():
            batch.plan = Plan(polls=1)
        double.plan = Plan(polls=1)
        assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 3}
    assert sizes(double) == created  # what the batch that was ended had done is taken, and not asked for again


async def test_a_run_whose_worker_dies_while_it_cancels_is_resumed_with_its_batch(
    tmp_path: Path, double: Double
) -> None:
    folder = tmp_path / "store"
    double.plan = Plan(polls=10**9)
    async with Runs.open(f"sqlite:{tmp_path / 'tsuzuki.db'}") as runs:
        row = await runs.submit(held, {"count": 4})
        first = Machine(folder, f"sqlite:{tmp_path / 'tsuzuki.db'}", double)
        try:
            await until(lambda: any(batch.looked for batch in double.batches.values()))
            at = Held(double, "before cancel")
            await runs.cancel(row.id)
            await until(lambda: at.reached)
        finally:
            first.kill()
        [entry] = looking.processes(folder)
        assert standing(folder, entry["process_id"]) == {("PENDING", "open")}
        second = Machine(folder, f"sqlite:{tmp_path / 'tsuzuki.db'}", double)
        try:
            await ended(runs, row.id, Status.CANCELLED)
            assert standing(folder, entry["process_id"]) == {("PENDING", "open")}
            for batch in double.batches.values():
                batch.plan = Plan(polls=1)
            double.plan = Plan(polls=1)
            await runs.resume(row.id)
            await ended(runs, row.id, Status.COMPLETED)
            assert (await runs.result(row.id)) == [f"answer to q{n}" for n in range(4)]
        finally:
            second.kill()
    assert sizes(double) == [4]


async def ended(runs: Runs, run_id: str, status: Status) -> None:
    async with asyncio.timeout(60):
        while (found := await runs.get(run_id)).status is not status:
            assert found.status is not Status.FAILED, found.error
            await asyncio.sleep(0.02)


async def test_jobs_wait_where_nobody_looks_at_their_batch_any_more(tmp_path: Path, double: Double) -> None:
    double.plan = Plan(polls=2)
    file, clock = tmp_path / "llm_jobs.db", FakeClock()
    async with JobQueue(file, clock=clock) as queue:
        mine = await begun(queue, double, 3)
        await queue.recover()
        assert standing(tmp_path, mine) == {("IN_PROGRESS", "open")}, "somebody will look soon"
        clock.advance(UNATTENDED + 10)
        await queue.recover()
        assert standing(tmp_path, mine) == {("PENDING", "open")}
    async with JobQueue(file) as queue:
        assert await queue.claim(mine) is None, "its batch has it"
        assert await QueueWorker(queue, address(double)).process(mine, "sync") == {"COMPLETED": 3}
    assert sizes(double) == [3]
    assert not double.prompts


async def test_a_process_that_is_cancelled_asks_nothing_more_until_it_is_taken_up_again(
    queue: JobQueue, double: Double
) -> None:
    double.delay = 0.05
    mine = process()
    await queue.enqueue(mine, questions(12))
    heard = Heard()
    worker = QueueWorker(queue, address(double), concurrency=2, notifier=heard)
    work = asyncio.create_task(worker.process(mine, "sync"))
    while sum(double.prompts.values()) < 4:
        await asyncio.sleep(0.005)
    assert await worker.cancel(mine) == 0
    counts = await work
    assert heard.events[-1].status == "FAILED", "it is not complete"
    assert "not asked" in heard.events[-1].message
    assert set(counts) == {"COMPLETED", "PENDING"}
    assert counts["COMPLETED"] == sum(double.prompts.values())
    assert await worker.process(mine, "sync") == {"COMPLETED": 12}
    assert set(double.prompts.values()) == {1}


async def test_a_cancel_while_batches_are_created_ends_that_one_and_creates_no_other(
    queue: JobQueue, double: Double
) -> None:
    double.plan = Plan(polls=10**9)
    provider = opened(address(double))
    provider.capability = replace(provider.capability, batch=BatchLimits(2, 10**9))
    mine, cancelled = process(), asyncio.Event()

    async def created(boundary: str) -> None:
        if boundary == "before batch":  # nobody finds what is not there yet
            await QueueWorker(queue, address(double)).cancel(mine)
            cancelled.set()

    double.pause = created
    await queue.enqueue(mine, questions(6))
    await BatchWork(queue, provider, NoLedger()).advance(mine)
    assert cancelled.is_set()
    [batch] = double.batches.values()
    assert batch.cancelled
    assert await queue.counts(mine) == {"COMPLETED": 1, "PENDING": 5}
    double.pause, double.plan = None, Plan()
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 6}
    assert sum(sizes(double)) == 2 + 5
    await provider.close()


async def test_a_job_that_a_batch_had_before_is_not_lost_with_who_asks_it_directly(
    queue: JobQueue, double: Double
) -> None:
    double.plan = Plan(polls=2)
    mine, provider = process(), opened(address(double))
    await queue.enqueue(mine, [Question("q", schema={"type": "integer"}, name="Number")])
    with pytest.raises(Waiting):
        await BatchWork(queue, provider, NoLedger()).advance(mine)
    await BatchWork(queue, provider, NoLedger()).advance(mine, only_open=True)
    async with JobQueue(queue.path) as direct:
        taken = await direct.claim(mine)
        assert taken is not None
        assert taken.batch_job_id in double.batches
    assert await queue.counts(mine) == {"PENDING": 1}
    assert [job.batch_job_id async for job in queue.jobs(mine)] == [taken.batch_job_id]
    await provider.close()


def test_there_is_a_queue_of_every_earlier_schema() -> None:
    newest = max(int(file.name[:4]) for file in MIGRATIONS.glob("*.sql"))
    made = {int(file.stem) for file in OLDER.glob("*.sql")}
    assert made >= set(range(1, newest)), "dump a queue of the schema before the new one"


@pytest.mark.parametrize("schema", sorted(int(file.stem) for file in OLDER.glob("*.sql")))
async def test_a_queue_of_an_earlier_version_opens_and_its_batches_go_on(
    tmp_path: Path, double: Double, schema: int
) -> None:
    """It has a process that is answered, one whose batch is open, one whose batch is unclear, and one that waits."""
    with closing(sqlite3.connect(tmp_path / "llm_jobs.db")) as connection:
        connection.executescript((OLDER / f"{schema}.sql").read_text())
        intents = dict(connection.execute("SELECT process_id, id FROM llm_submissions"))
        placed = "SELECT job_id FROM llm_submission_jobs WHERE submission_id = ? ORDER BY place"
        jobs = {each: [row[0] for row in connection.execute(placed, (intents[each],))] for each in intents}
    answered, known, unclear, waiting = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3, 4))
    for each, name in ((known, "batch_older"), (unclear, "batch_unheard")):
        asked = [{"custom_id": job, "body": {"model": "m-1", "messages": [{"content": "q"}]}} for job in jobs[each]]
        batch = double.made(asked, {"tsuzuki_intent": intents[each]}, "batch_")
        double.batches[name] = double.batches.pop(batch.id)
        batch.id = name
    async with JobQueue(tmp_path / "llm_jobs.db") as queue:
        assert standing(tmp_path, known) == {("PENDING", "open")}
        assert standing(tmp_path, unclear) == {("PENDING", "unclear")}
        assert await answers(queue, answered) == ["answer to q0", "answer to q1"]
        worker = QueueWorker(queue, address(double))
        for each in (known, unclear, waiting):
            assert set(await worker.process(each)) == {"COMPLETED"}
        assert await queue.configured("llm.bulk_strategy") == "batch"
    assert sizes(double) == [4, 2, 1]
    assert set(double.billed.values()) == {1}
