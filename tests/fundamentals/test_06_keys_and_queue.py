"""One active run for each key, one run for each idempotency key, and a queue by tag and priority."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.backends import Query, WorkerRecord, WorkerState
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.errors import BadParams, BadUsage, KeyHeld, RunNotFound
from tsuzuki.lifecycle import MAX_CLAIMS_ALONE
from tsuzuki.presence import this_host
from tsuzuki.testing import builders
from tsuzuki.testing.stopwatch import Stopwatch


async def test_fifty_simultaneous_starts_of_one_key_make_one_run(runs: Runs) -> None:
    @flow(key="crawl:{site}")
    async def crawl(site: str) -> int:
        return 1

    answers = await asyncio.gather(*(runs.submit(crawl, {"site": "a"}) for _ in range(50)), return_exceptions=True)
    started = [answer for answer in answers if not isinstance(answer, BaseException)]
    refused = [answer for answer in answers if isinstance(answer, KeyHeld)]
    assert (len(started), len(refused)) == (1, 49)
    assert all(error.run_id == started[0].id and f"run {started[0].number}" in str(error) for error in refused)
    assert (await runs.submit(crawl, {"site": "b"})).key == "crawl:b"


async def test_a_key_is_free_again_when_its_run_has_ended(runs: Runs, run: RunFlow) -> None:
    @flow(key="only")
    async def failing() -> int:
        raise RuntimeError("no")

    assert (await run(failing)).status is Status.FAILED
    assert (await runs.submit(failing)).status is Status.PENDING


async def test_a_key_held_by_a_dead_run_names_the_two_ways_out(runs: Runs, tmp_path: Path) -> None:
    @flow(key="only")
    async def dying() -> int:
        return 1

    row = await runs.submit(dying)
    (lock := tmp_path / "w.alive").touch()  # that nobody locks: the worker was killed
    await runs.backend.beat(WorkerRecord(id="w", host=this_host(), presence=str(lock)))
    await runs.backend.claim("w", run_id=row.id)
    with pytest.raises(KeyHeld, match=rf"tsuzuki resume {row.number}\) or .*tsuzuki cancel {row.number}"):
        await runs.submit(dying)
    assert (await runs.cancel(row.id))[1].status is Status.CANCELLED


async def test_a_key_held_by_a_run_that_a_script_has_just_made_is_held_by_a_living_one(runs: Runs) -> None:
    async with Worker(runs.backend, tags=()) as worker:
        await runs.submit("f", key="only", private=True, claimed_by=worker.id)
        with pytest.raises(KeyHeld, match=r"held by run 1, which is RUNNING: wait for it, or cancel it$"):
            await runs.submit("f", key="only", private=True)
    with pytest.raises(KeyHeld, match="held by run 1, which nobody executes any more"):
        await runs.submit("f", key="only", private=True)


async def test_an_idempotency_key_gives_the_first_run_back(runs: Runs) -> None:
    first = await runs.submit("f", {"x": 1}, idempotency_key="once")
    again = await runs.submit("f", {"x": 2}, idempotency_key="once")
    assert again.id == first.id
    assert (await runs.submit("f", idempotency_key="once", tenant="other")).id != first.id


async def test_a_submission_whose_key_belongs_to_other_work_is_told_of(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    first = await runs.submit("f", {"x": 1}, idempotency_key="once")
    assert (await runs.submit("f", {"x": 1}, idempotency_key="once")).id == first.id
    assert not caplog.records
    for flow_name, x in (("f", 2), ("g", 1)):
        assert (await runs.submit(flow_name, {"x": x}, idempotency_key="once")).id == first.id
        assert f"'once': run {first.number} of f has it" in caplog.text
        caplog.clear()


async def test_runs_are_claimed_by_tag_and_priority(runs: Runs) -> None:
    order: list[int] = []

    @flow
    async def note(x: int) -> int:
        order.append(x)
        return x

    for x, priority in ((1, 0), (2, 5), (3, 5), (4, -1)):
        await runs.submit(note, {"x": x}, priority=priority)
    elsewhere = await runs.submit(note, {"x": 9}, tag="gpu")
    async with Worker(runs.backend, [note], concurrency=1) as worker:
        loop = asyncio.create_task(worker.run())
        while len(order) < 4:
            await runs.backend.changed(elsewhere.id, 10**9, 0.05)
        worker.stop()
        await loop
    assert order == [2, 3, 1, 4]
    assert (await runs.get(elsewhere.id)).status is Status.PENDING


async def test_shared_workers_never_take_private_runs(runs: Runs) -> None:
    row = await runs.submit("mine", private=True)
    assert await runs.backend.claim("w", tags=["default"], limit=10) == []
    assert len(await runs.backend.claim("w", run_id=row.id)) == 1


async def test_a_run_may_wait_for_its_time(runs: Runs) -> None:
    later = await runs.submit("f", not_before=datetime.now(UTC) + timedelta(hours=1))
    assert await runs.backend.claim("w", tags=["default"], limit=10) == []
    assert (await runs.get(later.id)).status is Status.PENDING
    with pytest.raises(ValueError, match="not_before must be timezone-aware"):
        await runs.submit("f", not_before=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


async def test_an_unknown_flow_fails_clearly(runs: Runs) -> None:
    async with Worker(runs.backend, []) as worker:
        loop = asyncio.create_task(worker.run())
        row = await runs.wait((await runs.submit("nobody_knows")).id)
        worker.stop()
        await loop
    assert row.status is Status.FAILED
    assert row.error is not None
    assert row.error.message.startswith("flow_not_found: no flow called 'nobody_knows'")
    [letter] = await runs.backend.dead_letters()
    assert (letter.run_id, letter.reason) == (row.id, "flow_not_found")


async def test_a_run_that_kills_its_workers_ends(runs: Runs) -> None:
    row = await runs.submit("deadly")
    for number in range(2 + MAX_CLAIMS_ALONE + 1):
        claims = await runs.backend.claim(f"w{number}", run_id=row.id, dead=frozenset({f"w{number - 1}"}), alone=True)
        assert len(claims) == (number < 2 + MAX_CLAIMS_ALONE)
    row = await runs.get(row.id)
    assert row.status is Status.FAILED
    assert row.error is not None
    assert "5 times without one new outcome" in row.error.message


async def test_a_suspect_is_executed_alone_until_it_has_recorded_an_outcome(runs: Runs) -> None:
    """Two workers died while they executed `first` and `second`; a third one takes both, and new runs."""
    inside: set[int] = set()
    together: list[set[int]] = []
    gates = {number: asyncio.Event() for number in range(4)}

    @task
    async def pass_gate(number: int) -> int:
        inside.add(number)
        together.append(set(inside))
        await gates[number].wait()
        inside.discard(number)
        return number

    @task
    async def note(number: int) -> int:
        return number

    @flow
    async def gated(number: int) -> int:
        if number == 1:
            await note(number)
        return await pass_gate(number)

    async def entered(*numbers: int) -> None:
        async with asyncio.timeout(30):
            while inside != set(numbers):
                await asyncio.sleep(0.01)

    suspects = [await runs.submit(gated, {"number": number}) for number in range(2)]
    for row in suspects:
        for name, dead in (("w0", ""), ("w1", "w0")):
            assert await runs.backend.claim(name, run_id=row.id, dead=frozenset({dead}))
    await runs.backend.beat(WorkerRecord(id="w1", stopped_at=1.0, state=WorkerState.STOPPED_GRACEFUL))
    others = [await runs.submit(gated, {"number": number}) for number in (2, 3)]
    async with Worker(runs.backend, [gated]) as worker:
        working = asyncio.create_task(worker.run())
        await entered(0)
        gates[0].set()
        await runs.wait(suspects[0].id)
        await entered(1, 2, 3)  # the second suspect has recorded an outcome: others begin beside it
        for gate in gates.values():
            gate.set()
        ended = [await runs.wait(row.id) for row in (*suspects, *others)]
        worker.stop()
        await working
    assert together[0] == {0}
    assert together[1] == {1}
    assert [row.status for row in ended] == [Status.COMPLETED] * 4
    assert [row.attempt for row in ended] == [3, 3, 1, 1]


async def test_a_worker_executes_several_runs_at_once(runs: Runs) -> None:
    barrier = asyncio.Event()
    inside = 0

    @task
    async def meet(x: int) -> int:
        nonlocal inside
        inside += 1
        if inside == 5:
            barrier.set()
        await barrier.wait()
        return x

    @flow
    async def meeting(x: int) -> int:
        return await meet(x)

    rows = [await runs.submit(meeting, {"x": x}) for x in range(5)]
    async with Worker(runs.backend, [meeting], concurrency=5) as worker:
        loop = asyncio.create_task(worker.run())
        ended = [await runs.wait(row.id) for row in rows]
        worker.stop()
        await loop
    assert {row.status for row in ended} == {Status.COMPLETED}


async def test_runs_are_found_by_number_id_and_the_beginning_of_it(runs: Runs) -> None:
    row = await runs.submit("f")
    for reference in (row.number, str(row.number), row.id, row.id[:12]):
        assert (await runs.get(reference)).id == row.id
    for nobody in ("99", "", "no such run", "* > ;", str(uuid.uuid4()), "dead" * 20):
        with pytest.raises(RunNotFound, match="run not found"):
            await runs.get(nobody)


async def test_ended_runs_are_purged_by_age(runs: Runs, run: RunFlow) -> None:
    @flow
    async def short() -> int:
        return 1

    ended = await run(short)
    waiting = await runs.submit(short)
    assert await runs.purge(older_than=datetime.now(UTC) - timedelta(days=1)) == 0
    assert await runs.purge(older_than=datetime.now(UTC) + timedelta(seconds=5)) == 1
    with pytest.raises(RunNotFound):
        await runs.get(ended.id)
    assert [row.id for row in await runs.list(Query())] == [waiting.id]
    with pytest.raises(ValueError, match="older_than"):
        await runs.purge(older_than=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


async def test_a_purge_passes_runs_that_cannot_be_removed() -> None:
    """On NATS a run may be listed as ended for a moment after somebody has resumed it."""

    class Listed(MemoryBackend):
        async def purge(self, run_ids: Sequence[str]) -> int:
            return await super().purge([run_id for run_id in run_ids if run_id != kept.id])

    backend = Listed()
    old, kept = [await builders.ended(backend, Status.COMPLETED) for _ in range(2)]
    assert await Runs(backend).purge(older_than=datetime.now(UTC) + timedelta(seconds=5)) == 1
    assert await backend.get(old.id) is None
    assert await backend.get(kept.id) is not None


@pytest.mark.parametrize("tag", ["", "a.b", "a b", "*", "é"])
async def test_a_tag_that_cannot_be_routed_is_refused(runs: Runs, tag: str) -> None:
    if tag:
        with pytest.raises(BadUsage, match="tag"):
            await runs.submit("f", tag=tag)
    with pytest.raises(BadUsage, match="flow name"):
        await runs.submit("")


async def test_a_worker_executes_no_more_runs_at_once_than_asked_for(runs: Runs) -> None:
    now = most = 0

    @flow
    async def counting(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(now, most)
        await asyncio.sleep(0.001)
        now -= 1
        return x

    rows = [await runs.submit(counting, {"x": x}) for x in range(40)]
    async with Worker(runs.backend, [counting], concurrency=3) as worker:
        loop = asyncio.create_task(worker.run())
        for row in rows:
            await runs.wait(row.id)
        worker.stop()
        await loop
    assert most == 3


async def test_an_idle_worker_stops_at_once(runs: Runs) -> None:
    async with Worker(runs.backend, []) as worker:
        loop = asyncio.create_task(worker.run())
        for _ in range(20):
            await asyncio.sleep(0)
        with Stopwatch() as since:
            worker.stop()
            await loop
            assert since.fair < 0.5


async def test_workers_with_other_flows_leave_each_other_their_runs(runs: Runs) -> None:
    @flow
    async def one(x: int) -> int:
        return x

    @flow
    async def other(x: int) -> int:
        return x

    rows = [await runs.submit(flow_, {"x": x}) for x in range(10) for flow_ in (one, other)]
    async with Worker(runs.backend, [one]) as first, Worker(runs.backend, [other]) as second:
        loops = [asyncio.create_task(worker.run()) for worker in (first, second)]
        ended = [await runs.wait(row.id) for row in rows]
        for worker in (first, second):
            worker.stop()
        await asyncio.gather(*loops)
    assert {row.status for row in ended} == {Status.COMPLETED}


async def test_a_key_of_a_run_that_waits_is_told_plainly(runs: Runs) -> None:
    await runs.submit("f", key="only")
    with pytest.raises(KeyHeld, match=r"held by run 1, which is PENDING: wait for it, or cancel it$"):
        await runs.submit("f", key="only")


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("priority", given) for given in (float("nan"), "1", 1.5, True, None, 2**31, -(2**31), 10**30)),
        *(("tags", given) for given in ("abc", 5, [5], ["half \ud800"])),
        *(("tag", given) for given in (5, "a b", "half \ud800")),
        *((key, given) for key in ("key", "idempotency_key") for given in (5, "", b"x", "half \ud800")),
    ],
)
async def test_no_store_accepts_what_another_could_not_keep(runs: Runs, option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        await runs.submit("f", **{option: given})
    assert f"submit({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)
    assert await runs.list() == []


async def test_the_highest_and_lowest_priorities_come_back_as_they_were(runs: Runs) -> None:
    for priority in (2**31 - 1, 1 - 2**31):
        assert (await runs.get((await runs.submit("f", priority=priority)).id)).priority == priority


async def test_params_with_what_json_has_no_word_for_are_refused(runs: Runs) -> None:
    @flow
    async def anything(x: Any = None, y: float = 0.0) -> None: ...

    for params in ({"x": float("inf")}, {"x": [float("nan")]}, {"y": float("inf")}):
        for wanted in (anything, "anything"):
            with pytest.raises(BadParams, match=r"params\['[xy]'\].* is (inf|nan), which JSON has no word for"):
                await runs.submit(wanted, params)
    for wanted in (anything, "anything"):
        with pytest.raises(BadParams, match="surrogates not allowed"):
            await runs.submit(wanted, {"x": "half \ud800"})
    assert await runs.list() == []
