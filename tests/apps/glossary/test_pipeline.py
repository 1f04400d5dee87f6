"""Runs of every scope: what they ask, what they save, and what they leave alone."""

import functools
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.apps.glossary.conftest import TERMS, TEXT, Model, Study
from tsuzuki.apps.glossary.answers import GlossaryReview, GlossaryTermClasses
from tsuzuki.apps.glossary.exports import export
from tsuzuki.apps.glossary.glossaries import Entries
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.prompts import text_in, texts
from tsuzuki.apps.glossary.records import Category, Document, Entry, GlossaryIssue, IssueType, PipelineScope


async def test_extract_then_full_gives_a_reviewed_glossary(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    row = await study.run(project, "extract", triggered_by="auto")
    assert (row.status, row.triggered_by, row.current_step) == ("completed", "auto", "extract")
    assert {term.term_text for term in project.terms.list()} >= set(TERMS)
    row = await study.run(project, "full")
    assert (row.status, row.error_message, row.current_step) == ("completed", None, "refined")
    assert row.progress_current == row.progress_total == len(project.terms.list())
    provisional = {entry.term_name: entry for entry in project.provisional.list()}
    assert provisional["worker"].definition == "worker as it is"
    place = provisional["worker"].occurrences[0]
    assert (place.document_path, place.line_number) == ("0.md", 1)
    assert place.context.startswith("A worker is a thing")
    assert len(project.issues.list()) == len(provisional)
    assert {entry.definition for entry in project.refined.list()} == {f"{name} refined" for name in provisional}
    log = await study.log(project, row)
    told = [entry for entry in log if entry.get("step") == "provisional"]
    assert set(told[-1]) == {
        "run_id", "level", "message", "step", "progress_current", "progress_total", "current_term"
    }  # fmt: skip
    assert told[-1]["message"] == f"{told[-1]['current_term']}: 100%"
    assert [entry["step"] for entry in log if entry.get("progress_current") == 0] == [
        "provisional",
        "issues",
        "refined",
    ]
    assert log[-1] == {"run_id": row.id, "complete": True, "db_status": "completed"}


async def test_what_is_missing_is_said_in_these_words(study: Study) -> None:
    await study.work()
    empty = study.project(name="empty")
    for scope in ("extract", "full", "generate", "refine"):
        row = await study.run(empty, scope)
        assert (row.status, row.error_message) == ("failed", "Cannot execute pipeline without documents")
    project = study.project("Some text.")
    for scope, missing in {
        "full": "Cannot execute full pipeline without extracted terms",
        "generate": "Cannot execute generate without extracted terms",
        "review": "Cannot execute review without provisional glossary",
    }.items():
        row = await study.run(project, scope)
        assert (row.status, row.error_message) == ("failed", missing)
    row, why = await study.run(project, "refine"), "Cannot execute refine without provisional glossary"
    assert (row.status, row.error_message) == ("failed", why)
    log = await study.log(project, row)
    failure = next(entry for entry in log if entry.get("level") == "error")
    assert why in failure["message"]
    assert "RuntimeError" in failure["traceback"]
    assert str(study.folder) not in str(log)
    assert [scope.value for scope in PipelineScope] == ["full", "extract", "generate", "review", "refine"]
    for scope in ("from_terms", "provisional_to_refined"):
        with pytest.raises(ValueError, match="Unknown scope"):
            await study.desk.start(project.project.id, scope)


async def test_a_folder_is_read_where_nothing_is_stored(study: Study, tmp_path: Path) -> None:
    await study.work()
    folder = tmp_path / "docs"
    (folder / "one").mkdir(parents=True)
    (folder / "two").mkdir()
    for name in ("one", "two"):
        (folder / name / "README.md").write_text(f"The {name} journal is a journal.")
    (folder / "secret.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text("outside")
    made = study.desk.registry.add("cli", doc_root=str(folder))
    project = study.desk.project(made.id)
    row = await study.run(project, "extract")
    assert row.status == "completed"
    assert [each.file_name for each in project.documents.list()] == ["one/README.md", "two/README.md"]
    left_out = [entry["message"] for entry in await study.log(project, row) if entry.get("level") == "warning"]
    assert left_out == ["left out: secret.md: it leads outside the folder"]
    (folder / "one" / "README.md").write_text("changed")
    await study.run(project, "extract")
    assert "changed" not in {document.content for document in project.documents.each()}


async def test_extraction_keeps_notes_requirements_and_what_a_person_did(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    first = {"worker": "technical_term", "lease": "common_noun", "claim": "nonsense"}

    def classes(prompt: str) -> object:
        found = [{"term": name, "category": first.get(name, "title")} for name in texts(prompt, "term")]
        return f"Sure! ```json\n{{'terms': []}}\n``` or rather {[*found, *found]!r}".replace("'", '"').replace(
            '"terms": []', f'"terms": {[*found, {"term": "worker", "category": "title"}]!r}'.replace("'", '"')
        )

    model.answers["classify"] = classes
    project.terms.add("by hand", "title", "mine")
    project.terms.required.add("lease")
    project.terms.required.add("not in the text")
    await study.run(project, "extract")
    by_text = {term.term_text: term for term in project.terms.list()}
    assert by_text["worker"].category == "technical_term"
    assert "claim" not in by_text
    assert by_text["lease"].category in (None, "common_noun")
    assert {"by hand", "not in the text"} <= set(by_text)
    assert project.terms.excluded.list() == []
    project.terms.change(by_text["worker"].id, {"user_notes": "a note"})
    project.terms.change(by_text["backend"].id, {"user_notes": "not to be lost"})
    first |= {"journal": "common_noun", "backend": "nonsense", "replay": "nonsense"}
    project.terms.excluded.add("cursor")
    await study.run(project, "extract")
    again = {term.term_text: term for term in project.terms.list()}
    assert again["worker"].user_notes == "a note"
    assert again["by hand"].user_notes == "mine"
    assert again["backend"].user_notes == "not to be lost", "no longer found, but somebody has written about it"
    assert {"journal", "cursor", "replay"}.isdisjoint(again)
    assert study.desk.registry.counts(project.project.id).terms == len(again)
    assert {(each.term_text, each.source) for each in project.terms.excluded.list()} == {
        ("journal", "auto"),
        ("cursor", "manual"),
    }


async def test_synonyms_are_defined_once_with_notes_and_all_their_places(study: Study, model: Model) -> None:
    await study.work()
    project = study.project("量子計算機は装置である。\n量子コンピュータとも呼ぶ。\nQC is used.", model=model)
    for text in ("量子コンピュータ", "量子計算機", "QC"):
        project.terms.add(text)
    project.terms.change(project.terms.named("QC").id, {"user_notes": "short for it"})
    project.synonyms.add("量子コンピュータ", ["量子コンピュータ", "量子計算機", "QC"])
    await study.run(project, "generate")
    (entry,) = project.provisional.list()
    assert (entry.term_name, entry.aliases) == ("量子コンピュータ", ["量子計算機", "QC"])
    assert sorted(place.line_number for place in entry.occurrences) == [1, 2, 3]
    (prompt,) = model.double.prompts
    assert texts(prompt, "synonym") == ["量子計算機", "QC"]
    assert text_in(prompt, "user_notes") == "short for it"
    for term in project.terms.list():
        if term.term_text == "量子コンピュータ":
            project.terms.remove(term.id)
    await study.run(project, "generate")
    kept = {entry.term_name: entry.aliases for entry in project.provisional.list()}
    assert kept["量子コンピュータ"] == ["量子計算機", "QC"], (
        "a primary term that was not found stands in for its synonyms"
    )


async def test_faults_of_single_questions_stay_with_them(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    for term in TERMS:
        project.terms.add(term)
    define = model.answers["define"]
    model.answers["define"] = lambda prompt: "no" if text_in(prompt, "term") in ("lease", "") else define(prompt)
    model.answers["review"] = lambda prompt: {
        "issues": [
            {"term_name": "worker", "issue_type": "unclear", "description": "vague"},
            {"term_name": "worker", "issue_type": "ugly", "description": "unknown type"},
            {"term_name": "stranger", "issue_type": "unclear", "description": "unknown term"},
            {"term_name": "claim", "issue_type": "unnecessary", "description": "x", "should_exclude": True},
            {"term_name": "journal", "issue_type": "contradiction", "description": "y", "should_exclude": True},
        ]
    }
    project.terms.required.add("journal")
    row = await study.run(project, "full")
    assert row.status == "completed"
    assert model.asked_for("define") == len(TERMS) - 1 + 1 + 2, "three tries for the one without JSON"
    assert {issue.term_name: issue.issue_type for issue in project.issues.list()} == {
        "worker": "unclear",
        "claim": "unnecessary",
        "journal": "contradiction",
    }
    refined = {entry.term_name: entry.definition for entry in project.refined.list()}
    assert {"lease", "claim"}.isdisjoint(refined)
    assert (refined["worker"], refined["journal"], refined["cursor"]) == (
        "worker refined",
        "journal refined",
        "cursor as it is",
    )
    warnings = [entry["message"] for entry in await study.log(project, row) if entry.get("level") == "warning"]
    assert [text.split()[0] for text in warnings] == ["lease", "用語"]
    assert warnings[-1] == row.error_message


async def test_batches_of_a_review_are_of_ten_and_a_failing_one_is_skipped(study: Study, model: Model) -> None:
    await study.work()
    project = study.project("text", model=model)
    project.provisional.become(Entry(f"term {number}", "a definition", 0.5) for number in range(25))
    review = model.answers["review"]
    model.answers["review"] = lambda prompt: (
        review(prompt) if "<entry>" in prompt and "<term>term 10<" not in prompt else "broken"
    )
    row = await study.run(project, "review")
    assert row.status == "completed"
    assert len(project.issues.list()) == 15
    log = await study.log(project, row)
    counts = [(e["progress_current"], e["progress_total"]) for e in log if e.get("step") == "issues"]
    assert counts == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert any("a batch of the review is skipped" in entry.get("message", "") for entry in log)


async def test_without_issues_the_provisional_glossary_is_the_refined_one(study: Study, model: Model) -> None:
    await study.work()
    project = study.project("text", model=model)
    project.provisional.become([Entry("a", "first", 0.5), Entry("b", "second", 0.6)])
    project.issues.become([GlossaryIssue("a", "unclear", "old")])
    model.answers["review"] = lambda prompt: {"issues": []}
    await study.run(project, "review")
    assert project.issues.list() == []
    await study.run(project, "refine")
    assert [(e.term_name, e.definition) for e in project.refined.list()] == [("a", "first"), ("b", "second")]
    assert model.asked_for("refine") == 0
    project.terms.excluded.add("a")
    await study.run(project, "refine")
    assert [entry.term_name for entry in project.refined.list()] == ["b"], "what is excluded counts here too"


async def test_a_definition_that_a_person_changed_stays_theirs(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    for term in ("worker", "journal", "claim"):
        project.terms.add(term)
    await study.run(project, "generate")
    entries = {entry.term_name: entry.id for entry in project.provisional.list()}
    project.provisional.change(entries["journal"], "mine", 1.0)
    asked = model.asked_for("define")
    model.answers["define"] = lambda prompt: _answers_while_it_is_changed(project, "claim")
    project.documents.add([Document("more.md", "Each worker and each journal: another place.")])
    await study.run(project, "generate")
    found = {entry.term_name: entry for entry in project.provisional.list()}
    assert list(found) == ["worker", "journal", "claim"]
    assert {name: entry.definition for name, entry in found.items()} == {
        "worker": "new",
        "journal": "mine",
        "claim": "changed while it was asked for",
    }
    assert [name for name, entry in found.items() if entry.by_person] == ["journal", "claim"]
    assert any(place.document_path == "more.md" for place in found["journal"].occurrences), "all else of it is new"
    assert model.asked_for("define") == asked + 2
    await study.desk.regenerate(project.project.id, found["journal"].id)
    journal = project.provisional.get(found["journal"].id)
    assert (journal.definition, journal.by_person) == ("new", False)


def _answers_while_it_is_changed(project: ProjectFile, term: str) -> dict[str, Any]:
    (number,) = [entry.id for entry in project.provisional.list() if entry.term_name == term]
    project.provisional.change(number, "changed while it was asked for", 1.0)
    return {"definition": "new", "confidence": 0.5}


async def test_settings_count_from_the_next_run_on(study: Study, model: Model) -> None:
    project = study.project(TEXT, model=model)
    project.terms.add("worker")
    row = await study.desk.start(project.project.id, "generate")
    study.desk.change_project(project.project.id, {"llm_provider": "offline", "llm_base_url": ""})
    await study.work()
    await study.ended(project, row)
    assert model.asked == 1
    await study.run(project, "generate")
    assert model.asked == 1


async def test_an_answer_is_matched_in_any_case_width_and_spacing(study: Study, model: Model) -> None:
    await study.work()
    project = study.project("A group head is a part. The group head is hot. An API is a door. Each API has a key.")
    study.desk.change_project(project.project.id, model.settings)
    project = study.desk.project(project.project.id)
    spelled = {"group head": "Group  Head", "API": "ａｐｉ"}
    model.answers["classify"] = lambda prompt: {
        "terms": [
            {"term": spelled.get(term, term), "category": "Technical Term"}
            for term in texts(prompt, "term")
            if term in spelled
        ]
    }
    row = await study.run(project, "extract")
    assert (row.status, row.error_message) == ("completed", None)
    found = {term.term_text: term.category for term in project.terms.list()}
    assert found == {"group head": "technical_term", "API": "technical_term"}


async def test_an_extraction_that_recognises_nothing_fails_and_keeps_the_terms(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    await study.run(project, "extract")
    before = project.terms.list()
    assert before
    good = model.answers["classify"]
    for useless in ([("worker", "General Terms")], [("something else", "title")], []):
        answer = {"terms": [{"term": term, "category": category} for term, category in useless]}
        model.answers["classify"] = functools.partial(lambda answer, prompt: answer, answer)
        row = await study.run(project, "extract")
        assert (row.status, project.terms.list()) == ("failed", before)
        assert "none of the candidates" in str(row.error_message)
    asked = model.asked_for("classify")
    model.answers["classify"] = good
    assert (await study.run(project, "extract")).status == "completed"
    assert model.asked_for("classify") > asked, "a useless answer is no answer: it is asked for again"


async def test_terms_of_a_batch_without_an_answer_stay(
    study: Study, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.glossary.extracting.BATCH", 3)
    await study.work()
    project = study.project(TEXT, model=model)
    await study.run(project, "extract")
    before = {term.term_text for term in project.terms.list()}
    good = model.answers["classify"]
    model.answers["classify"] = lambda prompt: "broken" if "worker" in texts(prompt, "term") else good(prompt)
    row = await study.run(project, "extract")
    assert row.status == "completed"
    assert {term.term_text for term in project.terms.list()} == before
    assert "3 candidates could not be classified" in str(row.error_message)


def test_the_schemas_name_the_words_that_are_known() -> None:
    assert _enum_in(GlossaryTermClasses, "TermClass", "category") == list(Category)
    assert _enum_in(GlossaryReview, "ReviewedIssue", "issue_type") == list(IssueType)


def _enum_in(schema: type[BaseModel], part: str, field: str) -> object:
    return schema.model_json_schema()["$defs"][part]["properties"][field].get("enum")


async def test_a_failed_question_keeps_the_former_entry_and_the_run_says_so(study: Study, model: Model) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    for term in TERMS:
        project.terms.add(term)
    await study.run(project, "full")
    assert not any(entry.kept for entry in project.refined.list())
    project.terms.add("new term")
    project.documents.add(
        [Document("more.md", f"Each {' and each '.join((*TERMS, 'new term'))}.")]
    )  # all is asked again
    define, refine = model.answers["define"], model.answers["refine"]
    model.answers["define"] = lambda prompt: (
        "no" if text_in(prompt, "term") in ("lease", "new term", "") else {**define(prompt), "definition": "newer"}
    )
    model.answers["refine"] = lambda prompt: (
        "no"
        if text_in(prompt, "term") in ("lease", "worker", "")
        else {**refine(prompt), "definition": "newer, refined"}
    )
    row = await study.run(project, "full")
    assert row.status == "completed"
    provisional = {entry.term_name: entry for entry in project.provisional.list()}
    assert (provisional["lease"].definition, provisional["lease"].kept) == ("lease as it is", True)
    assert (provisional["worker"].definition, provisional["worker"].kept) == ("newer", False)
    refined = {entry.term_name: entry for entry in project.refined.list()}
    assert set(refined) == set(TERMS)
    assert {name: (entry.definition, entry.kept) for name, entry in refined.items() if entry.kept} == {
        "lease": ("lease refined", True),
        "worker": ("worker refined", True),
    }
    assert refined["claim"].definition == "newer, refined"
    told = str(row.error_message)
    assert "2 terms could not be defined: 1 kept, 1 left out" in told
    assert "2 entries could not be refined" in told
    log = [entry for entry in await study.log(project, row) if entry.get("level") == "warning"]
    assert told in {entry["message"] for entry in log}


async def test_a_persons_definition_is_the_one_of_the_refined_glossary_and_its_exports(
    study: Study, model: Model
) -> None:
    await study.work()
    project = study.project(TEXT, model=model)
    await study.run(project, "extract")
    await study.run(project, "full")
    project.provisional.change(project.provisional.named()["worker"].id, "a person's, provisional", 1.0)
    project.refined.change(project.refined.named()["claim"].id, "a person's, refined", 1.0)
    theirs = {"worker": "a person's, provisional", "claim": "a person's, refined"}

    def persons(entries: Entries) -> dict[str, str]:
        return {entry.term_name: entry.definition for entry in entries.list() if entry.by_person}

    assert persons(project.provisional) == persons(project.refined) == theirs
    model.answers["classify"] = lambda prompt: {"terms": [{"term": "journal", "category": "technical_term"}]}
    model.answers["review"] = lambda prompt: {
        "issues": [
            {"term_name": term, "issue_type": "unclear", "description": "vague", "should_exclude": term == "worker"}
            for term in texts(prompt, "term")
        ]
    }
    project.documents.add([Document("more.md", "Each worker, each claim, each journal.")])
    await study.run(project, "extract")
    await study.run(project, "full")
    assert persons(project.provisional) == persons(project.refined) == theirs
    for kind in ("md", "csv", "json", "tbx"):
        text = export(kind, "title", project.refined.list())
        assert all(definition in text for definition in theirs.values()), kind
    asked = [prompt for prompt in model.double.prompts if model.step_of(prompt) == "refine"]
    assert not [prompt for prompt in asked if text_in(prompt, "definition") in theirs.values()], "nor asked about"
    await study.desk.regenerate(project.project.id, project.provisional.named()["worker"].id)
    assert persons(project.provisional) == persons(project.refined) == {"claim": "a person's, refined"}
