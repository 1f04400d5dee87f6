"""`/api/projects…` over a real gateway: shapes, status codes, the log as it is written, tenants apart."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.apps.glossary.conftest import TERMS, TEXT, Model
from tests.gateway.conftest import House, opened, served
from tsuzuki import settings
from tsuzuki.apps.glossary import flows
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring

API = "/api/projects"
BAD_NAMES = [
    "/etc/passwd.md", "../a.md", "a/../b.md", "a\\b.md", "a.exe", "", "a//b.md", "./a.md", "con.md", "sub/NUL.txt",
    "a.md.", "a /b.md", " a.md", "a\u202eb.md", "a\u200bb.md", "a\x00.md", "a:b.md", "a?.md", "a．md", "a／b.md",
    f"{'x' * 253}.md", f"{'a/' * 520}b.md", "C:/a.md", "lpt1.txt",
]  # fmt: skip


@pytest.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A gateway with a worker; it asks for keys where the test says so."""
    folder = tmp_path / "files"
    options = Options(auth=getattr(request, "param", False))
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with AsyncExitStack() as stack:
            runs = await stack.enter_async_context(opened(f"sqlite:{folder / 'store.db'}"))
            house = await stack.enter_async_context(served(runs, options))
            await house.work(flows.flows())
            yield house


async def made(house: House, name: str = "sample", **more: str) -> str:
    project = await house.post(API, {"name": name, **more}, 201)
    return f"{API}/{project['id']}"


async def ended(house: House, at: str, run: int) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (row := await house.get(f"{at}/runs/{run}"))["status"] in ("pending", "running"):
            await asyncio.sleep(0.02)
    return dict(row)


async def events(house: House, path: str) -> list[tuple[str, Any]]:
    """Reads a stream to its end, as text: entries have no name, the end has one."""
    async with house.client.stream("GET", path, timeout=30) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-cache"
        text = (await answer.aread()).decode()
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            name = lines[0].removeprefix("event: ") if lines[0].startswith("event:") else ""
            found.append((name, json.loads(lines[-1].removeprefix("data: "))))
    assert text.endswith("event: complete\ndata: {}\n\n")
    return found


async def test_from_documents_to_an_exported_glossary(house: House, model: Model) -> None:
    at = await made(house, **model.settings)
    text = TEXT.replace("worker", "量子コンピュータ")
    added = await house.post(f"{at}/files/bulk", {"files": [{"file_name": "a/読む.md", "content": text}]}, 201)
    assert added["extract_started"] is True
    run = await ended(house, at, added["extract_run_id"])
    assert (run["triggered_by"], run["scope"], run["status"]) == ("auto", "extract", "completed")
    names = {term["term_text"] for term in await house.get(f"{at}/terms")}
    assert "journal" in names
    await house.post(f"{at}/required-terms", {"term_text": "量子コンピュータ"}, 201)
    run = await house.post(f"{at}/runs", {"scope": "full"}, 201)
    assert set(run) == {
        "id", "scope", "status", "started_at", "finished_at", "triggered_by", "error_message", "progress_current",
        "progress_total", "current_step", "created_at",
    }  # fmt: skip
    seen = await events(house, f"{at}/runs/{run['id']}/logs")
    assert seen[-1] == ("complete", {})
    assert any(data.get("current_term") == "量子コンピュータ" for _, data in seen)
    assert await events(house, f"{at}/runs/{run['id']}/logs") == [("complete", {})]
    assert len(await events(house, f"{at}/runs/{run['id']}/logs?history=true")) >= len(seen)
    assert (await house.get(f"{at}/runs/current"))["id"] == run["id"]
    assert [each["id"] for each in await house.get(f"{at}/runs")] == [run["id"], added["extract_run_id"]]
    refined = await house.get(f"{at}/refined")
    assert "journal refined" in {entry["definition"] for entry in refined}
    answer = await house.client.get(f"{at}/refined/export-md")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "## journal" in answer.text
    listed = await house.get(API)
    counts = [listed[0][f"{what}_count"] for what in ("document", "provisional", "issue", "refined")]
    assert counts == [1, len(refined), len(refined), len(refined)]
    document = (await house.get(f"{at}/files"))[0]
    places = await house.get(f"{at}/files/{document['id']}/occurrences")
    assert places[0] == {"term": "量子コンピュータ", "text": "量子コンピュータ", "line": 1, "column": 3, "length": 8}


async def test_projects_have_names_of_their_own(house: House) -> None:
    at = await made(house, "one")
    assert (await house.post(API, {"name": " one "}, 409))["error_id"] == "ERR-TSUZUKI-0402"
    await house.post(API, {"name": "  "}, 422)
    await house.post(API, {"name": "x", "llm_provider": "nobody"}, 422)
    await house.post(f"{at}/files", {"file_name": "a.md", "content": "x"}, 201)
    await ended(house, at, 1)
    copy = await house.post(f"{at}/clone", {"new_name": "two"}, 201)
    await house.post(f"{at}/clone", {"new_name": "one"}, 409)
    assert (copy["document_count"], await house.get(f"{API}/{copy['id']}/runs")) == (1, [])
    await house.get(f"{API}/{copy['id']}/runs/current", 404)
    assert (copy["asked_provider"], copy["asked_model"]) == ("offline", "rules")
    asking = (await house.client.patch(at, json={"llm_provider": "ollama", "llm_model": "x"})).json()
    assert (asking["asked_provider"], asking["asked_model"]) == ("ollama", "x")
    changed = await house.client.patch(at, json={"name": "three", "llm_model": "m"})
    assert (changed.json()["name"], changed.json()["llm_model"]) == ("three", "m")
    assert (await house.client.patch(at, json={"name": "two"})).status_code == 409
    assert (await house.client.delete(at)).status_code == 204
    for path in ("", "/files", "/terms", "/runs", "/provisional", "/issues", "/refined", "/synonym-groups"):
        assert (await house.get(f"{at}{path}", 404))["error_id"] == "ERR-TSUZUKI-0401", path
    await house.post(f"{at}/runs", {"scope": "full"}, 404)
    again = await house.post(API, {"name": "four"}, 201)
    assert again["id"] > copy["id"]


async def test_a_key_is_sent_to_no_address_that_a_project_names(house: House) -> None:
    for provider, address, code in (
        ("openai", "http://example.com/v1", 422),
        ("", "http://example.com/v1", 422),
        ("openai", "http://127.0.0.1:1/v1", 201),
        ("ollama", "http://192.168.0.9:11434", 201),
        ("ollama", "ftp://192.168.0.9", 422),
        ("ollama", "http://user:word@localhost:1", 422),
    ):
        asked = {"name": f"{provider} {address}", "llm_provider": provider, "llm_base_url": address}
        await house.post(API, asked, code)
    for address in ("http://example.com", "http://127.0.0.1.example.com", "http://10.0.0.1:11434", "file:///etc", "x"):
        assert (await house.get("/api/ollama/models", 400, base_url=address))["detail"].startswith("このマシン")


async def test_models_of_a_local_ollama_are_listed_and_its_absence_is_told_at_once(
    house: House, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await house.get("/api/ollama/models", base_url=model.double.url) == {"models": ["m-1"]}
    monkeypatch.setattr("tsuzuki.llm.wire.Patience.pause", lambda *_: pytest.fail("nobody listens: that is known"))
    await house.get("/api/ollama/models", 503, base_url="http://127.0.0.1:9")


async def test_bad_names_are_refused_with_a_text(house: House) -> None:
    at = await made(house)
    for name in BAD_NAMES:
        told = await house.post(f"{at}/files", {"file_name": name, "content": "x"}, 400)
        assert "ファイル名が不正です" in told["detail"], name
    assert await house.get(f"{at}/files") == []


async def test_documents_are_added_all_or_none(house: House) -> None:
    at = await made(house)
    one = {"file_name": "cafe\u0301.md", "content": "x"}
    added = await house.post(f"{at}/files", one, 201)
    assert added["file_name"] == "caf\u00e9.md"
    await ended(house, at, added["extract_run_id"])
    await house.post(f"{at}/files", one, 409)
    waiting = await house.post(f"{at}/files?extract=false", {"file_name": "more.md", "content": "z"}, 201)
    assert (waiting["extract_started"], waiting["extract_run_id"]) == (False, None), "more are to come"
    assert (await house.client.delete(f"{at}/files/{waiting['id']}")).status_code == 204
    new = {"file_name": "new.md", "content": "y"}
    await house.post(f"{at}/files/bulk", {"files": [new, one]}, 409)
    await house.post(f"{at}/files/bulk", {"files": [new, new]}, 400)
    await house.post(
        f"{at}/files/bulk", {"files": [new, {"file_name": "big.md", "content": "x" * (3 * 2**20 + 1)}]}, 400
    )
    assert [file["file_name"] for file in await house.get(f"{at}/files")] == ["caf\u00e9.md"]
    assert (await house.get(f"{at}/files/{added['id']}"))["content"] == "x"
    assert (await house.client.delete(f"{at}/files/{added['id']}")).status_code == 204
    await house.get(f"{at}/files/{added['id']}", 404)


async def test_terms_lists_and_synonyms(house: House) -> None:
    at = await made(house)
    first = await house.post(f"{at}/terms", {"term_text": "alpha", "category": "title"}, 201)
    await house.post(f"{at}/terms", {"term_text": "alpha"}, 409)
    await house.post(f"{at}/terms", {"term_text": "beta", "category": "animal"}, 422)
    noted = await house.client.patch(f"{at}/terms/{first['id']}", json={"user_notes": "kept", "category": None})
    assert (noted.json()["user_notes"], noted.json()["category"], noted.json()["term_text"]) == ("kept", None, "alpha")
    for kind in ("excluded", "required"):
        listed = await house.post(f"{at}/{kind}-terms", {"term_text": "gamma"}, 201)
        assert (listed["source"], await house.post(f"{at}/{kind}-terms", {"term_text": "gamma"}, 200)) == (
            "manual",
            listed,
        )
        assert (await house.get(f"{at}/{kind}-terms"))["total"] == 1
    await house.post(f"{at}/excluded-terms", {"term_text": "alpha"}, 201)
    (only,) = await house.get(f"{at}/terms")
    assert (only["term_text"], only["required"], only["id"] < 0) == ("gamma", True, True)
    patched = await house.client.patch(f"{at}/terms/{only['id']}", json={"user_notes": "now a term"})
    assert patched.json()["id"] > 0
    again = await house.client.patch(f"{at}/terms/{only['id']}", json={"user_notes": "whoever knows it as it was"})
    told = {**patched.json(), "user_notes": "whoever knows it as it was"}
    assert again.json() == await house.get(f"{at}/terms/{only['id']}") == told
    await house.post(f"{at}/synonym-groups", {"primary_term_text": "x", "member_texts": ["y"]}, 422)
    group = await house.post(f"{at}/synonym-groups", {"primary_term_text": "x", "member_texts": ["x", "y"]}, 201)
    await house.post(f"{at}/synonym-groups", {"primary_term_text": "z", "member_texts": ["z", "y"]}, 409)
    one = f"{at}/synonym-groups/{group['id']}"
    assert (await house.client.patch(one, json={"primary_term_text": "q"})).status_code == 400
    assert (await house.client.patch(one, json={"primary_term_text": "y"})).json()["primary_term_text"] == "y"
    grown = await house.post(f"{one}/members", {"term_text": "w"}, 201)
    members = {member["term_text"]: member["id"] for member in grown["members"]}
    assert (await house.client.delete(f"{one}/members/{members['w']}")).status_code == 204
    assert (await house.client.delete(f"{one}/members/{members['y']}")).status_code == 204
    assert (await house.get(f"{at}/synonym-groups")) == {"items": [], "total": 0}
    assert (await house.client.delete(f"{at}/terms/{first['id']}")).status_code == 204
    await house.get(f"{at}/terms/{first['id']}", 404)


async def test_runs_are_refused_cancelled_and_looked_at(house: House, model: Model) -> None:
    model.double.delay = 30
    at = await made(house, **model.settings)
    assert (await house.get(f"{at}/runs/current", 404))["detail"] == "No runs found"
    await house.post(f"{at}/runs", {"scope": "from_terms"}, 422)
    added = await house.post(f"{at}/files", {"file_name": "a.md", "content": TEXT}, 201)
    run = added["extract_run_id"]
    second = await house.post(f"{at}/files", {"file_name": "b.md", "content": TEXT}, 201)
    assert (second["extract_started"], second["extract_skipped_reason"]) == (False, f"Run already running: {run}")
    refused = await house.post(f"{at}/runs", {"scope": "extract"}, 409)
    assert refused["detail"] == f"Run already running: {run}"
    assert (await house.client.delete(at)).status_code == 409
    told = (await house.client.delete(f"{at}/runs/{run}")).json()
    assert told == {"message": f"Run {run} cancelled"}
    row = await house.get(f"{at}/runs/{run}")
    assert (row["status"], row["error_message"]) == ("cancelled", None)
    told = (await house.client.delete(f"{at}/runs/{run}")).json()
    assert told["message"] == f"Run {run} has ended already: cancelled"
    for path in ("runs/99", "runs/99/logs", "runs/99/partial"):
        await house.get(f"{at}/{path}", 404)
    assert (await house.client.delete(f"{at}/runs/99")).status_code == 404


async def test_an_entry_is_edited_and_defined_again(
    house: House, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_GLOSSARY_LLM_DEBUG", "1")
    at = await made(house, **model.settings)
    await house.post(f"{at}/files", {"file_name": "a.md", "content": TEXT}, 201)
    await ended(house, at, 1)
    run = await house.post(f"{at}/runs", {"scope": "generate"}, 201)
    await ended(house, at, run["id"])
    entry = (await house.get(f"{at}/provisional"))[0]
    one = f"{at}/provisional/{entry['id']}"
    changed = await house.client.patch(one, json={"definition": "mine", "confidence": 1})
    assert (changed.json()["definition"], changed.json()["confidence"]) == ("mine", 1.0)
    assert (entry["by_person"], changed.json()["by_person"]) == (False, True)
    for wrong in ({"confidence": 1.1}, {"definition": ""}, {"confidence": "much"}):
        assert (await house.client.patch(one, json=wrong)).status_code == 422
    assert (await house.post(f"{one}/regenerate"))["definition"] == f"{entry['term_name']} as it is"
    model.double.refusals = [(401, {})]
    await house.post(f"{one}/regenerate", code=503)
    await ended(house, at, (await house.post(f"{at}/runs", {"scope": "refine"}, 201))["id"])
    final = (await house.get(f"{at}/refined"))[0]
    one = f"{at}/refined/{final['id']}"
    changed = (await house.client.patch(one, json={"definition": "signed off"})).json()
    assert changed == {**final, "definition": "signed off", "by_person": True}
    assert (await house.get(f"{at}/provisional"))[0]["definition"] == "signed off", (
        "a term has one definition by people"
    )
    assert (await house.client.patch(one, json={"confidence": 2})).status_code == 422
    assert await house.get(f"{at}/issues", issue_type="unclear") == []
    await house.get(f"{at}/issues", 422, issue_type="ugly")
    for path in ("provisional/999", "issues/999", "refined/999"):
        await house.get(f"{at}/{path}", 404)
    folder = Path(str(settings.data_dir())) / "glossary/llm_debug/project-1"
    kept = [file for file in folder.rglob("*.json") if f"run-{run['id']}" in os.fspath(file)]
    assert len(kept) >= len(TERMS)
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}
    assert (await house.client.delete(at)).status_code == 204
    assert not folder.exists(), "what was asked and answered is gone with the project"


@pytest.mark.parametrize("house", [True], indirect=True)
async def test_tenants_see_nothing_of_each_other(house: House, tmp_path: Path) -> None:
    keyring = Keyring(house.runs.backend)
    keys = {name: (await keyring.create(name))[0] for name in ("red", "blue")}
    async with AsyncExitStack() as stack:
        red, blue = [
            House(house.runs, await stack.enter_async_context(
                httpx2.AsyncClient(base_url=house.url, headers={"X-API-Key": key}, timeout=20)
            ), house.app, house.server, house.url)
            for key in keys.values()
        ]  # fmt: skip
        assert (await house.client.get(API)).status_code == 401
        assert (await house.client.get("/api/ollama/models")).status_code == 401
        at = await made(red)
        assert await made(blue, "other") == at
        await red.post(f"{at}/files", {"file_name": "a.md", "content": TEXT}, 201)
        run = await ended(red, at, 1)
        assert run["status"] == "completed"
        assert await blue.get(f"{at}/terms") == await blue.get(f"{at}/files") == await blue.get(f"{at}/runs") == []
        assert len(await red.get(f"{at}/terms")) > 3
        await red.post(API, {"name": "x", "llm_provider": "ollama", "llm_base_url": "http://localhost:1"}, 422)
        # A run that somebody posts to the engine itself goes to the file of its own tenant.
        params = {"project_id": 1, "scope": "extract"}
        posted = await blue.post("/runs", {"flow_name": "glossary", "params": params})
        await blue.ended(posted["run_id"], "FAILED")
        assert len(await red.get(f"{at}/runs")) == 1
        assert len(await blue.get(f"{at}/runs")) == 1
    found = {str(file.relative_to(tmp_path / "files").parent) for file in tmp_path.rglob("project-1.db")}
    assert found == {"tenants/red/glossary", "tenants/blue/glossary"}


async def test_one_damaged_project_takes_no_other_one_down(house: House) -> None:
    for name in ("good", "overwritten", "missing", "no database"):
        at = await made(house, name)
        await house.post(f"{at}/files?extract=false", {"file_name": "a.md", "content": TEXT * 40}, 201)
    folder = Path(str(settings.data_dir())) / "glossary"
    with (folder / "project-2.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 40_000)
    (folder / "project-2.db-wal").unlink(missing_ok=True)
    for ending in ("", "-wal", "-shm"):
        (folder / f"project-3.db{ending}").unlink(missing_ok=True)
    (folder / "project-4.db").write_text("hello" * 1000)
    listed = {project["name"]: project for project in await house.get(API)}
    assert {name for name, project in listed.items() if project["damaged"]} == {"overwritten", "missing", "no database"}
    assert (listed["good"]["damaged"], listed["good"]["document_count"]) == (None, 1)
    assert "project-3.db is missing" in listed["missing"]["damaged"]
    assert await house.get(f"{API}/3") == listed["missing"]
    assert not (folder / "project-3.db").exists(), "an empty one would hide the loss"
    for number in (2, 3, 4):
        told = await house.get(f"{API}/{number}/files", 503)
        assert f"project-{number}.db" in told["detail"]
        await house.post(f"{API}/{number}/runs", {"scope": "extract"}, 503)
        await house.post(f"{API}/{number}/clone", {"new_name": "copy"}, 503)
        assert (await house.client.delete(f"{API}/{number}")).status_code == 204
    assert [project["name"] for project in await house.get(API)] == ["good"]
