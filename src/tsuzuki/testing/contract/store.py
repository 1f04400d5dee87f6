"""What a store promises about blobs, shared limits, purging and its own examination."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio

import msgspec
import pytest

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Line, Query
from tsuzuki.errors import KeyHeld, TsuzukiError
from tsuzuki.lifecycle import TERMINAL, Status
from tsuzuki.testing import builders as b


class StoreContract:
    """Blobs live with their run; limits hold for all; purging takes only what has ended."""

    @pytest.mark.parametrize("data", [b"", b"\0\xff", b"x" * 3_000_000], ids=["empty", "binary", "large"])
    async def test_a_blob_comes_back_as_it_was(self, backend: Backend, data: bytes) -> None:
        run = await b.submitted(backend)
        blob = await backend.put_blob(run.id, data)
        assert await backend.get_blob(run.id, blob) == data

    async def test_huge_params_come_back_wherever_they_are_asked_for(self, backend: Backend) -> None:
        params = msgspec.Raw(b'{"text": "' + b"x" * 2_000_000 + b'"}')
        run = await b.submitted(backend, params=params, idempotency_key="once", key="k")
        assert (await b.submitted(backend, params=params, idempotency_key="once")).id == run.id
        with pytest.raises(KeyHeld):
            await b.submitted(backend, params=params, key="k")
        claim = await b.claim_of(backend, run.id)
        await backend.append(claim, [b.item("a")])
        (first,) = await backend.fetch(run.id, [1])
        rows = [run, claim.run, await b.row(backend, run.id), *await backend.search(Query())]
        assert [bytes(row.params) == bytes(params) for row in rows] == [True] * 4
        told = [entry.fact for entry in (first, *await backend.read(run.id, limit=1))]
        assert [isinstance(fact, f.Submitted) and bytes(fact.params) == bytes(params) for fact in told] == [True] * 2
        await backend.append(claim, [b.ending(Status.COMPLETED)])
        assert await backend.rebuild(run.id) is not None
        assert bytes((await b.row(backend, run.id)).params) == bytes(params)
        assert await backend.purge([run.id]) == 1
        assert await backend.search(Query()) == []

    async def test_blobs_do_not_replace_each_other(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        one, two = await asyncio.gather(backend.put_blob(run.id, b"one"), backend.put_blob(run.id, b"two"))
        assert [await backend.get_blob(run.id, blob) for blob in (one, two)] == [b"one", b"two"]

    async def test_a_missing_blob_is_an_error(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        blob = await backend.put_blob(run.id, b"one")
        with pytest.raises(TsuzukiError):
            await backend.get_blob((await b.submitted(backend)).id, blob)

    async def test_turns_of_a_rate_are_spread(self, backend: Backend) -> None:
        waits = [await backend.take("api", interval=60.0) for _ in range(3)]
        assert waits == [pytest.approx(0, abs=5), pytest.approx(60, abs=5), pytest.approx(120, abs=5)]
        assert min(waits) >= 0
        assert await backend.take("other", interval=60.0) == pytest.approx(0, abs=5)

    async def test_a_burst_may_go_at_once(self, backend: Backend) -> None:
        waits = [await backend.take("api", interval=60.0, burst=3) for _ in range(5)]
        assert waits == [0, 0, 0, pytest.approx(60, abs=5), pytest.approx(120, abs=5)]

    async def test_turns_taken_at_once_are_different_ones(self, backend: Backend) -> None:
        waits = await asyncio.gather(*(backend.take("api", interval=60.0) for _ in range(10)))
        assert sorted(round(wait / 60) for wait in waits) == list(range(10))

    async def test_a_limit_has_so_many_places_and_no_more(self, backend: Backend) -> None:
        entered = await asyncio.gather(*(backend.enter("gpu", places=3, worker=f"w{n % 2}") for n in range(10)))
        assert sum(entered) == 3
        assert await backend.enter("other", places=1, worker="w1")

    async def test_a_place_that_was_given_back_is_free(self, backend: Backend) -> None:
        assert await backend.enter("gpu", places=2, worker="w1")
        assert await backend.enter("gpu", places=2, worker="w1")
        await backend.leave("gpu", worker="w1")
        assert await backend.enter("gpu", places=2, worker="w2")
        assert not await backend.enter("gpu", places=2, worker="w2")

    async def test_the_places_of_the_dead_are_free(self, backend: Backend) -> None:
        for _ in range(2):
            assert await backend.enter("gpu", places=2, worker="dead")
        assert not await backend.enter("gpu", places=2, worker="w1")
        assert await backend.enter("gpu", places=2, worker="w1", dead=frozenset({"dead"}))
        assert await backend.enter("gpu", places=2, worker="w1", dead=frozenset({"dead"}))
        assert not await backend.enter("gpu", places=2, worker="w1", dead=frozenset({"dead"}))

    async def test_who_leaves_without_having_entered_frees_nothing(self, backend: Backend) -> None:
        assert await backend.enter("gpu", places=1, worker="w1")
        await backend.leave("gpu", worker="w2")
        assert not await backend.enter("gpu", places=1, worker="w2")

    @pytest.mark.parametrize("status", sorted(TERMINAL))
    async def test_an_ended_run_is_purged_with_all_it_had(self, backend: Backend, status: Status) -> None:
        run = await b.ended(backend, status, idempotency_key="once")
        kept = await b.ended(backend, status)
        blob = await backend.put_blob(run.id, b"data")
        await backend.log(run.id, [Line(at=b.AT, text="hello")])
        assert await backend.purge([run.id, run.id, b.a_run().id]) == 1
        assert await backend.get(run.id) is None
        assert await backend.read(run.id) == []
        assert await backend.read_log(run.id) == []
        with pytest.raises(TsuzukiError):
            await backend.get_blob(run.id, blob)
        assert await b.row(backend, kept.id) == kept
        assert (await b.submitted(backend, idempotency_key="once")).id != run.id

    async def test_an_active_run_is_not_purged(self, backend: Backend) -> None:
        waiting = await b.submitted(backend)
        running = (await b.claimed(backend)).run
        stopping = (await b.claimed(backend)).run
        await backend.ask(stopping.id, b.cancel())
        assert await backend.purge([waiting.id, running.id, stopping.id]) == 0
        assert await backend.counts() == {"PENDING": 1, "RUNNING": 1, "CANCELLING": 1}
        assert await b.kinds(backend, running.id) == ["Submitted", "Claimed"]

    async def test_a_number_is_not_used_again_after_a_purge(self, backend: Backend) -> None:
        run = await b.ended(backend, Status.COMPLETED)
        await backend.purge([run.id])
        assert (await b.submitted(backend)).number > run.number

    async def test_a_healthy_store_has_no_complaints(self, backend: Backend) -> None:
        await b.ended(backend, Status.COMPLETED)
        checks = await backend.examine()
        assert checks
        assert [check for check in checks if not check.ok] == []

    async def test_a_store_tells_its_address(self, backend: Backend) -> None:
        assert ":" in backend.url
