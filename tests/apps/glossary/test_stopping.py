"""Cancel in every step, late cancel, failures: what was there stays, what is finished is not asked for again."""

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.apps.glossary.conftest import LONGEST, TERMS, TEXT, Model, Study
from tsuzuki import Run, Status, Worker
from tsuzuki.apps.glossary import flows
from tsuzuki.apps.glossary.asking import PATIENCE, Asked
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.executor import ExecutionContext, PipelineExecutor
from tsuzuki.apps.glossary.generating import GlossaryGenerator, Subjects
from tsuzuki.apps.glossary.manager import RunManager
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.records import Entry, Glossary, GlossaryIssue, Term
from tsuzuki.apps.glossary.refining import GlossaryRefiner
from tsuzuki.apps.glossary.refusals import PipelineCancelledException, RunActive, sanitised
from tsuzuki.apps.glossary.reviewing import GlossaryReviewer
from tsuzuki.apps.glossary.runs_repository import RunRow

OLD = [Entry("old", "the last good one", 0.9)]


def prepared(study: Study, model: Model) -> ProjectFile:
    """A project with terms and a last good result of every kind."""
    project = study.project(TEXT, *(f"{term} again" for term in TERMS), model=model)
    for term in TERMS:
        project.terms.add(term)
    project.provisional.become(
        [Entry(f"{term}", f"{term} of old", 0.9) for term in (*TERMS, *(f"{t} 2" for t in TERMS))]
    )
    project.issues.become([GlossaryIssue(term, "unclear", "of old") for term in TERMS])
    project.refined.become(OLD)
    return project


class Gate:
    """Answers so many questions of a step; the model is silent about the next one."""

    def __init__(self, model: Model, step: str, at: int) -> None:
        self.reached = threading.Event()
        answer, seen = model.answers[step], [0]

        def held(prompt: str) -> Any:
            seen[0] += 1
            if seen[0] == at:
                model.double.delay = 90
                self.reached.set()
            return answer(prompt)

        model.answers[step] = held


STEPS = {"extract": "classify", "generate": "define", "review": "review", "refine": "refine"}


@pytest.mark.parametrize("scope", STEPS)
async def test_a_cancel_keeps_the_last_good_result_and_the_next_run_asks_only_for_the_rest(
    study: Study, model: Model, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.glossary.extracting.BATCH", 3)
    await study.work()
    project = prepared(study, model)
    before = (project.terms.list(), project.provisional.list(), project.issues.list(), project.refined.list())
    gate = Gate(model, STEPS[scope], 2)
    row = await study.desk.start(project.project.id, scope, review_batch_size=3)
    await study.until(gate.reached.is_set)
    await study.until(lambda: model.double.at_once == 1 and model.asked_for(STEPS[scope]) >= 3)
    await study.desk.cancel(project.project.id, row.id)
    async with asyncio.timeout(60):  # the model is still silent then
        cancelled = await study.ended(project, row)
    assert (cancelled.status, cancelled.error_message) == ("cancelled", None)
    assert cancelled.finished_at is not None
    assert before == (project.terms.list(), project.provisional.list(), project.issues.list(), project.refined.list())
    asked = dict(model.double.prompts)
    model.double.delay = 0
    done = await study.run(project, scope, review_batch_size=3)
    assert (done.status, done.id) == ("completed", row.id + 1)
    twice = [prompt for prompt in asked if model.double.prompts[prompt] > 1]
    assert len(twice) <= 1, "nothing is asked again but what was under way"
    if scope == "review":
        messages = [entry["message"] for entry in await study.log(project, cancelled) if "message" in entry]
        assert "Review cancelled" in messages


async def test_what_was_finished_is_kept_where_nothing_was_before(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    for term in TERMS:
        project.terms.add(term)
    gate = Gate(model, "define", 3)
    row = await study.desk.start(project.project.id, "full")
    await study.until(gate.reached.is_set)
    await study.desk.cancel(project.project.id, row.id)
    cancelled = await study.ended(project, row)
    assert cancelled.status == "cancelled"
    assert 1 <= (cancelled.progress_current or 0) < len(TERMS)
    kept = [entry.term_name for entry in project.provisional.list()]
    assert kept == list(TERMS[: len(kept)])
    assert len(kept) >= 2
    partial = await study.desk.partial(project.project.id, row.id)
    assert [each["term"] for each in partial] == kept
    assert not project.issues.list()
    assert not project.refined.list()
    assert await study.desk.cancel(project.project.id, row.id) == cancelled


async def test_a_worker_that_leaves_hands_its_run_on(study: Study, model: Model) -> None:
    project = prepared(study, model)
    gate = Gate(model, "define", 3)
    async with Worker(study.runs.backend, flows.flows(), grace=0.1) as first:
        working = asyncio.create_task(first.run())
        row = await study.desk.start(project.project.id, "generate")
        await study.until(gate.reached.is_set)
        await study.until(lambda: model.double.at_once == 1 and model.asked >= 4)
        first.stop()
        await working
    origin = project.run_origin(row.id)
    assert origin is not None
    assert (await study.runs.get(origin.engine_run)).status is Status.PENDING
    assert (await study.desk.run(project.project.id, row.id)).status == "running"
    model.double.delay = 0
    await study.work()
    assert (await study.ended(project, row)).status == "completed"
    assert sum(count - 1 for count in model.double.prompts.values()) <= 1
    assert [entry.definition for entry in project.provisional.list()] == [f"{term} as it is" for term in TERMS]


async def test_a_cancel_that_comes_too_late_changes_nothing(study: Study, model: Model) -> None:
    await study.work()
    project = prepared(study, model)
    row = await study.run(project, "full")
    assert row.status == "completed"
    assert await study.desk.cancel(project.project.id, row.id) == row
    origin = project.run_origin(row.id)
    assert origin is not None
    assert (await study.runs.get(origin.engine_run)).status is Status.COMPLETED
    assert project.refined.list() != OLD


async def test_a_run_that_fails_in_the_middle_leaves_the_last_good_glossary(study: Study, model: Model) -> None:
    await study.work()
    project = prepared(study, model)
    before = project.refined.list()
    with project.ledger.writing() as connection:
        connection.execute("CREATE TRIGGER broken BEFORE INSERT ON refined BEGIN SELECT RAISE(ABORT, '/a/b/c.db'); END")
    row = await study.run(project, "refine")
    assert (row.status, row.error_message) == ("failed", "<path>")
    assert project.refined.list() == before


async def test_a_model_that_answers_nothing_costs_nothing_that_was_there(study: Study, model: Model) -> None:
    await study.work()
    project = prepared(study, model)
    before = (project.terms.list(), project.provisional.list(), project.issues.list(), project.refined.list())
    model.double.refusals = [(401, {})] * 100
    for scope in STEPS:
        left = len(model.double.refusals)
        row = await study.run(project, scope)
        assert row.status == "failed", scope
        assert "the language model gave no answer that can be used: " in (row.error_message or "")
        assert left - len(model.double.refusals) <= PATIENCE + 1 < len(TERMS), "it does not go through all of them"
    assert before == (project.terms.list(), project.provisional.list(), project.issues.list(), project.refined.list())
    model.double.refusals.clear()
    assert (await study.run(project, "generate")).status == "completed"
    assert [entry.term_name for entry in project.provisional.list()] == list(TERMS)


async def test_starting_while_one_is_active_is_refused_by_its_number(study: Study, model: Model) -> None:
    project, other = prepared(study, model), study.project(TEXT, name="other")
    row = await study.desk.start(project.project.id, "full")
    with pytest.raises(RuntimeError, match=f"^Run already running: {row.id}$"):
        await study.desk.start(project.project.id, "extract")
    assert (await study.desk.start(other.project.id, "extract")).status == "pending"
    assert (await study.desk.cancel(project.project.id, row.id)).status == "cancelled"
    assert (await study.desk.start(project.project.id, "extract")).id == row.id + 1


async def test_a_run_that_its_process_left_behind_is_not_continued_by_one_of_another_scope(study: Study) -> None:
    project = study.project(TEXT)

    async def alone(flow: Any, params: dict[str, Any], **options: Any) -> Run:
        return await study.runs.submit(flow, params, private=True, **options)

    left = await Desk(study.runs, alone, folder=study.folder).start(project.project.id, "full")
    row: RunRow | None = None
    async with asyncio.timeout(LONGEST):
        while row is None:  # for a moment somebody may be about to claim it
            with contextlib.suppress(RunActive):
                row = await study.desk.start(project.project.id, "extract")
    origin = project.run_origin(row.id)
    assert origin is not None
    assert "Interrupted" in str((await study.desk.run(project.project.id, left.id)).error_message)
    assert (await study.runs.get(origin.engine_run)).continues is None


async def test_the_parts_of_the_pipeline_stop_when_they_are_told(study: Study, model: Model) -> None:
    project = prepared(study, model)
    stop = threading.Event()
    asked = Asked.of(project.origin("").address)
    subjects = Subjects([Term(0, name) for name in TERMS], [], {}, project.documents.each)

    def after_two(done: int, total: int, term: str = "") -> None:
        if done == 2:
            stop.set()
        raise LookupError("a callback that fails stops nothing")

    some = await GlossaryGenerator(asked).generate(subjects, stop, after_two)
    assert 2 <= some.term_count < len(TERMS)
    assert await GlossaryGenerator(asked).generate(subjects, stop) == Glossary()
    assert await GlossaryReviewer(asked).review(some, stop) is None
    assert await GlossaryRefiner(asked).refine(some, [], subjects, stop) is some
    model.answers["review"] = lambda prompt: {"issues": []}
    assert await GlossaryReviewer(asked).review(some) == []
    with pytest.raises(ValueError, match="review_batch_size"):
        GlossaryReviewer(asked, review_batch_size=0)
    with pytest.raises(ValueError, match="review_batch_size"):
        PipelineExecutor(review_batch_size=0)
    told: list[dict[str, Any]] = []
    context = ExecutionContext(7, told.append, stop)
    with pytest.raises(PipelineCancelledException):
        await PipelineExecutor(project.origin("").address).execute(project, "full", context)
    with pytest.raises(AttributeError):
        context.run_id = 8  # type: ignore[misc]
    with pytest.raises(ValueError, match="from_terms"):
        await PipelineExecutor(project.origin("").address).execute(project, "from_terms", context)


def test_errors_are_shown_without_what_nobody_should_see() -> None:
    text = sanitised("cannot open /srv/data/project-1.db\x00 of C:\\Users\\x\\y at https://host/a/b: " + "x" * 2000)
    assert text.startswith("cannot open <path> of <path> at https://host/a/b: xxx")
    assert len(text) == 1024


async def test_a_run_whose_process_has_ended_is_shown_as_interrupted_and_goes_on_when_started_again(
    study: Study, model: Model
) -> None:
    project = prepared(study, model)
    number = project.project.id

    async def alone(flow: Any, params: dict[str, Any], **options: Any) -> Run:
        return await study.runs.submit(flow, params, private=True, **options)

    left = await Desk(study.runs, alone, folder=study.folder).start(number, "full")
    async with asyncio.timeout(LONGEST):
        while (row := await study.desk.run(number, left.id)).active:
            await asyncio.sleep(0.01)
    assert row.status == "failed"
    assert "Interrupted: its process has ended" in str(row.error_message)
    assert (await study.log(project, row))[-1]["db_status"] == "failed", "the log of it ends"
    await study.work()
    again = await study.run(project, "full")
    assert (again.id, again.status) == (left.id + 1, "completed")


async def test_a_run_that_is_resumed_and_fails_again_says_so_in_its_row(study: Study, model: Model) -> None:
    await study.work()
    project = prepared(study, model)
    model.double.refusals = [(401, {})] * 100
    row = await study.run(project, "generate")
    assert row.status == "failed"
    origin = project.run_origin(row.id)
    assert origin is not None
    await study.runs.resume(origin.engine_run)
    async with asyncio.timeout(LONGEST):
        await study.runs.wait(origin.engine_run)
    assert project.run(row.id).status == "failed", "without anybody who looks"


async def test_a_finished_run_is_completed_though_its_row_cannot_be_written(study: Study, model: Model) -> None:
    project = prepared(study, model)
    with project.ledger.writing() as connection:
        connection.execute(
            "CREATE TRIGGER no_end BEFORE UPDATE OF status ON runs WHEN new.status = 'completed' "
            "BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    row = await study.desk.start(project.project.id, "full")
    origin = project.run_origin(row.id)
    assert origin is not None
    log = study.desk.logs(project.project.id, row.id)
    following = asyncio.ensure_future(anext(log))
    await study.work()
    async with asyncio.timeout(LONGEST):
        assert (await study.runs.wait(origin.engine_run)).status is Status.COMPLETED
        end = [await following, *[entry async for entry in log]][-1]
    assert end == {"run_id": row.id, "complete": True, "db_status": "completed", "status_update_failed": True}
    with project.ledger.writing() as connection:
        connection.execute("DROP TRIGGER no_end")
    assert (await study.desk.run(project.project.id, row.id)).status == "completed"


async def test_a_run_of_a_project_whose_file_is_lost_fails_with_the_reason(study: Study, model: Model) -> None:
    project = prepared(study, model)
    row = await study.desk.start(project.project.id, "full")
    origin = project.run_origin(row.id)
    assert origin is not None
    project.ledger.file.rename(study.folder / "elsewhere")
    project.ledger.file.write_text("no database" * 1000)
    await study.work()
    async with asyncio.timeout(LONGEST):
        ended = await study.runs.wait(origin.engine_run)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert "is damaged" in ended.error.message
    (study.folder / "elsewhere").rename(project.ledger.file)
    row = await study.desk.run(project.project.id, row.id)
    assert (row.status, "is damaged" in str(row.error_message)) == ("failed", True)


async def test_a_run_says_whom_it_asks_and_that_nobody_answers(
    study: Study, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.glossary.asking.SILENCE_S", 0.05)
    await study.work()
    project = prepared(study, model)
    model.double.delay = 90
    row = await study.desk.start(project.project.id, "generate")
    log = study.desk.logs(project.project.id, row.id)
    async with asyncio.timeout(LONGEST):
        lines = [await anext(log)]
        while "no answer from openai m-1 for" not in lines[-1]["message"]:
            lines.append(await anext(log))
    assert any("asking openai m-1, at most" in line["message"] for line in lines)
    assert lines[-1]["level"] == "warning"
    await study.desk.cancel(project.project.id, row.id)
    await log.aclose()


async def test_a_run_without_a_language_model_says_so(study: Study) -> None:
    await study.work()
    project = study.project(TEXT)
    row = await study.run(project, "extract")
    messages = [entry["message"] for entry in await study.log(project, row) if "message" in entry]
    assert any("no language model is set: offline rules answer" in message for message in messages)


async def test_a_run_manager_starts_and_cancels_the_runs_of_its_file(study: Study, tmp_path: Path) -> None:
    project = study.project(name="sample")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(TEXT)
    manager = RunManager(str(project.ledger.file), str(tmp_path / "docs"), llm_provider="offline")
    first = manager.start_run("extract", "manual")
    with pytest.raises(RuntimeError, match=f"^Run already running: {first}$"):
        manager.start_run("full")
    manager.cancel_run(99)
    manager.cancel_run(first)
    second = manager.start_run("extract")
    await study.work()
    await study.ended(project, project.run(second))
    rows = {row.id: (row.status, row.triggered_by) for row in project.runs()}
    assert rows == {first: ("cancelled", "manual"), second: ("completed", "api")}
    assert project.terms.list()
    manager.cancel_run(second)
    assert project.run(second).status == "completed"
    with pytest.raises(ValueError, match="not the file of a project"):
        RunManager(str(tmp_path / "other.db")).start_run("full")
