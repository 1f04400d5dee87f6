"""The flows that live workers have published, and params checked by it before a run is accepted."""

from typing import Any

import pytest

from tests.gateway.conftest import House
from tests.gateway.test_wheel_commands import said
from tests.gateway.test_workflows import ADDRESSED, WORKFLOWS, send
from tsuzuki import Worker, flow
from tsuzuki.flowset import FlowSet


@flow(key="crawl:{site}:{depth}", tag="web")
async def crawl(site: str, depth: int = 2, pages: list[int] | None = None) -> str:
    """Fetches a site."""
    return f"{site} {depth} {pages}"


@flow(name="crawl")
async def older(site: int) -> None: ...


async def test_flows_come_with_schemas_defaults_tags_and_words(house: House) -> None:
    await house.work([crawl], name="a", tags=["web", "x"])
    [found] = await house.get("/flows")
    assert (found["name"], found["doc"], found["tags"], found["workers"]) == (
        "crawl",
        "Fetches a site.",
        ["web", "x"],
        ["a"],
    )
    shown = found["params"]["properties"]
    assert (shown["site"]["type"], shown["depth"]["default"], shown["pages"]["default"]) == ("string", 2, None)
    assert found["params"]["required"] == ["site"]


async def test_flows_of_workers_that_left_are_not_listed(house: House) -> None:
    worker = await house.work([crawl], name="a")
    assert len(await house.get("/flows")) == 1
    worker.stop()
    await worker.close()
    assert await house.get("/flows") == []
    await house.submit("crawl", {"nonsense": 1})


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({}, ["site"]),
        ({"site": 3}, ["site"]),
        ({"site": "a", "depth": "deep"}, ["depth"]),
        ({"site": "a", "pages": [1, "x"]}, ["pages"]),
        ({"site": "a", "more": 1}, ["more"]),
    ],
)
async def test_params_that_do_not_fit_are_refused_by_their_place(house: House, params: dict, place: list) -> None:
    await house.work([crawl], tags=["web"])
    answer = await house.post("/runs", {"flow_name": "crawl", "params": params}, 422)
    assert answer["detail"].startswith("invalid request")
    assert answer["error_id"] == "ERR-TSUZUKI-0002"
    assert answer["errors"][0]["loc"][: 2 + len(place)] == ["body", "params", *place]
    batch = {"runs": [{"flow_name": "crawl", "params": {"site": "b"}}, {"flow_name": "crawl", "params": params}]}
    answer = await house.post("/runs/batch", batch)
    assert (answer["accepted"], answer["refused"]) == (1, 1)
    assert answer["items"][1]["errors"][0]["loc"][: 4 + len(place)] == ["body", "runs", 1, "params", *place]
    assert [run["flow_name"] for run in await house.get("/runs")] == ["crawl"]


async def test_the_tag_and_the_key_of_a_flow_hold_over_http(house: House) -> None:
    await house.work([crawl], tags=["web"], concurrency=1)
    run_id = await house.submit("crawl", {"site": "a", "depth": "3"})
    run = await house.ended(run_id)
    assert (run["tag"], run["tags"], run["key"], run["result"]) == ("web", ["web"], "crawl:a:3", "a 3 None")
    waiting = await house.submit("crawl", {"site": "b"}, not_before="2999-01-01T00:00:00Z")
    answer = await house.post("/runs", {"flow_name": "crawl", "params": {"site": "b", "depth": 2}}, 409)
    assert answer["run_id"] == waiting
    await house.submit("crawl", {"site": "b", "depth": 4})


async def test_the_tag_and_the_key_of_a_flow_hold_while_its_workers_are_away_or_differ(house: House) -> None:
    first = await house.work([crawl], tags=["web"])
    first.stop()
    await first.close()
    run_id = await house.submit("crawl", {"site": "a"})
    answer = await house.post("/runs", {"flow_name": "crawl", "params": {"site": "a", "depth": 2}}, 409)
    assert answer["run_id"] == run_id
    await house.submit("crawl", {"nonsense": 1})  # nobody is there to say that it does not fit
    await house.work([crawl], tags=["web"])
    run = await house.ended(run_id)
    assert (run["tag"], run["key"]) == ("web", "crawl:a:2")
    await house.work([older], tags=["elsewhere"])
    await house.work([crawl], tags=["web"])  # who published last
    waiting = await house.submit("crawl", {"site": "b"}, tag="elsewhere", not_before="2999-01-01T00:00:00Z")
    answer = await house.post("/runs", {"flow_name": "crawl", "params": {"site": "b"}}, 409)
    assert answer["run_id"] == waiting


async def test_nothing_is_refused_where_workers_differ_or_may_find_other_flows(house: House) -> None:
    await house.work([crawl], tags=["web"])
    await house.post("/runs", {"flow_name": "crawl", "params": {}}, 422)
    await house.submit("crawl", {}, tag="elsewhere")
    await house.submit("unknown", {"a": 1})

    def find(name: str) -> Any:
        raise KeyError(name)

    await house.work(FlowSet([], find), tags=["wide"])  # type: ignore[arg-type] # a set is taken too
    await house.submit("crawl", {}, tag="wide")
    await house.work([older], tags=["web"])
    run_id = await house.submit("crawl", {})
    assert (await house.ended(run_id, "FAILED"))["error"].startswith("BadParams")


async def test_a_worker_that_came_a_moment_ago_is_known_before_anything_is_refused(house: House) -> None:
    first = await house.work([older], tags=["web"])
    await house.post("/runs", {"flow_name": "crawl", "params": {"site": "text"}, "tag": "web"}, 422)
    first.stop()
    await first.close()
    await house.work([crawl], tags=["web"])
    await house.ended(await house.submit("crawl", {"site": "text"}, tag="web"))


async def test_a_run_names_its_worker_also_when_it_has_ended(house: House) -> None:
    await house.work([crawl], tags=["web"], name="the one")
    run_id = await house.submit("crawl", {"site": "a"})
    assert (await house.ended(run_id))["worker_id"] == "the one"
    assert [run["worker_id"] for run in await house.get("/runs")] == ["the one"]
    waits = await house.submit("nothing", tag="nobody")
    assert (await house.get(f"/runs/{waits}"))["worker_id"] is None
    assert [run["worker_id"] for run in (await house.get("/runs", cursor=""))["items"]] == [None, "the one"]


async def test_the_command_warns_where_no_worker_is_alive_and_trusts_one_that_resolves_flows(small: House) -> None:
    assert "warning: no worker is alive; the run waits for one that knows the flow 'crawl'" in await said(
        small, "submit", "crawl"
    )
    async with Worker(small.runs.backend, [crawl]):
        pass
    assert "no worker knows the flow 'craw'; did you mean 'crawl'?" in await said(small, "submit", "craw", code=1)
    assert "warning: no worker is alive" in await said(small, "submit", "crawl")
    await small.work([crawl])
    told = await said(small, "submit", "craw", code=1)
    assert "no living worker knows the flow 'craw'; did you mean 'crawl'?" in told
    assert "they know crawl" in await said(small, "submit", "else", code=1)
    await small.work(FlowSet((), {"found": crawl}.__getitem__), name="resolving")  # type: ignore[arg-type] # a set is taken too
    assert "warning" not in await said(small, "submit", "else")


async def test_a_worker_that_executes_no_workflows_leaves_them_to_others(house: House) -> None:
    await house.work([crawl], name="plain")
    await send(house, ADDRESSED, flow_name="crawl")
    await send(house, ADDRESSED, flow_name="report")
    await house.ended(await house.submit("crawl", {"site": "a"}, tag="default"))
    assert [run["flow_name"] for run in await house.get("/runs", status="PENDING")] == ["report", "crawl"]
    await house.work((), workflows=WORKFLOWS, name="able")
    for run in await house.get("/runs", status="PENDING"):
        assert (await house.ended(run["run_id"]))["worker_id"] == "able"
