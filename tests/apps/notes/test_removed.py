"""What people remove from a session, or change about it, and the uploads they leave behind: the work goes on."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.apps.notes.conftest import Study, knowledge
from tests.apps.notes.exports import chatgpt, said, written
from tests.apps.notes.test_commands import Prompt, at_model, prompt
from tests.apps.notes.test_in_the_way import state
from tests.apps.notes.test_sessions import EMPTY, asked, export
from tests.llm.double import Double
from tsuzuki.apps.notes import looking, uploads
from tsuzuki.apps.notes.outputs import entries_of
from tsuzuki.apps.notes.refusals import BadExport, TooManyUploads
from tsuzuki.apps.notes.times import CLOCK

__all__ = ["prompt"]


async def test_pieces_whose_output_was_removed_are_made_again_for_the_note_that_brings_them_together(
    study: Study, tmp_path: Path
) -> None:
    messages = [said("user" if n % 2 == 0 else "assistant", f"part {n} " + "word " * 60) for n in range(12)]
    path = written(tmp_path / "e" / "conversations.json", [chatgpt(1, *messages, title="Long"), chatgpt(2)])
    study.model.answer = lambda question: EMPTY if "part 11 " in question else knowledge(question)
    session, told = await study.imported(path, chunk=True, chunk_size=1000)
    parts = len(next(entry.parts for entry in entries_of(session.extracted) if entry.parts))
    assert told["failed"] == 2, "the last piece, and the whole"
    shutil.rmtree(session.transformed.parent.parent)
    study.model.answer, before = knowledge, asked(study)
    told = await study.resumed(session)
    assert (told["success"], told["failed"], told["status"]) == (2, 0, "COMPLETED")
    assert asked(study) - before == 1, "the journal still has the other pieces"
    assert len(study.notes()) == parts + 2, "no piece is written twice"


async def test_an_extract_that_was_removed_with_its_folder_is_made_again(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 3), limit=1, offline=True)
    shutil.rmtree(session.extracted)
    told = await study.resumed(session)
    assert (told["success"], told["skipped"], told["status"]) == (2, 1, "COMPLETED")


def test_a_vault_that_has_gone_is_asked_for_before_anything_is_changed(prompt: Prompt) -> None:
    export(prompt.folder, 3)
    told = prompt("import", "export", "--out", "vault", "--limit", "2").stderr
    assert f"PARTIAL, notes are in {prompt.folder}/vault" in told
    [session] = (prompt.folder / ".tsuzuki/notes").iterdir()
    (prompt.folder / "vault").rename(prompt.folder / "away")
    before = state(session)
    told = prompt("resume", code=1).stderr
    for words in (f"{prompt.folder}/vault", "元に戻すか", "put it back", "--out", "[ERR-TSUZUKI-0520]"):
        assert words in told
    assert state(session) == before
    assert not (prompt.folder / "vault").exists()
    (prompt.folder / "away").rename(prompt.folder / "vault")
    assert prompt("resume", "--limit", "1").stdout == "1 success, 0 failed, 2 skipped\n"
    again = prompt("resume")
    assert again.stdout == "0 success, 0 failed, 3 skipped\n"
    assert f"COMPLETED, nothing new was written into {prompt.folder}/vault" in again.stderr


def test_in_place_of_a_vault_that_has_gone_another_gets_the_rest(prompt: Prompt) -> None:
    export(prompt.folder, 3)
    prompt("import", "export", "--out", "vault", "--limit", "2")
    shutil.rmtree(prompt.folder / "vault")
    assert prompt("resume", "--out", "new/vault").stdout == "1 success, 0 failed, 2 skipped\n"
    assert len(list((prompt.folder / "new/vault").glob("*.md"))) == 1
    assert not (prompt.folder / "vault").exists()


def test_an_empty_folder_in_the_place_of_the_vault_is_a_drive_that_is_gone(prompt: Prompt) -> None:
    export(prompt.folder, 3)
    prompt("import", "export", "--out", "vault", "--limit", "2")
    [session] = (prompt.folder / ".tsuzuki/notes").iterdir()
    (prompt.folder / "vault").rename(prompt.folder / "drive")
    (prompt.folder / "vault").mkdir()
    (prompt.folder / "vault/.DS_Store").touch()
    before = state(session)
    told = prompt("resume", code=1).stderr
    for words in (f"{prompt.folder}/vault", "が空です", "is its drive there?", "--out", "[ERR-TSUZUKI-0523]"):
        assert words in told
    assert state(session) == before
    assert prompt("resume", "--out", "vault", "--limit", "1").stdout == "1 success, 0 failed, 2 skipped\n"
    assert prompt("resume").stdout == "0 success, 0 failed, 3 skipped\n"


async def test_a_run_waits_for_a_drive_that_is_gone(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session, _ = await study.imported(export(tmp_path, 3), limit=2, offline=True)
    study.worker.stop()
    started = await study.desk.resume(session)
    study.vault.rename(tmp_path / "drive")
    study.vault.mkdir()
    await study.work()
    async with asyncio.timeout(30):
        while "its notes are gone" not in caplog.text:
            await study.moment()
    study.vault.rmdir()
    (tmp_path / "drive").rename(study.vault)
    assert (await study.told(started))["success"] == 1
    assert len(study.notes()) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"status": "SOMEHOW"}', '{"status": []}'])
def test_a_broken_phase_is_derived_again(prompt: Prompt, text: str) -> None:
    export(prompt.folder, 3)
    prompt("import", "export", "--out", "vault", "--limit", "2")
    [session] = (prompt.folder / ".tsuzuki/notes").iterdir()
    (session / "import/phase.json").write_text(text)
    shown = prompt.json("status")
    assert (shown["status"], shown["success_count"], shown["pending_count"]) == ("PARTIAL", 2, 1)
    assert prompt("resume").stdout == "1 success, 0 failed, 2 skipped\n"
    assert json.loads((session / "import/phase.json").read_bytes())["status"] == "COMPLETED"
    (session / "import/phase.json").write_text(text)
    assert prompt.json("status")["status"] == "COMPLETED"


def test_another_model_or_address_is_one_of_the_same_provider(prompt: Prompt, model: Double) -> None:
    export(prompt.folder, 3)
    told = prompt.json("import", "export", "--out", "vault", "--limit", "1", *at_model(model))
    assert not [name for name in told if name.startswith("_")], told
    prompt("resume", "--limit", "1", "--model", "m-2")
    assert sum(model.prompts.values()) == 2, "the model is asked, not the rules of offline notes"
    prompt("resume", "--base-url", f"{model.url}/v1/")
    assert sum(model.prompts.values()) == 3
    prompt("resume", "--llm", "offline")


async def test_what_is_no_utf_8_is_told_in_both_languages(study: Study, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "old.md").write_bytes("# 古いメモ".encode("shift_jis"))
    good, bad = '{"text": "良い"}\n'.encode(), '{"text": "壊れ"}\n'.encode("shift_jis")
    (tmp_path / "lines.jsonl").write_bytes(good + bad + b"{half\n")
    said_of = []
    for path in (tmp_path / "texts", tmp_path / "lines.jsonl"):
        session, _ = await study.imported(path, offline=True)
        said_of += [failed.error_message for failed in looking.failed_items(session)]
    assert len(said_of) == 3
    assert ["UTF-8 で保存して、取り込み直してください / " in text for text in said_of] == [True, True, False]
    assert "lines.jsonl:3 は JSON として読み取れません（JSON is malformed" in said_of[2]
    text = '[{"uuid": "a", "name": "日本"}]'
    (tmp_path / "conversations.json").write_bytes(text.encode("shift_jis"))
    with pytest.raises(BadExport, match=f"is no UTF-8 at character {text.index('日')}"):
        await study.imported(tmp_path / "conversations.json", offline=True)


def test_there_are_only_so_many_uploads_and_idle_ones_make_room(tmp_path: Path) -> None:
    kept = uploads.Uploads(tmp_path)
    first, *others = [kept.begin("export.zip") for _ in range(uploads.MOST)]
    with pytest.raises(TooManyUploads, match="アップロードが多すぎます。取り込むか、待ってください / "):
        kept.begin("export.zip")
    before = CLOCK.now() - uploads.IDLE - 60
    for path in (kept.file(first), kept.file(first).parent):
        os.utime(path, (before, before))
    kept.begin("export.zip")
    assert not (tmp_path / "uploads" / first).exists()
    assert all(kept.file(each) for each in others)
