"""Tickets that make no sense are dead letters, wherever in the queue they lie."""
# ruff: noqa: SLF001 - it looks at the queue and at the dead letters themselves

import base64
import json
from typing import Any

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.backends.nats.test_work import no_ticket, queued
from tsuzuki import Status, Worker, logs
from tsuzuki import facts as f
from tsuzuki.backends.nats import NatsBackend, tickets, topology
from tsuzuki.backends.nats.topology import Group
from tsuzuki.backends.nats.work import group_of
from tsuzuki.testing import builders as b

SENSELESS = (
    (Group("default", 0, "crawl"), "a", b"{bad"),
    (Group("default", 7, "what.ever"), "b", b"{}"),
    (Group("elsewhere", -1, "crawl"), "c", b"zzz"),
    (Group("x", 0, "crawl"), "nobody", tickets.write(b.a_run(id="nobody"))),
)


async def put_senseless(store: NatsBackend) -> None:
    """Puts tickets that make no sense into the queue, also where no worker ever looks for work."""
    for group, run_id, body in SENSELESS:
        await store._parts.wire.publish(store._parts.topology.ticket(group, run_id), body)


async def test_a_ticket_that_makes_no_sense_is_found_wherever_it_lies_while_a_worker_lives(
    url: str, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = await opened(url), await opened(url)
    async with Worker(one, [], name="w1"), Worker(two, [], name="w2"):
        waits = await b.submitted(one, flow="unknown", tag="unserved")
        await put_senseless(one)

        async def all_found() -> bool:
            return await queued(one) == {waits.id}

        await until(all_found, 20)
    found = await one.dead_letters()
    letters = {letter.run_id: letter for letter in found}
    assert len(found) == len(letters) == len(SENSELESS), "whoever else finds it writes no second letter"
    assert {letter.reason for letter in found} == {"invalid_job"}
    assert {letter.worker for letter in found} <= {"w1", "w2"}
    assert (letters["b"].flow, letters["b"].tag) == ("what.ever", "default")
    assert "there is no such run" in letters["nobody"].error
    assert (await b.row(one, waits.id)).status is Status.PENDING
    line = logs.JsonLines(logs.WORKER).format
    logged = [json.loads(line(record)) for record in caplog.records if record.levelname == "ERROR"]
    assert {entry["run_id"] for entry in logged} == set(letters)
    for entry in logged:
        assert (entry["err_id"], entry["reason"]) == ("ERR-TSUZUKI-0012", "invalid_job")
        assert "is a dead letter now" in entry["message"]
        assert {"exc_type", "exc_message", "exc_traceback", "exc_origin", "flow_name", "tag", "worker_id"} <= set(entry)


async def test_doctor_removes_no_ticket_that_makes_no_sense_without_a_letter(url: str, opened: Open) -> None:
    store = await opened(url)
    await put_senseless(store)
    gone = await b.ended(store, Status.COMPLETED)
    await store.purge([gone.id])
    await store._parts.work.enqueue(gone)  # that of a run that was made sense once
    checks = {check.name: check.text for check in await store.examine()}
    assert checks["refused tickets"].startswith("4 made no sense")
    assert {letter.run_id for letter in await store.dead_letters()} == {run_id for _, run_id, _ in SENSELESS}
    await no_ticket(store)


async def test_a_dead_letter_bears_the_names_that_others_know(url: str, opened: Open) -> None:
    store = await opened(url)
    await put_senseless(store)
    await store.examine()
    kept = await _kept(store, "b")
    assert (kept["reason"], kept["run_id"], kept["flow_name"], kept["tag"]) == (
        *("invalid_job", "b", "what.ever"),
        "default",
    )
    assert kept["subject"] == store._parts.topology.ticket(Group("default", 7, "what.ever"), "b")
    assert kept["timestamp"] > 0
    claim = await b.claimed(store, tags=("a",))
    failed = f.RunFailed(at=b.AT, error=b.OOPS, worker=claim.worker)
    await store.append(claim, [failed])
    kept = await _kept(store, claim.run.id)
    assert (kept["worker_id"], kept["num_delivered"], kept["tags"]) == (claim.worker, 1, ["a"])
    assert kept["subject"] == store._parts.topology.ticket(group_of(claim.run), claim.run.id)


async def _kept(store: NatsBackend, run_id: str) -> dict[str, Any]:
    """Reads the last letter of a run as it stands in the stream."""
    names = store._parts.topology
    told = await store._parts.wire.api(topology.leader_get(names.letters), last_by_subj=names.letter(run_id))
    kept: dict[str, Any] = json.loads(base64.b64decode(told["message"]["data"]))
    return kept
