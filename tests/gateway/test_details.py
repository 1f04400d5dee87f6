"""A run seen closely, and the whole at a glance: what the dashboard asks for beyond the contract."""

import json

import pytest

from tests.gateway.conftest import House, Serve
from tsuzuki import Status, flow, task
from tsuzuki.errors import StoreUnavailable
from tsuzuki.gateway import history, panel, snapshots
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring
from tsuzuki.testing import builders as b

YAML = """version: 1
flow:
  graph: a >> (b & c)
tasks:
  a: {callable: "m:a"}
  b: {callable: "m:b"}
  c: {callable: "m:c"}
"""


async def test_one_outcome_is_given_with_its_value_or_what_it_failed_of(house: House) -> None:
    await house.work()
    run_id = await house.submit("many", {"count": 6})
    await house.ended(run_id)
    items = (await house.get(f"/runs/{run_id}/items"))["items"]
    for item in items:
        one = await house.get(f"/runs/{run_id}/items/{item['position']}")
        assert item.items() <= one.items()
        if item["status"] == "failed":
            assert one["error"] == f"ValueError: three divides {item['key']}"
            assert "three divides" in one["traceback"]
        else:
            assert one["output"] == int(item["key"])
            assert one["traceback"] is None
        assert one["inputs"] == {"number": int(item["key"])}
    told = await house.get(f"/runs/{run_id}/items/1", 404)  # a submission is no outcome
    assert told["detail"].startswith("item not found: no step or item of run 1 ended at position 1")
    await house.get(f"/runs/{run_id}/items/999999", 404)
    await house.get(f"/runs/{run_id}/items/0", 422)


@task
async def summed(numbers: list[int], text: str, api_key: str) -> int:
    return sum(numbers) + len(text) + len(api_key)


@flow
async def given() -> int:
    return await summed(list(range(30)), "続き" * 60, api_key="planted")


async def test_inputs_are_short_in_a_list_and_whole_closely(house: House) -> None:
    await house.work([given])
    run_id = await house.submit("given")
    await house.ended(run_id)
    [item] = (await house.get(f"/runs/{run_id}/items"))["items"]
    assert item["inputs_truncated"]
    assert item["inputs"]["text"].endswith("…")
    assert len(json.dumps(item["inputs"], ensure_ascii=False).encode()) < 320
    one = await house.get(f"/runs/{run_id}/items/{item['position']}")
    assert one["inputs"] == {"numbers": list(range(30)), "text": "続き" * 60, "api_key": "***"}
    assert not one["inputs_truncated"]
    record = (await house.get(f"/runs/{run_id}/tasks"))["task_records"]["summed"]
    assert record["inputs"] == one["inputs"]
    facts = await house.get(f"/runs/{run_id}/facts")
    assert "planted" not in json.dumps([facts, item, one])


async def test_a_value_that_is_too_large_to_look_at_is_left_out(house: House) -> None:
    await house.work()
    run_id = await house.submit("large", {"size": 400_000})
    await house.ended(run_id)
    item = (await house.get(f"/runs/{run_id}/items"))["items"][0]
    one = await house.get(f"/runs/{run_id}/items/{item['position']}")
    assert one["output"] is None
    assert one["output_truncated"]
    assert one["output_bytes"] == 400_002


async def test_the_journal_is_read_page_by_page_without_values(house: House) -> None:
    await house.work()
    run_id = await house.submit("sums", {"number": 3})
    run = await house.ended(run_id)
    seen: list[dict] = []
    after: int | None = 0
    while after is not None:
        page = await house.get(f"/runs/{run_id}/facts", after=after, limit=2)
        seen += page["items"]
        after = page["next_after"]
    assert [fact["position"] for fact in seen] == list(range(1, run["position"] + 1))
    assert [seen[0]["kind"], seen[-1]["kind"]] == ["Submitted", "RunCompleted"]
    assert not any({"result", "params", "workflow"} & fact.keys() for fact in seen)


async def test_the_graph_of_a_yaml_flow_is_given_in_stages(house: House) -> None:
    form = {"flow_name": "graph", "tag": "nobody"}
    answer = await house.client.post("/runs/yaml", data=form, files={"workflow": ("flow.yaml", YAML.encode())})
    graph = await house.get(f"/runs/{answer.json()['run_id']}/graph")
    assert [(node["name"], node["needs"], node["stage"]) for node in graph["nodes"]] == [
        ("a", [], 0),
        ("b", ["a"], 1),
        ("c", ["a"], 1),
    ]
    assert graph["workflow"] == YAML
    plain = await house.submit("sums")
    assert await house.get(f"/runs/{plain}/graph") == {"nodes": [], "workflow": None}


async def test_a_map_tells_when_its_items_ended(house: House) -> None:
    await house.work()
    run_id = await house.submit("many", {"count": 9})
    run = await house.ended(run_id, include="records")
    strip = run["task_records"]["picky"]["strip"]
    assert (sum(strip["done"]), sum(strip["failed"])) == (6, 3)
    assert strip["width"] > 0
    assert strip["start"] >= run["start_time"]


async def test_a_list_tells_how_far_its_runs_are(house: House) -> None:
    await house.work()
    run_id = await house.submit("hangs")
    await house.until(run_id, lambda run: run["status"] == "RUNNING")
    (row,) = await house.get("/runs")
    assert row["attempt"] == 1
    assert isinstance(row["progress"], list)


async def test_the_store_is_counted_at_a_glance(house: House) -> None:
    await house.work()
    await house.ended(await house.submit("sums"))
    await house.ended(await house.submit("fails"), "FAILED")
    await house.letters()
    await house.submit("sums", tag="nobody")
    glance = await house.get("/overview")
    assert glance["runs"] == {
        "PENDING": 1, "RUNNING": 0, "CANCELLING": 0, "COMPLETED": 1, "FAILED": 1, "CANCELLED": 0,
    }  # fmt: skip
    assert (glance["workers_alive"], glance["dead_letters"], glance["tenant"]) == (1, 1, None)
    assert glance["queue_age"] >= 0


async def test_a_tenant_counts_only_its_own(serve: Serve) -> None:
    house = await serve(Options(auth=True))
    keyring = Keyring(house.runs.backend)
    keys = {tenant: (await keyring.create(tenant))[0] for tenant in ("one", "two")}
    for _ in range(3):
        body = {"flow_name": "sums"}
        assert (await house.client.post("/runs", json=body, headers={"X-API-Key": keys["one"]})).status_code == 200
    for tenant, count in (("one", 3), ("two", 0)):
        glance = (await house.client.get("/overview", headers={"X-API-Key": keys[tenant]})).json()
        assert (glance["runs"]["PENDING"], glance["tenant"], glance["at_least"]) == (count, tenant, False)
    assert (await house.client.get("/config")).status_code == 401


async def test_what_is_kept_of_runs_that_were_looked_at_is_bounded(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_WEIGHT", 1)
    kept = small.app.state.gateway.snapshots
    for run in [await b.ended(small.runs.backend, Status.COMPLETED) for _ in range(3)]:
        await small.get(f"/runs/{run.id}")
        assert [*kept._folds] == [run.id]  # noqa: SLF001 - what it keeps is not seen from outside


async def test_only_the_count_of_a_status_with_more_runs_is_a_lower_bound(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_COUNTED", 2)
    monkeypatch.setattr(panel, "MOST_COUNTED", 2)
    house = await serve(Options(auth=True))
    house.client.headers["X-API-Key"] = (await Keyring(house.runs.backend).create("ours"))[0]
    await b.ended(house.runs.backend, Status.FAILED, tenant="ours", tags=("nightly",))
    for _ in range(4):
        await b.ended(house.runs.backend, Status.COMPLETED, tenant="ours", tags=("nightly",))
    exact: dict[str, int] = {**{status.value: 0 for status in Status}, "FAILED": 1, "COMPLETED": 4}
    for path in ("/overview", "/runs/counts", "/runs/counts?flow=crawl"):
        shown = await house.get(path)
        assert (shown["runs"], shown["at_least"]) == (exact, False)
    shown = await house.get("/runs/counts", label="nightly")
    assert (shown["runs"], shown["more"]) == ({**exact, "COMPLETED": 2}, ["COMPLETED"])


async def test_settings_are_listed_with_secrets_masked(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_NATS_PASSWORD", "hush")
    monkeypatch.setenv("TSUZUKI_LOG_LEVEL", "DEBUG")
    shown = {one["name"]: one for one in await small.get("/config")}
    assert shown["TSUZUKI_LOG_LEVEL"]["value"] == "DEBUG"
    assert shown["TSUZUKI_LOG_LEVEL"]["from"] == "environment"
    assert shown["TSUZUKI_NATS_PASSWORD"]["value"] == "••••••"
    assert shown["TSUZUKI_DEFAULT_TAG"]["from"] == "default"
    monkeypatch.setenv("TSUZUKI_LOG_LEVEL", "LOUD")
    refused = next(one for one in await small.get("/config") if one["name"] == "TSUZUKI_LOG_LEVEL")
    assert "LOUD" in refused["refusal"]


async def test_files_of_the_page_are_compressed_and_asked_about_each_time(small: House) -> None:
    answer = await small.client.get("/static/app.js", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"] == "no-cache"
    again = await small.client.get("/static/app.js", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


async def test_the_page_is_told_its_language_and_the_header_of_keys(serve: Serve) -> None:
    house = await serve(Options(dashboard_lang="ja", api_key_header="X-Team-Key"))
    page = (await house.client.get("/")).text
    assert '<html lang="ja" data-language="ja" data-key-header="X-Team-Key">' in page


async def test_a_cancel_that_is_done_and_cannot_be_shown_says_so(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may go away between the two, and a bare error would say that nothing was done."""
    run_id = await house.submit("sums")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("it is away", "it is away")

    with monkeypatch.context() as gone:
        gone.setattr(house.app.state.gateway.snapshots, "document", away)
        told = await house.post(f"/runs/{run_id}/cancel", code=503)
    assert "the run is cancelled, or is about to be; only how it stands cannot be read" in told["detail"]
    assert (await house.get(f"/runs/{run_id}"))["status"] == "CANCELLED"
