"""Imports that are asked for twice: at the same moment, by a request that is sent again, or anew after a crash."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_commands import Prompt, prompt
from tests.apps.notes.test_routes import API, house, standing
from tests.apps.notes.test_routes import export as exported
from tests.apps.notes.test_sessions import asked, export
from tests.gateway.conftest import House
from tests.llm.double import Double
from tsuzuki import Run
from tsuzuki.apps.notes.beginning import Once
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.refusals import ImportedAlready, KeyReused

__all__ = ["house", "prompt"]
ONCE = Once("key-1", b"the request")


async def sent(house: House, key: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = await house.client.post(f"{API}/sessions", json=body, headers={"Idempotency-Key": key})
    return answer.status_code, answer.json()


async def test_a_request_that_is_sent_again_makes_no_other_session(house: House, model: Double, tmp_path: Path) -> None:
    body = {"export": exported(tmp_path, 3), "vault": str(tmp_path / "vault")}
    answers = await asyncio.gather(*(sent(house, "key-1", body) for _ in range(4)))
    [session_id] = {told["session_id"] for _, told in answers}
    assert {status for status, _ in answers} == {202}
    assert len({told["run_id"] for _, told in answers}) == 1
    await standing(house, session_id, "COMPLETED")
    assert (await sent(house, "key-1", body))[1]["session_id"] == session_id
    status, told = await sent(house, "key-1", {**body, "limit": 1})
    assert (status, told["error_id"]) == (422, "ERR-TSUZUKI-0524")
    assert session_id in told["detail"]
    assert sum(model.prompts.values()) == 3
    assert len(await house.get(f"{API}/sessions")) == 1
    assert (await sent(house, "key-2", body))[1]["session_id"] != session_id


async def test_a_request_is_answered_again_though_its_upload_is_kept_by_the_session(house: House) -> None:
    upload = (await house.post(f"{API}/uploads", {"name": "conversations.json"}, 201))["upload_id"]
    piece = json.dumps([claude(1)]).encode()
    await house.client.post(f"{API}/uploads/{upload}", files={"piece": ("p", piece)})
    answers = [await sent(house, "key-1", {"upload": upload}) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0][0] == 202


async def test_a_request_that_was_cut_off_before_its_run_began_begins_it_when_it_is_sent_again(
    study: Study, tmp_path: Path
) -> None:
    async def cut_off(*given: Any, **more: Any) -> Run:
        raise ConnectionResetError

    path = export(tmp_path, 2)
    with pytest.raises(ConnectionResetError):
        await Desk(study.runs, cut_off, folder=study.folder).start(study.asked(path), once=ONCE)
    started = await study.desk.start(study.asked(path), once=ONCE)
    assert (await study.told(started))["success"] == 2
    assert len(study.desk.sessions.all()) == 1
    with pytest.raises(KeyReused, match="has made session"):
        await study.desk.start(study.asked(path), once=Once("key-1", b"another"))
    study.desk.sessions.remove(study.desk.sessions.latest())
    assert await study.desk.started_before(ONCE) is None, "what was removed is made anew"


async def test_one_export_is_imported_into_one_vault_by_one_session_at_a_time(study: Study, tmp_path: Path) -> None:
    study.model.hangs = lambda _: True
    path = export(tmp_path, 3)
    tries = await asyncio.gather(*(study.desk.start(study.asked(path)) for _ in range(3)), return_exceptions=True)
    [started] = [each for each in tries if not isinstance(each, BaseException)]
    refused = [str(each) for each in tries if isinstance(each, ImportedAlready)]
    assert len(refused) == 2
    assert all(started.session_id in text and "取り込み中です" in text for text in refused)
    other = written(tmp_path / "other/conversations.json", [claude(number) for number in range(10, 14)])
    elsewhere = await study.desk.start(study.asked(other))
    study.model.hangs = lambda _: False
    for each in (started, elsewhere):
        assert (await study.told(each))["status"] == "COMPLETED"
    assert asked(study) == 7
    again = await study.desk.start(study.asked(path))
    assert again.unfinished == "", "the first has made all of its notes"
    await study.told(again)


def test_who_imports_anew_what_was_begun_is_told_how_to_go_on(prompt: Prompt) -> None:
    export(prompt.folder, 3)
    (prompt.folder / "export").rename(prompt.folder / "export (1)")  # whatever it is called
    first = prompt.json("import", "export (1)", "--out", "vault", "--limit", "1")["session_id"]
    (prompt.folder / "export (1)").rename(prompt.folder / "export")
    for quietly in ("-q", "--json"):
        told = prompt("import", "export", "--out", "vault", quietly, "--limit", "1").stderr
        assert f"tsuzuki notes resume {first}" in told
        first = prompt.json("status")["session_id"]
    assert "tsuzuki notes resume" not in prompt("import", "export", "--out", "elsewhere").stderr
