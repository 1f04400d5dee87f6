"""Params that do not fit into a message are a blob of their run, which nobody sees."""
# ruff: noqa: SLF001 - it looks at the streams themselves, and breaks what else only a crash would break

from typing import Any

import msgspec
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_full import blobs_kept
from tests.backends.nats.test_work import given
from tsuzuki import Status
from tsuzuki.backends import Query
from tsuzuki.backends.nats import NatsBackend, feed
from tsuzuki.backends.nats.faults import ApiError
from tsuzuki.errors import KeyHeld, StoreUnavailable
from tsuzuki.testing import builders as b

PARAMS = msgspec.Raw(b'{"text": "' + b"x" * 900_000 + b'"}')
RESULT = msgspec.Raw(b'"' + b"x" * 400_000 + b'"')


async def test_huge_params_reach_other_processes_and_those_that_come_later(url: str, opened: Open) -> None:
    one, two = await opened(url), await opened(url)
    run = await b.submitted(one, params=PARAMS)
    late = await opened(url)
    assert [bytes(row.params) == bytes(PARAMS) for row in await late.search(Query())] == [True]
    (claim,) = await two.claim("worker", tags=("default",))
    assert bytes(claim.run.params) == bytes(PARAMS)
    await two.append(claim, [b.ending(Status.COMPLETED)])
    assert bytes((await b.row(late, run.id)).params) == bytes(PARAMS)
    assert await one.purge([run.id]) == 1
    assert await blobs_kept(one) == 0


async def test_a_submission_that_is_not_accepted_leaves_no_params_behind(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    await b.submitted(store, key="k")
    await b.submitted(store, idempotency_key="once")
    with pytest.raises(KeyHeld):
        await b.submitted(store, params=PARAMS, key="k")
    await b.submitted(store, params=PARAMS, idempotency_key="once")
    assert await blobs_kept(store) == 0

    async def full(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("full") from ApiError(503, 10023, "insufficient resources")

    monkeypatch.setattr(store._parts.chain, "extend", full)
    with pytest.raises(StoreUnavailable):
        await b.submitted(store, params=PARAMS)
    assert await blobs_kept(store) == 0


async def test_doctor_takes_no_params_from_a_run_that_is_being_submitted(url: str, opened: Open) -> None:
    one, two = await opened(url), await opened(url)
    swept = two._parts.blobs.sweep

    async def submit_meanwhile(projection: Any, fenced: Any, over: Any) -> Any:
        run = b.a_run(params=PARAMS)
        await one._parts.blobs.put(run.id, bytes(PARAMS))

        async def just_then(run_id: str) -> bool:
            await b.submitted(one, id=run.id, params=PARAMS)
            return bool(await fenced(run_id))

        return await swept(projection, just_then, over)

    two._parts.blobs.sweep = submit_meanwhile  # type: ignore[method-assign]
    await two.examine()
    (run_id,) = await given(one)
    assert bytes((await b.row(one, run_id)).params) == bytes(PARAMS)
    left = b.a_run()
    await one._parts.blobs.put(left.id, b"of a submitter that was killed")
    two._parts.blobs.sweep = swept  # type: ignore[method-assign]
    (check,) = [check for check in await two.examine() if check.name == "blobs"]
    assert check.text.startswith("those of 1 runs")


async def test_params_that_are_lost_fail_their_run_and_no_other(url: str, opened: Open) -> None:
    store: NatsBackend = await opened(url)
    run, other = await b.submitted(store, params=PARAMS), await b.submitted(store)
    await store._parts.blobs.purge(run.id)
    assert {row.id for row in await store.search(Query())} == {run.id, other.id}
    assert set(await given(store, limit=2)) == {run.id, other.id}


async def test_runs_whose_rows_are_more_than_a_server_sends_at_once_are_all_listed(url: str, opened: Open) -> None:
    one = await opened(url)
    runs, end = set(), msgspec.structs.replace(b.ending(Status.COMPLETED), result=RESULT)
    for _ in range(2 * feed.MOST_BYTES // len(bytes(RESULT))):
        claim = await b.claimed(one)
        await one.append(claim, [end])
        runs.add(claim.run.id)
    late = await opened(url)
    assert {row.id for row in await late.search(Query(limit=len(runs)))} == runs
