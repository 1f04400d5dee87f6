"""What a store promises about keys, idempotency, and the requests of those who do not hold a run."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio

import pytest

from tsuzuki import facts as f
from tsuzuki.backends import Backend
from tsuzuki.errors import KeyHeld, MoveRefused
from tsuzuki.lifecycle import TERMINAL, Run, RunUpdateResult, Status
from tsuzuki.testing import builders as b
from tsuzuki.testing.clock import ShiftedClock

ENDED = sorted(TERMINAL)


class KeysContract:
    """One active run holds a key; one run is made for an idempotency key."""

    async def test_a_held_key_is_refused_and_the_holder_named(self, backend: Backend) -> None:
        first = await b.submitted(backend, key="crawl:a")
        with pytest.raises(KeyHeld) as caught:
            await b.submitted(backend, key="crawl:a")
        assert caught.value.run_id == first.id
        assert "crawl:a" in str(caught.value)
        assert f"run {first.number}" in str(caught.value)
        assert "PENDING" in str(caught.value)
        assert await backend.counts() == {"PENDING": 1}

    async def test_a_key_is_held_while_the_run_runs_and_while_it_is_cancelled(self, backend: Backend) -> None:
        claim = await b.claimed(backend, key="k")
        with pytest.raises(KeyHeld, match="RUNNING"):
            await b.submitted(backend, key="k")
        await backend.ask(claim.run.id, b.cancel())
        with pytest.raises(KeyHeld, match="CANCELLING"):
            await b.submitted(backend, key="k")

    @pytest.mark.parametrize("status", ENDED)
    async def test_a_key_is_free_when_its_run_has_ended(self, backend: Backend, status: Status) -> None:
        await b.ended(backend, status, key="k")
        await b.submitted(backend, key="k")
        with pytest.raises(KeyHeld):
            await b.submitted(backend, key="k")

    async def test_a_key_is_held_per_tenant(self, backend: Backend) -> None:
        runs = {tenant: await b.submitted(backend, key="k", tenant=tenant) for tenant in ("a", "b", "")}
        for tenant, run in runs.items():
            with pytest.raises(KeyHeld) as caught:
                await b.submitted(backend, key="k", tenant=tenant)
            assert caught.value.run_id == run.id

    async def test_runs_without_a_key_do_not_hinder_each_other(self, backend: Backend) -> None:
        await b.submitted(backend)
        await b.submitted(backend)
        assert await backend.counts() == {"PENDING": 2}

    async def test_one_of_fifty_simultaneous_submissions_gets_the_key(self, backend: Backend) -> None:
        answers = await asyncio.gather(*(b.submitted(backend, key="k") for _ in range(50)), return_exceptions=True)
        (winner,) = [answer for answer in answers if isinstance(answer, Run)]
        refusals = [answer for answer in answers if isinstance(answer, KeyHeld)]
        assert len(refusals) == 49
        assert {refusal.run_id for refusal in refusals} == {winner.id}

    async def test_an_idempotency_key_gives_the_first_run_back(self, backend: Backend) -> None:
        first = await b.submitted(backend, idempotency_key="once", key="k", flow="crawl")
        again = await b.submitted(backend, idempotency_key="once", key="k", flow="crawl")
        assert again == first
        assert await backend.counts() == {"PENDING": 1}
        with pytest.raises(KeyHeld):
            await b.submitted(backend, key="k")
        assert (await b.submitted(backend, flow="crawl")).number == first.number + 1, "only a run takes a number"
        await backend.ask(first.id, b.cancel())
        ended = await b.submitted(backend, idempotency_key="once", key="k")
        assert (ended.id, ended.status) == (first.id, Status.CANCELLED)

    async def test_an_idempotency_key_holds_per_tenant(self, backend: Backend) -> None:
        runs = [await b.submitted(backend, idempotency_key="once", tenant=tenant) for tenant in ("a", "b", "")]
        assert len({run.id for run in runs}) == 3

    async def test_fifty_simultaneous_submissions_with_an_idempotency_key_make_one_run(self, backend: Backend) -> None:
        runs = await asyncio.gather(*(b.submitted(backend, idempotency_key="once") for _ in range(50)))
        assert len({run.id for run in runs}) == 1
        assert await backend.counts() == {"PENDING": 1}


class RequestsContract:
    """Cancel and resume come from outside, and are decided by the table of the lifecycle."""

    async def test_a_waiting_run_is_cancelled_at_once(self, backend: Backend) -> None:
        run = await b.submitted(backend, key="k")
        result, after = await backend.ask(run.id, b.cancel("ann"))
        assert result is RunUpdateResult.UPDATED
        assert after == await b.row(backend, run.id)
        assert (after.status, after.cancel_asked_by, after.cancel_reason) == (
            Status.CANCELLED,
            "ann",
            "no longer needed",
        )
        assert after.finished_at is not None
        assert await b.kinds(backend, run.id) == ["Submitted", "CancelAsked", "RunCancelled"]
        await b.submitted(backend, key="k")

    async def test_a_running_run_is_asked_to_stop(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        result, after = await backend.ask(claim.run.id, b.cancel())
        assert (result, after and after.status) == (RunUpdateResult.UPDATED, Status.CANCELLING)
        assert after is not None
        assert (after.holder, after.cancel_asked_at) == ("worker", b.AT)
        await backend.append(claim, [f.CancelSeen(at=b.AT), b.item("a"), b.ending(Status.CANCELLED)])
        assert (await b.row(backend, claim.run.id)).status is Status.CANCELLED

    async def test_a_second_request_to_cancel_changes_nothing(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.ask(claim.run.id, b.cancel("first"))
        result, after = await backend.ask(claim.run.id, b.cancel("second"))
        assert result is RunUpdateResult.UPDATED
        assert after is not None
        assert (after.status, after.cancel_asked_by, after.position) == (Status.CANCELLING, "first", 3)

    async def test_a_run_of_a_dead_holder_is_cancelled_at_once(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        result, after = await backend.ask(claim.run.id, b.cancel(), dead=frozenset({"worker"}))
        assert (result, after and after.status) == (RunUpdateResult.UPDATED, Status.CANCELLED)

    @pytest.mark.parametrize("status", ENDED)
    async def test_an_ended_run_is_not_cancelled(self, backend: Backend, status: Status) -> None:
        run = await b.ended(backend, status)
        assert await backend.ask(run.id, b.cancel()) == (RunUpdateResult.ALREADY_TERMINAL, run)
        assert await b.row(backend, run.id) == run

    async def test_a_request_for_an_unknown_run_finds_nothing(self, backend: Backend) -> None:
        assert await backend.ask(b.a_run().id, b.cancel()) == (RunUpdateResult.NOT_FOUND, None)
        assert await backend.ask(b.a_run().id, b.resume()) == (RunUpdateResult.NOT_FOUND, None)

    async def test_work_that_completed_before_it_saw_the_request_wins(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.ask(claim.run.id, b.cancel())
        await backend.append(claim, [b.item("a"), b.ending(Status.COMPLETED)])
        run = await b.row(backend, claim.run.id)
        assert (run.status, run.done) == (Status.COMPLETED, 1)

    async def test_a_run_handed_back_after_a_cancel_was_asked_is_cancelled(self, backend: Backend) -> None:
        claim = await b.claimed(backend, key="k")
        await backend.ask(claim.run.id, b.cancel())
        await backend.append(claim, [f.Released(at=b.AT)])
        run = await b.row(backend, claim.run.id)
        assert (run.status, run.holder) == (Status.CANCELLED, None)
        assert run.finished_at is not None
        assert await backend.claim("other", tags=("default",)) == []
        await b.submitted(backend, key="k")

    @pytest.mark.parametrize("status", ENDED)
    async def test_an_ended_run_with_something_left_is_resumed(self, backend: Backend, status: Status) -> None:
        run = await b.ended(backend, status)
        result, after = await backend.ask(run.id, b.resume())
        assert result is RunUpdateResult.UPDATED
        assert after == await b.row(backend, run.id)
        assert (after.status, after.attempt, after.holder) == (Status.PENDING, run.attempt + 1, None)
        assert (after.error, after.result, after.finished_at, after.failed) == (None, None, None, 0)
        assert (await b.kinds(backend, run.id))[-1] == "ResumeAsked"
        assert (await backend.claim("worker", tags=("default",)))[0].attempt == 2

    async def test_a_resume_may_leave_the_failed_items_failed(self, backend: Backend) -> None:
        run = await b.ended(backend, Status.FAILED)
        _, after = await backend.ask(run.id, b.resume(failed=False))
        assert after is not None
        assert after.failed == 1

    async def test_a_completed_run_without_failed_items_is_not_resumed(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item("a"), b.ending(Status.COMPLETED)])
        before = await b.row(backend, claim.run.id)
        with pytest.raises(MoveRefused):
            await backend.ask(claim.run.id, b.resume())
        assert await b.row(backend, claim.run.id) == before

    async def test_an_active_run_is_not_resumed(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        with pytest.raises(MoveRefused, match="PENDING"):
            await backend.ask(run.id, b.resume())
        await b.claim_of(backend, run.id)
        with pytest.raises(MoveRefused, match="RUNNING"):
            await backend.ask(run.id, b.resume())
        await backend.ask(run.id, b.cancel())
        with pytest.raises(MoveRefused, match="CANCELLING"):
            await backend.ask(run.id, b.resume())

    @pytest.mark.parametrize("released", [True, False])
    async def test_a_run_that_waits_is_woken_by_a_resume(
        self, backend: Backend, clock: ShiftedClock, released: bool
    ) -> None:
        until = clock.now() + 3600
        run = await b.submitted(backend, not_before=0.0 if released else until)
        if released:
            claim = await b.claim_of(backend, run.id)
            wait = f.Released(at=b.AT, reason="why", not_before=until, wait=3600)
            await backend.append(claim, [b.item_failed("x"), wait])
        before = await b.row(backend, run.id)
        result, after = await backend.ask(run.id, b.resume())
        assert result is RunUpdateResult.UPDATED
        assert after == await b.row(backend, run.id)
        assert (after.status, after.attempt, after.failed) == (Status.PENDING, before.attempt, before.failed)
        assert (after.not_before, after.wait, after.waiting_reason) == (0.0, 0.0, "")
        assert "ResumeAsked" not in [mark.kind for mark in await backend.outcomes(run.id)], "what failed stays so"
        assert [claim.run.id for claim in await backend.claim("worker", tags=("default",))] == [run.id]

    async def test_a_worker_wakes_when_a_run_that_waits_is_woken(self, backend: Backend, clock: ShiftedClock) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [f.Released(at=b.AT, not_before=clock.now() + 3600, wait=3600)])
        waiter = asyncio.create_task(backend.work(60.0))
        await b.waiting(waiter)
        await backend.ask(claim.run.id, b.resume())
        await asyncio.wait_for(waiter, 10)

    async def test_a_run_whose_key_was_taken_meanwhile_is_not_resumed(self, backend: Backend) -> None:
        old = await b.ended(backend, Status.FAILED, key="k")
        new = await b.submitted(backend, key="k")
        with pytest.raises(KeyHeld) as caught:
            await backend.ask(old.id, b.resume())
        assert caught.value.run_id == new.id
        assert f"run {new.number}" in str(caught.value)
        assert await b.row(backend, old.id) == old

    async def test_a_resumed_run_holds_its_key_again(self, backend: Backend) -> None:
        run = await b.ended(backend, Status.CANCELLED, key="k")
        await backend.ask(run.id, b.resume())
        with pytest.raises(KeyHeld):
            await b.submitted(backend, key="k")

    async def test_only_the_holder_records_outcomes(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        for fact in (b.item("a"), b.ending(Status.COMPLETED), f.Released(at=b.AT)):
            with pytest.raises(MoveRefused):
                await backend.ask(claim.run.id, fact)
        assert await b.kinds(backend, claim.run.id) == ["Submitted", "Claimed"]
