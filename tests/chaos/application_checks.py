"""What must hold of the files of the applications: they have what their runs did, and what the world outside has."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from tests.apps.commits.conftest import consistent
from tests.chaos.applications import CONVERSATIONS, World, letters
from tests.chaos.doubles import NUMBER


def asked_of(file: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def commits_are_those_of_the_repositories(file: Path, world: World) -> Iterator[str]:
    """The file is what git has, and the counters of bulk runs are those of their targets."""
    try:
        consistent(file)
    except AssertionError as error:
        yield f"commits: {error}"
    yield from branches_are_those_of_the_repositories(file, world)


def branches_are_those_of_the_repositories(file: Path, world: World) -> Iterator[str]:
    """Each branch has the commits that git has."""
    projects = {
        key: name for key, name in asked_of(file, "SELECT project_id, name FROM projects") if str(name)[-1].isdigit()
    }
    stored: dict[tuple[str, str], set[str]] = {}
    for project, branch, sha in asked_of(file, "SELECT project_id, branch_name, sha FROM commits"):
        stored.setdefault((str(projects[project])[-1], branch), set()).add(sha)
    for number, repository in enumerate(world.repositories):
        for branch in [f"branch/{each}" for each in range(4)]:
            there = set(repository.git("rev-list", branch).split())
            found = stored.get((str(number), branch), set())
            if found != there:
                yield f"commits: {repository.path.name} {branch} has {len(there)} commits, {len(found)} are stored"


def glossary_of(file: Path, number: int) -> dict[str, str]:
    """Gives the definitions of a project, as they would be in every other one."""
    rows = asked_of(file, "SELECT term_name, definition FROM refined ORDER BY term_name")
    mark = letters(number)
    return {term.replace(mark, ""): NUMBER.sub("", text).strip().replace(mark, "") for term, text in rows}


def glossaries_are_those_of_an_undisturbed_run(
    folder: Path, asked: dict[str, Any], undisturbed: dict[str, str]
) -> Iterator[str]:
    """Each run that was accepted has completed, and each project has the definitions of one that nobody disturbed."""
    for number, run in asked["runs"].items():
        file = folder / f"project-{asked['projects'][number]}.db"
        rows = {number: told for number, *told in asked_of(file, "SELECT id, status, error_message FROM runs")}
        status, error = rows.get(int(run), ("lost", ""))
        if status != "completed":
            yield f"glossary {number}: run {run} is {status!r}: {error}"
        elif (found := glossary_of(file, int(number))) != undisturbed:
            yield f"glossary {number}: {found} instead of {undisturbed}"


def notes_are_there_once(folder: Path, vault: Path, asked: dict[str, Any], figures: Counter[str]) -> Iterator[str]:
    """Each session has a note for every conversation, and its log has a success for every item and stage."""
    for number, session in asked["sessions"].items():
        wanted = {f"claude-{int(number) * 1000 + each:04d}" for each in range(CONVERSATIONS)}
        notes = Counter(_item(note) for note in (vault / number).glob("*.md"))
        if notes != Counter(wanted):
            missing, more = Counter(wanted) - notes, notes - Counter(wanted)
            yield f"notes {number}: {sorted(missing)} missing, {sorted(more)} too many"
        log = folder / session / "import" / "pipeline_stages.jsonl"
        done: Counter[tuple[str, str]] = Counter()
        for told in _whole(log):
            if told["status"] == "success" and told["stage"] in ("transform", "load"):
                done[told["stage"], told["item_id"]] += 1
        figures["notes written"] += notes.total()
        figures["stages logged again"] += done.total() - len(done)
        if {item for stage, item in done if stage == "load"} != wanted:
            yield f"notes {number}: the log has {len(done)} successes for {len(wanted)} items"


def _whole(log: Path) -> Iterator[dict[str, Any]]:
    """Gives the lines of a log that are whole: a kill and a full disk leave half ones, which count for nothing."""
    for line in log.read_text().splitlines() if log.exists() else []:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def _item(note: Path) -> str:
    return str(yaml.safe_load(note.read_text().split("---\n", 2)[1])["item_id"])
