"""Sessions from beginning to end: imported, cut off, resumed, moved, mended; and what is never done twice."""

import asyncio
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, knowledge, lines, records
from tests.apps.notes.exports import chatgpt, claude, nasty_chatgpt, nasty_claude, said, written
from tests.apps.notes.test_writing import parsed
from tsuzuki import Runs, Worker, settings
from tsuzuki.apps.notes import CompletedItemsCache, flows, looking
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.outputs import entries_of
from tsuzuki.apps.notes.refusals import NoInput, NothingFailed, SessionBusy, SessionNotFound
from tsuzuki.apps.notes.sessions import Session

EMPTY = json.dumps({"title": "T", "summary": " ", "content": "\n"})
"""An answer that fits the schema, and says nothing."""


def export(tmp_path: Path, count: int) -> Path:
    return written(tmp_path / "export" / "conversations.json", [claude(number) for number in range(count)])


def failing(*numbers: int) -> Any:
    """A model that gives no answer about some conversations."""

    def answer(prompt: str) -> str:
        return EMPTY if any(f"({number})" in prompt for number in numbers) else knowledge(prompt)

    return answer


def asked(study: Study) -> int:
    return sum(study.model.prompts.values())


def agreed(study: Study, session: Session) -> None:
    """Checks that the log and the session's other files tell the same."""
    done = {stage: CompletedItemsCache.from_jsonl(session.stage_log, stage).items for stage in ("transform", "load")}  # type: ignore[arg-type] # by its word
    assert done["load"] <= done["transform"]
    assert {line["item_id"] for line in lines(session.transformed)} >= done["transform"]
    for line in lines(session.loaded):
        assert (study.vault / line["path"]).exists()


async def journalled(study: Study, session: Session) -> dict[str, set[str]]:
    """Gives the items that the journals of a session have as done, by stage."""
    found: dict[str, set[str]] = {"transform": set(), "load": set()}
    for run_id in session.about["runs"]:
        async for item in study.runs.items(run_id):
            if item["kind"] == "ItemDone" and item["task"] in found:
                found[item["task"]].add(item["key"])
    return found


async def test_an_import_leaves_records_outputs_and_notes(study: Study, tmp_path: Path) -> None:
    session, told = await study.imported(export(tmp_path, 3))
    assert (told["success"], told["failed"], told["skipped"], told["total"], told["status"]) == (
        3,
        0,
        0,
        3,
        "COMPLETED",
    )
    assert asked(study) == 3
    assert [record["stage"] for record in records(session)].count("extract") == 3
    for stage, step in (("extract", "parse_conversation"), ("transform", "extract_knowledge"), ("load", "write_file")):
        found = records(session, stage)
        assert {record["step"] for record in found} == {step}
        assert {record["item_id"] for record in found} == {"claude-0000", "claude-0001", "claude-0002"}
        assert all(
            record["session_id"] == session.session_id and record["file_id"].startswith("sha256:") for record in found
        )
    front, _, _ = parsed(study.notes()["Otters 1.md"])
    assert (front["title"], front["item_id"], front["tags"]) == ("Otters 1", "claude-0001", ["a-b"])
    assert session.state()["status"] == "COMPLETED"
    assert {path.name for path in session.phase.iterdir()} >= {
        "phase.json", "pipeline_stages.jsonl", "error_details.jsonl", "steps.jsonl", "extract", "transform", "load",
    }  # fmt: skip
    done = await journalled(study, session)
    assert done["load"] == done["transform"] == {"claude-0000", "claude-0001", "claude-0002"}
    agreed(study, session)


async def test_a_resume_repeats_what_failed_and_asks_for_nothing_else(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(1, 3)
    session, told = await study.imported(export(tmp_path, 5))
    assert (told["success"], told["failed"], told["status"]) == (3, 2, "PARTIAL")
    errors = lines(session.error_log)
    assert {error["item_id"] for error in errors} == {"claude-0001", "claude-0003"}
    assert all("Traceback" in error["backtrace"] and error["stage"] == "transform" for error in errors)
    assert [each.item_id for each in looking.failed_items(session)] == ["claude-0001", "claude-0003"]
    assert not [record for record in records(session, "load") if record["item_id"] in ("claude-0001", "claude-0003")]
    study.model.answer, before = knowledge, asked(study)
    told = await study.resumed(session)
    assert (told["success"], told["failed"], told["skipped"]) == (2, 0, 3)
    assert asked(study) - before == 2
    size = session.stage_log.stat().st_size
    told = await study.resumed(session)
    assert (told["success"], told["failed"], told["skipped"], told["status"]) == (0, 0, 5, "COMPLETED")
    assert (asked(study) - before, session.stage_log.stat().st_size) == (2, size)
    assert (await study.desk.standing(session)).success_count == 5
    with pytest.raises(NothingFailed):
        await study.desk.retry(session)


async def test_when_everything_fails_the_phase_has_failed_and_all_are_tried_again(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(0, 1)
    session, told = await study.imported(export(tmp_path, 2))
    assert (told["status"], told["failed"]) == ("FAILED", 2)
    study.model.answer = failing(1)
    assert (await study.told(await study.desk.retry(session)))["success"] == 1
    stands = await study.desk.standing(session)
    assert (stands.status, stands.success_count, stands.error_count) == ("PARTIAL", 1, 1)


async def test_a_limit_counts_what_is_really_processed(study: Study, tmp_path: Path) -> None:
    session, told = await study.imported(export(tmp_path, 9), limit=4)
    assert (told["success"], told["status"], asked(study)) == (4, "PARTIAL", 4)
    told = await study.resumed(session, limit=3)
    assert (told["success"], told["skipped"], asked(study)) == (3, 4, 7)
    assert (await study.resumed(session))["success"] == 2
    assert len(study.notes()) == 9


async def test_what_always_fails_uses_up_no_limit(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(0, 1)
    session, told = await study.imported(export(tmp_path, 5), limit=2)
    assert told["failed"] == 2
    for success, failed in ((2, 0), (1, 1), (0, 2)):  # those never tried, in the order of the export, then the others
        told = await study.resumed(session, limit=2)
        assert (told["success"], told["failed"]) == (success, failed)
    study.model.answer = failing(0)
    assert (await study.resumed(session, limit=1, only="failed"))["success"] == 1, "that which failed less often"


async def test_what_was_transformed_is_loaded_without_a_question(study: Study, tmp_path: Path) -> None:
    (study.vault / "Otters 1.md").mkdir(parents=True)
    session, told = await study.imported(export(tmp_path, 3))
    assert told["success"] == 3, "a folder in the way is nobody's note: another name is found"
    log = [
        line for line in lines(session.stage_log) if not (line["stage"] == "load" and line["item_id"] == "claude-0001")
    ]
    session.stage_log.write_text("".join(json.dumps(line) + "\n" for line in log), encoding="utf-8")
    session.change(runs=[])  # as on another machine, where nobody knows its journal
    before, names = asked(study), set(study.notes())
    told = await study.resumed(session)
    assert (told["success"], told["skipped"]) == (1, 2)
    assert asked(study) == before
    assert set(study.notes()) == names, "its own file is written anew"
    assert [record["item_id"] for record in records(session)[len(log) :]] == ["claude-0001"]


async def test_a_moved_session_goes_on_on_another_machine_without_the_database(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(4, 5)
    session, _ = await study.imported(export(tmp_path, 6))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(session.folder, elsewhere / "session")
    shutil.rmtree(tmp_path / "export")
    study.model.answer, before = knowledge, asked(study)
    with settings.flagged(TSUZUKI_DATA_DIR=str(elsewhere / "files")):
        async with Runs.open(data_dir=str(elsewhere / "files")) as runs, Worker(runs.backend, flows.flows()) as worker:
            working = asyncio.create_task(worker.run())
            desk = Desk(runs, runs.submit, folder=elsewhere / "files")
            moved = desk.sessions.adopt(elsewhere / "session")
            moved.lead_to(elsewhere / "vault")
            started = await desk.resume(desk.sessions.find(moved.session_id))
            await runs.wait(started.run.id)
            told = await runs.result(started.run.id)
            worker.stop()
            await working
    assert (told["success"], told["failed"], told["skipped"]) == (2, 0, 4)
    assert asked(study) - before == 2
    assert len(list((elsewhere / "vault").glob("*.md"))) == 2


async def test_without_its_log_the_journals_are_enough(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(2)
    session, _ = await study.imported(export(tmp_path, 4), limit=3)
    before, log = asked(study), records(session)
    session.stage_log.unlink()
    session.transformed.unlink()
    session.loaded.unlink()
    study.model.answer = knowledge
    told = await study.resumed(session)
    assert (told["success"], told["skipped"], asked(study) - before) == (2, 2, 2)
    again = records(session)
    successes = [record for record in log if record["status"] == "success" and record["stage"] != "extract"]
    assert all(record in again for record in successes), "the very lines are there again"
    agreed(study, session)


async def test_without_its_log_it_is_still_known_what_the_export_has_unreadable(study: Study, tmp_path: Path) -> None:
    broken = {"uuid": "broken", "name": "Broken", "chat_messages": "no list"}
    path = written(tmp_path / "export" / "conversations.json", [claude(0), broken, {**claude(2), "chat_messages": []}])
    session, _ = await study.imported(path)
    before, log = await study.desk.standing(session), records(session, "extract")
    session.stage_log.unlink()
    told = await study.resumed(session)
    after = await study.desk.standing(session)
    assert (told["failed"], after.error_count, after.pending_count) == (1, 1, 0)
    assert (after.success_count, after.retryable_count) == (before.success_count, before.retryable_count)
    untimed = [
        [{**line, "timestamp": "", "timing_ms": 0} for line in each] for each in (log, records(session, "extract"))
    ]
    assert untimed[0] == untimed[1], "what extract did is in the log again"
    with pytest.raises(NothingFailed, match="cannot be read"):
        await study.desk.retry(session)
    await study.resumed(session)
    assert len(records(session, "extract")) == len(log), "no record comes twice"


async def test_the_engine_alone_can_resume_and_writes_the_log_that_was_lost(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(2)
    session, _ = await study.imported(export(tmp_path, 4))
    before, [run_id] = asked(study), session.about["runs"]
    session.stage_log.unlink()
    (session.extracted / "complete.json").unlink()
    study.model.answer = knowledge
    await study.runs.resume(run_id)
    await study.ended(run_id)
    assert asked(study) - before == 1
    told = await study.runs.result(run_id)
    assert (told["success"], told["failed"], told["status"]) == (4, 0, "COMPLETED")
    assert session.state()["status"] == "COMPLETED"
    assert {record["item_id"] for record in records(session, "load")} == {f"claude-000{number}" for number in range(4)}
    agreed(study, session)


async def test_half_an_extract_is_noticed_and_done_again(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 3), limit=1)
    ids = [record["item_id"] for record in records(session, "extract")]
    (session.extracted / "complete.json").unlink()
    items = (session.extracted / "items.jsonl").read_bytes()
    (session.extracted / "items.jsonl").write_bytes(items[: len(items) // 2])
    assert (await study.resumed(session))["success"] == 2
    assert (session.extracted / "items.jsonl").read_bytes() == items, "ids and items are stable"
    assert [record["item_id"] for record in records(session, "extract")] == ids, "no record comes twice"
    shutil.rmtree(session.extracted)
    session.extracted.mkdir()
    shutil.rmtree(session.phase / "extract/input")
    with pytest.raises(NoInput, match=r"\[Error\] No input files"):
        await study.desk.resume(session)


async def test_a_crash_is_told_and_the_next_resume_starts_normally(study: Study, tmp_path: Path) -> None:
    path = export(tmp_path, 3)
    whole = path.read_text()
    path.write_text(whole[:-40])
    started = await study.desk.start(study.asked(path, offline=True))
    assert (await study.ended(started.run.id)).status == "FAILED"
    session = study.desk.sessions.find(started.session_id)
    stands = await study.desk.standing(session)
    assert (stands.status, "ends in the middle" in str(stands.error)) == ("CRASHED", True)
    assert "ends in the middle" in session.state()["error"]
    session.input.write_text(whole)
    assert (await study.resumed(session))["success"] == 3
    assert (await study.desk.standing(session)).status == "COMPLETED"


async def test_two_resumes_at_once_are_refused(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 4), limit=1)
    free = threading.Event()

    def held(prompt: str) -> str:
        free.wait(60)
        return knowledge(prompt)

    study.model.answer = held
    both = await asyncio.gather(study.desk.resume(session), study.desk.resume(session), return_exceptions=True)
    refused = [each for each in both if isinstance(each, BaseException)]
    assert [type(each) for each in refused] == [SessionBusy]
    with pytest.raises(SessionBusy):
        await study.desk.resume(session)
    free.set()
    started = next(each for each in both if not isinstance(each, BaseException))
    assert (await study.told(started))["success"] == 3
    with session.held(), pytest.raises(SessionBusy):
        await study.desk.resume(session)


async def test_a_cancelled_session_goes_on_with_the_same_run(study: Study, tmp_path: Path) -> None:
    study.model.delay = 0.05
    started = await study.desk.start(study.asked(export(tmp_path, 30), concurrency=1))
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(60):
        while asked(study) < 3:
            await asyncio.sleep(0.01)
    stands = await study.desk.cancel(session)
    assert stands.status == "PARTIAL"
    study.model.delay, before = 0.0, asked(study)
    again = await study.desk.resume(session)
    assert (again.run.id, again.resumed) == (started.run.id, True)
    told = await study.told(again)
    assert (told["success"] + told["skipped"], told["skipped"]) == (30, stands.success_count), "done before is skipped"
    assert asked(study) <= 31, "at most what was in flight was asked twice"
    assert before >= 3


async def test_what_a_command_left_behind_is_gone_on_with_by_a_worker(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.abandoned.CLAIMING_WAIT", 0.0)

    async def privately(flow: Any, params: dict[str, Any]) -> Any:
        return await study.runs.submit(flow, params, private=True)

    command = Desk(study.runs, privately, folder=study.folder)
    left = await command.start(study.asked(export(tmp_path, 3), offline=True))  # and its process has ended
    again = await study.desk.resume(study.desk.sessions.find(left.session_id))
    assert again.run.id == left.run.id
    assert (await study.told(again))["success"] == 3


async def test_long_conversations_are_cut_and_merged_and_only_what_failed_is_repeated(
    study: Study, tmp_path: Path
) -> None:
    messages = [said("user" if n % 2 == 0 else "assistant", f"part {n} " + "word " * 60) for n in range(12)]
    path = written(tmp_path / "e" / "conversations.json", [chatgpt(1, *messages, title="Long"), chatgpt(2)])
    session, told = await study.imported(path, chunk_size=1000)
    assert (told["success"], told["skipped"]) == (1, 1)
    assert records(session, "extract")[0]["skipped_reason"] == "too_large"
    assert records(session, "extract")[0]["status"] == "skipped"
    study.model.answer = lambda prompt: EMPTY if "part 6 " in prompt and "part 7 " in prompt else knowledge(prompt)
    session, told = await study.imported(path, chunk=True, chunk_size=1000)
    extracted = {entry.item_id: entry for entry in entries_of(session.extracted)}
    parts = extracted["gpt-0001"].parts
    assert len(parts) > 3
    assert told["total"] == len(parts) + 2
    assert told["failed"] >= 2, "a chunk, and the parent that waits for it"
    chunk = next(record for record in records(session, "transform") if record["item_id"] == parts[0])
    assert (chunk["is_chunked"], chunk["parent_item_id"], chunk["chunk_index"]) == (True, "gpt-0001", 0)
    study.model.answer, before = knowledge, asked(study)
    done = await study.resumed(session)
    assert done["status"] == "COMPLETED"
    assert asked(study) - before == told["failed"] - 1, "merging asks nobody"
    front, body, _ = parsed(study.notes()["Long.md"])
    assert front["item_id"] == "gpt-0001"
    assert all(f"[[Long_{number:03d}]]" in body for number in range(1, len(parts) + 1))
    assert {f"Long_{number:03d}.md" for number in range(1, len(parts) + 1)} <= study.notes().keys()


@pytest.mark.parametrize("make", [nasty_chatgpt, nasty_claude])
async def test_nasty_exports_become_notes_that_every_reader_understands(
    study: Study, tmp_path: Path, make: Any
) -> None:
    conversations = make()
    session, told = await study.imported(
        written(tmp_path / "x" / "conversations.json", conversations), offline=True, chunk=True
    )
    assert told["success"] + told["failed"] + told["skipped"] == told["total"]
    notes = study.notes()
    assert len(notes) == told["success"]
    fronts = [parsed(text)[0] for text in notes.values()]
    assert len({front["item_id"] for front in fronts}) == len(notes)
    assert sum(front["title"] == "the same title" for front in fronts) in (300, 50)
    failed = looking.failed_items(session)
    assert {each.stage for each in failed} == {"extract"}
    assert len(failed) == (1 if make is nasty_chatgpt else 2)
    assert not list(tmp_path.glob("etc")), "no title leads out of the vault"
    agreed(study, session)


async def test_a_model_that_knows_no_json_is_asked_for_headings(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda prompt: (
        "# Title\nT\n# Summary\nS.\n# Content\nC." if "# Summary" in prompt else "no json"
    )
    _, told = await study.imported(export(tmp_path, 1))
    assert told["success"] == 1
    assert parsed(study.notes()["T.md"])[0]["summary"] == "S."


async def test_what_a_model_made_up_is_left_out(study: Study, tmp_path: Path) -> None:
    named = ["https://example.org/otters", "https://api.made-up.io/v2", "the sea", "A Book That Nobody Named"]
    note = {"title": "T", "summary": "They swim.", "content": "All that otters do, in rivers and in the sea."}
    answer = {**note, "tags": [f"tag{number}" for number in range(20)], "references": named}
    study.model.answer = lambda _: json.dumps(answer)
    await study.imported(export(tmp_path, 1), model="/srv/models/private/qwen-8b.gguf")
    [text] = study.notes().values()
    front, body, _ = parsed(text)
    assert (len(front["tags"]), front["model"]) == (10, "qwen-8b.gguf")
    assert body.endswith("- https://example.org/otters\n- the sea\n")
    study.model.answer = lambda _: json.dumps({**note, "summary": "1", "content": "1"})
    _, told = await study.imported(written(tmp_path / "other" / "conversations.json", [claude(7)]))
    assert (told["success"], told["failed"]) == (0, 1), "a digit is no note"


async def test_english_summaries_are_translated_when_that_is_asked_for(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda prompt: (
        json.dumps({"summary": "要するに。"}) if prompt.startswith("Translate into Japanese") else knowledge(prompt)
    )
    _, told = await study.imported(export(tmp_path, 1), translate="ja")
    assert told["success"] == 1
    assert parsed(study.notes()["Otters 0.md"])[0]["summary"] == "要するに。"


async def test_a_model_that_is_away_for_a_moment_is_asked_again(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.llm.wire.LONGEST_PAUSE", 0.01)
    study.model.refusals = [(503, {})] * 2
    session, told = await study.imported(export(tmp_path, 1))
    assert (told["success"], told["failed"]) == (1, 0)
    assert not lines(session.error_log)


async def test_sessions_made_in_one_second_are_two_and_an_unknown_one_is_told_of(study: Study, tmp_path: Path) -> None:
    first, _ = await study.imported(export(tmp_path, 1), offline=True)
    second, _ = await study.imported(export(tmp_path, 1), offline=True)
    assert first.session_id != second.session_id
    assert [each.session_id for each in study.desk.sessions.all()] == [second.session_id, first.session_id]
    with pytest.raises(SessionNotFound, match=r"\[Error\] Session not found: 20200101_000000"):
        study.desk.sessions.find("20200101_000000")
    assert len(study.notes()) == 1, "the same conversation imported twice is one note"


async def test_a_model_that_cannot_give_json_translates_too(study: Study, tmp_path: Path) -> None:
    def plain(prompt: str) -> str:
        if prompt.startswith("Translate into Japanese"):
            return "川獺について。"
        return "# Title\nOtters\n\n# Summary\nIn short.\n\n# Content\nAll of it."

    study.model.answer = plain
    _, told = await study.imported(export(tmp_path, 4), translate="ja", concurrency=1)
    assert (told["success"], told["failed"]) == (4, 0)
    assert all(parsed(text)[0]["summary"] == "川獺について。" for text in study.notes().values())
