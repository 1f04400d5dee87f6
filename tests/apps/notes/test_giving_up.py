"""When an import gives up, and what that costs: a model that stays away, too many failures, answers without JSON."""

import asyncio
from pathlib import Path

import pytest

from tests.apps.notes.conftest import LONGEST, Study, knowledge, lines, records
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_sessions import asked, export, failing
from tsuzuki.apps.notes import looking
from tsuzuki.apps.notes.outputs import Entry, entries_of
from tsuzuki.clock import SystemClock


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.llm.wire.LONGEST_PAUSE", 0.01)


@pytest.mark.parametrize(("status", "calls"), [(503, 5 * 3), (401, 5)])
async def test_when_the_model_stays_away_the_rest_is_not_asked_about(
    study: Study, tmp_path: Path, status: int, calls: int
) -> None:
    study.model.refusals = [(status, {})] * 1000
    started = await study.desk.start(study.asked(export(tmp_path, 40), concurrency=2))
    row = await study.ended(started.run.id)
    session = study.desk.sessions.find(started.session_id)
    stands = await study.desk.standing(session)
    assert (row.status, stands.status) == ("FAILED", "CRASHED")
    assert "the model stays away: 5 conversations in a row" in str(stands.error)
    assert stands.error_count <= 7
    assert stands.pending_count >= 33
    assert 1000 - len(study.model.refusals) <= calls * 7 // 5
    study.model.refusals = []
    told = await study.resumed(session)
    assert (told["success"], told["failed"], told["status"]) == (40, 0, "COMPLETED")


async def test_a_model_that_gives_no_answer_is_asked_three_times_with_seconds_between(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Hurried(SystemClock):
        async def sleep(self, seconds: float) -> None:
            waited.append(seconds)

    monkeypatch.setattr("tsuzuki.llm.wire.SystemClock", Hurried)
    monkeypatch.setattr("tsuzuki.llm.wire.LONGEST_PAUSE", 60.0)
    study.model.refusals = [(503, {})] * 9
    session, told = await study.imported(export(tmp_path, 1))
    assert (told["failed"], 9 - len(study.model.refusals)) == (1, 3)
    assert [each["error_type"] for each in lines(session.error_log)] == ["Unreachable"]
    assert len(waited) == 2
    assert 2 <= waited[0] <= 4 <= waited[1] <= 8
    study.model.refusals, waited[:] = [(429, {"retry-after": "7"})] * 2, []
    assert (await study.resumed(session))["success"] == 1
    assert [7 <= seconds <= 7.7 for seconds in waited] == [True, True], "it waits as it is asked to"


async def test_a_timeout_is_told_as_one_with_the_setting_that_allows_more(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "0.2")
    monkeypatch.setattr("tsuzuki.apps.notes.knowledge.FIRST_WAIT", 0.01)
    study.model.hangs = lambda _: True
    session, told = await study.imported(export(tmp_path, 1))
    study.model.hangs = lambda _: False
    assert told["failed"] == 1
    [failed] = looking.failed_items(session)
    assert "the model took too long to answer: set TSUZUKI_LLM_TIMEOUT_SEC higher" in failed.error_message
    assert "時間内に応答しませんでした" in failed.error_message
    assert "cannot be reached" not in failed.error_message


async def test_a_question_that_is_never_answered_keeps_no_other_note_from_the_vault(
    study: Study, tmp_path: Path
) -> None:
    study.model.hangs = lambda prompt: "(0)" in prompt
    started = await study.desk.start(study.asked(export(tmp_path, 80), concurrency=2))
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(LONGEST):
        while (stands := await study.desk.standing(session)).pending_count != 1:  # a file is there before its line is
            await study.moment()
    assert (stands.status, len(study.notes())) == ("IN_PROGRESS", 79)
    study.model.hangs = lambda _: False
    told = await study.told(started)
    assert (told["success"], told["status"], asked(study)) == (80, "COMPLETED", 80)


async def test_a_conversation_of_pieces_is_merged_after_all_others(study: Study, tmp_path: Path) -> None:
    long = claude(0, *({"sender": "human", "text": "otter " * 300} for _ in range(4)))
    path = written(tmp_path / "export" / "conversations.json", [long, *(claude(number) for number in range(1, 8))])
    study.model.hangs = lambda prompt: "(7)" in prompt
    started = await study.desk.start(study.asked(path, concurrency=2, chunk=True, chunk_size=2000))
    session = study.desk.sessions.find(started.session_id)
    entries: list[Entry] = []
    async with asyncio.timeout(LONGEST):
        while not entries or len(study.notes()) < len(entries) - 2:
            await study.moment()
            entries = entries_of(session.extracted)
    assert [entry.item_id for entry in entries if entry.parts] == ["claude-0000"]
    assert "claude-0000" not in {record["item_id"] for record in records(session, "load")}
    study.model.hangs = lambda _: False
    await study.told(started)
    assert [record["item_id"] for record in records(session, "load")][-1] == "claude-0000"


async def test_a_share_of_failures_stops_an_import_only_where_that_was_asked_for(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(1, 2, 3)
    _, told = await study.imported(export(tmp_path, 6))
    assert (told["status"], told["failed"]) == ("PARTIAL", 3)
    _, told = await study.imported(export(tmp_path, 6), failure_threshold=50, again=True)
    assert told["status"] == "PARTIAL", "half is not more than half"
    started = await study.desk.start(study.asked(export(tmp_path, 6), failure_threshold=20, concurrency=1, again=True))
    await study.ended(started.run.id)
    session = study.desk.sessions.find(started.session_id)
    stands = await study.desk.standing(session)
    assert stands.status == session.state()["status"] == "CRASHED"
    assert "more than 20% have failed: 2 of 6" in str(stands.error)
    assert stands.pending_count >= 2
    study.model.answer = knowledge
    told = await study.resumed(session)
    assert (told["status"], told["success"] + told["skipped"]) == ("COMPLETED", 6)


async def test_a_model_without_json_is_soon_asked_for_headings_only(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda prompt: (
        "# Title\nT\n# Summary\nS.\n# Content\nC." if "# Summary" in prompt else "no json"
    )
    session, told = await study.imported(export(tmp_path, 12), concurrency=1)
    assert told["success"] == 12
    assert asked(study) == 2 * 4 + 10, "three tries and headings twice, then headings alone"
    assert len(records(session, "transform")) == 12


async def test_raw_json_is_no_note_and_is_asked_for_again(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda _: '{"points": ["They swim, and they eat fish and mussels."]}'
    session, told = await study.imported(export(tmp_path, 1))
    assert (told["failed"], study.notes()) == (1, {})
    assert "JSON that is no note" in records(session, "transform")[0]["error_message"]
    study.model.answer = lambda prompt: knowledge(prompt) if "# Summary" in prompt else "no json"
    assert (await study.resumed(session))["success"] == 1
    assert all("{" not in text for text in study.notes().values())


async def test_an_answer_without_a_word_is_no_note(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda _: "{{{{"
    session, told = await study.imported(export(tmp_path, 1))
    assert (told["failed"], study.notes()) == (1, {})
    assert "要約または本文が空です" in records(session, "transform")[0]["error_message"]
