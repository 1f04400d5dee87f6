"""The job queue: its table as specified, its sync strategy, its hand-over, its recovery, its progress and its logs."""

import asyncio
import json
import logging
import sqlite3
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.llm.double import KEY, Double
from tsuzuki.backends import WorkerRecord
from tsuzuki.errors import BadUsage, NewerStore, NotJSON, StoreUnavailable
from tsuzuki.llm.providers import Address, opened
from tsuzuki.llm.questions import Question
from tsuzuki.llm.queue.jobs import JobQueue
from tsuzuki.llm.queue.progress import ProgressEvent
from tsuzuki.llm.queue.tracing import following
from tsuzuki.llm.queue.worker import QueueWorker, choose, concurrency_of
from tsuzuki.logs import JsonLines
from tsuzuki.presence import is_gone

COLUMNS = [
    ("id", "TEXT"),
    ("process_id", "TEXT"),
    ("request_json", "TEXT"),
    ("status", "TEXT"),
    ("batch_job_id", "TEXT"),
    ("response_json", "TEXT"),
    ("error_message", "TEXT"),
    ("created_at", "DATETIME"),
    ("updated_at", "DATETIME"),
]


class Heard:
    """A notifier that remembers."""

    def __init__(self) -> None:
        self.events: list[ProgressEvent] = []

    def on_progress(self, event: ProgressEvent) -> None:
        self.events.append(event)


def process() -> str:
    return str(uuid.uuid4())


def questions(count: int) -> list[Question]:
    return [Question(f"q{number}") for number in range(count)]


def worker(queue: JobQueue, double: Double, **options: Any) -> QueueWorker:
    return QueueWorker(queue, Address("openai", f"{double.url}/v1", "m-1"), **options)


def rows(queue: JobQueue, statement: str) -> list[Any]:
    with sqlite3.connect(queue.path) as connection:
        found = connection.execute(statement).fetchall()
    connection.close()
    return found


async def test_the_table_is_the_one_of_the_requirement(queue: JobQueue) -> None:
    assert [(row[1], row[2]) for row in rows(queue, "PRAGMA table_info(llm_jobs)")] == COLUMNS
    assert rows(queue, "PRAGMA journal_mode") == [("wal",)]
    asked = "EXPLAIN QUERY PLAN SELECT * FROM llm_jobs WHERE process_id = 'x'"
    assert "llm_jobs_process" in rows(queue, asked)[0][3]
    assert rows(queue, "SELECT version FROM schema_version") == [(1,), (2,), (3,), (4,)]
    with pytest.raises(sqlite3.IntegrityError):
        rows(queue, "INSERT INTO llm_jobs VALUES ('a', 'b', '{}', 'DONE', NULL, NULL, NULL, '', '')")
    every = " ".join(row[0] or "" for row in rows(queue, "SELECT sql FROM sqlite_master")).lower()
    assert "deleted" not in every
    assert "archive" not in every


async def test_opening_again_changes_nothing_and_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "llm_jobs.db"
    async with JobQueue(path) as queue:
        before = rows(queue, "SELECT * FROM schema_version")
    async with JobQueue(path) as queue:
        assert rows(queue, "SELECT * FROM schema_version") == before
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO schema_version VALUES (99, '')")
    connection.close()
    with pytest.raises(NewerStore):
        async with JobQueue(path):
            pass


async def test_a_queue_whose_file_takes_nothing_more_leaves_nothing_behind(tmp_path: Path) -> None:
    queue = await JobQueue(tmp_path / "llm_jobs.db").__aenter__()
    [(name, host, presence)] = rows(queue, "SELECT id, host, presence FROM llm_holders")
    rows(queue, "DROP TABLE llm_leases")
    with pytest.raises(sqlite3.OperationalError):
        await queue.close()
    assert "tsuzuki-llm_jobs" not in {thread.name for thread in threading.enumerate()}
    assert is_gone(WorkerRecord(id=name, host=host, presence=presence), one_machine=True, now=queue.clock.now())


async def test_a_queue_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="check the path"):
        await JobQueue(tmp_path / "file" / "llm_jobs.db").__aenter__()


async def test_enqueueing_is_all_or_nothing_and_never_overwrites(queue: JobQueue) -> None:
    mine, other = process(), process()
    assert await queue.enqueue(mine, []) == []
    first = await queue.enqueue(mine, questions(2))
    second = await queue.enqueue(mine, questions(1))
    await queue.enqueue(other, questions(1))
    assert all(uuid.UUID(each).version == 4 for each in (*first, *second))
    with pytest.raises(NotJSON):
        await queue.enqueue(mine, [Question("x"), object()])
    with pytest.raises(BadUsage, match="UUID"):
        await queue.enqueue("42", questions(1))
    assert [job.id async for job in queue.jobs(mine)] == [*first, *second]
    assert await queue.counts(mine) == {"PENDING": 3}
    await queue.enqueue(mine, [Question("again")], ids=first[:1])
    assert await queue.counts(mine) == {"PENDING": 3}


async def test_ten_writers_at_once_are_no_trouble(tmp_path: Path) -> None:
    path, mine = tmp_path / "llm_jobs.db", process()

    async def one() -> None:
        async with JobQueue(path) as queue:
            for _ in range(5):
                await queue.enqueue(mine, questions(3))

    await asyncio.gather(*(one() for _ in range(10)))
    async with JobQueue(path) as queue:
        assert await queue.counts(mine) == {"PENDING": 150}


async def test_sync_answers_every_job_within_its_concurrency(queue: JobQueue, double: Double) -> None:
    double.delay = 0.01
    heard, mine = Heard(), process()
    await queue.enqueue(mine, questions(20))
    counts = await worker(queue, double, notifier=heard, concurrency=4).process(mine, "sync")
    assert counts == {"COMPLETED": 20}
    assert double.most_at_once == 4
    results = await queue.get_results(mine)
    assert [json.loads(job.response_json or "")["text"] for job in results] == [f"answer to q{n}" for n in range(20)]
    assert [event.completed for event in heard.events] == [*range(21), 20]
    assert {event.correlation_id for event in heard.events} == {mine}
    assert {event.status for event in heard.events[:-1]} == {"IN_PROGRESS"}
    assert heard.events[-1].status == "COMPLETED"
    assert {job.batch_job_id for job in results} == {None}
    assert all(job.created_at <= job.updated_at and job.created_at.endswith("+00:00") for job in results)


async def test_one_failure_is_that_jobs_own(queue: JobQueue, double: Double) -> None:
    def answer(prompt: str) -> str:
        return "x" * 3 if prompt != "q2" else "no"

    double.answer = answer
    schema = {"title": "Three", "type": "string", "minLength": 3}
    mine = process()
    await queue.enqueue(mine, [Question(f"q{n}", schema=schema, name="Three") for n in range(2)])
    await queue.enqueue(mine, [Question("good")])
    counts = await worker(queue, double).process(mine)
    assert counts == {"COMPLETED": 1, "FAILED": 2}
    failed = [job for job in await queue.get_results(mine) if job.status == "FAILED"]
    assert all(job.error_message and job.response_json is None for job in failed)


async def test_a_job_is_in_progress_while_it_is_asked(queue: JobQueue, double: Double) -> None:
    double.delay = 30
    mine = process()
    await queue.enqueue(mine, questions(3))
    work = asyncio.create_task(worker(queue, double, concurrency=1).process(mine, "sync"))
    while not double.at_once:
        await asyncio.sleep(0.005)
    assert await queue.counts(mine) == {"IN_PROGRESS": 1, "PENDING": 2}
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await queue.counts(mine) == {"PENDING": 3}


async def test_results_stay_until_they_are_deleted(queue: JobQueue, double: Double) -> None:
    mine, other = process(), process()
    for each in (mine, other):
        await queue.enqueue(each, questions(3))
        await worker(queue, double).process(each, "sync")
    first = await queue.get_results(mine)
    assert [job.id for job in await queue.get_results(mine)] == [job.id for job in first]
    assert await queue.delete(first[0].id, str(uuid.uuid4())) == 1
    assert len(await queue.get_results(mine)) == 2
    await queue.delete_process(mine)
    assert await queue.get_results(mine) == []
    assert len(await queue.get_results(other)) == 3
    await queue.delete_process(other)
    for table in ("jobs", "processes", "leases", "submissions", "submission_jobs"):
        assert rows(queue, f"SELECT count(*) FROM llm_{table}") == [(0,)], table  # noqa: S608 - these names


async def test_the_file_does_not_grow_over_a_hundred_cycles(queue: JobQueue) -> None:
    sizes = []
    for _ in range(100):
        mine = process()
        jobs = await queue.enqueue(mine, [Question("x" * 2000)] * 10)
        await asyncio.gather(*(queue.claim(mine) for _ in jobs))
        await asyncio.gather(*(queue.finish(job, "{}" * 500) for job in jobs))
        await queue.delete_process(mine)
        sizes.append(rows(queue, "PRAGMA page_count")[0][0])
    assert sizes[-1] == sizes[10]


async def test_jobs_of_the_living_are_left_alone(tmp_path: Path) -> None:
    path, mine = tmp_path / "llm_jobs.db", process()
    async with JobQueue(path) as alive:
        await alive.enqueue(mine, questions(4))
        held = await alive.claim(mine)
        async with JobQueue(path) as other:
            assert await other.recover() == 0
            assert await other.counts(mine) == {"IN_PROGRESS": 1, "PENDING": 3}
            taken = await other.claim(mine)
        assert held is not None
        assert taken is not None
        assert held.id != taken.id
        assert await alive.counts(mine) == {"IN_PROGRESS": 1, "PENDING": 3}, (
            "who leaves in order puts back what it took"
        )


async def test_what_comes_late_is_refused(queue: JobQueue) -> None:
    mine = process()
    [job] = await queue.enqueue(mine, questions(1))
    assert not await queue.finish(job, "{}"), "nobody has taken it"
    await queue.claim(mine)
    assert await queue.finish(job, None, "no")
    assert not await queue.finish(job, "{}")
    found = await queue.job(job)
    assert found is not None
    assert (found.status, found.error_message, found.response_json) == ("FAILED", "no", None)


async def test_two_workers_ask_nothing_twice(tmp_path: Path, double: Double) -> None:
    path, mine = tmp_path / "llm_jobs.db", process()
    double.delay = 0.005
    async with JobQueue(path) as one, JobQueue(path) as other:
        await one.enqueue(mine, questions(40))
        await asyncio.gather(*(worker(queue, double, concurrency=3).process(mine, "sync") for queue in (one, other)))
        assert await one.counts(mine) == {"COMPLETED": 40}
    assert set(double.prompts.values()) == {1}


async def test_a_slow_or_broken_listener_disturbs_nobody(queue: JobQueue, double: Double) -> None:
    class Bad:
        def on_progress(self, event: ProgressEvent) -> None:
            time.sleep(0.05)
            raise RuntimeError("no")

    class Asynchronous:
        async def on_progress(self, event: ProgressEvent) -> None: ...

    with pytest.raises(BadUsage, match="plain def"):
        worker(queue, double, notifier=Asynchronous())  # nobody would await it
    mine = process()
    await queue.enqueue(mine, questions(10))
    assert await worker(queue, double, notifier=Bad()).process(mine, "sync") == {"COMPLETED": 10}


async def test_strategies(queue: JobQueue, double: Double, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    cloud, local = opened(Address("openai", double.url)), opened(Address("ollama", double.url))
    assert choose(cloud, None) == choose(cloud, "nonsense") == choose(cloud, "sync") == "sync"
    assert choose(cloud, "batch") == choose(cloud, "auto") == choose(cloud, "auto", 90_000) == "batch"
    assert choose(cloud, "auto", 3600) == "sync"
    with caplog.at_level(logging.INFO):
        assert choose(local, "batch") == "sync"
    assert "falls back to sync" in caplog.text
    assert (concurrency_of(cloud), concurrency_of(local)) == (5, 1)
    monkeypatch.setenv("TSUZUKI_LLM_CONCURRENCY", "3")
    assert concurrency_of(local) == 3


async def test_the_stored_strategy_counts_where_none_is_set(
    queue: JobQueue, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.02")
    await queue.configure("llm.bulk_strategy", "batch")
    mine = process()
    await queue.enqueue(mine, questions(2))
    await worker(queue, double).process(mine)
    assert len(double.batches) == 1
    monkeypatch.setenv("TSUZUKI_LLM_STRATEGY", "sync")
    await queue.enqueue(mine, questions(2))
    await worker(queue, double).process(mine)
    assert len(double.batches) == 1
    assert await queue.configured("llm.bulk_strategy") == "batch"


async def test_what_is_logged_has_slice_trace_arguments_and_no_prompts(
    queue: JobQueue, double: Double, caplog: pytest.LogCaptureFixture
) -> None:
    mine = process()
    with caplog.at_level(logging.DEBUG, "tsuzuki.llm.queue"):
        with following("abc123"):
            await queue.enqueue(mine, [Question("a secret prompt")])
        await worker(queue, double).process(mine, "sync")
        await queue.get_results(mine)
    ours = [record for record in caplog.records if record.name == "tsuzuki.llm.queue"]
    lines = [json.loads(JsonLines("test").format(record)) for record in ours]
    assert {line["slice"] for line in lines} == {"JobQueue"}
    enter = next(line for line in lines if line["msg"] == "ENTER Enqueue")
    assert (enter["level"], enter["args"]) == ("DEBUG", {"process_id": mine, "job_count": 1})
    leave = next(line for line in lines if line["msg"] == "EXIT Enqueue")
    assert leave["result"]["inserted"] == 1
    assert leave["result"]["elapsed"].endswith("ms")
    worked = [line for line in lines if line["msg"] in ("ENTER Enqueue", "ENTER Process", "EXIT ExecuteBulkSync")]
    assert {line["trace_id"] for line in worked} == {"abc123"}
    assert enter["span_id"] == leave["span_id"]  # a span is one call
    assert len({line["span_id"] for line in worked}) == len(worked)
    assert all(len(line["span_id"]) == 16 for line in worked)
    assert "secret prompt" not in caplog.text
    assert KEY not in caplog.text
