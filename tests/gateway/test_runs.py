"""Start, look, list, cancel, resume, remove: over real HTTP, on SQLite and on NATS."""

import asyncio
import base64
import json
import uuid
from typing import Any

import pytest

from tests.gateway.conftest import House
from tsuzuki import Later, Worker, flow, task
from tsuzuki.errors import StoreUnavailable
from tsuzuki.gateway import snapshots
from tsuzuki.script import run_here

FIELDS = {
    *("run_id", "flow_name", "tag", "tags", "tenant_id", "api_key_id", "workflow_yaml_sha256", "workflow_yaml_bytes"),
    *("cancel_requested_at", "cancel_requested_by", "status", "params", "tasks", "start_time", "end_time"),
    *("heartbeat_at", "updated_at", "error", "worker_id"),
}
SUMMARY = {
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "status",
    "updated_at",
    "heartbeat_at",
    "error",
}
RECORD = {"state", "started_at", "ended_at", "duration_ms", "error", "traceback", "inputs", "output", "artifacts"}


async def test_a_run_is_accepted_executed_and_shown(house: House) -> None:
    await house.work(name="w1")
    answer = await house.client.post("/runs", json={"flow_name": "sums", "params": {"number": 4}, "unknown": 1})
    assert answer.status_code == 200
    assert answer.json()["status"] == "PENDING"
    run_id = str(uuid.UUID(answer.json()["run_id"]))
    run = await house.ended(run_id)
    assert set(run) >= FIELDS
    assert run["tasks"] == {"load": "SUCCEEDED", "add": "SUCCEEDED"}
    assert (run["flow_name"], run["params"], run["tag"], run["tags"]) == ("sums", {"number": 4}, "default", ["default"])
    assert (run["result"], run["worker_id"], run["error"], run["tenant_id"]) == (18, "w1", None, None)
    assert "task_records" not in run
    assert run["start_time"] <= run["end_time"] <= run["updated_at"] + 1
    assert all(isinstance(run[name], float) for name in ("heartbeat_at", "updated_at", "start_time", "end_time"))
    assert (await house.client.get(f"/runs/{run_id}/result")).json() == 18
    assert (await house.get(f"/runs/{run['number']}"))["run_id"] == run_id


async def test_a_waiting_run_has_no_tasks(house: House) -> None:
    run = await house.get(f"/runs/{await house.submit('sums')}")
    assert (run["status"], run["tasks"], run["start_time"], run["worker_id"]) == ("PENDING", {}, None, None)
    assert isinstance(run["heartbeat_at"], float)


async def test_a_run_that_waits_says_until_when_and_why_and_resume_wakes_it(house: House) -> None:
    ready = False

    @task
    async def look() -> str:
        if not ready:
            raise Later(3600, "waiting for Ms Sato")
        return "ready"

    @flow
    async def patient() -> str:
        return await look()

    await house.work([patient])
    run_id = await house.submit("patient")
    run = await house.until(run_id, lambda run: run["waiting_until"] is not None)
    assert (run["status"], run["waiting_reason"]) == ("PENDING", "waiting for Ms Sato")
    assert run["waiting_until"] == run["not_before"] > run["updated_at"] + 3000
    [listed] = await house.get("/runs")
    assert (listed["waiting_reason"], listed["waiting_until"]) == (run["waiting_reason"], run["waiting_until"])
    ready = True
    await house.post(f"/runs/{run_id}/resume")
    run = await house.ended(run_id)
    assert (run["result"], run["waiting_reason"], run["waiting_until"]) == ("ready", None, None)


async def test_resume_wakes_a_run_that_waits_in_the_process_of_a_script(house: House) -> None:
    ready = False

    @flow
    async def patient() -> str:
        if not ready:
            raise Later(3600, "waiting for Ms Sato")
        return "ready"

    script = asyncio.create_task(run_here(house.runs, patient, {}, signals=False))
    async with asyncio.timeout(30):
        while not (found := await house.get("/runs")) or found[0]["waiting_until"] is None:
            await asyncio.sleep(0.02)
    assert not found[0]["interrupted"]
    ready = True
    await house.post(f"/runs/{found[0]['run_id']}/resume")
    assert (await asyncio.wait_for(script, 30)).result == "ready"


@pytest.mark.parametrize("word", ["records", "task_records", "full", "all"])
async def test_records_come_when_they_are_asked_for(house: House, word: str) -> None:
    await house.work()
    run_id = await house.submit("fails", {"number": 7})
    run = await house.ended(run_id, "FAILED", include=word)
    assert run["task_records_truncated"] is False
    assert run["tasks"] == {"load": "SUCCEEDED", "broken": "FAILED"}
    load, broken = run["task_records"]["load"], run["task_records"]["broken"]
    assert set(load) >= RECORD
    assert (load["output"], load["error"]) == (14, None)
    assert broken["error"] == "ValueError: cannot take 7"
    assert "ValueError" in broken["traceback"]
    assert broken["duration_ms"] >= 0
    tasks = await house.get(f"/runs/{run_id}/tasks")
    assert set(tasks) == {"run_id", "flow_name", "status", "tasks", "task_records", "task_records_truncated"}
    assert tasks["task_records"] == run["task_records"]
    assert run["error"] == "StepFailure: broken failed: ValueError: cannot take 7"


async def test_records_that_are_too_large_are_left_out_and_the_tasks_stay(house: House) -> None:
    await house.work()
    run = await house.ended(await house.submit("large", {"size": 270_000}), include="all")
    assert (run["task_records"], run["task_records_truncated"]) == ({}, True)
    assert run["tasks"] == {"big": "SUCCEEDED"}


async def test_a_large_result_is_left_out_and_said_to_be(house: House) -> None:
    await house.work()
    for size, left_out in ((1000, False), (300_000, True)):
        run = await house.ended(await house.submit("repeats", {"size": size}))
        assert (run["result"] is None, run["result_truncated"]) == (left_out, left_out)
        assert await house.get(f"/runs/{run['run_id']}/result") == "x" * size


async def test_a_run_with_large_params_is_shortened_where_it_is_shown_and_whole_where_that_is_asked_for(
    house: House,
) -> None:
    params = {"number": 3, "text": "x" * 3_000_000, "rows": list(range(40_000))}
    path = f"/runs/{await house.submit('nothing', params, tag='nobody')}"
    shown = params | {"text": "(3,000,002 bytes left out; include=params gives them)"}
    for query in ({}, {"include": "full"}):
        answer = await house.client.get(path, params=query)
        run = answer.json()
        assert len(answer.content) < 270_000
        assert run["params"] == shown
        assert (run["params_truncated"], run["result_truncated"]) == (True, False)
    [listed] = await house.get("/runs", include="full")
    assert listed["params_truncated"] is True
    watching = house.events(f"{path}/watch")
    assert (await anext(watching)).data["snapshot"]["params"] == shown
    await watching.aclose()
    assert len((await house.client.post(f"{path}/cancel")).content) < 270_000
    whole = await house.get(path, include="params")
    assert (whole["params"], whole["params_truncated"]) == (params, False)


@pytest.mark.parametrize(
    "odd", ["nope", "a b", "*", ">", "x.y", "6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e", "9" * 40, "0", "%00", "é"]
)
async def test_an_odd_or_unknown_run_is_not_found(house: House, odd: str) -> None:
    for path in ("", "/tasks", "/watch", "/events", "/items", "/logs", "/result"):
        answer = await house.client.get(f"/runs/{odd}{path}")
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == "run not found"
        assert answer.json()["error_id"] == "ERR-TSUZUKI-0005"
    assert (await house.client.post(f"/runs/{odd}/cancel")).status_code == 404
    assert (await house.client.post(f"/runs/{odd}/resume")).status_code == 404
    assert (await house.client.delete(f"/runs/{odd}")).status_code == 404


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, ["body", "flow_name"]),
        ({"flow_name": ""}, ["body", "flow_name"]),
        ({"flow_name": "x", "params": [1]}, ["body", "params"]),
        ({"flow_name": "x", "tag": "a.b"}, ["body", "tag"]),
        ({"flow_name": "x", "tag": "a b"}, ["body", "tag"]),
        ({"flow_name": "x", "tag": "標準"}, ["body", "tag"]),
        ({"flow_name": "x", "tag": ""}, ["body", "tag"]),
        ({"flow_name": "x", "tags": "a"}, ["body", "tags"]),
        ([], ["body"]),
    ],
)
async def test_a_submission_that_makes_no_sense_is_refused_by_its_place(small: House, body: Any, place: list) -> None:
    answer = await small.post("/runs", body, 422)
    assert answer["error_id"] == "ERR-TSUZUKI-0002"
    assert answer["errors"][0]["loc"] == place
    assert set(answer["errors"][0]) == {"type", "loc", "msg"}
    assert await small.get("/runs") == []


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe{}", b'{"flow_name": "\xc3\x28"}', b"[" * 100_000, b"null"])
async def test_a_body_that_is_no_json_is_refused(small: House, data: bytes) -> None:
    answer = await small.client.post("/runs", content=data, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["errors"]


async def test_an_idempotency_key_gives_the_first_run_again(house: House) -> None:
    headers = {"Idempotency-Key": "once"}
    answers = await asyncio.gather(*(house.post("/runs", {"flow_name": "sums"}, headers=headers) for _ in range(10)))
    assert len({answer["run_id"] for answer in answers}) == 1
    assert len(await house.get("/runs")) == 1
    for other in ({"flow_name": "sums", "params": {"number": 9}}, {"flow_name": "nothing"}):
        answer = await house.post("/runs", other, 422, headers=headers)
        assert answer["detail"].startswith("invalid request: Idempotency-Key: 'once' has made run 1 of sums")
        assert answer["errors"][0]["loc"] == ["header", "Idempotency-Key"]
    batch = {"runs": [{"flow_name": "nothing"}, {"flow_name": "sums"}]}
    await house.post("/runs/batch", batch, headers=headers)
    again = await house.post("/runs/batch", {"runs": batch["runs"][::-1]}, headers=headers)
    assert [item["errors"][0]["type"] for item in again["items"]] == ["idempotency_key_reused"] * 2


async def test_a_key_that_is_held_names_the_active_run(house: House) -> None:
    run_id = await house.submit("sums", key="one")
    answer = await house.post("/runs", {"flow_name": "sums", "key": "one"}, 409)
    assert answer["run_id"] == run_id
    assert answer["error_id"] == "ERR-TSUZUKI-0111"


async def test_a_batch_starts_many_runs_and_tells_of_each(house: House) -> None:
    await house.work()
    body = {
        "runs": [{"flow_name": "nothing"}] * 150
        + [{"flow_name": "sums", "key": "k"}, {"flow_name": "sums", "key": "k"}]
    }
    answer = await house.post("/runs/batch", body, headers={"Idempotency-Key": "b"})
    assert (answer["accepted"], answer["refused"]) == (151, 1)
    refused = [item for item in answer["items"] if item["error"]]
    assert refused[0]["error_id"] == "ERR-TSUZUKI-0111"
    assert [item["number"] for item in answer["items"][:3]] == [1, 2, 3]
    again = await house.post("/runs/batch", {"runs": body["runs"][:150]}, headers={"Idempotency-Key": "b"})
    assert [item["run_id"] for item in again["items"]] == [item["run_id"] for item in answer["items"][:150]]
    for item in answer["items"][:3]:
        await house.ended(item["run_id"])


async def test_an_entry_of_a_batch_that_makes_no_sense_refuses_only_itself(house: House) -> None:
    odd: list[Any] = [{"flow_name": ""}, 7, {"flow_name": "x", "not_before": 0}, {"flow_name": "x", "tag": "a.b"}]
    answer = await house.post("/runs/batch", {"runs": [*odd, {"flow_name": "nothing"}]})
    assert (answer["accepted"], answer["refused"]) == (1, 4)
    assert [item["error_id"] for item in answer["items"]] == ["ERR-TSUZUKI-0002"] * 4 + [None]
    places = [item["errors"][0]["loc"] for item in answer["items"][:4]]
    assert places == [
        ["body", "runs", 0, "flow_name"],
        ["body", "runs", 1],
        ["body", "runs", 2, "not_before"],
        ["body", "runs", 3, "tag"],
    ]
    assert answer["items"][4]["status"] == "PENDING"


async def test_an_unknown_flow_fails_where_a_worker_of_the_tag_lives(house: House) -> None:
    await house.work()
    run = await house.ended(await house.submit("nobody_knows"), "FAILED")
    assert run["error"].startswith("flow_not_found: ")


# ---------------------------------------------------------------------------------------------------------------- lists


async def test_interrupted_runs_are_listed_as_such(house: House) -> None:
    shared = await house.submit("sums")
    async with Worker(house.runs.backend, name="script", tags=[]):
        left = await house.runs.submit("sums", private=True, claimed_by="script")
    async with Worker(house.runs.backend, name="another", tags=[]):
        held = await house.runs.submit("sums", private=True, claimed_by="another")
        for words, expected in (
            (["interrupted"], {left.id}),
            (["INTERRUPTED", "pending"], {left.id, shared}),
            (["running"], {left.id, held.id}),
        ):
            found = await house.get("/runs", status=words)
            assert {run["run_id"] for run in found} == expected, words
        assert await house.get("/runs", status="interrupted", flow="another") == []
        page = await house.get("/runs", status=["interrupted", "pending"], limit=1, cursor="")
        last = await house.get("/runs", status=["interrupted", "pending"], limit=1, cursor=page["next_cursor"])
        assert {page["items"][0]["run_id"], last["items"][0]["run_id"]} == {left.id, shared}
        assert last["next_cursor"] is None
    assert (await house.get("/runs", 422, status="stopped"))["detail"].startswith("invalid list query")


async def test_an_empty_store_is_no_error(house: House) -> None:
    assert await house.get("/runs") == []
    assert await house.get("/workers") == []
    assert await house.get("/flows") == []
    assert (await house.get("/dlq"))["items"] == []
    assert await house.get("/runs", cursor="") == {"items": [], "next_cursor": None}


async def test_lists_have_two_shapes(house: House) -> None:
    first, second = await house.submit("sums", tags=["a"]), await house.submit("many", tag="gpu")
    shown = await house.get("/runs")
    assert [run["run_id"] for run in shown] == [second, first]
    assert set(shown[0]) >= SUMMARY
    assert "params" not in shown[0]
    page = await house.get("/runs", updated_after=shown[1]["updated_at"])
    assert [run["run_id"] for run in page["items"]] == [second]
    assert page["next_cursor"] is None
    assert await house.get("/runs", workflow_yaml_sha256="0" * 64) == {"items": [], "next_cursor": None}
    assert [run["run_id"] for run in await house.get("/runs", tag="gpu")] == [second]
    assert [run["run_id"] for run in await house.get("/runs", flow="sums")] == [first]
    assert [run["run_id"] for run in await house.get("/runs", label="a")] == [first]
    assert [run["run_id"] for run in await house.get("/runs", text="MAN")] == [second]
    assert await house.get("/runs", status="COMPLETED") == []
    assert len(await house.get("/runs", status=["pending", "FAILED"])) == 2
    assert (await house.get("/runs", include="full"))[0]["task_records"] == {}


async def test_completed_runs_with_failures_are_listed_and_counted(house: House) -> None:
    await house.work()
    whole, partly = await house.submit("sums"), await house.submit("many", tags=["red"])
    failed = await house.submit("fails")
    await house.ended(whole)
    await house.ended(partly)
    await house.ended(failed, "FAILED")

    async def found(**query: Any) -> set[str]:
        return {run["run_id"] for run in await house.get("/runs", **query)}

    assert await found(status="completed_with_failures") == {partly}
    assert await found(status="COMPLETED_WITH_FAILURES,FAILED") == {partly, failed}
    assert await found(status=["COMPLETED_WITH_FAILURES", "COMPLETED"]) == {whole, partly}
    assert await found(status="COMPLETED") == {whole, partly}
    assert (await house.get(f"/runs/{partly}"))["status"] == "COMPLETED"
    counted = await house.get("/runs/counts", status="COMPLETED_WITH_FAILURES")
    assert (counted["runs"]["COMPLETED"], counted["runs"]["FAILED"]) == (1, 0)
    assert (await house.get("/runs/counts", status="COMPLETED_WITH_FAILURES", label="blue"))["runs"]["COMPLETED"] == 0
    assert (await house.get("/runs/counts"))["runs"]["COMPLETED"] == 2


async def test_following_cursors_visits_every_run_once(house: House) -> None:
    ids = {await house.submit("sums") for _ in range(25)}
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await house.get("/runs", cursor=cursor, limit=10)
        seen += [run["run_id"] for run in page["items"]]
        cursor = page["next_cursor"]
        if cursor:
            assert "=" not in cursor
            place = json.loads(base64.urlsafe_b64decode(cursor + "=="))
            assert place == {"u": page["items"][-1]["updated_at"], "r": page["items"][-1]["run_id"]}
    assert len(seen) == 25
    assert set(seen) == ids


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": 201},
        {"limit": "x"},
        {"updated_after": "soon"},
        {"updated_after": "nan"},
        {"cursor": "!"},
        {"cursor": "e30"},
        {"cursor": "é"},
        {"cursor": base64.urlsafe_b64encode(b'{"u":1e999,"r":"x"}').decode().rstrip("=")},
        {"status": "BUSY"},
    ],
)
async def test_a_list_query_that_makes_no_sense_is_refused(small: House, params: dict) -> None:
    answer = await small.get("/runs", 422, **params)
    assert answer["detail"].startswith("invalid list query: ")
    assert (answer["error_id"], answer["errors"][0]["loc"][:2]) == ("ERR-TSUZUKI-0017", ["query", next(iter(params))])
    assert answer["errors"][0]["msg"] in answer["detail"]


# ------------------------------------------------------------------------------------------------------------- stopping


async def test_a_waiting_run_is_cancelled_without_any_worker(house: House) -> None:
    run_id = await house.submit("sums")
    run = await house.post(f"/runs/{run_id}/cancel", {"reason": "enough"})
    assert run["status"] == "CANCELLED"
    assert run["cancel_requested_at"] > 0
    assert (run["cancel_requested_by"], run["cancel_reason"]) == ("http", "enough")
    again = await house.post(f"/runs/{run_id}/cancel")
    assert again["cancel_requested_at"] == run["cancel_requested_at"]


async def test_a_cancel_is_answered_although_nobody_can_tell_whether_batches_are_open(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*asked: object) -> None:
        raise StoreUnavailable("it went away the next moment")

    monkeypatch.setattr("tsuzuki.gateway.runs.llm.end_batches", away)
    run_id = await house.submit("sums")
    assert (await house.post(f"/runs/{run_id}/cancel"))["status"] == "CANCELLED"
    assert "whether it had batches open cannot be read: it went away" in caplog.text


async def test_a_running_run_is_cancelled_while_its_only_task_runs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.work()
    run_id = await house.submit("hangs")
    await house.until(run_id, lambda run: run["tasks"] == {"waits": "RUNNING"})
    run = await house.post(f"/runs/{run_id}/cancel")
    assert run["status"] in ("CANCELLING", "CANCELLED")
    assert run["cancel_requested_at"] is not None
    after = await house.ended(run_id, "CANCELLED")
    assert after["cancel_requested_at"] == run["cancel_requested_at"]
    assert after["tasks"] == {"waits": "CANCELLED"}
    assert after["cut"] == {"never_started": 0, "finished_anyway": 0, "interrupted": 1}
    monkeypatch.setattr(snapshots, "MOST_PAGES", 0)  # as of a journal that is too long for one look
    house.app.state.gateway.snapshots.forget(run_id)
    assert (await house.get(f"/runs/{run_id}"))["cut"] == after["cut"]


async def test_a_cancel_between_short_tasks_is_not_lost(house: House) -> None:
    await house.work()
    run_id = await house.submit("steps_of_50_ms", {"count": 1000})
    await house.until(run_id, lambda run: run["counts"]["steps"] >= 2)
    await house.post(f"/runs/{run_id}/cancel")
    run = await house.ended(run_id, "CANCELLED")
    assert run["counts"]["steps"] < 1000


async def test_a_failed_run_is_resumed_and_does_nothing_twice(house: House) -> None:
    await house.work()
    run_id = await house.submit("many", {"count": 7})
    run = await house.ended(run_id, "COMPLETED")
    assert run["tasks"] == {"picky": "FAILED"}
    resumed = await house.post(f"/runs/{run_id}/resume")
    assert resumed["attempt"] == run["attempt"] + 1
    after = await house.ended(run_id, "COMPLETED")
    assert after["counts"] == {"done": 4, "failed": 3, "skipped": 0, "steps": 0}
    assert (await house.post(f"/runs/{await house.submit('nothing', tag='elsewhere')}/resume"))["status"] == "PENDING"


async def test_what_cannot_be_resumed_is_a_conflict(house: House) -> None:
    await house.work()
    run_id = await house.submit("nothing")
    await house.ended(run_id)
    answer = await house.post(f"/runs/{run_id}/resume", {}, 409)
    assert answer["error_id"] == "ERR-TSUZUKI-0112"


async def test_only_an_ended_run_is_removed(house: House) -> None:
    run_id = await house.submit("nothing")
    assert (await house.client.delete(f"/runs/{run_id}")).status_code == 409
    await house.post(f"/runs/{run_id}/cancel")
    answer = await house.client.delete(f"/runs/{run_id}")
    assert answer.json() == {"run_id": run_id, "deleted": True}
    await house.get(f"/runs/{run_id}", 404)
