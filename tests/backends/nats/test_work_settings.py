"""What can be set of the work queue and the dead letters, and what is kept of what is there."""
# ruff: noqa: SLF001 - it looks at the queue itself, and loses what else only a crash or the network would lose

import json
from pathlib import Path

import msgspec
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.backends.nats.test_work import (
    consumer,
    given,
    known,
    queued,
    words,
)
from tests.nats_server import NatsServer
from tsuzuki import Status, defaults
from tsuzuki.backends import WorkerRecord
from tsuzuki.backends.nats import NatsBackend, administration, options, tickets, topology
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.permissions import ANY, permissions
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.errors import BadUsage, StoreUnavailable
from tsuzuki.testing import builders as b


async def test_names_and_limits_are_those_that_were_set(
    nats_server: NatsServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = nats_server.fresh()
    monkeypatch.setenv("TSUZUKI_WORK_SUBJECT_PREFIX", f"{name}.jobs")
    monkeypatch.setenv("TSUZUKI_CONSUMER_MAX_ACK_PENDING", "7")
    monkeypatch.setenv("TSUZUKI_CONSUMER_ACK_WAIT_SEC", "never")
    monkeypatch.setenv("TSUZUKI_CONSUMER_MAX_DELIVER", "3")
    monkeypatch.setenv("TSUZUKI_DLQ_STREAM", f"{name}-dead")
    monkeypatch.setenv("TSUZUKI_WORKERS_KV_BUCKET", f"{name}_staff")
    monkeypatch.setenv("TSUZUKI_DLQ_PUBLISH_EXECUTION_ERROR", "false")
    store = await opened(f"{nats_server.url}?prefix={name}&dlq_prefix={name}.graves&max_ack_pending=9")
    assert f"work_prefix={name}.jobs" in store.url
    run = await b.submitted(store)
    for at in range(3):
        await b.claim_of(store, run.id, f"w{at}", dead=f"w{at - 1}", alone=True)
    assert await store.claim("w3", run_id=run.id, dead=frozenset({"w2"})) == []
    good = await b.submitted(store)
    assert await given(store) == [good.id]
    config = (await consumer(store, good))["config"]
    assert (config["max_ack_pending"], config["ack_wait"]) == (9, 30_000_000_000)
    assert config["filter_subject"].startswith(f"{name}.jobs.default.0.")
    await b.ended(store, Status.FAILED)
    (letter,) = await store.dead_letters()
    assert (letter.run_id, letter.reason) == (run.id, "max_claims")
    info = await store._parts.wire.api(topology.stream_info(f"{name}-dead"))
    assert info["config"]["subjects"] == [f"{name}.graves.>"]
    await store.beat(WorkerRecord(id="w"))
    told = await store._parts.wire.api(topology.stream_info(f"KV_{name}_staff"), subjects_filter="$KV.*.worker.>")
    assert list(told["state"]["subjects"]) == [f"$KV.{name}_staff.worker.w"]


def test_names_that_are_not_set_are_those_of_the_settings() -> None:
    names = Topology(options.parse("nats://host"))
    default = {setting.option: setting.default for setting in defaults.NATS}
    assert (names.bucket, names.letters) == (default["workers_bucket"], default["dlq_stream"])
    assert names.all_letters == f"{default['dlq_prefix']}.*"
    assert names.all_work == f"{default['work_prefix']}.>"


@pytest.mark.parametrize(
    "query",
    [
        "ack_wait=5&ack_progress=5",
        "ack_progress=40",
        "work_prefix=a..b",
        "dlq_stream=a.b",
        "workers_bucket=a.b",
        "max_deliver=0",
    ],
)
async def test_settings_that_do_not_fit_together_are_refused(nats_server: NatsServer, query: str) -> None:
    with pytest.raises(BadUsage):
        await NatsBackend.open(f"{nats_server.url}?prefix={nats_server.fresh()}&{query}")


async def test_a_stream_with_other_settings_is_kept_and_told_of(nats_server: NatsServer, opened: Open) -> None:
    name = nats_server.fresh()
    other = await opened(f"{nats_server.url}?prefix={nats_server.fresh()}")
    config = {"name": f"{name}-work", "subjects": [f"{name}.work.>"], "retention": "limits"}
    await other._parts.wire.api(administration.create_stream(f"{name}-work"), **config)
    with pytest.raises(StoreUnavailable, match=f"stream {name}-work has retention='limits'"):
        await opened(f"{nats_server.url}?prefix={name}")
    kept = await other._parts.wire.api(topology.stream_info(f"{name}-work"))
    assert kept["config"]["subjects"] == [f"{name}.work.>"]


async def test_whoever_starts_sets_the_limits_of_consumers_anew(
    url: str, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    one = await opened(url, ack_wait=6, ack_progress=2, max_ack_pending=7)
    runs = [await b.submitted(one) for _ in range(2)]
    assert await given(one) == [runs[0].id]
    two = await opened(url)
    await until(lambda: known(two, 2), 5)
    assert await given(two) == [runs[1].id]
    config = (await consumer(two, runs[0]))["config"]
    assert (config["ack_wait"], config["max_ack_pending"]) == (30_000_000_000, 200)
    (told,) = [record.getMessage() for record in caplog.records if "consumer" in record.getMessage()]
    assert told.endswith("had ack_wait=6s, max_ack_pending=7, and has ack_wait=30s, max_ack_pending=200 from now on")
    again = await b.submitted(one)
    await until(lambda: known(two, 3), 5)
    assert await given(two) == [again.id]
    assert sum("consumer" in record.getMessage() for record in caplog.records) == 1


async def test_only_tickets_come_into_the_work_queue(url: str, opened: Open) -> None:
    store = await opened(url, timeout=0.5)
    work = store._parts.topology.all_work.removesuffix(".>")
    with pytest.raises(Unclear):
        await store._parts.wire.publish(f"{work}.zzz", b"{}")
    with pytest.raises(Unclear):
        await store._parts.wire.publish(f"{work}.default.0.crawl.run.more", b"{}")
    assert await queued(store) == set()


async def test_a_work_queue_that_took_anything_takes_only_tickets_from_now_on(
    nats_server: NatsServer, opened: Open
) -> None:
    name = nats_server.fresh()
    other = await opened(f"{nats_server.url}?prefix={nats_server.fresh()}")
    names = Topology(options.parse("nats://host", prefix=name))
    config = {**names.streams()[names.work], "subjects": [names.all_work]}
    await other._parts.wire.api(administration.create_stream(names.work), **config)
    await other._parts.wire.publish(f"{name}.work.zzz", b"{}")
    store = await opened(f"{nats_server.url}?prefix={name}")
    info = await store._parts.wire.api(topology.stream_info(names.work))
    assert info["config"]["subjects"] == [names.all_tickets]
    run = await b.submitted(store)
    assert await queued(store) == {run.id, "zzz"}
    await store.examine()
    assert await queued(store) == {run.id}
    assert await given(store) == [run.id]


async def test_what_a_later_version_has_let_into_the_work_queue_is_left_alone(url: str, opened: Open) -> None:
    store = await opened(url)
    names = store._parts.topology
    config = {**names.streams()[names.work], "subjects": [names.all_tickets, f"{names.all_tickets}.*"]}
    await store._parts.wire.api(administration.update_stream(names.work), **config)
    await store._parts.wire.publish(f"{names.all_tickets.replace('*', 'x')}.1", b"of a later version")
    older = await opened(url)
    run = await b.submitted(older)
    assert await given(older) == [run.id]
    await older.beat(WorkerRecord(id="w"))
    checks = {check.name: check for check in await older.examine()}
    assert "1 tickets, 0 of them of no use" in checks["tickets"].text
    told = await older._parts.wire.api(topology.stream_info(names.work))
    assert told["state"]["messages"] == 2


async def test_a_work_queue_that_takes_anything_will_do_where_it_cannot_be_changed(
    tmp_path: Path, opened: Open
) -> None:
    names = Topology(options.parse("nats://host"))
    users = [
        {"user": "all", "password": "x"},
        {"user": "some", "password": "x", "permissions": permissions("gateway+worker", names).config()},
    ]
    server = NatsServer(tmp_path / "nats", settings=f"authorization: {json.dumps({'users': users})}")
    server.start()
    try:
        admin = await opened(_as(server, "all"), connect_timeout=60)
        config = {**names.streams()[names.work], "subjects": [names.all_work]}
        await admin._parts.wire.api(administration.update_stream(names.work), **config)
        store = await opened(_as(server, "some"), connect_timeout=60)
        run = await b.submitted(store)
        assert await given(store) == [run.id]
        await store.close()
        await admin.close()
    finally:
        server.stop()


def _as(server: NatsServer, user: str) -> str:
    return server.url.replace("//", f"//{user}:x@")


async def test_runs_are_taken_and_kept_where_a_consumer_with_other_limits_cannot_be_changed(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits for less than our runs usually keep silent, so we speak more often."""
    names = Topology(options.parse("nats://host"))
    rights = permissions("worker", names).config()
    rights["publish"]["allow"].remove(topology.create_consumer(names.work, ANY))
    users = [{"user": "admin", "password": "x"}, {"user": "worker", "password": "x", "permissions": rights}]
    server = NatsServer(tmp_path / "nats", settings=f"authorization: {json.dumps({'users': users})}")
    server.start()
    try:
        admin = await opened(_as(server, "admin"), ack_wait=1.5, ack_progress=0.5, connect_timeout=60)
        first, second = await b.submitted(admin), await b.submitted(admin)
        assert await given(admin) == [first.id]
        late = await opened(_as(server, "worker"), connect_timeout=60)
        said = words(late, monkeypatch)
        await until(lambda: known(late, 2), 10)
        assert await given(late) == [second.id]
        assert "keeps ack_wait=1.5s instead of ack_wait=30s: " in caplog.text

        async def spoken() -> bool:
            return said.count(tickets.UNDER_WAY) >= 3

        await until(spoken, 8)
        await admin.close()
        await late.close()
    finally:
        server.stop()


def test_a_ticket_says_which_run_it_is_for() -> None:
    run = b.a_run(number=7, tag="gpu")
    said = msgspec.json.decode(tickets.write(run))
    assert said == {"run_id": run.id, "flow_name": "crawl", "tag": "gpu", "number": 7}


async def test_the_consumers_of_flows_that_nobody_asks_for_are_removed_and_made_again(
    url: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "UNUSED", 1)
    store = await opened(url)
    flows = [f"flow {number}" for number in range(3)]
    runs = [await b.submitted(store, flow=flow) for flow in flows * 2]

    async def consumers() -> int:
        told = await store._parts.wire.api(topology.stream_info(store._parts.topology.work))
        return int(told["state"]["consumer_count"])

    async def none() -> bool:
        return not await consumers()

    first = await store.claim("w", tags=["default"], flows=flows, limit=3)
    assert await consumers() == 3
    for claim in first:
        await store.append(claim, [b.ending(Status.COMPLETED)])
    await until(none)
    second = await store.claim("w", tags=["default"], flows=flows, limit=3)
    assert [claim.run.id for claim in (*first, *second)] == [run.id for run in runs], "what waits has stayed"


async def test_a_priority_for_each_run_makes_no_consumer_for_each(url: str, opened: Open) -> None:
    """A time, a price: whoever orders runs by such a number gets that order, and the queue stays small."""
    store = await opened(url)
    runs = [await b.submitted(store, priority=1_700_000_000 + number) for number in range(30)]
    usual = await b.submitted(store, priority=100)
    assert len(await queued(store)) == 1
    claims = [claim for _ in range(4) for claim in await store.claim("w", tags=["default"], limit=10)]
    assert [claim.run.id for claim in claims] == [*(run.id for run in reversed(runs)), usual.id]
    told = await store._parts.wire.api(topology.stream_info(store._parts.topology.work))
    assert told["state"]["consumer_count"] == 1
    checks = {check.name: check for check in await store.examine()}
    assert "0 missing and written" in checks["tickets"].text
