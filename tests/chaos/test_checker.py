"""Each check of the chaos can fail: a sound store passes all of them, one that was tampered with does not."""

import copy
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import application_checks as apps
from tests.chaos import flows
from tests.chaos.applications import CONVERSATIONS, World
from tests.chaos.checks import CHECKS, Evidence, offences
from tests.chaos.reading import from_nats, from_sqlite
from tests.chaos.witness import lines
from tests.nats_server import NatsServer
from tsuzuki import Runs, Worker

Tamper = Callable[[Evidence], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two flows were run, with the store and the calls."""
    made = tmp_path_factory.mktemp("sound")
    (made / "once").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setenv("TSUZUKI_DATA_DIR", str(made / ".tsuzuki"))
        flows.maps.run(count=4)
        flows.keyed.run(site="a", count=2)
        flows.collecting.run(count=6)
    return made


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Gives a row as the gateway shows it."""
    counts = {name: row[name] for name in ("done", "failed", "skipped", "steps")}
    return {"status": row["status"], "attempt": row["attempt"], "counts": counts}


def evidence_of(folder: Path, file: Path) -> Evidence:
    stories = from_sqlite(file)
    found = Evidence(stories, calls=lines(folder / "calls.jsonl"))
    params: dict[str, dict[str, Any]] = {
        "maps": {"count": 4},
        "keyed": {"site": "a", "count": 2},
        "collecting": {"count": 6},
    }
    for number, story in enumerate(stories.values()):
        flow = story.row["flow"]
        told = {"flow": flow, "params": params[flow], "run_id": story.run_id, "refused": 0, "cancelled": False}
        story.row["tags"] = [f"t{number}"]
        found.submissions.append({"token": f"t{number}", **told})
        found.results[story.run_id] = flows.EXPECTED[flow](**params[flow])
        facts = [(position, fact["kind"]) for position, fact in story.facts]
        found.watched.append({"run_id": story.run_id, "facts": facts, "ended": True})
        found.listed[story.run_id] = found.rows[story.run_id] = shown(story.row)
        found.items[story.run_id] = [{"position": p} for p, kind in facts if kind.startswith(("Item", "StepDone"))]
        found.counts[story.row["status"]] = found.counts.get(story.row["status"], 0) + 1
    recorded = next(fact for story in stories.values() for fact in story.of("ItemDone"))
    recorded["result"]["answer"] = "answer (paid 1)"
    found.ledger = [{"number": 1, "prompt": "q", "how": "request", "at": 1.0}]
    return found


@pytest.fixture
def evidence(folder: Path) -> Evidence:
    return copy.deepcopy(evidence_of(folder, folder / ".tsuzuki/tsuzuki.db"))


def story_of(evidence: Evidence, flow: str) -> Any:
    return next(story for story in evidence.stories.values() if story.row["flow"] == flow)


def call_again(evidence: Evidence) -> None:
    last = next(each for each in reversed(evidence.calls) if each["what"] == "began" and each["task"] == "double")
    evidence.calls.append(last | {"call": "other", "at": evidence.calls[-1]["at"] + 1})


def hold_at_once(evidence: Evidence) -> None:
    first = next(each for each in evidence.calls if each["what"] == "began" and each["holds"])
    other = first | {"call": "other", "run": "another", "at": first["at"] + 1e-6}
    evidence.calls += [other, other | {"what": "returned", "at": first["at"] + 1}]


def pay(*lines: tuple[int, str, str]) -> Tamper:
    def tamper(evidence: Evidence) -> None:
        evidence.ledger += [{"number": n, "prompt": prompt, "how": how, "at": 1.0 + n} for n, prompt, how in lines]

    return tamper


def of_a_run(held: str, **values: Any) -> Tamper:
    """Changes what is told of one run."""

    def tamper(evidence: Evidence) -> None:
        told = next(iter(getattr(evidence, held).values()))
        (told.row if held == "stories" else told).update(values)

    return tamper


TAMPERED: dict[str, tuple[Tamper, str]] = {
    "a run is lost": (lambda e: e.stories.popitem(), "accepted_runs_have_ended"),
    "a run never ends": (of_a_run("stories", status="PENDING"), "accepted_runs_have_ended"),
    "a run fails": (of_a_run("stories", status="FAILED"), "accepted_runs_have_ended"),
    "a run ends cancelled": (of_a_run("stories", status="CANCELLED"), "accepted_runs_have_ended"),
    "a refused run runs": (lambda e: e.submissions[0].update(refused=503), "refused_runs_never_ran"),
    "a run is there twice": (
        lambda e: e.stories.update(more=copy.deepcopy(next(iter(e.stories.values())))),
        "refused_runs_never_ran",
    ),
    "an attempt falls": (
        lambda e: next(iter(e.stories.values())).facts[1][1].update(attempt=9),
        "journals_are_gapless",
    ),
    "a request is let in twice": (
        lambda e: next(iter(e.stories.values())).let_in.extend([7, 7]),
        "requests_are_let_in_once",
    ),
    "a call is made again": (call_again, "nothing_acknowledged_was_called_again"),
    "a value is made up": (lambda e: e.calls.clear(), "nothing_acknowledged_was_called_again"),
    "a result is another": (
        lambda e: e.results.update({story_of(e, "maps").run_id: 1}),
        "results_are_those_of_an_undisturbed_run",
    ),
    "a result is lost": (lambda e: e.results.clear(), "results_are_those_of_an_undisturbed_run"),
    "two runs hold a key": (hold_at_once, "keys_were_exclusive"),
    "an answer is paid for again": (pay((2, "q", "request")), "nothing_was_paid_for_twice"),
    "a question is in two batches": (pay((3, "b", "batch"), (4, "b", "batch")), "nothing_was_paid_for_twice"),
    "a watcher misses a fact": (lambda e: e.watched[0]["facts"].pop(1), "watchers_saw_the_journal"),
    "a watcher sees no end": (lambda e: e.watched[0].update(ended=False), "watchers_saw_the_journal"),
    "the list is old": (of_a_run("listed", status="RUNNING"), "lists_are_what_the_rows_are"),
    "who follows misses a run": (lambda e: e.rows.popitem(), "lists_are_what_the_rows_are"),
    "a count is wrong": (lambda e: e.counts.update(FAILED=1), "lists_are_what_the_rows_are"),
    "a process stays": (
        lambda e: e.events.append({"what": "does not end", "part": "w0", "at": 1.0}),
        "processes_end_when_told",
    ),
    "an item is not in the table": (
        lambda e: e.items[story_of(e, "maps").run_id].pop(),
        "items_are_what_the_journal_has",
    ),
}


def test_a_store_that_is_sound_offends_against_nothing(evidence: Evidence) -> None:
    assert {name: told for name, told in offences(evidence).items() if told} == {}
    assert evidence.figures["items recorded"] == 8 + 2 + 4


@pytest.mark.parametrize("what", TAMPERED)
def test_the_checks_find_it_when(evidence: Evidence, what: str) -> None:
    tamper, check = TAMPERED[what]
    tamper(evidence)
    assert offences(evidence)[check], what


def test_a_refused_run_may_be_there_only_where_it_was_taken_back(evidence: Evidence) -> None:
    evidence.submissions[0]["refused"] = 503
    story = evidence.stories[evidence.submissions[0]["run_id"]]
    story.row["status"] = "CANCELLED"
    story.facts = [(1, {"kind": "Submitted"}), (2, {"kind": "CancelAsked", "by": "submit"})]
    assert not offences(evidence)["refused_runs_never_ran"]
    story.facts.insert(1, (2, {"kind": "Claimed", "worker": "w"}))
    assert not offences(evidence)["refused_runs_never_ran"]
    assert evidence.figures["submissions taken back that had begun"] == 1
    story.row["status"] = "COMPLETED"
    assert offences(evidence)["refused_runs_never_ran"]
    story.row["status"] = "CANCELLED"
    evidence.submissions[0]["refused"] = 409
    assert offences(evidence)["refused_runs_never_ran"], "that one was clear"


def test_a_late_call_is_excused_only_where_its_claim_was_lost_in_somebody_who_was_away(evidence: Evidence) -> None:
    story = story_of(evidence, "maps")
    for _, fact in story.facts:
        fact["attempt"] = 2
    call_again(evidence)
    assert offences(evidence)["nothing_acknowledged_was_called_again"], "nobody was away"
    evidence.events.append({"what": "goes on", "at": evidence.calls[-1]["at"] - 0.5})
    assert not offences(evidence)["nothing_acknowledged_was_called_again"]


_COPY = (
    "INSERT INTO facts SELECT run, position + 1000, kind, step, key, {attempt}, body FROM facts WHERE kind = '{kind}'"
)
STATEMENTS: dict[str, tuple[str, str]] = {
    "a fact is lost": ("DELETE FROM facts WHERE position = 3", "journals_are_gapless"),
    "a fact is moved": ("UPDATE facts SET position = 1000 WHERE position = 3", "journals_are_gapless"),
    "the submission is lost": ("UPDATE facts SET kind = 'StepStarted' WHERE position = 1", "journals_are_gapless"),
    "a counter is wrong": ("UPDATE runs SET done = done + 1", "rows_are_what_the_journals_say"),
    "a status is wrong": ("UPDATE runs SET status = 'FAILED'", "rows_are_what_the_journals_say"),
    "a success is recorded twice": (
        _COPY.format(attempt="attempt + 1", kind="ItemDone"),
        "outcomes_are_recorded_once",
    ),
    "a run ends twice": (
        _COPY.format(attempt="attempt", kind="RunCompleted"),
        "outcomes_are_recorded_once",
    ),
}


@pytest.mark.parametrize("what", STATEMENTS)
def test_the_checks_find_it_in_the_file_when(folder: Path, tmp_path: Path, what: str) -> None:
    statement, check = STATEMENTS[what]
    file = Path(shutil.copy(folder / ".tsuzuki/tsuzuki.db", tmp_path / "tsuzuki.db"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()
    assert offences(Evidence(from_sqlite(file)))[check], what


def test_every_check_is_shown_to_fail() -> None:
    shown = {check for _, check in TAMPERED.values()} | {check for _, check in STATEMENTS.values()}
    assert shown == {check.__name__ for check in CHECKS}


async def test_a_journal_on_nats_is_read_as_it_lies_there(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "once").mkdir()
    monkeypatch.chdir(tmp_path)
    url = f"{nats_server.url}?prefix={nats_server.fresh()}"
    async with Runs.open(url) as runs, Worker(runs.backend, [flows.maps]) as worker:
        run = await runs.submit(flows.maps, {"count": 3})
        await worker.run_once(timeout=30)
        assert (await runs.wait(run.id)).done == 6
    stories = await from_nats(url)
    evidence = Evidence(stories, calls=lines(tmp_path / "calls.jsonl"))
    found = offences(evidence)
    assert {name for name, told in found.items() if told} == {"lists_are_what_the_rows_are"}, "no list was looked at"
    assert evidence.figures["items recorded"] == 6
    stories[run.id].facts.pop(2)
    assert offences(evidence)["journals_are_gapless"]


def filled(file: Path, table: str, columns: str, *rows: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join("?" for _ in columns.split(","))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608 - our own words
        connection.commit()


def test_a_commit_that_is_missing_is_found(tmp_path: Path) -> None:
    world, file = World(tmp_path / "world"), tmp_path / "commits.db"
    stored = [
        (number, f"branch/{branch}", repository.head("main"))
        for number, repository in enumerate(world.repositories)
        for branch in range(4)
    ]
    filled(file, "projects", "project_id, name", (0, "repository0"), (1, "team/repository1"))
    filled(file, "commits", "project_id, branch_name, sha", *stored)
    assert list(apps.branches_are_those_of_the_repositories(file, world)) == []
    world.commit(0)
    assert len(list(apps.branches_are_those_of_the_repositories(file, world))) == 1


def test_a_definition_that_is_another_is_found(tmp_path: Path) -> None:
    file = tmp_path / "project-7.db"
    filled(file, "refined", "term_name, definition", ("workeraab", "workeraab refined (paid 9)"))
    filled(file, "runs", "id, status, error_message", (1, "completed", None), (2, "failed", "it broke"))
    for run, undisturbed, many in ((1, "worker refined", 0), (1, "another", 1), (2, "worker refined", 1), (3, "", 1)):
        asked = {"projects": {"1": 7}, "runs": {"1": run}}
        told = apps.glossaries_are_those_of_an_undisturbed_run(tmp_path, asked, {"worker": undisturbed})
        assert len(list(told)) == many


def test_a_note_that_is_missing_or_there_twice_is_found(tmp_path: Path) -> None:
    vault, log = tmp_path / "vault/1", tmp_path / "s/import/pipeline_stages.jsonl"
    vault.mkdir(parents=True)
    log.parent.mkdir(parents=True)
    items = [f"claude-{1000 + each}" for each in range(CONVERSATIONS)]
    for item in items:
        (vault / f"{item}.md").write_text(f"---\nitem_id: {item}\n---\ntext")
    told = [{"stage": stage, "status": "success", "item_id": item} for item in items for stage in ("transform", "load")]
    log.write_text("".join(json.dumps(line) + "\n" for line in told))

    def found() -> list[str]:
        return list(apps.notes_are_there_once(tmp_path, tmp_path / "vault", {"sessions": {"1": "s"}}, Counter()))

    assert found() == []
    shutil.copy(vault / f"{items[0]}.md", vault / "again.md")
    assert len(found()) == 1
    (vault / f"{items[0]}.md").unlink()
    assert found() == []
    (vault / "again.md").unlink()
    log.write_text("")
    assert len(found()) == 2
