"""What a store promises about its lists: every filter, pages without gaps, times that only grow."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tsuzuki import facts as f
from tsuzuki.backends import STOPPED, Backend, Claim, Query, WorkerRecord
from tsuzuki.lifecycle import Run, Status, last_heartbeat, stamp
from tsuzuki.testing import builders as b
from tsuzuki.testing.clock import ShiftedClock


class IndexContract:
    """Rows are found, counted and paged, the newest first."""

    async def test_a_row_is_the_fold_of_its_facts(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        step = f.StepDone(at=b.AT, step="load")
        await backend.append(claim, [step, b.item("a"), b.item("b"), b.item_failed("c")])
        await backend.append(claim, [f.ItemSkipped(at=b.AT, step="fetch", key="d"), b.ending(Status.COMPLETED)])
        run = await b.row(backend, claim.run.id)
        assert (run.steps, run.done, run.failed, run.skipped) == (1, 2, 1, 1)
        assert (run.status, run.holder, run.finished_at) == (Status.COMPLETED, None, stamp(b.AT))
        assert (bytes(run.result or b""), run.error, run.position) == (b'{"ok":1}', None, 8)

    async def test_a_failed_row_shows_its_error(self, backend: Backend) -> None:
        run = await b.ended(backend, Status.FAILED)
        assert (run.status, run.error) == (Status.FAILED, b.OOPS)

    async def test_an_unknown_run_has_no_row(self, backend: Backend) -> None:
        assert await backend.get(b.a_run().id) is None

    @pytest.mark.parametrize(
        ("wanted", "other", "query"),
        [
            ({"flow": "index"}, {"flow": "crawl"}, Query(flow="index")),
            ({"tag": "gpu"}, {"tags": ("gpu",)}, Query(tag="gpu")),
            ({"tags": ("x", "blue")}, {"tags": ("bluer",), "tag": "blue"}, Query(label="blue")),
            ({"key": "k"}, {"key": "kk"}, Query(key="k")),
            ({"tenant": "a"}, {"tenant": "b"}, Query(tenant="a")),
            ({}, {"tenant": "b"}, Query(tenant="")),
            ({"private": True}, {}, Query(private=True)),
            ({}, {"private": True}, Query(private=False)),
            ({"digest": "d1"}, {"digest": "d2"}, Query(digest="d1")),
            ({"id": "abc-1"}, {"id": "xabc-1"}, Query(id_prefix="abc")),
            ({"id": "a%-1"}, {"id": "ab-1"}, Query(id_prefix="a%")),
            ({"id": "a_-1"}, {"id": "ab-1"}, Query(id_prefix="a_")),
            ({"flow": "f", "tag": "t"}, {"flow": "f", "tag": "u"}, Query(flow="f", tag="t", status=(Status.PENDING,))),
        ],
    )
    async def test_runs_are_found_by_what_their_submission_fixed(
        self, backend: Backend, wanted: dict[str, Any], other: dict[str, Any], query: Query
    ) -> None:
        run = await b.submitted(backend, **wanted)
        await b.submitted(backend, **other)
        assert await backend.search(query) == [run]

    async def test_runs_are_found_by_number(self, backend: Backend) -> None:
        await b.submitted(backend)
        run = await b.submitted(backend)
        assert await backend.search(Query(number=run.number)) == [run]
        assert await backend.search(Query(number=run.number + 1)) == []

    @pytest.mark.parametrize("size", [1, 5_000, 900_000])
    async def test_a_list_can_do_without_params(self, backend: Backend, size: int) -> None:
        run = await b.submitted(backend, params=msgspec.Raw(b'{"text": "' + b"x" * size + b'"}'))
        for asked in ({}, {"status": (Status.PENDING,), "tag": run.tag, "private": False}, {"number": run.number}):
            assert await backend.search(Query(**asked)) == [run]
            assert [bytes(row.params) for row in await backend.search(Query(**asked, params=False))] == [b"{}"]

    async def test_runs_are_found_by_status(self, backend: Backend) -> None:
        pending = await b.submitted(backend)
        failed = await b.ended(backend, Status.FAILED)
        await b.ended(backend, Status.COMPLETED)
        assert await backend.search(Query(status=(Status.FAILED,))) == [failed]
        assert await backend.search(Query(status=(Status.PENDING, Status.FAILED))) == [failed, pending]
        assert await backend.search(Query(status=(Status.CANCELLED,))) == []

    async def test_completed_runs_with_failed_items_are_found(self, backend: Backend) -> None:
        failed, whole = await b.ended(backend, Status.FAILED), await b.claimed(backend)
        await backend.append(whole, [b.item("a"), b.ending(Status.COMPLETED)])
        partly = await b.ended(backend, Status.COMPLETED, tags=("blue",), flow="picky")
        assert await backend.search(Query(status=(Status.COMPLETED,), failures=True)) == [partly]
        assert await backend.search(Query(status=(Status.COMPLETED, Status.FAILED), failures=True)) == [partly, failed]
        for more in ({"flow": "picky"}, {"label": "blue"}, {"number": partly.number}):
            assert await backend.search(Query(status=(Status.COMPLETED,), failures=True, **more)) == [partly]
        assert await backend.search(Query(status=(Status.COMPLETED,), failures=True, flow="other")) == []
        assert len(await backend.search(Query(status=(Status.COMPLETED,)))) == 2

    async def test_runs_are_found_by_holder(self, backend: Backend) -> None:
        claim = await b.claimed(backend, "w1")
        await b.claimed(backend, "w2")
        await b.submitted(backend)
        assert [run.id for run in await backend.search(Query(holder="w1"))] == [claim.run.id]

    async def test_runs_are_found_by_when_they_finished(self, backend: Backend) -> None:
        run = await b.ended(backend, Status.COMPLETED)
        await b.submitted(backend)
        assert await backend.search(Query(finished_before=stamp(b.AT + 1))) == [run]
        assert await backend.search(Query(finished_before=stamp(b.AT))) == []

    async def test_runs_are_found_by_when_they_were_updated(self, backend: Backend) -> None:
        first, second = await b.submitted(backend), await b.submitted(backend)
        assert await backend.search(Query(updated_after=first.updated_at)) == [second]
        await b.claim_of(backend, first.id)
        found = await backend.search(Query(updated_after=second.updated_at))
        assert [run.id for run in found] == [first.id]

    async def test_the_newest_update_comes_first(self, backend: Backend) -> None:
        runs = [await b.submitted(backend) for _ in range(3)]
        await b.claim_of(backend, runs[1].id)
        found = await backend.search(Query(limit=9))
        assert [run.id for run in found] == [runs[1].id, runs[2].id, runs[0].id]
        assert [run.id for run in await backend.search(Query(limit=2))] == [runs[1].id, runs[2].id]

    async def test_pages_have_neither_gaps_nor_repeats_while_rows_change(self, backend: Backend) -> None:
        runs = [(await b.submitted(backend)).id for _ in range(10)]
        seen: list[str] = []
        before: tuple[float, str] | None = None
        while page := await backend.search(Query(limit=3, before=before)):
            seen += [run.id for run in page]
            before = (page[-1].updated_at, page[-1].id)
            await b.claim_of(backend, page[0].id)
            await b.submitted(backend)
        assert seen == runs[::-1]

    async def test_updates_only_grow_also_when_the_clock_steps_back(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        times: list[float] = []

        async def look(run_id: str) -> None:
            times.append((await b.row(backend, run_id)).updated_at)

        run = await b.submitted(backend)
        await look(run.id)
        clock.jump(-3600)
        claim = await b.claim_of(backend, run.id)
        await look(run.id)
        for n in range(5):
            await backend.append(claim, [b.item(str(n))])
            await look(run.id)
        await look((await b.submitted(backend)).id)
        await backend.ask(run.id, b.cancel())
        await look(run.id)
        assert all(earlier < later for earlier, later in pairwise(times)), times

    async def test_updates_follow_the_wall_clock(self, backend: Backend, clock: ShiftedClock) -> None:
        clock.jump(1000)
        run = await b.submitted(backend)
        assert abs(run.updated_at - clock.now()) < 60

    async def test_runs_are_counted_by_status(self, backend: Backend) -> None:
        assert await backend.counts() == {}
        await b.submitted(backend)
        await b.submitted(backend)
        await b.claimed(backend)
        await b.ended(backend, Status.FAILED)
        assert await backend.counts() == {"PENDING": 2, "RUNNING": 1, "FAILED": 1}
        [last] = await backend.search(Query(limit=1))
        assert await backend.counts(updated_after=last.updated_at) == {}
        before = (await backend.search(Query(limit=2)))[1].updated_at
        assert await backend.counts(updated_after=before) == {last.status.value: 1}
        assert sum((await backend.counts(updated_by=before)).values()) == 3

    async def test_the_runs_of_a_flow_tag_and_tenant_are_counted(self, backend: Backend) -> None:
        ours: dict[str, Any] = {"flow": "crawl", "tag": "gpu", "tenant": "ours"}
        await b.ended(backend, Status.FAILED, **ours)
        await b.claimed(backend, **ours)
        other = await b.submitted(backend, **ours | {"flow": "other"})
        await b.submitted(backend, **ours | {"tenant": "theirs"})
        await b.ended(backend, Status.COMPLETED)
        assert await backend.counts(tenant="ours") == {"FAILED": 1, "RUNNING": 1, "PENDING": 1}
        assert await backend.counts(tenant="ours", flow="crawl") == {"FAILED": 1, "RUNNING": 1}
        assert await backend.counts(tag="gpu") == {"FAILED": 1, "RUNNING": 1, "PENDING": 2}
        assert await backend.counts(tenant="nobody") == {}
        assert await backend.counts(tenant="ours", updated_after=other.updated_at) == {}
        assert await backend.counts(tenant="ours", updated_by=other.updated_at) == await backend.counts(tenant="ours")
        claim = await b.claim_of(backend, other.id)
        await backend.append(claim, [b.ending(Status.FAILED)])
        assert await backend.counts(tenant="ours") == {"FAILED": 2, "RUNNING": 1}
        await backend.purge([other.id])
        assert await backend.counts(tenant="ours") == {"FAILED": 1, "RUNNING": 1}

    async def test_it_is_known_since_when_the_longest_waiting_run_waits(self, backend: Backend) -> None:
        assert await backend.waiting_since() is None
        first, second = await b.submitted(backend), await b.submitted(backend)
        assert await backend.waiting_since() == first.updated_at
        await b.claim_of(backend, first.id)
        assert await backend.waiting_since() == second.updated_at

    async def test_a_run_that_nobody_could_claim_does_not_count_as_waiting(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        at = clock.now() + 50
        await b.submitted(backend, private=True)
        await b.submitted(backend, not_before=at)
        assert await backend.waiting_since() is None
        clock.jump(60)
        assert await backend.waiting_since() == at
        await b.submitted(backend)
        assert await backend.waiting_since() == at

    async def test_what_is_written_together_is_counted(self, backend: Backend) -> None:
        before = sum(backend.writes.counts)
        await asyncio.gather(*(b.submitted(backend) for _ in range(5)))
        assert before < sum(backend.writes.counts) <= before + 5
        assert backend.writes.total >= 5

    async def test_a_rebuilt_row_is_the_row(self, backend: Backend) -> None:
        claim = await b.claimed(backend, key="k", tags=("a",), priority=2, idempotency_key="once")
        await backend.append(claim, [b.item("a"), b.item_failed("b"), b.ending(Status.FAILED)])
        await backend.ask(claim.run.id, b.resume())
        again = await b.claim_of(backend, claim.run.id, "other")
        await backend.append(again, [b.item("b", attempt=2), f.StepDone(at=b.AT, attempt=2, step="s")])
        await backend.ask(claim.run.id, b.cancel())
        before = await b.row(backend, claim.run.id)
        rebuilt = await backend.rebuild(claim.run.id)
        assert rebuilt is not None
        assert await b.row(backend, claim.run.id) == rebuilt
        assert self.fold_of(rebuilt) == self.fold_of(before)
        assert await backend.append(again, [b.item("c", attempt=2)]) == before.position + 1

    async def test_the_row_of_a_run_that_is_claimed_by_tag_and_completed_is_the_fold_of_its_facts(
        self, backend: Backend
    ) -> None:
        told: dict[str, Any] = {"tags": ("a", "b"), "priority": 3, "key": "k", "tenant": "t", "idempotency_key": "i"}
        told |= {"digest": "d", "workflow": "w", "workflow_bytes": 9, "api_key": "a"}
        params = msgspec.Raw(b'{"n":1}')
        run = await b.submitted(backend, tag="x", source="here", continues=b.a_run().id, params=params, **told)
        (claim,) = await backend.claim("worker", tags=["x"], fingerprints={"crawl": "print"})
        assert claim == Claim(await b.row(backend, run.id), "worker", 1)
        rebuilt = await backend.rebuild(run.id)
        assert rebuilt is not None
        assert self.fold_of(rebuilt) == self.fold_of(claim.run)
        fact = f.RunCompleted(at=b.AT, result=msgspec.Raw(b"[1]"), artifacts=(f.Artifact("a", "blob", 3),))
        assert await backend.append(claim, [fact]) == 3
        row = await b.row(backend, run.id)
        assert (row.status, row.holder, row.result, row.finished_at) == ("COMPLETED", None, fact.result, stamp(b.AT))
        rebuilt = await backend.rebuild(run.id)
        assert rebuilt is not None
        assert self.fold_of(rebuilt) == self.fold_of(row)
        for label in ("a", "b"):
            assert [found.id for found in await backend.search(Query(label=label))] == [run.id]

    async def test_there_is_nothing_to_rebuild_of_an_unknown_run(self, backend: Backend) -> None:
        assert await backend.rebuild(b.a_run().id) is None

    def fold_of(self, run: Run) -> dict[str, Any]:
        """Gives all of a row but the time of its writing."""
        return {name: getattr(run, name) for name in run.__struct_fields__ if name != "updated_at"}

    async def test_a_failed_run_leaves_a_dead_letter(self, backend: Backend) -> None:
        first = await b.ended(backend, Status.FAILED, flow="crawl", tag="gpu")
        await b.ended(backend, Status.COMPLETED)
        await b.ended(backend, Status.CANCELLED)
        second = await b.ended(backend, Status.FAILED)
        newest, oldest = await backend.dead_letters()
        assert (newest.run_id, oldest.run_id) == (second.id, first.id)
        assert (oldest.number, oldest.flow, oldest.tag) == (first.number, "crawl", "gpu")
        assert (oldest.reason, oldest.at) == ("execution_error", b.AT)
        assert "oops" in oldest.error
        assert await backend.dead_letters(limit=1) == [newest]


class WorkersContract:
    """A worker says that it lives, and hears what it holds."""

    async def test_a_worker_hears_what_it_holds(self, backend: Backend) -> None:
        kept = await b.claimed(backend, "w1")
        asked = await b.claimed(backend, "w1")
        handed_back = await b.claimed(backend, "w1")
        done = await b.claimed(backend, "w1")
        lost = await b.claimed(backend, "w1")
        await b.claimed(backend, "w2")
        await backend.ask(asked.run.id, b.cancel())
        await backend.append(handed_back, [f.Released(at=b.AT)])
        await backend.append(done, [b.ending(Status.COMPLETED)])
        await b.claim_of(backend, lost.run.id, "w2", dead="w1")
        holdings = await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT))
        assert {(holding.run_id, holding.attempt, holding.cancelling) for holding in holdings} == {
            (kept.run.id, 1, False),
            (asked.run.id, 1, True),
        }

    @pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "CANCELLED", "released"])
    async def test_the_heartbeat_of_a_run_does_not_go_back_when_it_ends(
        self, backend: Backend, clock: ShiftedClock, end: str
    ) -> None:
        claim = await b.claimed(backend, "w1")
        clock.jump(60)
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=clock.now()))
        seen = last_heartbeat(await b.row(backend, claim.run.id))
        assert claim.run.heartbeat_at is not None
        assert seen > claim.run.heartbeat_at + 50
        last = f.Released(at=b.AT) if end == "released" else b.ending(Status(end))
        await backend.append(claim, [msgspec.structs.replace(last, at=clock.now())])
        after = await b.row(backend, claim.run.id)
        assert after.holder is None
        assert last_heartbeat(after) >= seen

    async def test_workers_that_hold_nothing_are_forgotten_after_a_day(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        claim = await b.claimed(backend, worker="holder")
        for worker in ("holder", "dead", "left"):
            state = STOPPED if worker == "left" else "RUNNING"
            await backend.beat(WorkerRecord(id=worker, heartbeat_at=clock.now(), state=state))
        for worker, hours in (("soon", 20), ("next day", 10), ("later", 1)):
            clock.jump(hours * 3600)
            await backend.beat(WorkerRecord(id=worker, heartbeat_at=clock.now()))
            if worker != "later":
                assert {"dead", "left"} <= {w.id for w in await backend.workers()}
        assert {w.id for w in await backend.workers()} == {"holder", "soon", "next day", "later"}
        await backend.append(claim, [b.ending(Status.COMPLETED)])
        clock.jump(3600)
        await backend.beat(WorkerRecord(id="last", heartbeat_at=clock.now()))
        assert "holder" not in {w.id for w in await backend.workers()}

    async def test_a_clock_that_jumps_makes_nobody_forgotten_who_lives(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        await backend.beat(WorkerRecord(id="idle", heartbeat_at=clock.now()))
        clock.jump(48 * 3600)
        await backend.beat(WorkerRecord(id="new", heartbeat_at=clock.now()))
        assert {w.id for w in await backend.workers()} == {"idle", "new"}

    async def test_of_very_many_workers_those_that_left_are_forgotten_first(
        self, backend: Backend, clock: ShiftedClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tsuzuki.backends.registry.MOST_WORKERS", 10)
        await backend.beat(WorkerRecord(id="dead", heartbeat_at=clock.now()))
        for number in range(15):
            clock.jump(1)
            await backend.beat(WorkerRecord(id=f"w{number}", heartbeat_at=clock.now(), state=STOPPED))
        assert {w.id for w in await backend.workers()} == {"dead", *(f"w{number}" for number in range(5, 15))}

    async def test_workers_are_listed_the_last_seen_first(self, backend: Backend, clock: ShiftedClock) -> None:
        one = WorkerRecord(id="w1", host="a", presence="w1.lock", tags=("gpu",), flows=("crawl",), started_at=b.AT)
        for worker in (one, WorkerRecord(id="w2"), one):
            clock.jump(10)
            await backend.beat(_seen(worker, clock.now()))
        first, second = await backend.workers()
        assert (first.id, second.id) == ("w1", "w2")
        assert (first.host, first.presence, first.tags, first.flows) == ("a", "w1.lock", ("gpu",), ("crawl",))
        assert first.started_at == b.AT
        assert abs(first.heartbeat_at - clock.now()) < 5

    async def test_workers_can_be_listed_when_they_hold_a_run_that_has_not_ended(self, backend: Backend) -> None:
        for worker in ("busy", "stopping", "idle", "done"):
            await backend.beat(WorkerRecord(id=worker, heartbeat_at=b.AT))
        await b.claimed(backend, "busy")
        asked, done = await b.claimed(backend, "stopping"), await b.claimed(backend, "done")
        await backend.ask(asked.run.id, b.cancel())
        await backend.append(done, [b.ending(Status.COMPLETED)])
        assert {worker.id for worker in await backend.workers(holding=True)} == {"busy", "stopping"}
        assert len(await backend.workers()) == 4

    async def test_a_worker_that_has_taken_a_place_holds_something_until_it_leaves(self, backend: Backend) -> None:
        for worker in ("w1", "w2"):
            await backend.beat(WorkerRecord(id=worker, heartbeat_at=b.AT))
        assert await backend.enter("api", places=1, worker="w1")
        assert [worker.id for worker in await backend.workers(holding=True)] == ["w1"]
        await backend.leave("api", worker="w1")
        assert await backend.workers(holding=True) == []

    async def test_a_beat_replaces_what_was_known_of_a_worker(self, backend: Backend) -> None:
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT))
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT + 1, state="DRAINING", tags=("late",)))
        (worker,) = await backend.workers()
        assert (worker.state, worker.tags) == ("DRAINING", ("late",))

    async def test_a_worker_tells_what_it_is_doing(self, backend: Backend) -> None:
        told = WorkerRecord(
            id="w1",
            heartbeat_at=b.AT,
            state="STOPPED_GRACEFUL",
            instance_id="first life",
            current_run_id="this",
            last_run_status="FAILED",
            stopped_at=b.AT,
            stop_reason="told to",
        )
        await backend.beat(told)
        (seen,) = await backend.workers()
        for name in ("state", "instance_id", "current_run_id", "last_run_status", "stopped_at", "stop_reason"):
            assert getattr(seen, name) == getattr(told, name)
        assert seen.stopped

    async def test_a_worker_stays_hidden_whatever_its_beats_say(self, backend: Backend) -> None:
        for worker in ("w1", "w2"):
            await backend.beat(WorkerRecord(id=worker, heartbeat_at=b.AT))
        assert await backend.hide("w1", True)
        assert await self.hidden(backend) == {"w1"}
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT, state="STOPPED_GRACEFUL"))
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT, instance_id="after a restart"))
        await backend.beat(WorkerRecord(id="w2", heartbeat_at=b.AT, hidden=True))
        assert await self.hidden(backend) == {"w1"}
        assert await backend.hide("w1", False)
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT))
        assert await self.hidden(backend) == set()

    async def test_who_beats_for_the_first_time_is_not_hidden(self, backend: Backend) -> None:
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT, hidden=True))
        assert await self.hidden(backend) == set()

    async def test_a_worker_that_nobody_knows_cannot_be_hidden(self, backend: Backend) -> None:
        assert not await backend.hide("nobody", True)
        assert await backend.workers() == []

    async def hidden(self, backend: Backend) -> set[str]:
        """Gives the ids of the workers that are hidden."""
        return {worker.id for worker in await backend.workers() if worker.hidden}

    async def test_a_beat_shows_on_the_runs_it_holds(self, backend: Backend, clock: ShiftedClock) -> None:
        mine, other = await b.claimed(backend, "w1"), await b.claimed(backend, "w2")
        clock.jump(60)
        await backend.beat(WorkerRecord(id="w1", heartbeat_at=clock.now()))
        after = await b.row(backend, mine.run.id)
        assert after.heartbeat_at == pytest.approx(clock.now(), abs=10)
        assert after.updated_at == mine.run.updated_at, "a beat is no change of the run"
        assert (await b.row(backend, other.run.id)).heartbeat_at == other.run.heartbeat_at

    async def test_every_beat_can_be_told_from_the_one_before(self, backend: Backend) -> None:
        seen: list[int] = []
        for _ in range(3):
            await backend.beat(WorkerRecord(id="w1", heartbeat_at=b.AT))
            seen += [worker.beats for worker in await backend.workers()]
        assert len(set(seen)) == 3, "who waits for a lease to run out sees by the beats that a worker lives"


def _seen(worker: WorkerRecord, at: float) -> WorkerRecord:
    return WorkerRecord(
        id=worker.id,
        host=worker.host,
        presence=worker.presence,
        tags=worker.tags,
        flows=worker.flows,
        started_at=worker.started_at,
        heartbeat_at=at,
    )
