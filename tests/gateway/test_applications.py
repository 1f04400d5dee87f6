"""Applications in the gateway: the one of the docs, installed as a stranger's package is."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests import example_application
from tests.gateway.conftest import House, Serve, opened, served
from tests.gateway.test_auth import key_of
from tsuzuki import settings
from tsuzuki.application import application
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options

GREETINGS = {
    "name": "greetings",
    "title": {"en": "Greetings", "ja": "あいさつ"},
    "module": "/apps/greetings/main.js",
}


async def flows(site: Path) -> Any:
    found = application("greetings")
    assert not isinstance(found, Exception)
    assert found is not None
    return found.flows()


async def test_its_routes_submit_and_look_at_runs(
    greetings: Path, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path))
    house = await serve(Options())
    await house.work(await flows(greetings))
    answer = await house.post("/api/greetings/greet", ["Ada", "Grace"])
    run = await house.ended(answer["run_id"])
    assert run["result"] == ["hello Ada", "hello Grace"]
    assert await house.get(f"/api/greetings/runs/{answer['run_id']}") == {"status": "COMPLETED"}
    assert sorted(await house.get("/api/greetings/book")) == ["Ada", "Grace"]


async def test_its_runs_belong_to_tenants(greetings: Path, serve: Serve) -> None:
    house = await serve(Options(auth=True))
    ours, theirs = await key_of(house, "ours"), await key_of(house, "theirs")
    answer = await house.client.post("/api/greetings/greet", json=["Ada"], headers=ours)
    run_id = answer.json()["run_id"]
    run = (await house.client.get(f"/runs/{run_id}", headers=ours)).json()
    assert (run["tenant_id"], run["api_key_id"][:4]) == ("ours", ours["X-API-Key"].split("_")[1][:4])
    assert (await house.client.get(f"/api/greetings/runs/{run_id}", headers=ours)).status_code == 200
    refused = await house.client.get(f"/api/greetings/runs/{run_id}", headers=theirs)
    assert (refused.status_code, refused.json()["detail"]) == (404, "run not found")


async def test_it_is_listed_and_described(greetings: Path, small: House) -> None:
    assert GREETINGS in await small.get("/apps")
    document = await small.get("/openapi.json")
    greet = document["paths"]["/api/greetings/greet"]["post"]
    assert greet["description"] == "Starts a run that greets these people."
    assert {"200", "401", "403", "404", "413", "422", "503"} <= set(greet["responses"])
    assert greet["tags"] == ["greetings"]


async def test_its_errors_are_problems(greetings: Path, small: House) -> None:
    for path, status in (("/api/greetings/runs/1", 404), ("/api/greetings/nothing", 404), ("/api/greetings", 404)):
        answer = await small.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), path
    answer = await small.client.post("/api/greetings/greet", json={"names": 1})
    assert (answer.status_code, answer.json()["errors"][0]["loc"]) == (422, ["body"])
    assert (await small.client.get("/api/greetings/greet")).status_code == 405


async def test_a_body_is_looked_at_only_after_the_key_and_only_up_to_the_limit(greetings: Path, serve: Serve) -> None:
    house = await serve(Options(auth=True, max_request_bytes=1000))
    url, large = "/api/greetings/greet", json.dumps(["x" * 2000]).encode()

    async def pieces() -> Any:
        for at in range(0, len(large), 500):
            yield large[at : at + 500]

    assert (await house.client.post(url, content=b"{")).status_code == 401
    headers = await key_of(house, "ours") | {"content-type": "application/json"}
    for content in (large, pieces()):
        answer = await house.client.post(url, content=content, headers=headers)
        assert (answer.status_code, answer.json()["detail"][:17]) == (413, "request too large")
    assert (await house.client.post(url, content=b"{", headers=headers)).status_code == 422


async def test_a_body_that_never_ends_is_not_waited_for(
    greetings: Path, small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.gateway.applications.BODY_WAIT", 0.05)
    host, port = small.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /api/greetings/greet HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: 10\r\n\r\n[".encode())
    async with asyncio.timeout(60):
        assert b" 400 " in await reader.readline()
    writer.close()
    await writer.wait_closed()


async def test_its_pages_are_files_of_the_right_type_and_nothing_else(greetings: Path, small: House) -> None:
    page = await small.client.get("/apps/greetings/main.js")
    assert page.headers["content-type"] == "text/javascript; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert page.headers["cache-control"] == "no-cache"
    assert "export function register" in page.text
    again = await small.client.get("/apps/greetings/main.js", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304
    for path in (
        "/apps/greetings/none.js",
        "/apps/greetings/../__init__.py",
        "/apps/greetings/%2e%2e/__init__.py",
        "/apps/greetings/..%2f__init__.py",
        "/apps/greetings//etc/passwd",
        "/apps/greetings/",
        "/apps/none/main.js",
    ):
        assert (await small.client.get(path)).status_code == 404, path


async def test_a_link_out_of_its_folder_leads_nowhere(greetings: Path, small: House) -> None:
    link = greetings / "greetings/pages/out.js"
    link.symlink_to(greetings / "greetings/__init__.py")
    try:
        assert (await small.client.get("/apps/greetings/out.js")).status_code == 404
    finally:
        link.unlink()


def test_the_folder_is_that_of_the_flag(tmp_path: Path) -> None:
    before = settings.data_dir()
    with settings.flagged(TSUZUKI_DATA_DIR=str(tmp_path)):
        assert settings.data_dir() == tmp_path
        assert settings.backend_url() == f"sqlite:{tmp_path / 'tsuzuki.db'}"
    assert settings.data_dir() == before


BROKEN = {
    "raises": "raise RuntimeError('it was never tested')",
    "leaves": "import sys; sys.exit(3)",
    "nameless": "application = 42",
    "misnamed": "from tsuzuki.application import Application; application = Application(name='other')",
    "routeless": (
        "from tsuzuki.application import Application\n"
        "def routes(): raise RuntimeError('no routes')\n"
        "application = Application(name='routeless', routes=routes)"
    ),
    "pageless": (
        "from pathlib import Path\nfrom tsuzuki.application import Application, Pages\n"
        "application = Application(name='pageless', pages=Pages(Path('/nowhere')))"
    ),
}


async def test_a_broken_one_is_told_of_and_left_out(
    greetings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, code in BROKEN.items():
        (tmp_path / name).mkdir()
        monkeypatch.syspath_prepend(example_application.unpack(tmp_path / name, example_application.broken(name, code)))
    async with opened(f"sqlite:{tmp_path / 'store.db'}") as runs, served(runs, Options()) as house:
        assert not {app["name"] for app in await house.get("/apps")} & {*BROKEN, "other"}
        assert (await house.client.get("/api/greetings/book")).status_code == 200
    told = [record.getMessage() for record in caplog.records if "cannot be used" in record.getMessage()]
    assert all(sum(f"the application {name} " in text for text in told) == 1 for name in BROKEN)
    assert any("the application raises cannot be used: RuntimeError: it was never tested" in text for text in told)


def test_without_applications_the_gateway_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.gateway.applications.applications", list)
    app = create_app(options=Options())
    assert not any(path.startswith("/api/") for path in app.openapi()["paths"])


async def test_it_may_own_further_names_but_not_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = (
        "from fastapi import APIRouter\nfrom tsuzuki.application import Application\n"
        "def routes():\n    router = APIRouter()\n    @router.get('')\n    def top() -> str: return '{name}'\n"
        "    @router.get('/inside/{{at}}')\n    def inside(at: int) -> int: return at\n    return router\n"
        "application = Application(name='{name}', paths={{'{path}': routes}})\n"
    )
    for name, path in (("first", "shelf"), ("second", "shelf"), ("third", "no/name")):
        files = example_application.broken(name, code.format(name=name, path=path))
        monkeypatch.syspath_prepend(str(example_application.unpack(tmp_path, files)))
    async with opened(f"sqlite:{tmp_path / 'store.db'}") as runs, served(runs, Options()) as house:
        assert await house.get("/api/shelf") == "first"
        assert await house.get("/api/shelf/inside/3") == 3
        assert "/api/shelf/inside/{at}" in (await house.get("/openapi.json"))["paths"]
        await house.get("/api/first", 404)
        assert {"second", "third"}.isdisjoint(each["name"] for each in await house.get("/apps"))
    assert "second cannot be used: ValueError: /api/shelf belongs to the application first" in caplog.text
    assert "third cannot be used: ValueError: its path 'no/name' is no name" in caplog.text
