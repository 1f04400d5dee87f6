"""What can be set of the work queue and the dead letters, and what is kept of what is there."""
# ruff: noqa: SLF001 - it looks at the queue itself, and loses what else only a crash or the network would lose

import msgspec
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.backends.nats.test_work import (
    consumer,
    given,
    known,
)
from tests.nats_server import NatsServer
from tsuzuki import Status
from tsuzuki.backends.nats import NatsBackend, tickets, topology
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
    monkeypatch.setenv("TSUZUKI_DLQ_PUBLISH_EXECUTION_ERROR", "false")
    store = await opened(f"{nats_server.url}?prefix={name}&dlq_prefix={name}.graves&max_ack_pending=9")
    assert f"work_prefix={name}.jobs" in store.url
    run = await b.submitted(store)
    for at in range(3):
        await b.claim_of(store, run.id, f"w{at}", dead=f"w{at - 1}")
    good = await b.submitted(store)
    assert await given(store, dead=frozenset({"w2"})) == [good.id]
    config = (await consumer(store, good))["config"]
    assert (config["max_ack_pending"], config["ack_wait"]) == (9, 30_000_000_000)
    assert config["filter_subject"].startswith(f"{name}.jobs.default.0.")
    await b.ended(store, Status.FAILED)
    (letter,) = await store.dead_letters()
    assert (letter.run_id, letter.reason) == (run.id, "max_claims")
    info = await store._parts.wire.api(topology.stream_info(f"{name}-dead"))
    assert info["config"]["subjects"] == [f"{name}.graves.>"]


@pytest.mark.parametrize(
    "query", ["ack_wait=5&ack_progress=5", "ack_progress=40", "work_prefix=a..b", "dlq_stream=a.b", "max_deliver=0"]
)
async def test_settings_that_do_not_fit_together_are_refused(nats_server: NatsServer, query: str) -> None:
    with pytest.raises(BadUsage):
        await NatsBackend.open(f"{nats_server.url}?prefix={nats_server.fresh()}&{query}")


async def test_a_stream_with_other_settings_is_kept_and_told_of(nats_server: NatsServer, opened: Open) -> None:
    name = nats_server.fresh()
    other = await opened(f"{nats_server.url}?prefix={nats_server.fresh()}")
    config = {"name": f"{name}-work", "subjects": [f"{name}.work.>"], "retention": "limits"}
    await other._parts.wire.api(topology.create_stream(f"{name}-work"), **config)
    with pytest.raises(StoreUnavailable, match=f"stream {name}-work has retention='limits'"):
        await opened(f"{nats_server.url}?prefix={name}")


async def test_a_consumer_with_other_limits_is_kept_if_it_will_do(url: str, opened: Open) -> None:
    one, two = await opened(url, ack_wait=20), await opened(url)
    runs = [await b.submitted(one) for _ in range(2)]
    assert await given(one) == [runs[0].id]
    await until(lambda: known(two, 2), 5)
    assert await given(two) == [runs[1].id]
    assert (await consumer(two, runs[0]))["config"]["ack_wait"] == 20_000_000_000
    late = await opened(url, ack_wait=100, ack_progress=50)
    await b.submitted(late)
    with pytest.raises(StoreUnavailable, match="ack_wait"):
        await given(late)


def test_a_ticket_says_which_run_it_is_for() -> None:
    run = b.a_run(number=7, tag="gpu")
    said = msgspec.json.decode(tickets.write(run))
    assert said == {"run_id": run.id, "flow_name": "crawl", "tag": "gpu", "number": 7}
