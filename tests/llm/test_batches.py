"""The batch strategy: split, created once, polled through trouble, matched by id, and collected whatever comes back."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anthropic
import openai
import pytest

from tests.llm.double import KEY, Double, Plan
from tests.llm.test_queue import Heard, process, questions, rows
from tsuzuki.errors import ProviderRefused, ProviderUnclear
from tsuzuki.llm.capability import BatchLimits
from tsuzuki.llm.providers import Address, opened
from tsuzuki.llm.providers.interface import Intent, Provider
from tsuzuki.llm.questions import Question
from tsuzuki.llm.queue.batches import RESULTS_KEPT, BatchWork, sought
from tsuzuki.llm.queue.jobs import JobQueue
from tsuzuki.llm.queue.submissions import NoLedger, Waiting, pause
from tsuzuki.llm.queue.worker import QueueWorker
from tsuzuki.llm.wire import Patience
from tsuzuki.testing import FakeClock

PATHS = {"openai": "/v1", "anthropic": ""}
BOTH = pytest.mark.parametrize("name", PATHS)
pytestmark = pytest.mark.usefixtures("quick")


def address(double: Double, name: str = "openai") -> Address:
    return Address(name, double.url + PATHS[name], "m-1")


async def answers(queue: JobQueue, process_id: str) -> list[str]:
    results = await queue.get_results(process_id)
    return [json.loads(job.response_json)["text"] if job.response_json else str(job.error_message) for job in results]


@BOTH
async def test_a_process_goes_into_one_batch_and_comes_back_in_order(
    queue: JobQueue, double: Double, name: str
) -> None:
    double.plan = Plan(polls=3, shuffled=True)
    heard, mine = Heard(), process()
    ids = await queue.enqueue(mine, questions(9))
    counts = await QueueWorker(queue, address(double, name), notifier=heard).process(mine, "batch")
    assert counts == {"COMPLETED": 9}
    [batch] = double.batches.values()
    assert [each["custom_id"] for each in batch.requests] == ids
    assert await answers(queue, mine) == [f"answer to q{n}" for n in range(9)]
    assert {job.batch_job_id for job in await queue.get_results(mine)} == {batch.id}
    assert heard.events[-1].status == "COMPLETED"
    assert any(event.status == "IN_PROGRESS" and "batch" in event.message for event in heard.events)
    await queue.delete_process(mine)
    assert rows(queue, "SELECT count(*) FROM llm_submissions") == [(0,)]


@BOTH
async def test_partial_failure_keeps_what_is_good(queue: JobQueue, double: Double, name: str) -> None:
    double.plan = Plan(refuse={1, 3}, shuffled=True)
    mine = process()
    await queue.enqueue(mine, questions(5))
    counts = await QueueWorker(queue, address(double, name)).process(mine, "batch")
    assert counts == {"COMPLETED": 3, "FAILED": 2}
    told = await answers(queue, mine)
    assert told[1].startswith("no")
    assert KEY not in str(told)


@BOTH
async def test_an_answer_without_an_answer_costs_no_other_one(queue: JobQueue, double: Double, name: str) -> None:
    double.plan = Plan(hollow={1})
    mine = process()
    await queue.enqueue(mine, questions(3))
    async with asyncio.timeout(20):  # it used to be looked at again and again
        counts = await QueueWorker(queue, address(double, name)).process(mine, "batch")
    assert counts == {"COMPLETED": 2, "FAILED": 1}
    assert "answered without an answer" in (await answers(queue, mine))[1]


async def test_a_file_of_outcomes_that_broke_off_is_read_again(queue: JobQueue, double: Double) -> None:
    double.torn = 2
    mine = process()
    await queue.enqueue(mine, questions(3))
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 3}
    assert (len(double.batches), double.torn) == (1, 0)


async def test_missing_double_and_strange_results(queue: JobQueue, double: Double) -> None:
    double.plan = Plan(missing={0}, twice={1}, strangers=2, shuffled=True)
    mine = process()
    await queue.enqueue(mine, questions(4))
    await QueueWorker(queue, address(double)).process(mine, "batch")
    missing, twice, *good = await answers(queue, mine)
    assert missing == "batch result missing for request"
    assert twice == "batch result came twice for request"
    assert good == ["answer to q2", "answer to q3"]


@pytest.mark.parametrize(("ends", "kept"), [("expired", 2), ("failed", 0)])
async def test_a_batch_that_ends_badly_says_so_and_keeps_what_came(
    queue: JobQueue, double: Double, ends: str, kept: int
) -> None:
    double.plan = Plan(ends=ends)
    mine = process()
    await queue.enqueue(mine, questions(4))
    counts = await QueueWorker(queue, address(double)).process(mine, "batch")
    assert counts.get("COMPLETED", 0) == kept
    assert (await answers(queue, mine))[-1] == f"batch {ends}"


async def test_an_answer_that_does_not_fit_its_schema_has_failed(queue: JobQueue, double: Double) -> None:
    mine = process()
    await queue.enqueue(mine, [Question("q", schema={"type": "integer"}, name="Number")])
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"FAILED": 1}
    assert (await answers(queue, mine))[0].startswith("BadAnswer")


async def test_polling_goes_on_through_trouble(queue: JobQueue, double: Double) -> None:
    double.poll_refusals = [503, 500, 429]
    mine = process()
    await queue.enqueue(mine, questions(2))
    provider = opened(address(double), patience=Patience(1))
    await until_over(BatchWork(queue, provider, NoLedger()), mine)
    await provider.close()
    assert double.poll_refusals == []
    assert await queue.counts(mine) == {"COMPLETED": 2}


def test_polling_starts_fast_and_slows_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TSUZUKI_LLM_POLL_SEC")
    waits = [pause(age) for age in (0, 10, 60, 120, 1800, 7200, 80_000)]
    assert waits == sorted(waits)
    assert (waits[0], waits[4]) == (2, 30)
    assert waits[-1] <= 300


@pytest.mark.parametrize(("limits", "batches"), [(BatchLimits(4, 10**9), 3), (BatchLimits(100, 400), 5)])
async def test_more_than_fits_goes_into_several_batches(
    queue: JobQueue, double: Double, limits: BatchLimits, batches: int
) -> None:
    provider = opened(address(double))
    provider.capability = replace(provider.capability, batch=limits)
    mine = process()
    await queue.enqueue(mine, questions(10))
    await until_over(BatchWork(queue, provider, NoLedger()), mine)
    await provider.close()
    assert len(double.batches) == batches
    assert max(double.billed.values()) == 1
    assert await queue.counts(mine) == {"COMPLETED": 10}


@BOTH
async def test_a_line_that_cannot_be_read_costs_no_other_answer(queue: JobQueue, double: Double, name: str) -> None:
    double.plan = Plan(garbled={1})
    mine = process()
    await queue.enqueue(mine, questions(3))
    async with asyncio.timeout(20):  # it used to be looked at again and again
        counts = await QueueWorker(queue, address(double, name)).process(mine, "batch")
    assert counts == {"COMPLETED": 2, "FAILED": 1}
    assert (await answers(queue, mine))[1] == "batch result missing for request"


@BOTH
async def test_results_that_are_not_found_at_once_are_looked_for_again(
    queue: JobQueue, double: Double, name: str
) -> None:
    double.lost_results = 2
    mine = process()
    await queue.enqueue(mine, questions(3))
    assert await QueueWorker(queue, address(double, name)).process(mine, "batch") == {"COMPLETED": 3}
    assert (len(double.batches), double.lost_results) == (1, 0)


async def test_results_that_are_gone_for_days_are_given_up(queue: JobQueue, double: Double) -> None:
    double.plan = Plan(polls=2)
    clock, provider = FakeClock(time.time()), opened(address(double))
    mine = process()
    await queue.enqueue(mine, questions(2))
    queue.clock = clock
    with pytest.raises(Waiting):
        await BatchWork(queue, provider, NoLedger()).advance(mine)
    double.lost_results = 10**9
    with pytest.raises(Waiting, match="cannot be found yet"):
        await BatchWork(queue, provider, NoLedger()).advance(mine)
    clock.advance(RESULTS_KEPT + 1)
    await BatchWork(queue, provider, NoLedger()).advance(mine)
    assert await queue.counts(mine) == {"FAILED": 2}
    await provider.close()


async def test_a_file_that_is_not_found_right_after_its_upload_is_waited_for(queue: JobQueue, double: Double) -> None:
    double.unfound = 2
    mine = process()
    await queue.enqueue(mine, questions(2))
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 2}
    assert sum(name.startswith("file-") for name in double.files) == 1, "the questions were uploaded once"


async def test_each_model_has_batches_of_its_own(queue: JobQueue, double: Double) -> None:
    mine = process()
    asked = [Question(f"q{n}", model=("m-1", "m-2", "")[n % 3]) for n in range(6)]  # m-1 is the one of the provider
    await queue.enqueue(mine, asked)
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 6}
    models = [{line["body"]["model"] for line in batch.requests} for batch in double.batches.values()]
    assert models == [{"m-1"}, {"m-2"}]
    assert await answers(queue, mine) == [f"answer to q{n}" for n in range(6)]


@pytest.mark.parametrize("most", [1, 2, 7])
async def test_a_batch_that_is_too_large_goes_in_smaller_ones_one_after_the_other(
    queue: JobQueue, double: Double, most: int
) -> None:
    double.most_enqueued = most
    mine = process()
    await queue.enqueue(mine, questions(10))
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 10}
    taken = [batch for batch in double.batches.values() if not batch.errors]
    assert max(len(batch.requests) for batch in taken) <= most
    assert len(double.billed) == 10
    assert set(double.billed.values()) == {1}


async def test_a_batch_waits_for_those_of_others_that_hold_all_tokens(queue: JobQueue, double: Double) -> None:
    double.most_enqueued = 3
    theirs = double.made([{"custom_id": f"theirs {n}"} for n in range(3)], {}, "batch_")
    mine, provider = process(), opened(address(double))
    await queue.enqueue(mine, questions(2))
    work = BatchWork(queue, provider, NoLedger())
    for _ in range(4):
        with pytest.raises(Waiting, match="takes no more tokens"):
            await work.advance(mine)
        await asyncio.sleep(0.02)
    assert set(await queue.counts(mine)) == {"PENDING"}
    theirs.cancelled = True
    await until_over(work, mine)
    assert await queue.counts(mine) == {"COMPLETED": 2}
    await provider.close()


@BOTH
@pytest.mark.parametrize("ahead", [-900.0, 900.0])
async def test_a_batch_is_found_although_our_clock_is_wrong(double: Double, name: str, ahead: float) -> None:
    double.plans, double.ahead = [Plan(polls=0), Plan(polls=10**9)], ahead
    provider: Any = opened(address(double, name))
    jobs = (str(uuid.uuid4()),)
    intent = Intent(str(uuid.uuid4()), process(), time.time(), jobs)
    created = await provider.batches.create(
        intent, each([provider.batches.line(jobs[0], Question("q"), None)]), nothing
    )
    double.made([{"custom_id": "another's"}] * 2, {}, "batch_")  # whoever looks goes on behind it
    assert (await provider.batches.find(intent, frozenset())).id == created
    await provider.close()


async def test_a_batch_may_appear_as_long_as_the_request_may_take(
    queue: JobQueue, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "45")
    clock, provider = FakeClock(time.time()), opened(address(double), patience=Patience(1))
    queue.clock = clock
    mine, work = process(), BatchWork(queue, provider, NoLedger())
    await queue.enqueue(mine, questions(2))
    double.gone = {"batch"}
    with pytest.raises(Waiting, match="not known"):
        await work.advance(mine)
    [(name, slow)] = double.batches.items()
    double.batches.clear()  # the provider takes long to create it
    for _ in range(4):
        with pytest.raises(Waiting, match="looked for once more"):
            await work.advance(mine)
        clock.advance(10)
    double.batches[name] = slow
    await until_over(work, mine)
    assert list(double.batches) == [name]
    await provider.close()


async def test_a_service_without_batches_is_asked_directly(
    queue: JobQueue, double: Double, caplog: pytest.LogCaptureFixture
) -> None:
    double.has_batches = False
    mine = process()
    await queue.enqueue(mine, questions(3))
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 3}
    assert double.prompts == {f"q{n}": 1 for n in range(3)}
    assert sum("there are no batches at this address" in line for line in caplog.messages) == 1


async def each(lines: list[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


async def nothing() -> None: ...


async def until_over(work: BatchWork, process_id: str) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            await work.advance(process_id)
        except Waiting as waiting:
            await asyncio.sleep(waiting.seconds)
        else:
            return
    raise AssertionError("the batches are not over")


@BOTH
async def test_a_process_that_is_cancelled_cancels_its_batch_and_keeps_results(
    queue: JobQueue, double: Double, name: str
) -> None:
    double.plan = Plan(polls=10**9)
    mine = process()
    await queue.enqueue(mine, questions(4))
    worker = QueueWorker(queue, address(double, name))
    work = asyncio.create_task(worker.process(mine, "batch"))
    while not double.batches:
        await asyncio.sleep(0.01)
    while not await worker.cancel(mine):
        await asyncio.sleep(0.01)
    assert await work == {"COMPLETED": 2, "PENDING": 2}
    double.plan = Plan()
    assert await worker.process(mine, "batch") == {"COMPLETED": 4}
    assert await answers(queue, mine) == [f"answer to q{n}" for n in range(4)]
    assert [len(each.requests) for each in double.batches.values()] == [4, 2]


async def test_an_answer_that_is_lost_on_the_way_leads_to_no_second_batch(queue: JobQueue, double: Double) -> None:
    double.gone = {"batch"}
    mine = process()
    await queue.enqueue(mine, questions(3))
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"COMPLETED": 3}
    assert len(double.batches) == 1


async def test_an_open_batch_goes_on_although_the_strategy_is_sync_by_now(queue: JobQueue, double: Double) -> None:
    double.plan = Plan(polls=2)
    mine = process()
    await queue.enqueue(mine, questions(2))
    provider = opened(address(double))
    with pytest.raises(Waiting):
        await BatchWork(queue, provider, NoLedger()).advance(mine)
    await provider.close()
    await queue.enqueue(mine, [Question("more")])
    assert await QueueWorker(queue, address(double)).process(mine, "sync") == {"COMPLETED": 3}
    assert len(double.batches) == 1
    assert double.prompts == {"more": 1}


async def test_a_key_that_is_refused_says_nothing_of_a_batch_and_the_right_one_collects_it(
    queue: JobQueue, double: Double
) -> None:
    double.poll_refusals = [401]
    mine = process()
    await queue.enqueue(mine, questions(2))
    worker = QueueWorker(queue, address(double))
    with pytest.raises(ProviderRefused, match="401"):
        await worker.process(mine, "batch")
    assert await queue.counts(mine) == {"IN_PROGRESS": 2}, "nothing of it has failed: it is paid for"
    assert await worker.process(mine, "batch") == {"COMPLETED": 2}
    assert len(double.batches) == 1


async def test_a_batch_that_its_provider_does_not_know_has_failed(queue: JobQueue, double: Double) -> None:
    double.poll_refusals = [404]
    mine = process()
    await queue.enqueue(mine, questions(2))
    assert await QueueWorker(queue, address(double)).process(mine, "batch") == {"FAILED": 2}
    assert "is gone" in (await answers(queue, mine))[0]


async def test_a_batch_that_cannot_be_created_tells_why(queue: JobQueue, double: Double) -> None:
    mine = process()
    await queue.enqueue(mine, questions(2))
    nobody = Address("openai", f"{double.url}/nowhere", "m-1")
    assert await QueueWorker(queue, nobody).process(mine, "batch") == {"FAILED": 2}
    assert "HTTP 404" in (await answers(queue, mine))[0]


@BOTH
async def test_a_batch_is_found_again_and_those_of_others_are_not(double: Double, name: str) -> None:
    """What a search finds is decided by the intent, or by the jobs in the results."""
    double.plan = Plan(polls=0)
    provider: Provider = opened(address(double, name))
    batches: Any = provider.batches
    jobs = tuple(str(uuid.uuid4()) for _ in range(3))
    lines = [batches.line(job, Question("q"), None) for job in jobs]
    mine, other = (Intent(str(uuid.uuid4()), process(), time.time(), jobs) for _ in range(2))
    others = tuple(str(uuid.uuid4()) for _ in range(3))
    theirs = [batches.line(job, Question("q"), None) for job in others]
    await batches.create(replace(other, jobs=others), each(theirs), nothing)
    assert (await batches.find(mine, frozenset())).id is None
    created = await batches.create(mine, each(lines), nothing)
    assert (await batches.find(mine, frozenset())).id == created
    await provider.close()


async def test_what_may_be_ours_is_waited_for(double: Double) -> None:
    double.plan = Plan(polls=10**9)
    provider: Provider = opened(address(double, "anthropic"))
    batches: Any = provider.batches
    jobs = (str(uuid.uuid4()),)
    intent = Intent(str(uuid.uuid4()), process(), time.time(), jobs)
    created = await batches.create(intent, each([batches.line(jobs[0], Question("q"), None)]), nothing)
    assert (await batches.find(intent, frozenset())).perhaps == (created,)
    assert (await batches.find(intent, frozenset({created}))).perhaps == ()
    clock = FakeClock(autoadvance=True)
    with pytest.raises(ProviderUnclear, match=f"{created} may be it"):
        await sought(batches, intent, frozenset(), clock)
    with pytest.raises(ProviderUnclear, match="none is found"):
        await sought(batches, intent, frozenset({created}), clock)
    assert not double.batches[created].cancelled  # it may be somebody else's
    await provider.close()


async def test_the_official_clients_read_the_batches_that_we_created(queue: JobQueue, double: Double) -> None:
    mine, other = process(), process()
    await queue.enqueue(mine, questions(2))
    await QueueWorker(queue, address(double)).process(mine, "batch")
    with openai.OpenAI(base_url=f"{double.url}/v1", api_key=KEY) as client:
        [batch] = list(client.batches.list())
        assert (batch.status, (batch.metadata or {})["tsuzuki_process"]) == ("completed", mine)
        assert client.files.content(batch.output_file_id or "").text.count("answer to") == 2
    double.batches.clear()
    await queue.enqueue(other, questions(2))
    await QueueWorker(queue, address(double, "anthropic")).process(other, "batch")
    with anthropic.Anthropic(base_url=double.url, api_key=KEY) as theirs:
        [found] = list(theirs.messages.batches.list())
        assert found.processing_status == "ended"
        assert len(list(theirs.messages.batches.results(found.id))) == 2
