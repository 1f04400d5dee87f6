"""Large values are objects of an Object Store bucket, which any client of NATS reads; those of a run go by subject."""
# ruff: noqa: SLF001 - it breaks what else only a crash or a lagging replica would break

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from nats.js.errors import ObjectNotFoundError
from nats.js.object_store import ObjectStore

from tests.backends.nats.conftest import Open
from tsuzuki import Runs, Status, Worker, flow
from tsuzuki import facts as f
from tsuzuki.backends.nats import NatsBackend, blobs, objects, topology
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.errors import StoreError
from tsuzuki.testing import builders as b

LARGE = "続き" * 150_000


@flow
async def large() -> str:
    return LARGE


@contextlib.asynccontextmanager
async def as_others_see_it(url: str) -> AsyncIterator[ObjectStore]:
    """The bucket of a store, through the client of NATS."""
    address, _, prefix = url.partition("?prefix=")
    client = await nats.connect(address)
    try:
        yield await client.jetstream().object_store(f"{prefix}_blobs")
    finally:
        await client.close()


async def kept(store: NatsBackend) -> list[str]:
    names = store._parts.topology
    return sorted(await objects.subjects(store._parts.wire, names.blobs, names.all_of_blobs))


async def test_a_large_result_is_an_object_that_any_client_of_nats_reads(url: str, opened: Open) -> None:
    store = await opened(url)
    runs = Runs(store)
    async with Worker(store, [large]) as worker:
        working = asyncio.create_task(worker.run())
        run = await runs.wait((await runs.submit(large, {})).id)
        worker.stop()
        await working
    (blob,) = [e.fact.blob for e in await store.read(run.id) if isinstance(e.fact, f.RunCompleted)]
    async with as_others_see_it(url) as bucket:
        (listed,) = await bucket.list()
        found = await bucket.get(f"{run.id}/{blob}")  # it compares the digest
        assert (listed.name, listed.size) == (f"{run.id}/{blob}", len(found.data or b""))
        assert found.info.chunks == 4
        assert hashlib.sha256(found.data or b"").hexdigest() == blob
        assert await runs.result(run.id) == LARGE
        assert await store.purge([run.id]) == 1
        with pytest.raises(ObjectNotFoundError):
            await bucket.get(f"{run.id}/{blob}")
    assert await kept(store) == []


async def test_a_purge_takes_one_run_and_no_other_and_goes_on_where_one_was_killed(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    one, other = [await b.claimed(store) for _ in range(2)]
    for claim in (one, other):
        for number in range(40):
            await store.put_blob(claim.run.id, f"{number}".encode())
        await store.put_blob(claim.run.id, b"")
        await store.append(claim, [b.ending(Status.COMPLETED)])
    ask, purges = store._parts.wire.api, 0

    async def killed(subject: str, *given: Any, **request: Any) -> Any:
        nonlocal purges
        purges += subject == topology.purge_stream(store._parts.topology.blobs)
        if purges > blobs.AT_ONCE + 3:
            raise Unclear("the process is gone")
        return await ask(subject, *given, **request)

    monkeypatch.setattr(store._parts.wire, "api", killed)
    with pytest.raises(Unclear):
        await store._parts.blobs.purge(one.run.id)
    monkeypatch.undo()
    assert 82 < len(await kept(store)) < 164, "some records are gone, and all pieces there"
    await store._parts.blobs.purge(one.run.id)
    left = [topology.blob_in(subject) for subject in await kept(store)]
    assert len(left) == 82
    assert {each.run for each in left if each} == {other.run.id}
    assert await store.get_blob(other.run.id, hashlib.sha256(b"7").hexdigest()) == b"7"


async def test_a_value_that_is_cut_off_or_written_by_two_is_kept_once(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await opened(url), await opened(url)
    claim = await b.claimed(one)
    data = b"x" * 3 * blobs.PIECE
    publish, written = one._parts.wire.publish, 0

    async def cut(subject: str, *given: Any, **more: Any) -> int:
        nonlocal written
        written += subject.startswith("$O.")
        if written == 3:
            raise Unclear("the connection was lost")
        return await publish(subject, *given, **more)

    monkeypatch.setattr(one._parts.wire, "publish", cut)
    with pytest.raises(Unclear):
        await one._parts.blobs.put(claim.run.id, data)
    monkeypatch.undo()
    assert len(await kept(one)) == 1
    await asyncio.gather(one._parts.blobs.put(claim.run.id, data), two._parts.blobs.put(claim.run.id, data))
    assert len(await kept(one)) == 2, "the pieces of one, and the record of them"
    for store in (one, two):
        assert await store.get_blob(claim.run.id, hashlib.sha256(data).hexdigest()) == data


async def test_doctor_sweeps_pieces_that_no_record_will_ever_name(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    wire, names = store._parts.wire, store._parts.topology
    claim, blob = await b.claimed(store), hashlib.sha256(b"whole").hexdigest()
    assert await store.put_blob(claim.run.id, b"whole") == blob
    for digest in (blob, "0" * 64):
        await wire.publish(names.blob_pieces(topology.blob_nuid(claim.run.id, digest, "cut")), b"who")
    gone = b.a_run().id
    await wire.publish(names.blob_record(gone, blob), b"{}")
    monkeypatch.setattr(objects, "ABANDONED", 0.0)

    async def told() -> str:
        return next(check.text for check in await store.examine() if check.name == "blobs")

    assert await told() == "those of 1 runs left behind by a crash and swept, and 0 that never became whole"
    assert len(await kept(store)) == 4, "whoever holds the run may still write the records"
    await store.append(claim, [b.ending(Status.COMPLETED)])
    assert await told() == "those of 0 runs left behind by a crash and swept, and 2 that never became whole"
    assert len(await kept(store)) == 2
    assert await store.get_blob(claim.run.id, blob) == b"whole"


async def test_what_a_replica_does_not_have_yet_is_asked_of_the_leader(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(url)
    claim, data = await b.claimed(store), b"x" * 3 * blobs.PIECE
    blob = await store.put_blob(claim.run.id, data)
    wire = store._parts.wire
    many = wire.many

    async def lags(subject: str, request: bytes) -> list[Any]:
        return (await many(subject, request))[:1] if b'"seq":1,' in request else []

    async def knows_nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(wire, "many", lags)
    monkeypatch.setattr(store._parts.blobs, "_found", knows_nothing)
    assert await store.get_blob(claim.run.id, blob) == data
    await store._parts.wire.api(
        topology.purge_stream(store._parts.topology.blobs), filter=store._parts.topology.all_blob_pieces
    )
    with pytest.raises(StoreError, match="damaged"):
        await store.get_blob(claim.run.id, blob)
