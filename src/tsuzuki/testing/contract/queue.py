"""What a store promises about the queue: who gets which run, in which order, and how often."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio
from typing import Any

import msgspec
import pytest

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Claim, Query
from tsuzuki.errors import ClaimLost, KeyHeld
from tsuzuki.lifecycle import MAX_CLAIMS_ALONE, MOST_CLAIMS, Run, Status, rest
from tsuzuki.testing import builders as b
from tsuzuki.testing.clock import ShiftedClock

DEFAULT = ("default",)
SHARED = 2
"""Claims without an outcome that a run may have beside others."""


class QueueContract:
    """Runs are given by tag, priority and age, to one worker at a time."""

    async def test_a_submitted_run_waits_and_has_a_number(self, backend: Backend) -> None:
        first = await b.submitted(backend, flow="crawl", tags=("a", "b"), priority=3, source="cli")
        second = await b.submitted(backend)
        assert (first.status, first.attempt, first.holder) == (Status.PENDING, 1, None)
        assert 0 < first.number < second.number
        assert await b.row(backend, first.id) == first
        assert (first.flow, first.tags, first.priority, first.source) == ("crawl", ("a", "b"), 3, "cli")

    async def test_a_claim_makes_the_run_running(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        (claim,) = await backend.claim("worker", tags=DEFAULT)
        assert claim.run == await b.row(backend, run.id)
        assert (claim.worker, claim.attempt) == ("worker", 1)
        assert (claim.run.status, claim.run.holder, claim.run.position) == (Status.RUNNING, "worker", 2)
        assert claim.run.started_at is not None
        assert await b.kinds(backend, run.id) == ["Submitted", "Claimed"]

    async def test_a_run_knows_who_claimed_it_last_also_when_it_has_ended(self, backend: Backend) -> None:
        claim = await b.claimed(backend, "first")
        assert (claim.run.worker, (await b.row(backend, claim.run.id)).worker) == ("first", "first")
        second = await b.claim_of(backend, claim.run.id, "second", dead="first")
        await backend.append(second, [b.ending(Status.COMPLETED, second.attempt)])
        assert ((ended := await b.row(backend, claim.run.id)).holder, ended.worker) == (None, "second")
        assert [run.worker for run in await backend.search(Query())] == ["second"]
        assert (await backend.rebuild(claim.run.id) or ended).worker == "second"
        assert (await b.submitted(backend)).worker == ""

    async def test_a_worker_is_given_only_the_flows_it_names(self, backend: Backend) -> None:
        mine = await b.submitted(backend, flow="mine")
        await b.submitted(backend, flow="theirs")
        claims = await backend.claim("worker", tags=DEFAULT, flows={"mine"}, limit=10)
        assert [claim.run.id for claim in claims] == [mine.id]
        assert await backend.claim("worker", tags=DEFAULT, flows=(), limit=10) == []
        assert (
            len(await backend.claim("other", tags=DEFAULT, dead=frozenset({"worker"}), flows=["mine"], limit=10)) == 1
        )
        assert len(await backend.claim("other", tags=DEFAULT, limit=10)) == 1

    async def test_a_held_run_is_not_given_again(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        assert await backend.claim("other", tags=DEFAULT) == []
        assert await backend.claim("other", run_id=claim.run.id) == []
        assert await backend.claim("other", tags=DEFAULT, dead=frozenset({"stranger"})) == []

    async def test_runs_are_given_by_tag(self, backend: Backend) -> None:
        await b.submitted(backend, tag="cpu")
        gpu = await b.submitted(backend, tag="gpu")
        labelled = await b.submitted(backend, tag="other", tags=("gpu",))
        assert await self.given(backend, tags=("gpu", "missing"), limit=9) == [gpu.id]
        assert await self.given(backend, tags=("other",), limit=9) == [labelled.id]

    async def test_a_worker_without_tags_is_given_nothing(self, backend: Backend) -> None:
        await b.submitted(backend)
        assert await backend.claim("worker", limit=9) == []

    async def test_runs_are_given_by_priority_and_then_by_age(self, backend: Backend) -> None:
        low, first, second, high = [await b.submitted(backend, priority=p) for p in (-1, 0, 0, 5)]
        assert await self.given(backend, limit=9) == [high.id, first.id, second.id, low.id]

    async def test_a_run_of_a_dead_holder_comes_before_those_that_wait(self, backend: Backend) -> None:
        """It was under way, and would still be: a low priority keeps others waiting as little as it did before."""
        begun = (await b.claimed(backend, "dead", priority=-1)).run.id
        important = (await b.claimed(backend, "dead", priority=9)).run.id
        waiting = [(await b.submitted(backend, priority=priority)).id for priority in (0, 5)]
        assert await self.given(backend, limit=9, dead=frozenset({"dead"})) == [important, begun, *waiting[::-1]]

    async def test_a_run_that_seems_to_kill_its_workers_comes_in_its_turn(self, backend: Backend) -> None:
        run = await self.suspect(backend, priority=-1)
        waiting = await b.submitted(backend)
        for wanted in (waiting, run):
            (claim,) = await backend.claim("worker", tags=DEFAULT, limit=9, dead=frozenset({"dead"}), alone=True)
            assert claim.run.id == wanted.id

    async def test_at_most_as_many_runs_are_given_as_were_asked_for(self, backend: Backend) -> None:
        runs = [(await b.submitted(backend)).id for _ in range(5)]
        assert await self.given(backend, limit=2) == runs[:2]
        assert await self.given(backend, limit=9) == runs[2:]

    async def test_many_workers_never_get_the_same_run(self, backend: Backend) -> None:
        runs = {(await b.submitted(backend)).id for _ in range(20)}
        rounds = await asyncio.gather(*(backend.claim(f"w{n}", tags=DEFAULT, limit=3) for n in range(20)))
        given = [claim.run.id for claims in rounds for claim in claims]
        assert sorted(given) == sorted(runs)

    async def test_a_run_is_not_given_before_its_time(self, backend: Backend, clock: ShiftedClock) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [f.Released(at=b.AT, reason="later", not_before=clock.now() + 60)])
        assert await backend.claim("worker", tags=DEFAULT) == []
        assert await backend.claim("worker", run_id=claim.run.id) == []
        clock.jump(61)
        assert await self.given(backend) == [claim.run.id]

    async def test_a_run_tells_why_and_for_how_long_it_waits_until_it_is_claimed(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        claim = await b.claimed(backend)
        until = clock.now() + 60
        await backend.append(claim, [f.Released(at=b.AT, reason="no answer yet", not_before=until, wait=60)])
        run = await b.row(backend, claim.run.id)
        assert (run.waiting_reason, run.wait, run.not_before) == ("no answer yet", 60, until)
        [listed] = await backend.search(Query())
        assert (listed.waiting_reason, listed.wait) == ("no answer yet", 60)
        clock.jump(61)
        [again] = await backend.claim("worker", tags=DEFAULT)
        assert (again.run.waiting_reason, again.run.wait, again.run.not_before) == ("", 0, 0)

    @pytest.mark.parametrize("by_id", [False, True])
    async def test_a_wait_that_would_be_longer_than_its_length_begins_again_when_it_is_seen(
        self, backend: Backend, clock: ShiftedClock, by_id: bool
    ) -> None:
        claim = await b.claimed(backend)
        ahead = clock.now() + 3600
        await backend.append(claim, [f.Released(at=b.AT, reason="why", not_before=ahead + 20, wait=20)])

        async def given() -> list[str]:
            claims = await backend.claim("worker", **{"run_id": claim.run.id} if by_id else {"tags": DEFAULT})
            return [each.run.id for each in claims]

        async with asyncio.timeout(30):  # a store that hears of it from elsewhere may need a moment
            while (run := await b.row(backend, claim.run.id)).not_before > clock.now() + 20:
                assert await given() == []
        assert (run.status, run.holder, run.wait, run.waiting_reason) == (Status.PENDING, None, 20, "why")
        assert await given() == []
        clock.jump(21)
        assert await given() == [claim.run.id]

    async def test_a_run_that_was_submitted_for_later_waits_also_when_its_row_is_rebuilt(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        run = await b.submitted(backend, not_before=clock.now() + 60)
        rebuilt = await backend.rebuild(run.id)
        assert rebuilt is not None
        assert rebuilt.not_before == run.not_before
        assert await backend.claim("worker", tags=DEFAULT) == []
        clock.jump(61)
        assert await self.given(backend) == [run.id]

    async def test_a_private_run_is_given_by_its_id_only(self, backend: Backend) -> None:
        run = await b.submitted(backend, private=True)
        assert await backend.claim("worker", tags=DEFAULT) == []
        claim = await b.claim_of(backend, run.id)
        assert claim.run.private
        assert await backend.claim("other", tags=DEFAULT, dead=frozenset({"worker"})) == []
        assert (await b.claim_of(backend, run.id, "other", dead="worker")).attempt == 2

    async def test_runs_that_are_claimed_together_keep_what_is_their_own(self, backend: Backend) -> None:
        plain = [await b.submitted(backend, params=msgspec.Raw(b"%d" % n), digest=f"d{n}") for n in range(3)]
        odd = await b.submitted(backend, tags=("a",), key="k", source="there", params=msgspec.Raw(b"[9]"))
        other = await b.submitted(backend, flow="other", tenant="t", params=msgspec.Raw(b"[7]"))
        claims = await backend.claim("worker", tags=["default"], limit=5)
        assert [claim.run.id for claim in claims] == [run.id for run in (*plain, odd, other)]
        for claim in claims:
            assert claim == Claim(await b.row(backend, claim.run.id), "worker", 1)

    @pytest.mark.parametrize("private", [True, False])
    async def test_a_submitter_may_have_its_run_from_the_first_moment(self, backend: Backend, private: bool) -> None:
        claimed = f.Claimed(at=b.AT, worker="maker", fingerprint="v1")
        run = await b.submitted(backend, claimed=claimed, private=private)
        assert (run.status, run.holder, run.attempt, run.position) == (Status.RUNNING, "maker", 1, 2)
        assert run == msgspec.structs.replace(await b.row(backend, run.id), heartbeat_at=run.heartbeat_at)
        assert await b.kinds(backend, run.id) == ["Submitted", "Claimed"]
        assert await backend.claim("worker", tags=DEFAULT) == []
        assert await backend.claim("worker", run_id=run.id) == []
        claim = Claim(run, "maker", 1)
        assert await backend.append(claim, [b.item("a")]) == 3
        new = await b.claim_of(backend, run.id, "other", dead="maker")
        assert (new.attempt, new.was) == (2, "v1")
        with pytest.raises(ClaimLost):
            await backend.append(claim, [b.item("b")])
        await backend.append(new, [f.Released(at=b.AT, attempt=2)])
        assert await self.given(backend) == ([] if private else [run.id])

    async def test_a_submission_that_is_none_claims_nothing(self, backend: Backend) -> None:
        first = await b.submitted(backend, idempotency_key="once", key="k")
        claimed = f.Claimed(at=b.AT, worker="maker")
        again = await b.submitted(backend, claimed=claimed, idempotency_key="once", key="k")
        assert (again.id, again.status, again.holder) == (first.id, Status.PENDING, None)
        with pytest.raises(KeyHeld):
            await b.submitted(backend, claimed=claimed, key="k")
        assert await b.kinds(backend, first.id) == ["Submitted"]
        assert await backend.search(Query()) == [await b.row(backend, first.id)]

    async def test_by_id_only_that_run_is_given_whatever_its_tag(self, backend: Backend) -> None:
        await b.submitted(backend)
        wanted = await b.submitted(backend, tag="rare")
        claims = await backend.claim("worker", run_id=wanted.id, limit=9)
        assert [claim.run.id for claim in claims] == [wanted.id]
        assert await backend.claim("worker", run_id=b.a_run().id) == []

    async def test_a_run_of_a_dead_holder_is_given_with_the_next_attempt(self, backend: Backend) -> None:
        old = await b.claimed(backend, "old")
        (new,) = await backend.claim("new", tags=DEFAULT, dead=frozenset({"old", "older"}))
        assert (new.run.id, new.attempt, new.run.holder) == (old.run.id, 2, "new")
        assert new.run.status is Status.RUNNING

    async def test_no_two_claims_of_a_run_share_an_attempt(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        attempts = [claim.attempt]
        for how in ("crash", "release", "fail", "crash", "release"):
            if how != "crash":
                end = f.Released(at=b.AT) if how == "release" else b.ending(Status.FAILED, claim.attempt)
                await backend.append(claim, [end])
            if how == "fail":
                await backend.ask(claim.run.id, b.resume())
            claim = await b.claim_of(backend, claim.run.id, dead="worker")
            attempts.append(claim.attempt)
        assert attempts == [1, 2, 3, 4, 5, 6]

    async def test_a_cancelling_run_of_a_dead_holder_is_given_to_finish_cancelling(self, backend: Backend) -> None:
        old = await b.claimed(backend, "old")
        await backend.ask(old.run.id, b.cancel("ann"))
        new = await b.claim_of(backend, old.run.id, "new", dead="old")
        assert (new.run.status, new.attempt, new.run.cancel_asked_by) == (Status.CANCELLING, 2, "ann")
        await backend.append(new, [b.ending(Status.CANCELLED, 2)])
        assert (await b.row(backend, old.run.id)).status is Status.CANCELLED

    async def test_an_ended_run_is_not_given(self, backend: Backend) -> None:
        for status in (Status.COMPLETED, Status.FAILED, Status.CANCELLED):
            run = await b.ended(backend, status)
            assert await backend.claim("other", run_id=run.id, dead=frozenset({"worker"})) == []
        assert await backend.claim("other", tags=DEFAULT, limit=9, dead=frozenset({"worker"})) == []

    @pytest.mark.parametrize("left", ["failed", "interrupted"])
    async def test_a_private_run_that_is_resumed_for_all_is_given_by_tag(self, backend: Backend, left: str) -> None:
        claim = await b.claimed(backend, private=True, tags=("nightly",))
        await backend.append(claim, [b.item("a")])
        if left == "failed":
            await backend.append(claim, [f.RunFailed(at=b.AT, error=f.Problem("E", "no"))])
        ask = f.ResumeAsked(at=b.AT, share=True)
        _, row = await backend.ask(claim.run.id, ask, dead=frozenset({"worker"}))
        assert row is not None
        assert (row.status, row.private, row.holder, row.done) == (Status.PENDING, False, None, 1)
        assert await b.row(backend, row.id) == row
        assert [found.id for found in await backend.search(Query(private=False, flow=row.flow))] == [row.id]
        assert await backend.search(Query(private=True)) == []
        (given,) = await backend.claim("other", tags=DEFAULT)
        assert (given.run.id, given.run.private, given.run.done) == (row.id, False, 1)

    async def test_a_claim_records_the_code_and_tells_the_one_before(self, backend: Backend) -> None:
        run = await b.submitted(backend, flow="crawl")
        codes = {"crawl": "v1", "other": "v9"}
        (first,) = await backend.claim("worker", run_id=run.id, fingerprints=codes)
        (second,) = await backend.claim(
            "worker", run_id=run.id, dead=frozenset({"worker"}), fingerprints={"crawl": "v2"}
        )
        assert (first.was, first.run.fingerprint) == ("", "v1")
        assert (second.was, second.run.fingerprint) == ("v1", "v2")

    async def test_a_run_that_may_kill_its_workers_waits_longer_each_time(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        run = await b.submitted(backend)
        dead, pauses = "", list[float]()
        for n in range(SHARED + MAX_CLAIMS_ALONE - 1):
            before = clock.now()
            await b.claim_of(backend, run.id, f"w{n}", dead=dead, alone=True)
            after, dead, pause = clock.now(), f"w{n}", rest(n + 1)
            if pause:
                pauses.append(pause)
                clock.jump(before + pause / 2 - clock.now())  # however long a claim takes by itself
                claims = await backend.claim("early", tags=DEFAULT, dead=frozenset({dead}), alone=True)
                assert claims == [], "others have their turn"
                clock.jump(after + pause - clock.now())
        assert pauses == [1.0, 2.0]
        (given,) = await backend.claim("worker", tags=DEFAULT, dead=frozenset({dead}), alone=True)
        assert given.run.id == run.id

    async def test_a_run_that_only_kills_its_workers_is_failed(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        for n in range(SHARED + MAX_CLAIMS_ALONE):
            await b.claim_of(backend, run.id, f"w{n}", dead=f"w{n - 1}", alone=n >= SHARED)
        healthy = await b.submitted(backend)
        last = frozenset({f"w{SHARED + MAX_CLAIMS_ALONE - 1}"})
        (given,) = await backend.claim("busy", tags=DEFAULT, dead=last)
        assert given.run.id == healthy.id, "the poisoned run is ended, and the next one is given instead"
        ended = await b.row(backend, run.id)
        assert (ended.status, ended.holder) == (Status.FAILED, None)
        assert ended.error is not None
        assert "claimed 5 times without one new outcome, 3 of them with no other run beside it" in ended.error.message
        fact = (await b.journal(backend, run.id))[-1].fact
        assert isinstance(fact, f.RunFailed)
        assert fact.reason == "max_claims"
        (letter,) = await backend.dead_letters()
        assert (letter.run_id, letter.reason) == (run.id, "max_claims")

    async def test_deaths_beside_other_runs_fail_no_run(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        for n in range(MOST_CLAIMS + 1):
            claim = await b.claim_of(backend, run.id, f"w{n}", dead=f"w{n - 1}")
            assert claim.run.barren == min(n + 1, SHARED)

    async def test_a_suspect_is_given_alone_and_only_to_a_worker_that_executes_nothing(self, backend: Backend) -> None:
        suspects = [await self.suspect(backend) for _ in range(2)]
        dead = frozenset({"dead"})
        for run in suspects:
            assert await backend.claim("busy", tags=DEFAULT, dead=dead, limit=9) == []
            (given,) = await backend.claim("idle", tags=DEFAULT, dead=dead, limit=9, alone=True)
            assert (given.run.id, given.run.barren) == (run.id, SHARED + 1)
            fact = (await b.journal(backend, run.id))[-1].fact
            assert isinstance(fact, f.Claimed)
            assert fact.alone
        waiting = [await b.submitted(backend) for _ in range(2)]
        claims = await backend.claim("idle", tags=DEFAULT, dead=dead, limit=9, alone=True)
        assert [claim.run.id for claim in claims] == [run.id for run in waiting]
        assert not any(fact.alone for fact in await self.claims_of(backend, waiting[0].id)), "two were given"

    async def test_busy_workers_wait_for_a_suspect_before_them_and_take_turns_with_it(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        orphan = await b.claimed(backend, "dead")
        suspect, dead = await self.suspect(backend), frozenset({"dead"})
        waiting = [await b.submitted(backend) for _ in range(3)]
        given = await self.given(backend, dead=dead, limit=9)
        assert given == [orphan.run.id], "what is behind the suspect waits, so that a worker becomes idle"
        clock.jump(2.9)
        given = await self.given(backend, dead=dead, limit=2)
        assert given == [run.id for run in waiting[:2]], "for a while others pass it"
        clock.jump(3)
        assert await self.given(backend, dead=dead) == []
        (claim,) = await backend.claim("idle", tags=DEFAULT, dead=dead, limit=9, alone=True)
        assert claim.run.id == suspect.id

    async def test_a_suspect_that_is_cancelled_is_settled_by_a_busy_worker(self, backend: Backend) -> None:
        suspect = await self.suspect(backend)
        await backend.ask(suspect.id, f.CancelAsked(at=b.AT))
        assert await self.given(backend, dead=frozenset({"dead"})) == [suspect.id]

    async def suspect(self, backend: Backend, **fields: Any) -> Run:
        """Submits a run that was claimed as often as a run may be beside others, by a worker that is dead."""
        run = await b.submitted(backend, **fields)
        await b.claim_of(backend, run.id, "dead")
        return (await b.claim_of(backend, run.id, "dead", dead="dead")).run

    async def claims_of(self, backend: Backend, run_id: str) -> list[f.Claimed]:
        """Reads the claims of a run."""
        return [entry.fact for entry in await b.journal(backend, run_id) if isinstance(entry.fact, f.Claimed)]

    async def test_an_outcome_proves_that_a_run_does_not_only_kill(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        most = SHARED + MAX_CLAIMS_ALONE
        for n in range(3 * most):
            if n % most == most - 1:
                await backend.append(claim, [b.item(str(n), attempt=claim.attempt)])
            claim = await b.claim_of(backend, claim.run.id, dead="worker", alone=True)

    async def test_a_run_that_was_handed_back_killed_nobody(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        for _ in range(MOST_CLAIMS + 5):
            await backend.append(claim, [f.Released(at=b.AT)])
            claim = await b.claim_of(backend, claim.run.id)

    async def given(
        self, backend: Backend, *, tags: tuple[str, ...] = DEFAULT, limit: int = 1, dead: frozenset[str] = frozenset()
    ) -> list[str]:
        """Claims, and gives the ids in the order in which they were given."""
        claims: list[Claim] = await backend.claim("worker", tags=tags, limit=limit, dead=dead)
        return [claim.run.id for claim in claims]
