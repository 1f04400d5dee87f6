"""A session that is moved, or whose database is lost, while its batch is open: nothing is paid for twice."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.apps.notes.conftest import Study, lines
from tests.apps.notes.test_sessions import agreed, asked, export
from tests.llm.double import Double, Plan
from tests.llm.double_answers import Batch
from tsuzuki import Runs, settings
from tsuzuki.apps.notes.refusals import BatchOpen
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.cli import main

FOREVER = 10_000


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_SETTLE_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "2")
    monkeypatch.setattr("tsuzuki.apps.notes.stages.GROUP", 4)


@asynccontextmanager
async def elsewhere(study: Study, session: Session) -> AsyncIterator[tuple[Study, Session]]:
    """Another machine, which has nothing but a copy of the session's folder."""
    place = study.folder.parent / "elsewhere"
    shutil.copytree(session.folder, place / "moved")
    with settings.flagged(TSUZUKI_DATA_DIR=str(place / "files")):
        async with Runs.open(data_dir=str(place / "files")) as runs, AsyncExitStack() as stack:
            other = Study(runs, place / "files", study.model, stack)
            other.vault = study.vault
            await other.work()
            yield other, other.desk.sessions.adopt(place / "moved")


async def waiting(study: Study, conversations: Path, *, batches: int = 1, limit: int = 0) -> Session:
    """Imports until so many batches are there, the last one open; then nobody is at work any more."""
    started = await study.desk.start(study.asked(conversations, strategy="batch"), limit=limit)
    async with asyncio.timeout(60):
        while len(study.model.batches) < batches or not last(study.model).looked:
            await study.moment()
        study.worker.stop()
        while (await study.runs.get(started.run.id)).holder is not None:
            await study.moment()
    return study.desk.sessions.find(started.session_id)


def last(model: Double) -> Batch:
    return list(model.batches.values())[-1]


def sizes(model: Double) -> list[int]:
    return [len(batch.requests) for batch in model.batches.values()]


def billed_once(model: Double) -> bool:
    return set(model.billed.values()) == {1}


async def test_a_moved_session_collects_its_batch_and_creates_no_other(study: Study, tmp_path: Path) -> None:
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 4))
    events = [line["event"] for line in lines(session.batches_log)]
    assert events == ["asked", "intended", "created"]
    assert (await study.desk.standing(session)).owed_batches == list(study.model.batches)
    last(study.model).plan = Plan()
    async with elsewhere(study, session) as (there, moved):
        told = await there.resumed(moved)
        assert (told["success"], told["status"]) == (4, "COMPLETED")
        assert (await there.desk.standing(moved)).owed_batches == []
        agreed(there, moved)
    assert sizes(study.model) == [4]
    assert asked(study) == 0, "nobody was asked directly"


async def test_what_failed_before_is_not_mixed_with_what_a_batch_still_owes(study: Study, tmp_path: Path) -> None:
    study.model.plans = [Plan(refuse={0}), Plan(polls=FOREVER)]
    session = await waiting(study, export(tmp_path, 10), batches=2)
    last(study.model).plan = Plan()
    async with elsewhere(study, session) as (there, moved):
        told = await there.resumed(moved)
        assert (told["success"], told["failed"], told["skipped"]) == (7, 0, 3)
        agreed(there, moved)
    assert sizes(study.model) == [4, 4, 3], "the second was collected; the rest and what had failed came after it"
    assert billed_once(study.model)


async def test_a_batch_is_found_that_was_created_in_the_moment_of_a_crash(study: Study, tmp_path: Path) -> None:
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 3))
    kept = [line for line in lines(session.batches_log) if line["event"] != "created"]
    session.batches_log.write_text("".join(json.dumps(line) + "\n" for line in kept) + '{"half')
    last(study.model).plan = Plan()
    assert (await study.desk.standing(session)).owed_batches == ["unclear"]
    async with elsewhere(study, session) as (there, moved):
        assert (await there.resumed(moved))["success"] == 3
    assert sizes(study.model) == [3]


async def test_answers_that_were_collected_and_became_no_notes_are_collected_again(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr("tsuzuki.apps.notes.flows._written", cut_off)
        started = await study.desk.start(study.asked(export(tmp_path, 3), strategy="batch"))
        row = await study.ended(started.run.id)
    assert row.status == "FAILED"
    session = study.desk.sessions.find(started.session_id)
    async with elsewhere(study, session) as (there, moved):
        with pytest.raises(BatchOpen):
            await there.desk.resume(moved, limit=1)
        with pytest.raises(BatchOpen):
            await there.desk.resume(moved, address={"model": "another"})
        told = await there.resumed(moved)
        assert told["success"] == 3
        assert (await there.resumed(moved, address={"model": "another"}))["skipped"] == 3
    assert sizes(study.model) == [3]


async def cut_off(*_: object) -> None:
    raise RuntimeError("as if it had been killed here")


async def test_a_session_that_was_cancelled_and_moved_asks_only_for_what_its_batch_had_not_done(
    study: Study, tmp_path: Path
) -> None:
    study.model.plan = Plan(polls=FOREVER)
    started = await study.desk.start(study.asked(export(tmp_path, 4), strategy="batch"))
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(60):
        while not study.model.batches or not last(study.model).looked:
            await study.moment()
        await study.desk.cancel(session)
        while not last(study.model).cancelled:
            await study.moment()
    study.model.plan = Plan()
    async with elsewhere(study, session) as (there, moved):
        told = await there.resumed(moved)
        assert (told["success"], told["failed"]) == (4, 0)
    assert sizes(study.model) == [4, 2], "the half that the first had answered is not asked for again"


async def test_cleaning_names_the_batches_that_nobody_has_collected(study: Study, tmp_path: Path) -> None:
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 3))
    async with elsewhere(study, session) as (there, moved):
        clean = ["notes", "clean", "--days", "0", "--dry-run", "--data-dir", str(there.folder)]
        told = await asyncio.to_thread(lambda: CliRunner().invoke(main, clean))
        [batch] = study.model.batches
        assert f"not collected yet: {batch} (`tsuzuki notes resume {moved.session_id}` does)" in told.stdout


async def test_a_wrong_key_there_fails_nothing_and_the_right_one_collects(study: Study, tmp_path: Path) -> None:
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 3))
    last(study.model).plan = Plan()
    async with elsewhere(study, session) as (there, moved):
        study.model.poll_refusals = [401]
        row = await there.ended((await there.desk.resume(moved)).run.id)
        assert row.status == "FAILED"
        assert row.error is not None
        assert "401" in row.error.said
        stands = await there.desk.standing(moved)
        assert (stands.status, stands.error_count, stands.pending_count) == ("CRASHED", 0, 3)
        assert stands.owed_batches == list(study.model.batches)
        assert str(stands.error).startswith("openai at "), "what was said, and not which step heard it"
        assert (await there.resumed(moved))["success"] == 3
    assert sizes(study.model) == [3]


async def test_the_journal_alone_finds_the_batch_where_the_file_is_lost(study: Study, tmp_path: Path) -> None:
    study.model.plans = [Plan(refuse={0}), Plan(polls=FOREVER)]
    session = await waiting(study, export(tmp_path, 8), batches=2)
    session.batches_log.unlink()
    last(study.model).plan = Plan()
    await study.work()
    [run] = session.about["runs"]
    assert (await study.ended(run)).status == "COMPLETED"
    told = await study.runs.result(run)
    assert (told["success"], told["failed"]) == (7, 1)
    assert [line["event"] for line in lines(session.batches_log)].count("settled") == 2
    assert sizes(study.model) == [4, 4]
    assert (await study.resumed(session))["success"] == 1
    assert billed_once(study.model)


async def test_a_batch_of_a_limited_import_is_collected_elsewhere_and_the_rest_asked_for(
    study: Study, tmp_path: Path
) -> None:
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 6), limit=3)
    study.model.plan = last(study.model).plan = Plan()
    async with elsewhere(study, session) as (there, moved):
        with pytest.raises(BatchOpen):
            await there.desk.resume(moved, limit=2)
        assert (await there.resumed(moved))["success"] == 6
    assert sizes(study.model) == [3, 3]


async def test_what_a_batch_did_not_answer_is_asked_about_when_the_run_is_resumed(study: Study, tmp_path: Path) -> None:
    study.model.plans = [Plan(refuse={0}), Plan(polls=FOREVER)]
    started = await study.desk.start(study.asked(export(tmp_path, 8), strategy="batch"))
    session = study.desk.sessions.find(started.session_id)
    async with asyncio.timeout(60):
        while len(study.model.batches) < 2 or not last(study.model).looked:
            await study.moment()
        await study.desk.cancel(session)
    told = await study.resumed(session)
    assert (told["success"], told["failed"], told["skipped"]) == (5, 0, 3), "also what had failed before the cancel"
    assert (asked(study), 1 in sizes(study.model)) == (0, True), "that one is in a batch of its own"
    agreed(study, session)
