"""`/api/notes/…` over a real gateway: what the pages need, and tenants apart."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import knowledge
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_sessions import failing
from tests.gateway.conftest import House, opened, served
from tests.llm.double import Double
from tsuzuki import settings
from tsuzuki.apps.notes import flows
from tsuzuki.apps.notes.sessions import Sessions
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring

API = "/api/notes"


@pytest.fixture
async def house(tmp_path: Path, model: Double, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A gateway with a worker; it asks for keys where the test says so."""
    folder = tmp_path / "files"
    options = Options(auth=getattr(request, "param", False))
    at = {"TSUZUKI_LLM_PROVIDER": "openai", "TSUZUKI_LLM_BASE_URL": f"{model.url}/v1"}
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder), **at):
        async with AsyncExitStack() as stack:
            runs = await stack.enter_async_context(opened(f"sqlite:{folder / 'store.db'}"))
            house = await stack.enter_async_context(served(runs, options))
            await house.work(flows.flows())
            yield house


def export(tmp_path: Path, count: int) -> str:
    return str(written(tmp_path / "export/conversations.json", [claude(number) for number in range(count)]).parent)


async def standing(house: House, session_id: str, status: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            told: dict[str, Any] = await house.get(f"{API}/sessions/{session_id}")
            if told["status"] == status and not told["active"]:
                return told
            await asyncio.sleep(0.02)


async def test_a_session_is_started_watched_resumed_and_looked_into(
    house: House, model: Double, tmp_path: Path
) -> None:
    model.answer = failing(1)
    body = {"export": export(tmp_path, 4), "vault": str(tmp_path / "vault"), "limit": 3}
    started = await house.post(f"{API}/sessions", body, 202)
    at = f"{API}/sessions/{started['session_id']}"
    told = await standing(house, started["session_id"], "PARTIAL")
    assert (told["success_count"], told["error_count"], told["pending_count"]) == (2, 1, 1)
    failed = await house.get(f"{at}/failed")
    assert [(each["item_id"], each["title"], each["stage"]) for each in failed] == [
        ("claude-0001", "Otters 1", "transform")
    ]
    assert "no summary" in failed[0]["error_message"]
    listed = await house.get(f"{at}/items", state="failed")
    assert (listed["total"], listed["items"][0]["state"], listed["items"][0]["stage"]) == (1, "failed", "transform")
    assert (await house.get(f"{at}/items", offset=1, limit=2))["total"] == 4
    model.answer = knowledge
    await house.post(f"{at}/retry", None, 202)
    told = await standing(house, started["session_id"], "PARTIAL")
    assert (told["success_count"], told["error_count"], told["pending_count"]) == (3, 0, 1)
    for way in ("resume", "retry"):
        await house.post(f"{at}/{way}", {"limit": 0}, 422)  # who says none does not mean all
    await house.post(f"{at}/resume", {"limit": None}, 202)
    await standing(house, started["session_id"], "COMPLETED")
    note = await house.get(f"{at}/note", item="claude-0003")
    assert note["text"].startswith("---\ntitle: Otters 3\n")
    trace = await house.get(f"{at}/trace", item="claude-0001")
    assert [record["status"] for record in trace["records"]] == ["success", "failed", "success", "success"]
    assert len(trace["errors"]) == 1
    assert [each["session_id"] for each in await house.get(f"{API}/sessions")] == [started["session_id"]]


async def test_items_are_chosen_by_the_reason_for_which_they_were_passed_over(house: House, tmp_path: Path) -> None:
    long, empty = [{"sender": "human", "text": "word " * 6000}], [{"sender": "human", "text": ""}]
    path = written(tmp_path / "export/conversations.json", [claude(1, *empty), claude(2, *long), claude(3)])
    started = await house.post(f"{API}/sessions", {"export": str(path), "vault": str(tmp_path / "vault")}, 202)
    await standing(house, started["session_id"], "COMPLETED")
    at = f"{API}/sessions/{started['session_id']}/items"
    assert (await house.get(f"{API}/limits"))["paths"] is True
    listed = await house.get(at, state="skipped", reason="too_large", limit=1)
    assert (listed["total"], [each["item_id"] for each in listed["items"]]) == (1, ["claude-0002"])
    assert (await house.get(at, state="skipped"))["total"] == 2


async def test_what_cannot_be_done_is_a_problem(house: House, model: Double, tmp_path: Path) -> None:
    for path, status in (("20200101_000000", 404), ("nonsense", 422), ("20200101_000000/failed", 404)):
        assert (await house.client.get(f"{API}/sessions/{path}")).status_code == status
    body = {"export": str(tmp_path / "gone.zip"), "vault": str(tmp_path)}
    answer = await house.client.post(f"{API}/sessions", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert "No input files" in answer.json()["detail"]
    assert (await house.client.post(f"{API}/sessions", json={"export": "here", "vault": "there"})).status_code == 422
    none = await house.client.post(f"{API}/sessions", json={"export": export(tmp_path, 1), "limit": 0})
    assert (none.status_code, await house.get(f"{API}/sessions")) == (422, [])
    misspelt = await house.client.post(f"{API}/sessions", json={"export": "/here", "chunck": True})
    assert (misspelt.status_code, "chunck" in misspelt.text) == (422, True), "no option is passed over in silence"
    model.delay = 20.0
    started = await house.post(f"{API}/sessions", {"export": export(tmp_path, 2), "vault": str(tmp_path)}, 202)
    at = f"{API}/sessions/{started['session_id']}"
    async with asyncio.timeout(60):
        while not model.prompts:
            await asyncio.sleep(0.01)
    assert (await house.client.post(f"{at}/resume")).status_code == 409
    assert (await house.client.get(f"{at}/note", params={"item": "gone"})).status_code == 404
    assert (await house.client.post(f"{at}/retry")).status_code == 400
    stands = (await house.client.post(f"{at}/cancel")).json()
    assert stands["status"] in ("PARTIAL", "IN_PROGRESS")
    await standing(house, started["session_id"], "PARTIAL")


@pytest.mark.parametrize("house", [True], indirect=True)
async def test_an_export_is_uploaded_in_pieces_and_its_notes_are_downloaded(house: House, tmp_path: Path) -> None:
    keyring = Keyring(house.runs.backend)
    red, blue = [{"X-API-Key": (await keyring.create(name))[0]} for name in ("red", "blue")]
    whole = json.dumps([claude(number) for number in range(3)]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("conversations.json", whole)
    sent = packed.getvalue()

    async def post(path: str, headers: dict[str, str] = red, **how: Any) -> Any:
        return await house.client.post(f"{API}/{path}", headers=headers, **how)

    assert (await house.client.get(f"{API}/limits", headers=red)).json()["paths"] is False
    for name in ("../x.zip", "a/b.zip", "..", "x" * 199 + "é"):
        assert (await post("uploads", json={"name": name})).status_code == 422
    at = f"uploads/{(await post('uploads', json={'name': 'export.zip'})).json()['upload_id']}"
    half = len(sent) // 2
    for offset, end, status in ((0, half, 200), (half + 1, len(sent), 409), (0, half, 200), (half, len(sent), 200)):
        piece = {"piece": ("piece", sent[offset:end])}
        assert (await post(at, params={"offset": offset}, files=piece)).status_code == status
    assert (await house.client.get(f"{API}/{at}", headers=red)).json()["received"] == len(sent)
    asked = {"upload": at.partition("/")[2], "llm": "offline"}
    assert (await post("sessions", blue, json=asked)).status_code == 404
    assert (await post("sessions", json={**asked, "vault": str(tmp_path)})).status_code == 422
    assert (await post("sessions", json={"llm": "offline"})).status_code == 422
    started = (await post("sessions", json=asked)).json()
    await house.runs.wait(started["run_id"])
    assert (await house.client.get(f"{API}/{at}", headers=red)).status_code == 404, "the session has it now"
    answer = await house.client.get(f"{API}/sessions/{started['session_id']}/notes.zip", headers=red)
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''export-notes.zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["Otters 0.md", "Otters 1.md", "Otters 2.md"]
    for route in ("", "/items", "/trace?item=claude-0001", "/note?item=claude-0001"):
        answer = await house.client.get(f"{API}/sessions/{started['session_id']}{route}", headers=red)
        assert answer.status_code == 200
        assert str(tmp_path) not in answer.text, "who has a key learns no folder of this machine"
    with settings.flagged(TSUZUKI_NOTES_MAX_UPLOAD_BYTES="10"):
        at = f"uploads/{(await post('uploads', json={'name': 'export.zip'})).json()['upload_id']}"
        assert (await post(at, files={"piece": ("piece", sent)})).status_code == 413
    for headers, status in ((blue, 404), (red, 204), (red, 404)):
        assert (await house.client.delete(f"{API}/{at}", headers=headers)).status_code == status


@pytest.mark.parametrize("house", [True], indirect=True)
async def test_tenants_have_sessions_of_their_own(house: House, tmp_path: Path) -> None:
    keyring = Keyring(house.runs.backend)
    red, blue = [{"X-API-Key": (await keyring.create(name))[0]} for name in ("red", "blue")]
    assert (await house.client.get(f"{API}/sessions")).status_code == 401
    body = {"export": export(tmp_path, 2), "vault": str(tmp_path / "vault")}
    refused = await house.client.post(f"{API}/sessions", json=body, headers=red)
    assert refused.status_code == 422, "a path reaches whatever the gateway can read"
    options = {"provider": "offline", "chunk": False, "chunk_size": 25_000}
    session = Sessions("red").create(tmp_path / "export", "claude", tmp_path / "vault", options)
    at = f"{API}/sessions/{session.session_id}"
    assert (await house.client.post(f"{at}/resume", headers=blue)).status_code == 404
    assert (await house.client.get(f"{API}/sessions", headers=blue)).json() == []
    run_id = (await house.client.post(f"{at}/resume", headers=red)).json()["run_id"]
    await house.runs.wait(run_id)
    assert (await house.client.get(at, headers=red)).json()["success_count"] == 2
    assert (await house.client.get(f"/runs/{run_id}", headers=blue)).status_code == 404


@pytest.mark.parametrize("named", ["{file}", "{file}/below", "{folder}/gone-link"])
async def test_a_vault_that_cannot_be_one_is_refused_at_once(house: House, tmp_path: Path, named: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "gone-link").symlink_to(tmp_path / "nowhere")
    vault = named.format(file=tmp_path / "file", folder=tmp_path)
    answer = await house.client.post(f"{API}/sessions", json={"export": export(tmp_path, 1), "vault": vault})
    assert (answer.status_code, "フォルダーではありません" in answer.text) == (422, True)
    assert await house.get(f"{API}/sessions") == []


async def test_a_pasted_path_has_no_quotes_and_no_blanks(house: House, tmp_path: Path) -> None:
    body = {"export": f' "{export(tmp_path, 1)}" ', "vault": f" '{tmp_path / 'my vault'}'\n"}
    started = await house.post(f"{API}/sessions", body, 202)
    stands = await standing(house, started["session_id"], "COMPLETED")
    assert stands["vault"] == str(tmp_path / "my vault")


@pytest.mark.parametrize("odd", [{"limit": True}, {"limit": "3"}, {"chunk": "yes"}, {"concurrency": "2"}])
async def test_what_is_no_number_is_taken_for_none(house: House, tmp_path: Path, odd: dict[str, Any]) -> None:
    answer = await house.client.post(f"{API}/sessions", json={"export": export(tmp_path, 1), **odd})
    assert answer.status_code == 422
    assert await house.get(f"{API}/sessions") == []


async def test_a_session_is_led_to_another_vault_and_model(house: House, model: Double, tmp_path: Path) -> None:
    model.answer = failing(1)
    body = {"export": export(tmp_path, 3), "vault": str(tmp_path / "one"), "limit": 2}
    started = await house.post(f"{API}/sessions", body, 202)
    at = f"{API}/sessions/{started['session_id']}"
    await standing(house, started["session_id"], "PARTIAL")
    model.answer = knowledge
    (tmp_path / "file").touch()
    for way in ("resume", "retry"):
        for odd in (
            {"vault": str(tmp_path / "file")},
            {"vault": "there"},
            {"llm": "nope"},
            {"llm": "offline", "model": "m"},
        ):
            answer = await house.client.post(
                f"{at}/{way}", json={**odd, "vault": odd.get("vault", str(tmp_path / "x"))}
            )
            assert answer.status_code == 422, (way, odd)
    assert (await house.get(at))["vault"] == str(tmp_path / "one"), "what is refused changes nothing"
    await house.post(f"{at}/retry", {"model": "m-2"}, 202)
    await standing(house, started["session_id"], "PARTIAL")
    assert model.seen[-1]["model"] == "m-2"
    await house.post(f"{at}/resume", {"vault": str(tmp_path / "two"), "llm": "offline"}, 202)
    stands = await standing(house, started["session_id"], "COMPLETED")
    assert (stands["vault"], [path.name for path in (tmp_path / "two").glob("*.md")]) == (
        str(tmp_path / "two"), ["Otters 2.md"],
    )  # fmt: skip
    assert len(model.seen) == 3


async def test_a_session_that_is_worked_on_is_led_nowhere(house: House, model: Double, tmp_path: Path) -> None:
    model.hangs = lambda _: True
    body = {"export": export(tmp_path, 1), "vault": str(tmp_path / "one")}
    started = await house.post(f"{API}/sessions", body, 202)
    at = f"{API}/sessions/{started['session_id']}"
    async with asyncio.timeout(60):
        while not model.at_once:
            await asyncio.sleep(0.01)
    answer = await house.client.post(f"{at}/resume", json={"vault": str(tmp_path / "two"), "llm": "offline"})
    assert (answer.status_code, (await house.get(at))["vault"]) == (409, str(tmp_path / "one"))
    assert not (tmp_path / "two").exists()
    model.hangs = lambda _: False
    await standing(house, started["session_id"], "COMPLETED")


async def test_items_are_looked_for_by_title_or_id(house: House, tmp_path: Path) -> None:
    said = [claude(1, name="Sea OTTERS"), claude(2, name="River otters"), claude(3, name="カワウソ")]
    path = written(tmp_path / "export/conversations.json", said)
    started = await house.post(f"{API}/sessions", {"export": str(path), "llm": "offline"}, 202)
    await standing(house, started["session_id"], "COMPLETED")
    at = f"{API}/sessions/{started['session_id']}"
    for q, count in (("otters", 2), ("ウソ", 1), ("claude-0003", 1), ("whales", 0), (" ", 3)):
        found = await house.get(f"{at}/items", q=q, state="success")
        assert (found["total"], len(found["items"])) == (count, count), q
    for way in ("trace", "note"):
        assert (await house.client.get(f"{at}/{way}", params={"item": ""})).status_code == 422
    answer = await house.client.get(f"{at}/notes.zip")
    assert answer.headers["content-disposition"].endswith("conversations-notes.zip")
