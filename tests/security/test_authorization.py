"""Every route × whoever asks: a rule says what each is answered, so that a new route has to be protected to pass."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Mount, Route

from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tests.apps.notes.exports import claude
from tests.gateway.conftest import House, Serve
from tests.gateway.test_auth import OPEN, key_of
from tsuzuki import tokens
from tsuzuki.gateway import create_app
from tsuzuki.gateway.applications import Door
from tsuzuki.gateway.contract import api_routes, protected
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.pages import Files
from tsuzuki.keyring import Keyring

MARK = 918_273_645
"""Stands in params, errors, names and contents of what is ours, and in nothing of theirs."""
SHARED = re.compile(r"/(?:workers|wheels|flows|apps|config|metrics|overview|llm/jobs)(?:/|$)")
"""What all tenants see of each other: SECURITY.md names it."""
WITH_A_RIGHT = {("POST", "/wheels"), ("DELETE", "/wheels/{wheel_name}")}
MISSING = {"run_id": "6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e", "session_id": "20200101_000000", "upload_id": "0" * 32}


@dataclass(frozen=True)
class Answer:
    status: int
    text: str


def operations(app: FastAPI) -> Iterator[tuple[str, str, Any]]:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def body_of(operation: dict[str, Any], shapes: dict[str, Any]) -> Any:
    """Gives an example of a body; of one without examples whatever has its required fields."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    if "example" in content:
        return content["example"]
    schema = content["schema"]
    schema = shapes.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return (schema.get("examples") or [{}])[0]


def test_what_is_in_no_document_is_behind_the_door_or_a_file_of_a_page(greetings: Path) -> None:
    """Routes of ours take a session or are known; whatever else somebody puts into the router fails here."""
    app = create_app(options=Options(auth=True))
    documented = {id(route) for route in api_routes(app)}
    known = {"/", "/openapi.json", "/health", "/health/ready"}
    for route in app.router.routes:
        if id(route) in documented:
            continue
        inner = getattr(route, "app", None)
        if isinstance(route, Mount):
            files = inner if isinstance(inner, Files) else getattr(inner, "app", None)
            assert isinstance(files, Files), route
        elif isinstance(getattr(route, "endpoint", None), Door):
            continue
        else:
            assert isinstance(route, Route), route
            assert route.path in known, f"{route.path} is open to everybody"
    own = {(method.lower(), route.path_format) for route in api_routes(app) for method in route.methods or ()}
    guarded = {(method, path) for path, method in protected(app)}
    assert own - guarded == {(method, path) for path, method in OPEN}


async def asked(house: House, method: str, url: str, headers: dict[str, str], body: Any = None) -> Answer:
    more = {} if body is None else {"json": body}
    async with house.client.stream(method, url, headers=headers, **more) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return Answer(answer.status_code, "")
        return Answer(answer.status_code, (await answer.aread()).decode("utf-8", "replace"))


def unnamed(answer: Answer, things: dict[str, Any]) -> Answer:
    """Gives an answer without the names of what was asked for."""
    words = "|".join(sorted({re.escape(str(thing)) for thing in things.values()}, key=len, reverse=True))
    return Answer(answer.status, re.sub(rf"\b(?:{words})\b", "…", answer.text))


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[GitLabDouble]:
    """A server with a repository of ours."""
    repository = Repository(tmp_path / "repository")
    repository.commit("2026-01-02T03:04:05Z", {"a": "1"})
    with GitLabDouble() as double:
        double.host(repository.path, f"team/{MARK}")
        yield double


@pytest.fixture
async def ours(
    serve: Serve, gitlab: GitLabDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[House, dict[str, str], dict]:
    """A gateway with keys, and things of a tenant in every corner of it."""
    monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path / "files"))
    house = await serve(Options(auth=True))
    await house.work()
    key = await key_of(house, "ours")

    async def made(path: str, body: Any) -> Any:
        answer = await house.client.post(path, json=body, headers=key)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json()

    run = await made(
        "/runs", {"flow_name": "fails", "params": {"number": MARK}, "key": f"key-{MARK}", "tags": [f"label-{MARK}"]}
    )
    house.client.headers |= key
    await house.ended(run["run_id"], "FAILED")
    [letter] = await house.letters()
    project = await made("/api/projects", {"name": f"project {MARK}", "llm_provider": "offline"})
    content = f"A term {MARK} is a word."
    await made(f"/api/projects/{project['id']}/files", {"file_name": f"{MARK}.md", "content": content})
    await made(f"/api/projects/{project['id']}/required-terms", {"term_text": f"term {MARK}"})
    sent, upload = [await made("/api/notes/uploads", {"name": f"export-{MARK}.json"}) for _ in range(2)]
    export = json.dumps([claude(MARK)]).encode()
    piece = {"piece": (f"export-{MARK}.json", export)}
    assert (await house.client.post(f"/api/notes/uploads/{sent['upload_id']}", files=piece, headers=key)).is_success
    session = await made("/api/notes/sessions", {"upload": sent["upload_id"], "llm": "offline"})
    connected = await made("/api/commits/connections", {"base_url": gitlab.url, "token": TOKEN})
    [hosted] = await made(f"/api/commits/connections/{connected['connection_id']}/sync", {})
    await made("/api/commits/collect", {"project_id": hosted["project_id"], "branches": ["main"]})
    assert (connected["connection_id"], hosted["project_id"]) == (1, 1), "asked for by these numbers below"
    assert str(MARK) in json.dumps(hosted)
    for name in key:
        del house.client.headers[name]
    things = {"run_id": run["run_id"], "letter_id": letter["id"], "upload_id": upload["upload_id"], "project_id": 1}
    things["session_id"] = session["session_id"]
    return house, key, things


def filled(path: str, things: dict[str, Any]) -> str:
    """Puts things into a path; numbers of applications are counted by each tenant for itself."""
    run = things["number"] if path.startswith("/api/") else things["run_id"]
    return re.sub(
        r"\{(\w+)(?::path)?\}", lambda found: str({**things, "run_id": run}.get(found[1], things["number"])), path
    )


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_every_route_answers_everybody_as_the_rule_says(
    greetings: Path, ours: tuple[House, dict[str, str], dict]
) -> None:
    house, right, things = ours
    theirs, revoked = await key_of(house, "theirs"), await key_of(house, "ours")
    await Keyring(house.runs.backend).revoke(tokens.id_of(revoked["X-API-Key"]) or "")
    forged = {"X-API-Key": right["X-API-Key"][:-1] + ("a" if right["X-API-Key"][-1] != "a" else "b")}
    listed = list(operations(house.app))
    shapes = house.app.openapi()["components"]["schemas"]
    there, missing = {**things, "number": 1}, {**MISSING, "letter_id": "777", "project_id": 777, "number": 777}
    assert len(listed) > 100
    for method, path, operation in listed:
        where, url, body = f"{method} {path}", filled(path, there), body_of(operation, shapes)
        if (path, method.lower()) in OPEN:
            assert (await asked(house, method, url, {})).status == 200, where
            continue
        nobody = await asked(house, method, url, {}, body)
        assert (nobody.status, json.loads(nobody.text)["error_id"]) == (401, "ERR-TSUZUKI-0014"), where
        for key in (forged, revoked):
            stranger = await asked(house, method, url, key, body)
            assert (stranger.status, json.loads(stranger.text)["error_id"]) == (403, "ERR-TSUZUKI-0015"), where
        other = await asked(house, method, url, theirs, body)
        assert other.status not in (401, 500), where
        assert (other.status == 403) == ((method, path) in WITH_A_RIGHT), where
        assert str(MARK) not in other.text, where
        assert things["run_id"] not in other.text, where
        if "{" in path and not SHARED.match(path):
            nothing = await asked(house, method, filled(path, missing), theirs, body)
            assert unnamed(other, there) == unnamed(nothing, missing), f"{where}: ours is told from what is not there"
            assert other.status in (404, 422), where
    for method, path, operation in sorted(listed, key=lambda one: one[0] == "DELETE"):
        if (path, method.lower()) not in OPEN and (method, path) not in WITH_A_RIGHT:
            own = await asked(house, method, filled(path, there), right, body_of(operation, shapes))
            assert own.status not in (401, 403, 500), (method, path)


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_no_filter_count_or_page_tells_of_another_tenant(ours: tuple[House, dict[str, str], dict]) -> None:
    house, right, things = ours
    theirs = await key_of(house, "theirs")
    for name, value in (
        *(("flow", "fails"), ("label", f"label-{MARK}"), ("key", f"key-{MARK}"), ("text", str(MARK))),
        *(("status", "FAILED"), ("text", "#1"), ("text", things["run_id"]), ("updated_after", "0"), ("cursor", "")),
    ):
        for key, some in ((right, True), (theirs, False)):
            found = (await house.client.get("/runs", params={name: value}, headers=key)).json()
            assert bool(found["items"] if isinstance(found, dict) else found) is some, (name, value)
    for path in ("/runs/counts", "/overview", "/overview/history", "/llm/usage", "/dlq?limit=1", "/dlq"):
        told = (await house.client.get(path, headers=theirs)).json()
        assert told.get("next_cursor") is None, path
        assert not any(told.get("runs", {}).values() if isinstance(told.get("runs"), dict) else [told.get("runs")]), (
            path
        )
        assert not told.get("dead_letters"), path
        assert not any(any(bar["ended"].values()) for bar in told.get("bars", [])), path
    entries = [{"flow_name": "nothing", "continues": one} for one in (things["run_id"], "1", MISSING["run_id"])]
    answer = await house.client.post("/runs/batch", json={"runs": entries}, headers=theirs)
    told = [(one["run_id"], one["error"], one["error_id"]) for one in answer.json()["items"]]
    assert len(set(told)) == 1, told
    assert (
        await house.client.post("/runs", json={"flow_name": "fails", "key": f"key-{MARK}"}, headers=theirs)
    ).is_success
