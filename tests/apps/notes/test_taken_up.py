"""Who takes up a session: one at a time, with what it was made of, and whoever is refused has changed nothing."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study
from tests.apps.notes.exports import claude, zipped
from tests.apps.notes.test_commands import Prompt, prompt
from tests.apps.notes.test_in_the_way import state
from tests.apps.notes.test_sessions import asked, export
from tsuzuki import Runs
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.refusals import BadExport, InputChanged, SessionBusy
from tsuzuki.apps.notes.sessions import Session

__all__ = ["prompt"]
AT_ONCE = 4


async def until_asked(study: Study, count: int = 1) -> None:
    async with asyncio.timeout(60):
        while asked(study) < count:
            await study.moment()


@pytest.mark.parametrize("way", ["resume", "retry"])
async def test_who_is_refused_has_changed_neither_vault_nor_model(study: Study, tmp_path: Path, way: str) -> None:
    study.model.answer, well = (lambda _: "{}"), study.model.answer
    session, _ = await study.imported(export(tmp_path, 2))
    study.model.answer, study.model.hangs = well, lambda _: True
    started, before = await study.desk.resume(session), asked(study)
    await until_asked(study, before + 1)
    about = session.about
    go_on: Any = getattr(study.desk, way)
    with pytest.raises(SessionBusy):
        await go_on(session, vault=tmp_path / "other", address={"model": "dear"})
    assert session.about == about
    assert not (tmp_path / "other").exists()
    study.model.hangs = lambda _: False
    assert (await study.told(started))["success"] == 2
    assert len(study.notes()) == 2


async def test_of_many_who_go_on_at_once_one_does_and_the_others_are_told(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 6), limit=1)
    tries = await asyncio.gather(*(study.desk.resume(session) for _ in range(AT_ONCE)), return_exceptions=True)
    started = [each for each in tries if not isinstance(each, BaseException)]
    assert {type(each) for each in tries if isinstance(each, BaseException)} == {SessionBusy}
    for each in started:
        await study.told(each)
    assert asked(study) == 6


@pytest.mark.timeout(180)
def test_processes_that_go_on_at_once_with_stores_of_their_own_do_each_note_once(prompt: Prompt) -> None:
    export(prompt.folder, 300)
    prompt("import", "export", "--out", "vault", "--session-dir", "s", "--limit", "10")
    command = [sys.executable, "-m", "tsuzuki.cli", "notes", "resume", "--session-dir", "s", "-q", "--data-dir"]
    processes = [
        subprocess.Popen([*command, f"d{number}"], cwd=prompt.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in range(AT_ONCE)
    ]
    said = [each.communicate() for each in processes]
    codes = [each.returncode for each in processes]
    assert 0 in codes, said
    refused = [err.decode() for (_, err), code in zip(said, codes, strict=True) if code]
    assert all("is being worked on already" in text for text in refused), refused
    assert len(list((prompt.folder / "vault").glob("*.md"))) == 300
    assert json.loads((prompt.folder / "s/session.json").read_bytes())["session_id"]
    loaded = [json.loads(line) for line in (prompt.folder / "s/import/pipeline_stages.jsonl").read_text().splitlines()]
    assert sum(line["stage"] == "load" for line in loaded) == 300
    assert not list((prompt.folder / "s").rglob("*.part"))


async def test_who_only_looks_whether_somebody_works_on_it_stops_nobody(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 3), limit=1)
    with session.held():  # as somebody does for a moment who is refused, or asks for its status
        going_on = asyncio.create_task(study.desk.resume(session))
        await asyncio.sleep(0.05)
    started = await going_on
    looking = True

    async def look() -> None:
        while looking:
            await asyncio.to_thread(lambda: session.worked_on)
            await study.moment()

    looks = asyncio.create_task(look())
    assert (await study.told(started))["success"] == 2
    looking = False
    await looks


def test_an_export_that_was_written_over_is_not_taken_for_the_one_that_was_imported(prompt: Prompt) -> None:
    def made(name: str, *numbers: int, long: bool = False) -> Path:
        told = [claude(number) for number in numbers]
        if long:
            told[0]["chat_messages"][0]["text"] = "otters swim. " * 4000
        return zipped(prompt.folder / name, {"conversations.json": json.dumps(told)})

    made("export.zip", 1, 2, long=True)
    assert prompt("import", "export.zip", "--out", "vault", code=6).stdout == "1 success, 0 failed, 1 skipped\n"
    [session] = (prompt.folder / ".tsuzuki/notes").iterdir()
    before, old = state(session), (prompt.folder / "export.zip").read_bytes()
    with (prompt.folder / "export.zip").open("wb") as file:  # as `cp` does: the very same file has other bytes
        file.write(made("new.zip", 7, 8, 9).read_bytes())
    told = prompt("resume", "--chunk", code=1).stderr
    for words in ("上書きされたか", "is not what was imported", "put the old export back", "[ERR-TSUZUKI-0525]"):
        assert words in told
    assert {**state(session), "import/extract/input/export.zip": 0} == {**before, "import/extract/input/export.zip": 0}
    (session / "import/extract/output/complete.json").unlink()  # as if extract had been cut off
    assert "is not what was imported" in prompt("resume", code=1).stderr
    (session / "import/extract/input/export.zip").write_bytes(old)
    assert prompt("resume", "--chunk").stdout.startswith("4 success, 0 failed, 1 skipped")


async def test_an_export_that_is_written_over_while_it_is_read_is_not_taken_for_another(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "export.zip", {"conversations.json": json.dumps([claude(1), claude(2)])})
    other = zipped(tmp_path / "other.zip", {"conversations.json": json.dumps([claude(7)])}).read_bytes()

    def cut_off(*_: object) -> None:
        path.write_bytes(other)  # as `cp` does: the session is linked to it
        raise BadExport("half of the one, half of the other")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("tsuzuki.apps.notes.flows.extracted", cut_off)
        started = await study.desk.start(study.asked(path, offline=True))
        assert (await study.ended(started.run.id)).status == "FAILED"
    session = study.desk.sessions.find(started.session_id)
    assert "is not what was imported" in str((await study.desk.standing(session)).error)
    with pytest.raises(InputChanged):
        await study.desk.resume(session)


def test_a_command_goes_on_with_what_workers_have_handed_back_that_are_gone(prompt: Prompt) -> None:
    export(prompt.folder, 4)
    prompt("import", "export", "--out", "vault", "--limit", "1")

    async def left_to_workers() -> str:
        async with Runs.open(data_dir=".tsuzuki") as runs:
            desk = Desk(runs, runs.submit)
            return (await desk.resume(desk.sessions.latest())).run.id

    async def status_of(run_id: str) -> str:
        async with Runs.open(data_dir=".tsuzuki") as runs:
            return (await runs.get(run_id)).status.value

    run_id = asyncio.run(left_to_workers())
    assert prompt.json("status")["status"] == "PARTIAL", "nobody works on it, nor would anybody"
    assert prompt("resume").stdout == "3 success, 0 failed, 1 skipped\n"
    assert asyncio.run(status_of(run_id)) == "CANCELLED"


def test_a_session_that_another_store_works_on_is_in_progress(prompt: Prompt) -> None:
    export(prompt.folder, 3)
    prompt("import", "export", "--out", "vault", "--limit", "1", "--session-dir", "s")
    session = Session(prompt.folder / "s")
    session.change(**session.about)
    phase = json.loads((session.phase / "phase.json").read_bytes())
    (session.phase / "phase.json").write_text(json.dumps({**phase, "status": "IN_PROGRESS"}))
    elsewhere = ("status", "--session-dir", "s", "--data-dir", "other")
    assert prompt.json(*elsewhere)["status"] == "PARTIAL", "whoever worked on it was killed"
    with session.held():
        assert prompt.json(*elsewhere)["status"] == "IN_PROGRESS"


def test_a_session_without_its_folder_or_with_odd_options_says_what_is_wrong(prompt: Prompt) -> None:
    export(prompt.folder, 2)
    prompt("import", "export", "--out", "vault", "--limit", "1", "--session-dir", "s")
    about = json.loads((prompt.folder / "s/session.json").read_bytes())
    odds: list[dict[str, Any]] = [{"options": None}, {"runs": {}}, {"vault": 7}, {"provider": []}]
    for odd in odds:
        (prompt.folder / "s/session.json").write_text(json.dumps({**about, **odd}))
        for command in ("resume", "status", "retry"):
            told = prompt(command, "--session-dir", "s", code=1).stderr
            assert f"session.json is broken ({next(iter(odd))}: " in told
            assert "put it back from a copy" in told
    (prompt.folder / "s/session.json").write_text(json.dumps(about))
    shutil.rmtree(prompt.folder / "s/import")
    assert prompt("resume", "--session-dir", "s", code=1).stderr.startswith("[Error] No input files: ")
