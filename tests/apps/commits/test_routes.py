"""`/api/commits/…` over a real gateway: everything that the commands can do, and tenants apart."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tests.gateway.conftest import House, opened, served
from tsuzuki import settings
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.collecting import PATIENCE
from tsuzuki.apps.commits.sources.asking import Patience
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring

API = "/api/commits"


@pytest.fixture
async def desk(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A gateway with a worker; it asks for keys where the test says so."""
    folder = tmp_path / "files"
    token = PATIENCE.set(Patience(tries=2, first=0.01, longest=60.0, timeout=10.0))
    options = Options(auth=getattr(request, "param", False))
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with AsyncExitStack() as stack:
            runs = await stack.enter_async_context(opened(f"sqlite:{folder / 'store.db'}"))
            house = await stack.enter_async_context(served(runs, options))
            await house.work(flows.flows())
            yield house
    PATIENCE.reset(token)


async def collected(desk: House, gitlab: GitLabDouble, *branches: str) -> dict[str, Any]:
    """Connects, and collects some branches once."""
    connection = await desk.post(f"{API}/connections", {"base_url": gitlab.url, "token": TOKEN}, 201)
    projects = await desk.post(f"{API}/connections/{connection['connection_id']}/sync")
    asked = {"project_id": projects[0]["project_id"], "branches": list(branches), "all": not branches}
    run = await desk.post(f"{API}/collect", asked, 202)
    await desk.ended(run["run_id"])
    project: dict[str, Any] = projects[0]
    return project


async def status_of(desk: House, run_id: str, status: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            told: dict[str, Any] = await desk.get(f"{API}/bulk/status", run_id=run_id)
            if told["run_status"] == status:
                return told
            await asyncio.sleep(0.01)


async def test_a_whole_day_over_http(desk: House, repository: Repository, gitlab: GitLabDouble) -> None:
    repository.git("branch", "feature/寿司")
    gitlab.host(repository.path, "team/app")
    assert await desk.get(f"{API}/bulk/status") is None
    project = await collected(desk, gitlab)
    branches = await desk.get(f"{API}/projects/{project['project_id']}/branches")
    assert [(b["branch_name"], b["commits"], b["exists"]) for b in branches] == [
        ("feature/寿司", 2, True),
        ("main", 2, True),
    ]
    fault = gitlab.fail("/repository/branches", 403)
    of = f"{API}/projects/{project['project_id']}/branches"
    await desk.get(of, 502)
    stored = await desk.get(of, stored_only=True)
    assert [(b["branch_name"], b["commits"], b["exists"]) for b in stored] == [
        ("feature/寿司", 2, None),
        ("main", 2, None),
    ]
    fault.times = 0
    fault = gitlab.fail("/branches/main", 403)
    started = await desk.post(f"{API}/bulk", {"pause": 0}, 202)
    assert started["total_targets"] == 2
    told = await status_of(desk, started["run_id"], "completed")
    assert (told["completed"], told["success"], told["failed"], told["current_target"]) == (2, 1, 1, None)
    failed = await desk.get(f"{API}/runs/{started['run_id']}/results", status="failed")
    assert [(r["project_name"], r["branch_name"]) for r in failed] == [("team/app", "main")]
    fault.times = 0
    again = await desk.post(f"{API}/bulk/retry", {"pause": 0}, 202)
    await status_of(desk, again["run_id"], "completed")
    assert [run["run_id"] for run in await desk.get(f"{API}/runs")] == [again["run_id"], started["run_id"]]
    totals = (await desk.get(f"{API}/statistics", project_id=project["project_id"]))["totals"]
    assert totals == {"commits": 2, "additions": 4, "deletions": 0, "changes": 4, "missing_stats": 0}
    assert await desk.get(f"{API}/authors") == ["Ada"]
    for kind, begins in (("csv", "month,author"), ("tsv", "month\tauthor"), ("svg", "<svg")):
        answer = await desk.client.get(f"{API}/statistics", params={"format": kind})
        assert answer.text.startswith(begins), kind


async def test_what_is_refused_says_so(desk: House, repository: Repository, gitlab: GitLabDouble) -> None:
    gitlab.host(repository.path)
    assert "収集対象が見つかりません" in (await desk.post(f"{API}/bulk", code=400))["detail"]
    assert "失敗した対象が見つかりません" in (await desk.post(f"{API}/bulk/retry", code=400))["detail"]
    await desk.post(f"{API}/bulk/cancel", code=404)
    await desk.get(f"{API}/bulk/status", 404, run_id="unknown")
    for path in ("runs/unknown", "runs/unknown/results", "projects/9/branches", "bulk/events"):
        assert (await desk.get(f"{API}/{path}", 404))["error_id"] == "ERR-TSUZUKI-0303"
    await desk.post(f"{API}/collect", {"project_id": 9}, 404)
    project = await collected(desk, gitlab)
    wrong = {"project_id": project["project_id"], "since": "2026-02-01", "until": "2026-01-01"}
    assert "開始日" in (await desk.post(f"{API}/collect", wrong, 422))["detail"]
    both = {"project_id": project["project_id"], "branches": ["main"], "all": True}
    assert "どちらか一方" in (await desk.post(f"{API}/collect", both, 422))["detail"]
    await desk.get(f"{API}/statistics", 422, since="soon")
    await desk.post(f"{API}/connections", {}, 422)
    await desk.post(f"{API}/connections", {"base_url": "ftp://x"}, 422)
    gitlab.hold.clear()
    await desk.post(f"{API}/bulk", code=202)
    second = await desk.post(f"{API}/bulk", code=409)
    assert "一括収集が既に実行中です" in second["detail"]
    branch = f"{API}/projects/{project['project_id']}/branches?name=main"
    assert (await desk.client.delete(f"{branch}&confirm=2")).status_code == 409
    gitlab.hold.set()


async def test_a_branch_is_removed_once_its_number_is_confirmed(
    desk: House, repository: Repository, gitlab: GitLabDouble
) -> None:
    gitlab.host(repository.path)
    project = await collected(desk, gitlab, "main")
    branch = f"{API}/projects/{project['project_id']}/branches?name=main"
    assert (await desk.client.delete(branch)).json() == {"commits": 2, "removed": False}
    assert (await desk.client.delete(f"{branch}&confirm=1")).status_code == 422
    assert (await desk.client.delete(f"{branch}&confirm=2")).json() == {"commits": 2, "removed": True}
    assert (await desk.get(f"{API}/statistics"))["rows"] == []


async def test_progress_comes_as_events_and_ends_with_nothing_current(
    desk: House, repository: Repository, gitlab: GitLabDouble
) -> None:
    for name in "abc":
        repository.git("branch", name)
    gitlab.host(repository.path)
    await collected(desk, gitlab)
    gitlab.hold.clear()
    started = await desk.post(f"{API}/bulk", {"pause": 0}, 202)
    seen = []
    async for event in desk.events(f"{API}/bulk/events"):
        gitlab.hold.set()
        seen += [event.data] if event.name == "progress" else []
    first, last = seen[0], seen[-1]
    assert first["current_target"] == {"project_id": 1, "branch_name": "a"}
    assert (first["run_id"], first["total"], first["completed"]) == (started["run_id"], 4, 0)
    assert (last["completed"], last["success"], last["current_target"]) == (4, 4, None)


async def test_events_count_among_the_open_streams_and_end_with_the_gateway(
    desk: House, repository: Repository, gitlab: GitLabDouble
) -> None:
    gitlab.host(repository.path)
    await collected(desk, gitlab)
    gitlab.hold.clear()
    await desk.post(f"{API}/bulk", {"pause": 0}, 202)
    streams = desk.app.state.gateway.streams
    async with asyncio.timeout(20):  # by itself the stream would be open for as long as the run is
        async for _ in desk.events(f"{API}/bulk/events", timeout_sec=600):
            assert streams.open == 1
            streams.close()
    gitlab.hold.set()


async def test_a_cancel_keeps_what_is_done_and_start_goes_on(
    desk: House, repository: Repository, gitlab: GitLabDouble
) -> None:
    for name in "abc":
        repository.git("branch", name)
    gitlab.host(repository.path)
    await collected(desk, gitlab)
    gitlab.requests.clear()
    limit = gitlab.fail("/branches/b", 429, headers={"Retry-After": "50"})
    started = await desk.post(f"{API}/bulk", {"pause": 0}, 202)
    async with asyncio.timeout(60):
        while not gitlab.asked("/branches/b"):
            await asyncio.sleep(0.01)
    told = await desk.post(f"{API}/bulk/cancel", {"run_id": started["run_id"]})
    assert (told["run_status"], told["success"], told["pending_count"]) == ("cancelled", 1, 3)
    limit.times = 0
    resumed = await desk.post(f"{API}/bulk", {"pause": 0}, 202)
    assert (resumed["run_id"], resumed["resumed"]) == (started["run_id"], True)
    assert (await status_of(desk, started["run_id"], "completed"))["success"] == 4


async def test_tokens_are_in_no_answer(desk: House, repository: Repository, gitlab: GitLabDouble) -> None:
    gitlab.host(repository.path)
    await collected(desk, gitlab)
    paths = ("/connections", "/projects", "/runs")
    answers = [json.dumps(await desk.get(f"{API}{path}")) for path in paths]
    answers += [json.dumps(await desk.get("/runs"))]
    assert all(TOKEN not in text for text in answers)
    refused = await desk.client.post(f"{API}/connections", json={"base_url": 1, "token": TOKEN})
    assert refused.status_code == 422


@pytest.mark.parametrize("desk", [True], indirect=True)
async def test_tenants_see_nothing_of_each_other(
    desk: House, repository: Repository, gitlab: GitLabDouble, tmp_path: Path
) -> None:
    gitlab.host(repository.path)
    keyring = Keyring(desk.runs.backend)
    keys = {name: (await keyring.create(name))[0] for name in ("red", "blue")}
    async with AsyncExitStack() as stack:
        red, blue = [
            House(desk.runs, await stack.enter_async_context(
                httpx2.AsyncClient(base_url=desk.url, headers={"X-API-Key": key}, timeout=20)
            ), desk.app, desk.server, desk.url)
            for key in keys.values()
        ]  # fmt: skip
        assert (await desk.client.get(f"{API}/projects")).status_code == 401
        await collected(red, gitlab)
        started = await red.post(f"{API}/bulk", {"pause": 0}, 202)
        await status_of(red, started["run_id"], "completed")
        assert await blue.get(f"{API}/connections") == []
        assert await blue.get(f"{API}/runs") == []
        assert (await blue.get(f"{API}/statistics"))["rows"] == []
        await blue.get(f"{API}/runs/{started['run_id']}", 404)
        await collected(blue, gitlab)
        assert (await red.get(f"{API}/statistics"))["totals"]["commits"] == 2
        assert (
            "only where no API keys are asked for"
            in (await red.post(f"{API}/connections", {"path": str(repository.path)}, 422))["detail"]
        )
        # A run that names nobody's file goes to the file of its tenant.
        await blue.ended((await blue.post("/runs", {"flow_name": "commits_bulk", "params": {"pause": 0}}))["run_id"])
        assert len(await red.get(f"{API}/runs")) == 1
    found = {str(file.relative_to(tmp_path / "files")) for file in tmp_path.rglob("commits.db")}
    assert found == {"tenants/red/commits.db", "tenants/blue/commits.db"}
