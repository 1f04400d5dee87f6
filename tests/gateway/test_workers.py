"""Workers, flows, metrics and health over HTTP."""

import asyncio
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.conftest import House

FIELDS = {
    *("worker_id", "instance_id", "state", "hidden", "tags", "last_seen_at", "last_heartbeat_at", "heartbeat_at"),
    *("current_run_id", "last_run_id", "last_run_status", "last_run_started_at", "last_run_finished_at"),
    *("stopped_at", "stop_reason", "updated_at", "wheel_sync"),
}
WHEELS = {
    *("enabled", "last_result", "last_attempt_at", "last_success_at", "last_synced_at", "last_error"),
    *("selected_count", "updated_count", "removed_count", "skipped_incompatible_count", "selected_wheels"),
    *("updated_wheels", "removed_wheels", "skipped_incompatible", "installed_wheels"),
}


async def test_workers_are_listed_with_their_states(house: House) -> None:
    await house.work(name="a", tags=["gpu", "default"])
    [worker] = await house.get("/workers")
    assert set(worker) >= FIELDS
    assert set(worker["wheel_sync"]) == WHEELS
    assert (worker["worker_id"], worker["state"], worker["tags"]) == ("a", "IDLE", ["gpu", "default"])
    assert worker["hidden"] is False
    assert await house.get("/workers", state="running") == []
    assert len(await house.get("/workers", state="idle")) == 1
    assert len(await house.get("/workers", scope="all", limit=500)) == 1


async def test_a_worker_tells_of_the_run_that_it_executed_last(house: House) -> None:
    await house.work(name="a")
    run_id = await house.submit("fails")
    run = await house.ended(run_id, "FAILED")
    async with asyncio.timeout(60):
        while (await house.get("/workers"))[0]["last_run_id"] is None:
            await asyncio.sleep(0.05)
    [worker] = await house.get("/workers")
    assert (worker["last_run_id"], worker["last_run_status"], worker["current_run_id"]) == (run_id, "FAILED", None)
    assert int(run["start_time"]) == worker["last_run_started_at"] <= worker["last_run_finished_at"]


async def test_a_hidden_worker_is_shown_only_when_asked_for(house: House) -> None:
    await house.work(name="rack/7 a")
    answer = await house.client.patch("/workers/rack%2F7%20a", json={"hidden": True})
    assert answer.status_code == 200, answer.text
    assert answer.json()["worker_id"] == "rack/7 a"
    assert set(answer.json()) == {"worker_id", "hidden", "updated_at"}
    assert await house.get("/workers") == []
    assert [worker["hidden"] for worker in await house.get("/workers", include_hidden="true")] == [True]


@pytest.mark.parametrize(
    "params", [{"scope": "x"}, {"state": "x"}, {"include_hidden": "x"}, {"limit": 0}, {"limit": 501}]
)
async def test_a_workers_query_that_makes_no_sense(small: House, params: dict) -> None:
    answer = await small.get("/workers", 422, **params)
    assert answer["detail"].startswith(f"invalid workers request: {next(iter(params))}: ")
    assert (answer["error_id"], len(answer["errors"])) == ("ERR-TSUZUKI-0019", 1)


@pytest.mark.parametrize("body", [{}, {"hidden": "yes"}, {"hidden": 1}, {"hidden": None}, []])
async def test_a_patch_that_makes_no_sense(small: House, body: object) -> None:
    answer = await small.client.patch("/workers/a", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("invalid workers request: ")
    assert answer.json()["errors"]


@pytest.mark.parametrize("worker", ["nobody", "a.b.*", "%3E", "%00"])
async def test_a_worker_that_is_not_there(house: House, worker: str) -> None:
    answer = await house.client.patch(f"/workers/{worker}", json={"hidden": True})
    assert answer.status_code == 404
    assert (answer.json()["detail"], answer.json()["error_id"]) == ("worker not found", "ERR-TSUZUKI-0020")


async def test_flows_of_live_workers_are_listed(house: House) -> None:
    await house.work(name="a", tags=["x"])
    flows = {flow["name"]: flow for flow in await house.get("/flows")}
    assert set(flows) >= {"sums", "many"}
    assert (flows["sums"]["tags"], flows["sums"]["workers"]) == (["x"], ["a"])


async def test_metrics_are_told_as_prometheus_reads_them(house: House) -> None:
    day = datetime.now(UTC).date()
    await house.work()
    await house.ended(await house.submit("nothing"))
    await house.ended(await house.submit("fails"), "FAILED")
    await house.letters()
    answer = await house.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = {
        (sample.name, sample.labels.get("status")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert samples["tsuzuki_runs_total", "COMPLETED"] == 1
    assert samples["tsuzuki_runs_total", "FAILED"] == 1
    assert samples["tsuzuki_runs_total", "PENDING"] == 0
    midnight = datetime.now(UTC).date() != day
    assert samples["tsuzuki_runs_today_total", "COMPLETED"] in ((0, 1) if midnight else (1,))
    assert samples["tsuzuki_workers_alive_total", None] == 1
    assert samples["tsuzuki_dlq_messages_total", None] == 1
    assert "# TYPE tsuzuki_runs_total gauge" in answer.text


async def measured(house: House) -> dict[str, float]:
    """The figures without labels, and the counts of histograms."""
    text = (await house.client.get("/metrics")).text
    families = text_string_to_metric_families(text)
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


async def test_metrics_tell_how_long_runs_and_steps_took_and_what_waits(house: House) -> None:
    worker = await house.work()
    await house.ended(await house.submit("many", {"count": 5}))
    await house.ended(await house.submit("tries"))
    async with asyncio.timeout(60):
        while (figures := await measured(house))["tsuzuki_run_duration_seconds_count"] < 2:
            await asyncio.sleep(0.05)
    assert figures["tsuzuki_claims_total"] == 2
    assert figures["tsuzuki_retries_total"] == 2
    assert figures["tsuzuki_step_duration_seconds_count"] == 6
    assert figures["tsuzuki_write_batch_size_count"] > 0
    assert figures["tsuzuki_write_batch_size_sum"] >= figures["tsuzuki_write_batch_size_count"]
    assert figures["tsuzuki_queue_age_seconds"] == 0
    await house.submit("nothing", tag="nobody")
    async with asyncio.timeout(60):
        while (await measured(house))["tsuzuki_queue_age_seconds"] <= 0:
            await asyncio.sleep(0.01)
    worker.stop()
    await worker.close()
    assert (await measured(house))["tsuzuki_run_duration_seconds_count"] == 2


async def test_dead_letters_are_listed_replayed_and_dropped(house: House) -> None:
    await house.work(name="w")
    run_id = await house.submit("fails", tags=["a"])
    await house.ended(run_id, "FAILED")
    [letter] = await house.letters()
    assert (letter["run_id"], letter["flow_name"], letter["reason"]) == (run_id, "fails", "execution_error")
    assert (letter["tags"], letter["worker_id"], letter["tag"]) == (["a"], "w", "default")
    assert letter["num_delivered"] == 1
    assert "work.default" in letter["subject"]
    assert await house.get(f"/dlq/{letter['id']}") == letter
    assert (await house.post(f"/dlq/{letter['id']}/replay"))["run_id"] == run_id
    await house.get(f"/dlq/{letter['id']}", 404)
    await house.ended(run_id, "FAILED")
    [again] = await house.letters()
    assert again["id"] != letter["id"]
    assert (await house.client.delete(f"/dlq/{again['id']}")).json() == {"id": again["id"], "deleted": True}
    assert (await house.client.delete(f"/dlq/{again['id']}")).status_code == 404
    assert await house.get("/dlq") == {"items": [], "next_cursor": None}


@pytest.mark.parametrize("letter", ["x", "*", "a b", "9" * 100, "-1", "1.5"])
async def test_a_letter_that_is_not_there(house: House, letter: str) -> None:
    answer = await house.client.get(f"/dlq/{letter}")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "dead letter not found"


async def test_dead_letters_are_paged(house: House) -> None:
    await house.work()
    for _ in range(5):
        await house.ended(await house.submit("fails"), "FAILED")
    await house.letters(5)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await house.get("/dlq", limit=2, cursor=cursor)
        seen += [letter["id"] for letter in page["items"]]
        cursor = page["next_cursor"]
    assert len(set(seen)) == len(seen) == 5
    for nonsense in ("zz", "-1", "1.5", "9" * 30):
        refused = await house.client.get("/dlq", params={"cursor": nonsense})
        assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["query", "cursor"])


async def test_health_is_open_and_readiness_looks_into_the_store(house: House) -> None:
    assert (await house.get("/health"))["status"] == "ok"
    assert (await house.get("/health/ready"))["status"] == "ok"


async def test_the_page_and_its_files_are_served(small: House) -> None:
    page = await small.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (await small.client.get("/static/app.js")).headers["content-type"].startswith("text/javascript")
    assert (await small.client.get("/static/style/parts.css")).headers["content-type"].startswith("text/css")
    for missing in ("/static/none.js", "/static/../app.py", "/nothing"):
        answer = await small.client.get(missing)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


async def test_every_answer_tells_browsers_to_be_careful(small: House) -> None:
    for path in ("/", "/runs", "/nothing", "/static/app.js"):
        headers = (await small.client.get(path, headers={"Origin": "http://elsewhere.example"})).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
    assert (await small.client.options("/runs", headers={"Origin": "http://elsewhere.example"})).status_code == 405
    answer = await small.client.put("/runs")
    assert answer.status_code == 405
    assert answer.headers["content-type"] == "application/problem+json"
