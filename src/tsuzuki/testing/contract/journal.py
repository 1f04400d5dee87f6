"""What a store promises about journals: order, fencing, first write wins, and reading in pages."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio

import msgspec
import pytest

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Claim, Query
from tsuzuki.errors import ClaimLost, MoveRefused
from tsuzuki.lifecycle import TERMINAL, Status
from tsuzuki.testing import builders as b


class FromTheFuture(f.Fact, frozen=True, kw_only=True):
    """A fact of a kind that no version knows yet."""

    color: str = "green"


GIVEN = msgspec.Raw('{"url":"https://例.example/…"}'.encode())


class JournalContract:
    """Facts go in all or none, in one order, from the holder only, and come out as they went in."""

    async def test_a_journal_begins_with_the_submission_at_position_one(self, backend: Backend) -> None:
        run = await b.submitted(backend, flow="crawl")
        (entry,) = await b.journal(backend, run.id)
        assert (entry.position, entry.fact) == (1, f.Submitted(at=b.AT, flow="crawl"))
        assert run.position == 1

    async def test_an_append_answers_with_the_last_position(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        assert await backend.append(claim, [b.item("a"), b.item("b")]) == 4
        assert await backend.append(claim, [b.item("c")]) == 5

    async def test_positions_have_no_gaps_when_many_append_at_once(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        last = await asyncio.gather(*(backend.append(claim, [b.item(str(n))]) for n in range(200)))
        assert sorted(last) == list(range(3, 203))
        assert [entry.position for entry in await b.journal(backend, claim.run.id)] == list(range(1, 203))

    async def test_facts_come_out_as_they_went_in(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        sent = [
            f.StepStarted(at=1.5, step="s", name="fetch", parent="p", map=True, total=3, takes="url"),
            b.item("日本", result={"text": "続き", "n": [1, None]}),
            f.StepFailed(at=2.5, step="t", name="parse", took=0.25, tries=3, error=f.Problem("E", "m", "tb")),
            f.ItemFailed(at=3.5, step="s", key="a", error=f.Problem("E", "m"), inputs=GIVEN, inputs_cut=True),
            f.ItemDone(at=4.5, step="s", key="b", inputs=GIVEN),
        ]
        await backend.append(claim, sent)
        assert [entry.fact for entry in await backend.read(claim.run.id, after=2)] == sent

    async def test_a_refused_fact_keeps_out_its_whole_batch(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        before = await b.row(backend, claim.run.id)
        with pytest.raises(MoveRefused):
            await backend.append(claim, [b.item("a"), f.CancelSeen(at=b.AT)])
        assert await b.kinds(backend, claim.run.id) == ["Submitted", "Claimed"]
        assert await b.row(backend, claim.run.id) == before
        assert await backend.append(claim, [b.item("a")]) == 3

    async def test_a_refused_append_does_no_harm_to_others_under_way(self, backend: Backend) -> None:
        good, bad = await b.claimed(backend), await b.claimed(backend)
        await b.claim_of(backend, bad.run.id, "other", dead="worker")
        answers = await asyncio.gather(
            backend.append(good, [b.item("a")]),
            backend.append(bad, [b.item("a")]),
            backend.append(good, [b.item("b")]),
            return_exceptions=True,
        )
        assert [answers[0], answers[2]] == [3, 4]
        assert isinstance(answers[1], ClaimLost)

    async def test_a_claim_is_lost_when_a_newer_one_was_given(self, backend: Backend) -> None:
        old = await b.claimed(backend, "old")
        new = await b.claim_of(backend, old.run.id, "new", dead="old")
        await self.refused(backend, old)
        assert await backend.append(new, [b.item("a")]) == 4

    async def test_a_claim_is_lost_when_the_same_worker_claimed_again(self, backend: Backend) -> None:
        old = await b.claimed(backend)
        await b.claim_of(backend, old.run.id, dead="worker")
        await self.refused(backend, old)

    async def test_a_claim_is_lost_after_its_release(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [f.Released(at=b.AT)])
        await self.refused(backend, claim)

    @pytest.mark.parametrize("status", sorted(TERMINAL))
    async def test_a_claim_is_lost_after_the_end(self, backend: Backend, status: Status) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.ending(status)])
        await self.refused(backend, claim)

    async def test_a_claim_of_another_worker_s_name_is_refused(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await self.refused(backend, Claim(claim.run, "stranger", claim.attempt))

    async def refused(self, backend: Backend, claim: Claim) -> None:
        """Checks that a claim can append nothing, neither an outcome nor an end."""
        before = await b.kinds(backend, claim.run.id)
        for fact in (b.item("late", attempt=claim.attempt), b.ending(Status.COMPLETED, claim.attempt)):
            with pytest.raises(ClaimLost):
                await backend.append(claim, [fact])
        assert await b.kinds(backend, claim.run.id) == before

    async def test_the_first_outcome_of_an_item_wins(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item("a", result="first")])
        assert await backend.append(claim, [b.item("a", result="second")]) == 3
        assert await backend.append(claim, [b.item_failed("a"), b.item("b")]) == 4
        facts = [entry.fact for entry in await backend.read(claim.run.id, after=2)]
        assert facts == [b.item("a", result="first"), b.item("b")]
        run = await b.row(backend, claim.run.id)
        assert (run.done, run.failed, run.position) == (2, 0, 4)

    async def test_the_first_outcome_wins_inside_one_batch(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        assert await backend.append(claim, [b.item("a"), b.item_failed("a")]) == 3
        assert await b.kinds(backend, claim.run.id) == ["Submitted", "Claimed", "ItemDone"]

    async def test_outcomes_of_other_steps_keys_and_attempts_are_kept(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item("a"), b.item("a", step="other"), b.item("b"), b.item("a", attempt=2)])
        assert (await b.row(backend, claim.run.id)).done == 4

    async def test_what_outcomes_spent_is_added_up_and_runs_are_found_by_it(self, backend: Backend) -> None:
        claim, other = await b.claimed(backend), await b.claimed(backend)
        await backend.append(other, [b.item("a")])
        dear = f.Spent("openai", "large", requests=1, input=10, output=2, cost=0.5)
        free = f.Spent("ollama", "small", requests=2, input=3, unpriced=2)
        paid = [msgspec.structs.replace(b.item(key), spent=(dear,)) for key in "ab"]
        await backend.append(claim, [*paid, msgspec.structs.replace(b.item_failed("c"), spent=(dear, free))])
        await backend.append(claim, [msgspec.structs.replace(b.item("a"), spent=(dear,))])  # it is there already
        sums = (f.Spent("openai", "large", requests=3, input=30, output=6, cost=1.5), free)
        assert (await b.row(backend, claim.run.id)).spent == sums
        await backend.append(claim, [b.ending(Status.COMPLETED)])
        assert [run.spent for run in await backend.search(Query(spent=True))] == [sums]
        assert [run.id for run in await backend.search(Query(spent=False))] == [other.run.id]
        assert await backend.search(Query(spent=True, tenant="somebody")) == []
        rebuilt = await backend.rebuild(claim.run.id)
        assert rebuilt is not None
        assert rebuilt.spent == sums

    async def test_a_journal_is_read_in_pages(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item(str(n)) for n in range(5)])
        first = await backend.read(claim.run.id, limit=3)
        second = await backend.read(claim.run.id, after=first[-1].position, limit=3)
        third = await backend.read(claim.run.id, after=second[-1].position, limit=3)
        assert [[entry.position for entry in page] for page in (first, second, third)] == [[1, 2, 3], [4, 5, 6], [7]]
        assert await backend.read(claim.run.id, after=7) == []

    async def test_outcomes_are_read_in_pages_with_the_requests_to_resume(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        started = f.StepStarted(at=b.AT, step="s")
        await backend.append(claim, [started, b.item("a"), b.item_failed("b"), b.ending(Status.FAILED)])
        await backend.ask(claim.run.id, b.resume())
        again = await b.claim_of(backend, claim.run.id)
        await backend.append(again, [f.StepDone(at=b.AT, attempt=2, step="s")])
        marks = await backend.outcomes(claim.run.id)
        assert [(mark.position, mark.kind, mark.step, mark.key) for mark in marks] == [
            (4, "ItemDone", "fetch", "a"),
            (5, "ItemFailed", "fetch", "b"),
            (7, "ResumeAsked", "", ""),
            (9, "StepDone", "s", ""),
        ]
        assert await backend.outcomes(claim.run.id, limit=2) == marks[:2]
        assert await backend.outcomes(claim.run.id, after=5, limit=2) == marks[2:]

    async def test_failed_tries_are_among_the_outcomes_as_often_as_they_were_made(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        tries = [f.TryFailed(at=b.AT, step="s", key="k", name="fetch", tries=n, error=b.OOPS) for n in (1, 2)]
        await backend.append(claim, tries)
        await backend.append(claim, [f.StepDone(at=b.AT, step="s", key="k", name="fetch", tries=3)])
        marks = await backend.outcomes(claim.run.id)
        assert [(mark.position, mark.kind, mark.step, mark.key) for mark in marks] == [
            (3, "TryFailed", "s", "k"),
            (4, "TryFailed", "s", "k"),
            (5, "StepDone", "s", "k"),
        ]
        assert [entry.fact for entry in await backend.fetch(claim.run.id, [4])] == tries[1:]
        run = await b.row(backend, claim.run.id)
        assert (run.steps, run.failed, run.position) == (1, 0, 5)

    async def test_a_resume_that_retries_nothing_is_not_among_the_outcomes(self, backend: Backend) -> None:
        run = await b.ended(backend, Status.FAILED)
        await backend.ask(run.id, b.resume(failed=False))
        assert [mark.kind for mark in await backend.outcomes(run.id)] == ["ItemFailed"]

    async def test_facts_are_fetched_by_their_positions(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item(str(n), result=n) for n in range(5)])
        found = {entry.position: entry.fact for entry in await backend.fetch(claim.run.id, [7, 3, 5])}
        assert found == {3: b.item("0", result=0), 5: b.item("2", result=2), 7: b.item("4", result=4)}

    async def test_many_facts_are_fetched_at_once(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item(str(n)) for n in range(2500)])
        wanted = list(range(3, 2503))
        found = await backend.fetch(claim.run.id, wanted)
        assert sorted(entry.position for entry in found) == wanted

    async def test_journals_of_runs_do_not_mix(self, backend: Backend) -> None:
        one, two = await b.claimed(backend), await b.claimed(backend)
        await backend.append(one, [b.item("a")])
        assert await backend.append(two, [b.item("a")]) == 3
        assert [mark.key for mark in await backend.outcomes(two.run.id)] == ["a"]

    async def test_an_unknown_run_has_an_empty_journal(self, backend: Backend) -> None:
        unknown = b.a_run().id
        assert await backend.read(unknown) == []
        assert await backend.outcomes(unknown) == []
        assert await backend.fetch(unknown, [1]) == []

    async def test_a_fact_of_an_unknown_kind_is_shown_and_keeps_its_run_from_being_claimed(
        self, backend: Backend
    ) -> None:
        claim = await b.claimed(backend)
        assert await backend.append(claim, [FromTheFuture(at=b.AT)]) == 3
        (entry,) = await backend.read(claim.run.id, after=2)
        assert isinstance(entry.fact, f.Unknown)
        assert f.plain(entry.fact) == {"kind": "FromTheFuture", "at": b.AT}
        await backend.rebuild(claim.run.id)
        assert await backend.claim("other", run_id=claim.run.id, dead=frozenset({"worker"})) == []
