"""What a store promises about what it keeps beside runs: dead letters and small documents."""
# ruff: noqa: S101 - a test asserts, and the numbers of an example are its content

import hashlib

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Query
from tsuzuki.lifecycle import Status
from tsuzuki.testing import builders as b


class KeepingContract:
    """Dead letters are found, paged and dropped; documents are kept by kind and name; workflows travel with a run."""

    async def test_a_dead_letter_tells_who_failed_where_and_why(self, backend: Backend) -> None:
        claim = await b.claimed(backend, flow="crawl", tag="x", tags=("a",), tenant="t")
        fact = f.RunFailed(at=b.AT, error=b.OOPS, reason="execution_error", worker="worker")
        await backend.append(claim, [fact])
        (letter,) = await backend.dead_letters()
        assert (letter.run_id, letter.flow, letter.tag, letter.tags) == (claim.run.id, "crawl", "x", ("a",))
        assert (letter.worker, letter.attempt, letter.tenant) == ("worker", 1, "t")
        assert letter.subject, "where the run was queued"
        assert (letter.reason, letter.error, letter.at) == ("execution_error", b.OOPS.message, b.AT)
        assert await backend.dead_letter(letter.id) == letter

    async def test_dead_letters_are_paged_the_newest_first_without_those_that_were_dropped(
        self, backend: Backend
    ) -> None:
        failed = [(await b.ended(backend, Status.FAILED)).id for _ in range(6)]
        letters = await backend.dead_letters()
        assert await backend.count_letters() == len(letters)
        assert [letter.run_id for letter in letters] == failed[::-1]
        assert await backend.drop_letter(letters[2].id)
        assert not await backend.drop_letter(letters[2].id)
        assert await backend.dead_letter(letters[2].id) is None
        first = await backend.dead_letters(limit=3)
        rest = await backend.dead_letters(limit=3, before=first[-1].id)
        assert [letter.run_id for letter in (*first, *rest)] == [failed[at] for at in (5, 4, 2, 1, 0)]

    async def test_a_dead_letter_that_was_never_written_is_not_there(self, backend: Backend) -> None:
        for name in ("", "0", "99999", "9" * 40, "x", "../1", "１"):
            assert await backend.dead_letter(name) is None
            assert not await backend.drop_letter(name)

    async def test_documents_are_kept_by_kind_and_name(self, backend: Backend) -> None:
        assert await backend.record("flow", "crawl") is None
        await backend.put_record("flow", "crawl", b'{"n":1}')
        await backend.put_record("flow", "crawl", b'{"n":2}')
        await backend.put_record("flow", "a name / with.dots * and 日本", b'{"n":3}')
        await backend.put_record("key", "crawl", b'{"n":4}')
        assert await backend.record("flow", "crawl") == b'{"n":2}'
        assert await backend.records("flow") == [("a name / with.dots * and 日本", b'{"n":3}'), ("crawl", b'{"n":2}')]
        assert await backend.drop_record("flow", "crawl")
        assert not await backend.drop_record("flow", "crawl")
        assert await backend.records("key") == [("crawl", b'{"n":4}')]
        assert await backend.records("nothing") == []

    async def test_a_run_brings_its_workflow_to_workers_that_know_no_such_flow(self, backend: Backend) -> None:
        text = "flow: {graph: a}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        run = b.a_run(flow="theirs", workflow=digest, workflow_bytes=len(text), api_key="k1")
        await backend.submit(run, f.Submitted(at=b.AT, flow=run.flow, workflow=text))
        await b.submitted(backend, flow="unknown")
        (claim,) = await backend.claim("worker", tags=["default"], flows=["ours"], limit=10)
        assert (claim.run.id, claim.run.workflow, claim.run.workflow_bytes) == (run.id, digest, len(text))
        assert claim.run.api_key == "k1"
        first = (await backend.read(run.id, limit=1))[0].fact
        assert isinstance(first, f.Submitted)
        assert first.workflow == text
        assert [found.id for found in await backend.search(Query(workflow=digest))] == [run.id]
        assert await backend.search(Query(workflow="0" * 64)) == []

    async def test_a_worker_that_executes_no_workflows_leaves_such_runs_to_others(self, backend: Backend) -> None:
        for flow in ("ours", "theirs", "ours"):
            brought = b.a_run(flow=flow, workflow="0" * 64, workflow_bytes=1)
            await backend.submit(brought, f.Submitted(at=b.AT, flow=flow, workflow="x"))
        known = await b.submitted(backend, flow="ours")
        for flows in (["ours"], None):
            claims = await backend.claim("plain", tags=["default"], flows=flows, workflows=False, limit=10)
            assert [claim.run.id for claim in claims] == ([known.id] if flows else [])
        taken = await backend.claim("able", tags=["default"], flows=(), limit=10)
        assert [claim.run.flow for claim in taken] == ["ours", "theirs", "ours"]
        dead = frozenset({"able", "plain"})
        (again,) = await backend.claim("other", tags=["default"], flows=["ours"], workflows=False, dead=dead, limit=10)
        assert again.run.id == known.id

    async def test_runs_are_found_by_words_in_id_flow_and_error(self, backend: Backend) -> None:
        crawl = await b.ended(backend, Status.FAILED, flow="Crawl")
        other = await b.submitted(backend, flow="parse")
        assert [run.id for run in await backend.search(Query(text="crAW"))] == [crawl.id]
        assert [run.id for run in await backend.search(Query(text=b.OOPS.message.upper()))] == [crawl.id]
        assert [run.id for run in await backend.search(Query(text=other.id[3:20]))] == [other.id]
        assert await backend.search(Query(text="100%_")) == []
