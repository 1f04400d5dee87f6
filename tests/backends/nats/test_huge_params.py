"""What does not fit into a message: params are a blob of their run, which nobody sees; all else is refused."""
# ruff: noqa: SLF001 - it looks at the streams themselves, and breaks what else only a crash would break

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_full import blobs_kept
from tests.backends.nats.test_work import given
from tests.nats_server import NatsServer
from tsuzuki import Status
from tsuzuki.backends import Query
from tsuzuki.backends.nats import NatsBackend, feed
from tsuzuki.backends.nats.faults import ApiError
from tsuzuki.errors import KeyHeld, StoreError, StoreUnavailable, TooLarge
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


async def test_a_run_that_could_never_be_claimed_is_refused_and_leaves_its_keys_free(url: str, opened: Open) -> None:
    """Every later message repeats its row: one that just fits has no room for the first claim."""
    store = await opened(url)
    for fields in ({"tags": ("t" * 1_047_600,)}, {"source": "s" * 300_000}, {"flow": "f" * 300_000}):
        with pytest.raises(TooLarge, match="at most 262,144"):
            await b.submitted(store, key="k", idempotency_key="once", **fields)
    run = await b.submitted(store, key="k", idempotency_key="once", tags=("t" * 250_000,), params=PARAMS)
    claim = await b.claim_of(store, run.id)
    await store.append(claim, [b.ending(Status.COMPLETED)])
    assert (await b.row(store, run.id)).status is Status.COMPLETED


async def test_a_run_that_no_message_can_hold_keeps_no_other_from_being_claimed(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    monkeypatch.setattr(store._parts.queue, "_refuse_unclaimable", lambda run: None)  # as it was accepted of old
    for size in range(store._parts.wire.largest, 0, -8):  # the largest that is taken
        with contextlib.suppress(StoreError):
            await b.submitted(store, tags=("t" * size,))
            break
    run = await b.submitted(store)
    assert [claim.run.id for claim in await store.claim("worker", tags=("default",), limit=1)] == [run.id]


async def test_a_message_that_only_its_headers_make_too_large_costs_nobody_the_connection(
    url: str, opened: Open
) -> None:
    store = await opened(url)
    wire, lost = store._parts.wire, list[int]()
    wire.on_reconnect.append(lambda: lost.append(1))
    for size in (wire.largest, wire.largest - 1, wire.largest - 20):
        with pytest.raises(ApiError, match="10054"):
            await wire.publish(store._parts.topology.chain("run"), b"x" * size, after=0)
    assert await wire.connected(0)
    assert not lost


async def test_a_name_too_long_for_a_subject_costs_nobody_the_connection_and_its_run_is_claimed(
    url: str, opened: Open
) -> None:
    """A server turns out whoever writes to a subject of more than 4 KB: such a run has no ticket, and needs none."""
    store, lost = await opened(url), list[int]()
    store._parts.wire.on_reconnect.append(lambda: lost.append(1))
    runs = [await b.submitted(store, flow="流" * 1500), await b.submitted(store, flow="f", tag="t" * 5000)]
    claims = [claim for tag in ("default", "t" * 5000) for claim in await store.claim("worker", tags=(tag,))]
    assert [claim.run.id for claim in claims] == [run.id for run in runs]
    for claim in claims:
        await store.append(claim, [b.ending(Status.COMPLETED)])
    assert not lost


async def test_a_server_whose_messages_are_too_small_is_refused_in_words(tmp_path: Path, opened: Open) -> None:
    """A result of 200 KB would be done again and again there, and never be written down."""
    server = NatsServer(tmp_path / "nats", settings="max_payload: 65536")
    server.start()
    try:
        with pytest.raises(StoreUnavailable, match=r"max_payload .* 65,536 .* 1,048,576"):
            await opened(server.url)
    finally:
        server.stop()
