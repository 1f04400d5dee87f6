"""Summaries in another language: what is paid for is kept, whatever becomes of its translation."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, knowledge, lines
from tests.apps.notes.test_sessions import asked, export
from tests.apps.notes.test_writing import parsed
from tsuzuki.apps.notes import looking

TRANSLATE = "Translate into Japanese"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.llm.wire.LONGEST_PAUSE", 0.01)


def translating(answer: str) -> Any:
    """A model that does as it is told, except that it translates in one way."""
    return lambda prompt: answer if prompt.startswith(TRANSLATE) else knowledge(prompt)


def told_of(study: Study, word: str) -> int:
    return sum(count for prompt, count in study.model.prompts.items() if word in prompt)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (json.dumps({"summary": "I'm sorry, I cannot translate that."}), "refused"),
        (json.dumps({"summary": "申し訳ありませんが、お答えできません。"}), "refused"),
        (json.dumps({"summary": "Still in English."}), "not in Japanese"),
        (json.dumps({"summary": "简而言之就是这样的一个总结。"}), "not in Japanese"),
        (json.dumps({"summary": " — "}), "empty"),
        ("Still in English, and no JSON.", "not in Japanese"),
    ],
)
async def test_a_note_whose_summary_cannot_be_translated_is_kept_and_says_so(
    study: Study, tmp_path: Path, answer: str, why: str
) -> None:
    study.model.answer = translating(answer)
    session, told = await study.imported(export(tmp_path, 1), translate="ja")
    assert (told["success"], told["failed"]) == (1, 0)
    assert parsed(study.notes()["Otters 0.md"])[0]["summary"] == "In short."
    assert why in looking.traced(session, "Otters 0")["note"]["untranslated"]
    logged = [entry async for entry in study.runs.log(session.about["runs"][0])]
    assert any("is not translated to Japanese" in str(entry) for entry in logged)
    assert told_of(study, "Title: ") == 1


@pytest.mark.parametrize("again", [False, True])
async def test_a_note_is_not_paid_for_again_where_the_model_went_away_before_its_translation(
    study: Study, tmp_path: Path, again: bool
) -> None:
    def away(prompt: str) -> str:
        if not prompt.startswith(TRANSLATE):
            study.model.refusals = [(503, {})] * 3
        return knowledge(prompt)

    study.model.answer = away
    session, told = await study.imported(export(tmp_path, 1), translate="ja", model="gpt-4o-mini")
    assert (told["success"], told["failed"]) == (0, 1)
    assert [each["error_type"] for each in lines(session.error_log)] == ["Unreachable"]
    study.model.answer = translating(json.dumps({"summary": "要するに、こうです。"}))
    before = asked(study)
    if again:  # and once more
        study.model.refusals = [(503, {})] * 3
        assert (await study.resumed(session))["failed"] == 1
    done = await study.resumed(session)
    assert (done["success"], asked(study) - before, told_of(study, "Title: ")) == (1, 1, 1)
    found = parsed(study.notes()["Otters 0.md"])[0]
    assert (found["summary"], found["model"]) == ("要するに、こうです。", "gpt-4o-mini")
    spent = [await study.runs.get(run_id) for run_id in session.about["runs"]]
    assert done["cost"] == pytest.approx(sum(each.cost for row in spent for each in row.spent))


async def test_a_run_that_failed_before_translations_goes_on_with_them(study: Study, tmp_path: Path) -> None:
    def away(prompt: str) -> str:
        study.model.refusals = [(503, {})] * 1000
        return knowledge(prompt)

    study.model.answer = away
    study.model.hangs = lambda _: told_of(study, "Title: ") < 5
    started = await study.desk.start(study.asked(export(tmp_path, 5), translate="ja", concurrency=5))
    assert (await study.ended(started.run.id)).status == "FAILED"
    study.model.refusals, study.model.answer = [], translating(json.dumps({"summary": "要するに、こうです。"}))
    session = study.desk.sessions.find(started.session_id)
    told = await study.resumed(session)
    assert (told["success"], told["failed"]) == (5, 0)
    assert all(parsed(text)[0]["summary"] == "要するに、こうです。" for text in study.notes().values())
    assert told_of(study, "Title: ") == 5


async def test_who_wants_translations_without_a_model_is_told_once_that_there_are_none(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, told = await study.imported(export(tmp_path, 3), translate="ja", offline=True)
    assert told["success"] == 3
    said = [record.getMessage() for record in caplog.records if record.name == "tsuzuki.apps.notes"]
    assert len(said) == 1
    assert "要約は Japanese に翻訳されません" in said[0]


async def test_an_english_summary_with_one_japanese_word_is_translated(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda prompt: (
        json.dumps({"summary": "川獺は泳ぎます。"})
        if prompt.startswith(TRANSLATE)
        else knowledge(prompt).replace("In short.", "It is about the 川獺, which swims.")
    )
    await study.imported(export(tmp_path, 1), translate="ja")
    assert parsed(study.notes()["Otters 0.md"])[0]["summary"] == "川獺は泳ぎます。"
