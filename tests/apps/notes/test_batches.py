"""Notes made by the provider's batches: created once, whatever is killed, and asked again only for what failed."""

import asyncio
from pathlib import Path

import pytest

from tests.apps.notes.conftest import Study, knowledge
from tests.apps.notes.test_sessions import EMPTY, agreed, asked, export
from tests.llm.double import Plan
from tsuzuki.apps.notes.refusals import BatchOpen
from tsuzuki.errors import BadUsage


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_SETTLE_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "2")


async def test_batches_make_the_notes_and_only_what_failed_is_asked_again(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.notes.stages.GROUP", 3)
    study.model.plan = Plan(polls=2, refuse={1})
    study.model.answer = lambda prompt: EMPTY if "(2)" in prompt else knowledge(prompt)
    session, told = await study.imported(export(tmp_path, 5), strategy="batch")
    assert (told["success"], told["failed"], told["skipped"]) == (2, 3, 0), "one of each batch was refused, one empty"
    assert len(study.model.batches) == 2
    assert set(study.model.billed.values()) == {1}
    assert asked(study) == 0, "nobody was asked directly"
    study.model.plan, study.model.answer = Plan(), knowledge
    told = await study.resumed(session)
    assert (told["success"], told["failed"], told["skipped"], told["status"]) == (3, 0, 2, "COMPLETED")
    assert [len(batch.requests) for batch in study.model.batches.values()] == [3, 2, 3]
    agreed(study, session)


async def test_a_run_that_was_cut_off_collects_its_batch_and_creates_no_other(study: Study, tmp_path: Path) -> None:
    study.model.plan = Plan(polls=10_000)
    started = await study.desk.start(study.asked(export(tmp_path, 4), strategy="batch"))
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(60):
        while not study.model.batches or not next(iter(study.model.batches.values())).looked:
            await study.moment()
        study.worker.stop()
        while (await study.runs.get(started.run.id)).holder is not None:
            await study.moment()
    assert (await study.desk.standing(session)).active
    next(iter(study.model.batches.values())).plan = Plan()
    await study.work()
    assert (await study.told(started))["success"] == 4
    assert len(study.model.batches) == 1
    assert (await study.desk.standing(session)).status == "COMPLETED"


async def test_a_batch_is_collected_before_anything_else_is_asked_for(study: Study, tmp_path: Path) -> None:
    study.model.plan = Plan(polls=10_000)
    started = await study.desk.start(study.asked(export(tmp_path, 6), strategy="batch"), limit=4)
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(60):
        while not study.model.batches or not next(iter(study.model.batches.values())).looked:
            await study.moment()
    await study.desk.cancel(session)
    study.model.plan = Plan()
    with pytest.raises(BatchOpen):
        await study.desk.resume(session, limit=1)
    with pytest.raises(BatchOpen):
        await study.desk.resume(session, chunk=True)
    with pytest.raises(BatchOpen):
        await study.desk.resume(session, address={"model": "another"})
    assert session.options["model"] == "m-1"
    told = await study.resumed(session, address={"model": "m-1"})
    assert told["success"] == 4, "it goes on with what was asked for when the batch was created"
    sizes = [len(batch.requests) for batch in study.model.batches.values()]
    assert sizes == [4, 2], "the half that the batch had answered is not asked for again"
    assert (await study.resumed(session, address={"model": "another"}))["success"] == 2
    assert study.desk.sessions.find(session.session_id).options["model"] == "another"
    agreed(study, session)


async def test_a_session_that_is_cancelled_while_it_waits_has_its_batch_ended(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "30")
    study.model.plan = Plan(polls=10_000)
    started = await study.desk.start(study.asked(export(tmp_path, 2), strategy="batch"))
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(60):
        while not study.model.batches or (await study.runs.get(started.run.id)).holder is not None:
            await study.moment()
    await study.desk.cancel(session)
    [batch] = study.model.batches.values()
    assert batch.cancelled, "nobody holds the run: whoever cancels it asks for the end of its batch"


async def test_without_batches_one_is_told_or_asks_directly(study: Study, tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="has no batches"):
        await study.imported(export(tmp_path, 1), offline=True, strategy="batch")
    _, told = await study.imported(export(tmp_path, 2), offline=True, strategy="auto")
    assert told["success"] == 2
