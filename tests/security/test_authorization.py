"""Every route × whoever asks: a rule says what each is answered, so that a new route has to be protected to pass."""

import asyncio
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
from tests.gateway.flows import FLOWS
from tests.gateway.test_auth import OPEN, key_of
from tests.security.sent import WITHOUT, Things, place, sent
from tsuzuki import tokens
from tsuzuki.application import Application, applications
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
BEGINS = 4
"""The place, in the order in which an owner asks, of what begins a run of a project."""
WITH_A_RIGHT = {("POST", "/wheels"), ("DELETE", "/wheels/{wheel_name}")}
MISSING: Things = {
    "run_id": "6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e",
    "bulk": "7f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e",
    "session_id": "20200101_000000",
    "upload_id": "0" * 32,
    "sent": "1" * 32,
    "item": "0" * 12,
    "key": "key-1",
    "letter_id": "777",
    **dict.fromkeys(("project_id", "number", "position"), 777),
}
TAKEN = {"POST /runs/batch": 200}
"""Where an answer to what is not there is no 404: it tells so of each of many."""


@dataclass(frozen=True)
class Answer:
    status: int
    text: str


def operations(app: FastAPI) -> Iterator[tuple[str, str, Any]]:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _order(one: tuple[str, str, Any]) -> tuple[int, int]:
    """Looks first, then changes; removes what is inside of something, makes it anew by runs, removes the rest."""
    method, path, _ = one
    if method == "DELETE":
        return (3 if path.count("{") > 1 else 5), -path.count("{")
    begins = path.startswith("/api/projects/") and path.endswith(("/runs", "/files", "/bulk"))
    return (BEGINS if method == "POST" and begins else ("GET", "PATCH", "POST").index(method)), 0


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


async def asked(house: House, method: str, url: str, headers: dict[str, str], more: Things | None = None) -> Answer:
    async with house.client.stream(method, url, headers=headers, **(more or {})) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return Answer(answer.status_code, "")
        return Answer(answer.status_code, (await answer.aread()).decode("utf-8", "replace"))


def unnamed(answer: Answer, *known: Things) -> Answer:
    """Gives an answer without the names of what was asked for, ours or not there."""
    named = {re.escape(str(thing)) for things in known for thing in things.values()}
    return Answer(answer.status, re.sub(rf"\b(?:{'|'.join(sorted(named, key=len, reverse=True))})\b", "…", answer.text))


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
    apps = [app for _, app in applications() if isinstance(app, Application)]
    await house.work([*FLOWS, *(flow for app in apps for flow in app.flows())])
    key = await key_of(house, "ours")
    house.client.headers |= key
    things = await engine_things(house) | await glossary_things(house)
    things |= await notes_things(house) | await commits_things(house, gitlab) | {"number": 1}
    for name in key:
        del house.client.headers[name]
    return house, key, things


async def made(house: House, path: str, body: Any = None, **more: Any) -> Any:
    answer = await house.client.post(path, json=body, **more) if not more else await house.client.post(path, **more)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json()


async def settled(house: House, path: str, status: str = "status") -> Any:
    async with asyncio.timeout(60):
        while str((found := await house.get(path))[status]).lower() in ("pending", "running", "in_progress"):
            await asyncio.sleep(0.05)
    return found


async def engine_things(house: House) -> Things:
    told = {"flow_name": "fails", "params": {"number": MARK}, "key": f"key-{MARK}", "tags": [f"label-{MARK}"]}
    run = await made(house, "/runs", told)
    await house.ended(run["run_id"], "FAILED")
    [letter] = await house.letters()
    [item, *_] = (await house.get(f"/runs/{run['run_id']}/items"))["items"]
    things = {"run_id": run["run_id"], "letter_id": letter["id"], "key": f"key-{MARK}", "position": item["position"]}
    return things | {"worker_id": (await house.get("/workers"))[0]["worker_id"]}


async def glossary_things(house: House) -> Things:
    """A project with everything in it: a document, terms, synonyms, definitions, issues, a run."""
    project = await made(house, "/api/projects", {"name": f"project {MARK}", "llm_provider": "offline"})
    at = f"/api/projects/{project['id']}"
    content = f"A term {MARK} is a word. A journal is a list of facts. The journal has a worker.\n\nWorker waits.\n"
    added = await made(house, f"{at}/files", {"file_name": f"{MARK}.md", "content": content})
    await settled(house, f"{at}/runs/{added['extract_run_id']}")
    await made(house, f"{at}/required-terms", {"term_text": f"term {MARK}"})
    await made(house, f"{at}/excluded-terms", {"term_text": f"no term {MARK}"})
    await made(house, f"{at}/synonym-groups", {"primary_term_text": "journal", "member_texts": ["journal", f"s{MARK}"]})
    run = await made(house, f"{at}/runs", {"scope": "full"})
    assert (await settled(house, f"{at}/runs/{run['id']}"))["status"] == "completed"
    return {"project_id": project["id"]}


async def notes_things(house: House) -> Things:
    used, whole, upload = [await made(house, "/api/notes/uploads", {"name": f"export-{MARK}.json"}) for _ in range(3)]
    piece = {"piece": (f"export-{MARK}.json", json.dumps([claude(MARK)]).encode())}
    for each in (used, whole):
        await made(house, f"/api/notes/uploads/{each['upload_id']}", files=piece)
    session = await made(house, "/api/notes/sessions", {"upload": used["upload_id"], "llm": "offline"})
    at = f"/api/notes/sessions/{session['session_id']}"
    await settled(house, at)
    items = await house.get(f"{at}/items")
    return {
        "upload_id": upload["upload_id"],
        "sent": whole["upload_id"],
        "session_id": session["session_id"],
        "item": items["items"][0]["item_id"],
    }


async def commits_things(house: House, gitlab: GitLabDouble) -> Things:
    connected = await made(house, "/api/commits/connections", {"base_url": gitlab.url, "token": TOKEN})
    [hosted] = await made(house, f"/api/commits/connections/{connected['connection_id']}/sync", {})
    assert (connected["connection_id"], hosted["project_id"]) == (1, 1), "asked for by these numbers below"
    assert str(MARK) in json.dumps(hosted)
    collected = await made(house, "/api/commits/collect", {"project_id": hosted["project_id"], "branches": ["main"]})
    await house.ended(collected["run_id"])
    bulk = await made(house, "/api/commits/bulk", {})
    return {"bulk": bulk["run_id"], "gitlab": gitlab.url, "token": TOKEN, "ollama": "http://127.0.0.1:9"}


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_every_route_answers_everybody_as_the_rule_says(
    greetings: Path, ours: tuple[House, dict[str, str], Things]
) -> None:
    house, right, there = ours
    theirs, third, revoked = [await key_of(house, tenant) for tenant in ("theirs", "third", "ours")]
    await Keyring(house.runs.backend).revoke(tokens.id_of(revoked["X-API-Key"]) or "")
    forged = {"X-API-Key": right["X-API-Key"][:-1] + ("a" if right["X-API-Key"][-1] != "a" else "b")}
    listed, shapes = list(operations(house.app)), house.app.openapi()["components"]["schemas"]
    missing = there | MISSING
    assert len(listed) > 100
    for method, path, operation in listed:
        where, url, example = f"{method} {path}", place(path, there), body_of(operation, shapes)
        if (path, method.lower()) in OPEN:
            assert (await asked(house, method, url, {})).status == 200, where
            continue
        more, instead = sent(method, path, there, example), sent(method, path, missing, example)
        nobody = await asked(house, method, url, {}, more)
        assert (nobody.status, json.loads(nobody.text)["error_id"]) == (401, "ERR-TSUZUKI-0014"), where
        for key in (forged, revoked):
            stranger = await asked(house, method, url, key, more)
            assert (stranger.status, json.loads(stranger.text)["error_id"]) == (403, "ERR-TSUZUKI-0015"), where
        named = "{" in path or more != instead
        # who has nothing asks for ours by its names; what makes something of one's own is asked for by a third
        other = await asked(house, method, url, theirs if named else third, more)
        assert other.status not in (401, 500), where
        assert (other.status == 403) == ((method, path) in WITH_A_RIGHT), where
        assert str(MARK) not in other.text, where
        assert there["run_id"] not in other.text, where
        if named and not SHARED.match(path):
            nothing = await asked(house, method, place(path, missing), theirs, instead)
            told, untold = unnamed(other, there, missing), unnamed(nothing, there, missing)
            assert told == untold, f"{where}: ours is told from what is not there"
            assert other.status == TAKEN.get(where, 404), (where, other)
    for method, path, operation in sorted(listed, key=_order):
        where = f"{method} {path}"
        if (path, method.lower()) not in OPEN and (method, path) not in WITH_A_RIGHT:
            if _order((method, path, operation))[0] == BEGINS:  # a project has one run at a time, and files begin one
                house.client.headers |= right
                await settled(house, place("/api/projects/{project_id}/runs/current", there))
                house.client.headers.pop("X-API-Key")
            more = sent(method, path, there, body_of(operation, shapes))
            own = await asked(house, method, place(path, there), right, more)
            fits = own.status < 400 or (where in WITHOUT and own.status in (400, 404, 409, 503))
            assert fits, f"{where}: {own}; what its owner sends is in tests/security/sent.py"


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
