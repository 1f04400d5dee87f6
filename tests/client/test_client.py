"""`tsuzuki.Client` and `tsuzuki.AsyncClient` against a real gateway."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.client.conftest import Place
from tests.tcp_proxy import Proxy
from tsuzuki import AsyncClient, Client
from tsuzuki.client import HTTPStatusError, ServerUnreachable

YAML = """
flow:
  graph: one >> two
  defaults: {number: 3}
tasks:
  one: {callable: "flows:maybe", inputs: {number: 1}}
  two: {callable: "flows:maybe", inputs: {number: $node.one.output}}
"""


@pytest.fixture
def client(any_place: Place) -> Iterator[Client]:
    with Client(any_place.server) as client:
        yield client


def name() -> str:
    return f"n{uuid4().hex[:8]}"


def test_a_run_is_submitted_watched_and_read(client: Client) -> None:
    run = client.submit_run("quick", {"number": 21}, tags=["nightly"])
    assert run["status"] == "PENDING"
    *_, last = client.watch_run(run["run_id"])
    assert last["status"] == "COMPLETED"
    assert client.get_result(run["run_id"]) == 42
    snapshot = client.get_run(run["run_id"], include="records")
    assert (snapshot["flow_name"], snapshot["params"], snapshot["tags"]) == ("quick", {"number": 21}, ["nightly"])
    assert "task_records" in snapshot
    tasks = client.get_tasks(run["run_id"])
    assert tasks.keys() == {"run_id", "flow_name", "status", "tasks", "task_records", "task_records_truncated"}


def test_a_repeated_submission_with_its_idempotency_key_is_the_same_run(client: Client) -> None:
    key = name()
    first, second = (client.submit_run("quick", idempotency_key=key) for _ in range(2))
    assert first["run_id"] == second["run_id"]


def test_a_yaml_flow_is_submitted_under_a_name(client: Client) -> None:
    run = client.submit_run_yaml(YAML, "mine")
    *_, last = client.watch_run(run["run_id"])
    assert (last["status"], last["flow_name"]) == ("COMPLETED", "mine")
    assert last["tasks"] == {"one": "SUCCEEDED", "two": "SUCCEEDED"}
    assert last["workflow_yaml_sha256"]
    with pytest.raises(HTTPStatusError, match=r"invalid workflow yaml.*line 2") as refused:
        client.submit_run_yaml("flow:\n  graph: a >> b\n", "mine")
    assert (refused.value.status_code, refused.value.error_id) == (422, "ERR-TSUZUKI-0002")


def test_runs_are_listed_over_many_pages_each_once(client: Client) -> None:
    label = name()
    answer = client.submit_runs([{"flow_name": "quick", "tags": [label]} for _ in range(205)])
    assert (answer["accepted"], answer["refused"]) == (205, 0)
    submitted = {item["run_id"] for item in answer["items"]}
    for item in answer["items"]:
        for _ in client.watch_run(item["run_id"]):
            pass  # until it has ended: a run that changes moves to the front
    listed = [run["run_id"] for run in client.list_runs(label=label)]
    assert len(listed) == 205
    assert set(listed) == submitted
    assert len(list(client.list_runs(label=label, limit=7))) == 7
    page = client.list_runs_vnext(label=label, limit=10)
    assert len(page["items"]) == 10
    assert page["next_cursor"]


def test_a_cancel_waits_for_the_end_and_a_resume_goes_on(client: Client, any_place: Place) -> None:
    gate = name()
    run = client.submit_run("waits", {"name": gate})
    any_place.until_began(gate)
    ended = client.cancel_run(run["run_id"], wait=True, timeout_sec=60, reason="too dear")
    assert (ended["status"], bool(ended["cancel_requested_at"])) == ("CANCELLED", True)
    assert client.cancel_run(run["run_id"])["status"] == "CANCELLED"
    any_place.open_gate(gate)
    assert client.resume_run(run["run_id"])["status"] in ("PENDING", "RUNNING", "COMPLETED")
    *_, last = client.watch_run(run["run_id"])
    assert (last["status"], last["result"]) == ("COMPLETED", gate)


def test_a_cancel_that_waits_gives_up_when_its_time_is_over(client: Client, any_place: Place) -> None:
    gate = name()
    run = client.submit_run("waits", {"name": gate}, tag="nobody")
    watched = list(client.watch_run(run["run_id"], timeout_sec=1))
    assert [snapshot["status"] for snapshot in watched] == ["PENDING"]
    assert client.cancel_run(run["run_id"], wait=True, timeout_sec=5)["status"] == "CANCELLED"


def test_the_items_that_failed_are_found_by_status_error_and_step(client: Client) -> None:
    run = client.submit_run("partly", {"numbers": 9})
    events = list(client.events(run["run_id"]))
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["kind"], events[-1]["kind"]) == ("Submitted", "RunCompleted")
    assert list(client.events(run["run_id"], after=len(events) - 1)) == events[-1:]
    failed = list(client.list_items(run["run_id"], status="failed"))
    assert sorted(item["key"] for item in failed) == ["0", "3", "6"]
    assert [item["key"] for item in client.list_items(run["run_id"], error="NO 3")] == ["3"]
    assert len(list(client.list_items(run["run_id"], step="maybe"))) >= 9


def test_workers_flows_metrics_and_health_are_there(client: Client) -> None:
    [worker] = client.list_workers()
    assert worker["state"] in ("IDLE", "RUNNING")
    client.hide_worker(worker["worker_id"])
    assert client.list_workers() == []
    client.hide_worker(worker["worker_id"], hidden=False)
    flows = {flow["name"]: flow for flow in client.list_flows()}
    assert {"quick", "waits", "partly"} <= flows.keys()
    assert flows["waits"]["params"] is not None
    assert flows["waits"]["params"]["required"] == ["name"]
    assert "tsuzuki_runs_total{" in client.get_metrics()
    assert client.health()["status"] == "ok"


def letter_of(client: Client, run_id: str) -> Any:
    """Gives the letter of a run; on NATS it comes a moment after the end of the run."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for letter in client.list_letters():
            if letter["run_id"] == run_id:
                return letter
        time.sleep(0.02)
    raise AssertionError(f"there is no dead letter of {run_id}")


def test_a_dead_letter_is_shown_replayed_and_dropped(client: Client) -> None:
    run = client.submit_run("fails")
    *_, last = client.watch_run(run["run_id"])
    assert last["status"] == "FAILED"
    letter = letter_of(client, run["run_id"])
    assert client.get_letter(letter["id"])["reason"] == "execution_error"
    client.replay_letter(letter["id"])
    *_, last = client.watch_run(run["run_id"])
    assert last["attempt"] == 2
    again = letter_of(client, run["run_id"])
    client.drop_letter(again["id"])
    assert run["run_id"] not in {letter["run_id"] for letter in client.list_letters()}
    client.delete_run(run["run_id"])
    with pytest.raises(HTTPStatusError, match="run not found") as gone:
        client.get_run(run["run_id"])
    assert (gone.value.status_code, gone.value.error_id) == (404, "ERR-TSUZUKI-0005")
    assert gone.value.detail == "run not found"


def test_what_cannot_be_asked_is_refused_with_its_place(client: Client) -> None:
    with pytest.raises(HTTPStatusError, match=r"tag") as refused:
        client.submit_run("quick", tag="a.b")
    assert refused.value.status_code == 422
    assert refused.value.errors[0]["loc"] == ["body", "tag"]
    assert refused.value.response is not None
    assert refused.value.response.json()["detail"] == refused.value.detail
    with pytest.raises(HTTPStatusError, match="run not found"):
        list(client.watch_run("no such run *>"))


def test_nobody_at_the_address_is_told_with_what_to_do() -> None:
    began = time.monotonic()
    with Client("http://127.0.0.1:9") as client:
        for ask in (lambda: client.get_run(1), lambda: list(client.events(1)), lambda: list(client.watch_run(1))):
            with pytest.raises(ServerUnreachable, match="is it up"):
                ask()
    assert time.monotonic() - began < 30, "a stream that never was connected is not waited for"


async def test_the_async_client_says_the_same(any_place: Place) -> None:
    async with AsyncClient(any_place.server) as client:
        run = await client.submit_run("quick", {"number": 5})
        statuses = [snapshot["status"] async for snapshot in client.watch_run(run["run_id"])]
        assert statuses[-1] == "COMPLETED"
        assert await client.get_result(run["run_id"]) == 10
        assert run["run_id"] in {listed["run_id"] async for listed in client.list_runs(flow="quick", limit=50)}
        kinds = [event["kind"] async for event in client.events(run["run_id"])]
        assert kinds[-1] == "RunCompleted"
        assert (await client.list_workers())[0]["state"] in ("IDLE", "RUNNING")
        with pytest.raises(HTTPStatusError, match="run not found"):
            await client.get_tasks("nothing")
        gate = name()
        run = await client.submit_run("waits", {"name": gate})
        assert (await client.cancel_run(run["run_id"], wait=True, timeout_sec=30))["status"] == "CANCELLED"


async def test_watching_and_events_go_on_after_the_connection_was_cut(any_place: Place) -> None:
    gate, port = name(), int(any_place.server.rpartition(":")[2])
    told: list[str] = []
    async with Proxy(port) as proxy, AsyncClient(f"http://127.0.0.1:{proxy.port}", notice=told.append) as client:
        run = await client.submit_run("waits", {"name": gate})
        await asyncio.to_thread(any_place.until_began, gate)
        seen, facts = asyncio.Event(), asyncio.Event()

        async def watch() -> list[str]:
            statuses: list[str] = []
            async for snapshot in client.watch_run(run["run_id"]):
                statuses.append(snapshot["status"])
                seen.set()
            return statuses

        async def follow() -> list[int]:
            positions: list[int] = []
            async for event in client.events(run["run_id"]):
                positions.append(event["position"])
                facts.set()
            return positions

        watching, following = asyncio.create_task(watch()), asyncio.create_task(follow())
        await seen.wait()
        await facts.wait()
        for _ in range(2):
            await proxy.cut()
            await proxy.mend()
        any_place.open_gate(gate)
        async with asyncio.timeout(60):
            statuses, positions = await watching, await following
        assert statuses[-1] == "COMPLETED"
        assert positions == list(range(1, len(positions) + 1))
        assert {line.partition(" ")[0] for line in told} == {"lost", "connected"}


def test_a_client_may_be_used_by_several_threads(client: Client) -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(client.submit_run("quick")["run_id"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 8
