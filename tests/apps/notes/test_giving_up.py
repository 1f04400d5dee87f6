"""When an import gives up, and what that costs: a model that stays away, too many failures, answers without JSON."""

from pathlib import Path

import pytest

from tests.apps.notes.conftest import Study, knowledge, records
from tests.apps.notes.test_sessions import asked, export, failing


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.apps.notes.knowledge.FIRST_WAIT", 0.01)
    monkeypatch.setattr("tsuzuki.llm.wire.LONGEST_PAUSE", 0.01)


@pytest.mark.parametrize(("status", "calls"), [(503, 5 * 3 * 5), (401, 5)])
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


async def test_a_share_of_failures_stops_an_import_only_where_that_was_asked_for(study: Study, tmp_path: Path) -> None:
    study.model.answer = failing(1, 2, 3)
    _, told = await study.imported(export(tmp_path, 6))
    assert (told["status"], told["failed"]) == ("PARTIAL", 3)
    _, told = await study.imported(export(tmp_path, 6), failure_threshold=50)
    assert told["status"] == "PARTIAL", "half is not more than half"
    started = await study.desk.start(study.asked(export(tmp_path, 6), failure_threshold=20, concurrency=1))
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


async def test_an_answer_without_a_word_is_no_note(study: Study, tmp_path: Path) -> None:
    study.model.answer = lambda _: "{{{{"
    session, told = await study.imported(export(tmp_path, 1))
    assert (told["failed"], study.notes()) == (1, {})
    assert "要約または本文が空です" in records(session, "transform")[0]["error_message"]
