"""What a session has cost: all that the engine says was spent, and nothing twice."""

from pathlib import Path

import pytest

from tests.apps.notes.conftest import Study, knowledge
from tests.apps.notes.test_sessions import EMPTY, export
from tsuzuki.apps.notes.sessions import Session


async def test_what_answers_cost_is_added_up(study: Study, tmp_path: Path) -> None:
    session, told = await study.imported(export(tmp_path, 3), model="gpt-4o-mini")
    assert told["cost"] > 0
    assert (await study.desk.standing(session)).cost == pytest.approx(told["cost"])


async def spent(study: Study, session: Session) -> float:
    """Adds up what the runs of a session have spent, as the engine has it."""
    rows = [await study.runs.get(run_id) for run_id in session.about["runs"]]
    return sum(spent.cost for row in rows for spent in row.spent)


def reluctant(prompt: str) -> str:
    """A model that cannot give JSON for one conversation, nothing at all for a second, and all for the others."""
    if "(1)" in prompt:
        return "no JSON today"
    return EMPTY if "(2)" in prompt else knowledge(prompt)


async def test_answers_that_came_to_nothing_are_a_part_of_the_cost(study: Study, tmp_path: Path) -> None:
    study.model.answer = reluctant
    session, told = await study.imported(export(tmp_path, 4), model="gpt-4o-mini", concurrency=1)
    assert told["failed"] >= 1
    assert told["cost"] == pytest.approx(await spent(study, session))
    study.model.answer = knowledge
    again = await study.resumed(session)
    assert again["cost"] > told["cost"]
    assert again["cost"] == pytest.approx(await spent(study, session))
    assert (await study.desk.standing(session)).cost == pytest.approx(again["cost"])
    session.stage_log.unlink()
    assert (await study.resumed(session))["cost"] == pytest.approx(await spent(study, session)), "nothing counts twice"


async def test_what_fails_twice_within_a_second_is_paid_for_twice(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.notes.stagelog.now", lambda: "2026-01-01T00:00:00+00:00")
    study.model.answer = lambda _: EMPTY
    session, told = await study.imported(export(tmp_path, 1), model="gpt-4o-mini")
    again = await study.resumed(session)
    assert again["failed"] == 1
    assert again["cost"] == pytest.approx(2 * told["cost"]) == pytest.approx(await spent(study, session))
    assert again["cost"] == round(again["cost"], 10)


async def test_the_cost_of_batches_has_what_was_answered_in_vain(study: Study, tmp_path: Path) -> None:
    study.model.answer = reluctant
    session, told = await study.imported(export(tmp_path, 3), model="gpt-4o-mini", strategy="batch")
    assert told["failed"] >= 1
    assert told["cost"] == pytest.approx(await spent(study, session))


async def test_where_no_price_is_known_no_cost_is_told(study: Study, tmp_path: Path) -> None:
    study.model.answer = reluctant
    session, told = await study.imported(export(tmp_path, 3), model="m-1")
    assert told["cost"] is (await study.desk.standing(session)).cost is None
