"""What stands where a file of a session belongs, and is none that can be read: it is named, and nothing is changed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, records
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_commands import Prompt, prompt
from tests.apps.notes.test_sessions import export
from tsuzuki.apps.notes.flows import import_notes
from tsuzuki.errors import BadUsage

__all__ = ["prompt"]

FILES = (
    "session.json",
    "import/phase.json",
    "import/pipeline_stages.jsonl",
    "import/error_details.jsonl",
    "import/steps.jsonl",
    "import/batches.jsonl",
    "import/lock",
    "import/extract/output/items.jsonl",
    "import/extract/output/index.jsonl",
    "import/extract/output/complete.json",
    "import/transform/output/items.jsonl",
    "import/load/output/files.jsonl",
)


def state(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if ".db" not in path.name
    }


def imported(prompt: Prompt) -> Path:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(3)])
    prompt("import", "export", "--out", "vault", "--limit", "2")
    [session] = (prompt.folder / ".tsuzuki/notes").iterdir()
    return session


def in_the_way_of(path: Path, what: str) -> None:
    path.unlink(missing_ok=True)
    if what == "a folder":
        path.mkdir()
    else:
        path.symlink_to(path.name)  # which leads to itself: nobody can read it, not even root


@pytest.mark.parametrize("what", ["a folder", "a link that leads nowhere"])
@pytest.mark.parametrize("name", FILES)
def test_it_is_named_with_what_to_do_and_nothing_else_is_changed(prompt: Prompt, name: str, what: str) -> None:
    session = imported(prompt)
    in_the_way_of(session / name, what)
    before = state(prompt.folder)
    for command in (
        ("resume",),
        ("resume", "--out", "elsewhere"),
        ("resume", "--session-dir", str(session)),
        ("retry",),
        ("status",),
        ("trace", "claude-0000"),
    ):
        told = prompt(*command, code=1).stderr
        assert "unexpected" not in told
        assert f"{session.name}/{name} " in told
        assert "読み書きできません" in told
        assert "move it away" in told
    assert state(prompt.folder) == before
    everything = prompt.json("status", "--all")
    if everything:
        assert (everything[0]["session_id"], everything[0]["status"]) == (session.name, "CRASHED")
    shutil.move(session / name, prompt.folder / "away")
    if name != "session.json":
        assert "1 success" in prompt("resume").stdout, "without it, it is made anew"


async def test_over_http_and_in_a_run_it_is_refused_as_well(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 3), limit=1, offline=True)
    count = len(records(session))
    shutil.move(session.stage_log, tmp_path / "kept")
    session.stage_log.mkdir()
    for asked in (study.desk.resume, study.desk.retry, study.desk.standing):
        with pytest.raises(BadUsage, match="is a folder"):
            await asked(session)
    row = await study.runs.submit(import_notes, {"session_id": session.session_id})
    ended = await study.ended(row.id)
    assert ended.status == "FAILED"
    assert "is a folder" in str(ended.error)
    session.stage_log.rmdir()
    shutil.move(tmp_path / "kept", session.stage_log)
    assert len(records(session)) == count
    assert json.loads((session.phase / "phase.json").read_bytes())["status"] == "PARTIAL"
    assert (await study.resumed(session))["success"] == 2
