"""`kill -9` in the middle of an import: at most what was in flight is repeated, also on a copy without a database.

What a batch of the provider was asked is never asked again, wherever the session is resumed.
"""

import json
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.apps.notes.conftest import lines
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_writing import parsed
from tests.cli.conftest import Terminal
from tests.llm.double import KEY, Double, Plan
from tests.llm.test_batches import PATHS
from tests.llm.test_crashes import Boundary, wait_for

COUNT = 100
LANES = 2


def at_model(model: Double) -> list[str]:
    return ["--llm", "openai", "--base-url", f"{model.url}/v1", "--model", "m-1", "--concurrency", str(LANES)]


def session_of(terminal: Terminal) -> Path:
    return next((terminal.folder / ".tsuzuki/notes").iterdir())


def successes(log: Path, stage: str) -> Counter[str]:
    """Counts successes by item; half a line at the end is none."""
    whole = log.read_bytes().rpartition(b"\n")[0] if log.exists() else b""
    log = log.with_name("whole.jsonl")
    log.write_bytes(whole)
    found = Counter(line["item_id"] for line in lines(log) if (line["stage"], line["status"]) == (stage, "success"))
    log.unlink()
    return found


def journalled(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        found: int = connection.execute("SELECT sum(done) FROM runs").fetchone()[0]
        return found


@pytest.mark.timeout(180)
def test_at_most_what_was_in_flight_is_repeated(tmp_path: Path, model: Double) -> None:
    terminal = Terminal(tmp_path)
    terminal.environment["OPENAI_API_KEY"] = KEY
    written(tmp_path / "export/conversations.json", [claude(number) for number in range(COUNT)])
    model.delay = 0.01
    process = terminal.start("notes", "import", "export", "--out", "vault", "-q", *at_model(model))
    deadline = time.monotonic() + 60
    while sum(model.prompts.values()) < COUNT // 2:
        assert time.monotonic() < deadline, "the import does not go on"
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    log = session_of(terminal) / "import/pipeline_stages.jsonl"
    done, loaded = len(successes(log, "transform")), len(successes(log, "load"))
    assert COUNT // 2 - LANES - 1 <= done < COUNT
    copy = tmp_path / "copy"
    shutil.copytree(session_of(terminal), copy / "session")

    # On another machine: the folder alone, no database.
    before = sum(model.prompts.values())
    other = Terminal(copy)
    other.environment["OPENAI_API_KEY"] = KEY
    told = other.tsuzuki("notes", "resume", "--session-dir", "session", "--out", "vault", "-q")
    assert told.stdout.split(",")[1].strip() == "0 failed"
    assert sum(model.prompts.values()) - before == COUNT - done, "nothing that the log has is asked for again"
    assert set(successes(copy / "session/import/pipeline_stages.jsonl", "transform").values()) == {1}

    # On this one: its database knows the run, and both records tell the same in the end.
    before = sum(model.prompts.values())
    told = terminal.tsuzuki("notes", "resume", "-q")
    assert told.stdout.strip() == f"{COUNT - loaded} success, 0 failed, {loaded} skipped"
    assert sum(model.prompts.values()) - before <= COUNT - done
    for stage in ("transform", "load"):
        assert successes(log, stage) == Counter({f"claude-{number:04d}": 1 for number in range(COUNT)})
    assert journalled(tmp_path / ".tsuzuki/tsuzuki.db") == 2 * COUNT
    notes = sorted((tmp_path / "vault").glob("*.md"))
    assert {parsed(note.read_text())[0]["item_id"] for note in notes} == set(successes(log, "load"))
    assert len(notes) == COUNT
    assert terminal.tsuzuki("notes", "resume", "-q").stdout.strip() == f"0 success, 0 failed, {COUNT} skipped"
    terminal.leave()
    other.leave()


@pytest.mark.timeout(180)
def test_the_run_of_a_killed_import_goes_on_as_any_other_does(tmp_path: Path, model: Double) -> None:
    terminal = Terminal(tmp_path)
    terminal.environment["OPENAI_API_KEY"] = KEY
    written(tmp_path / "export/conversations.json", [claude(number) for number in range(20)])
    model.hangs = lambda prompt: "(15)" in prompt
    process = terminal.start("notes", "import", "export", "--out", "vault", "-q", *at_model(model))
    deadline = time.monotonic() + 60
    while sum(model.prompts.values()) < 20:
        assert time.monotonic() < deadline, "the import does not go on"
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    model.hangs = lambda _: False
    assert "tsuzuki resume 1" in terminal.tsuzuki("get", "1").stdout
    assert json.loads(terminal.tsuzuki("resume", "1", "-q").stdout)["status"] == "COMPLETED"
    assert len(list((tmp_path / "vault").glob("*.md"))) == 20
    assert sum(model.prompts.values()) <= 20 + LANES, "what was answered is not asked again"
    assert terminal.tsuzuki("notes", "status", "--json").stdout.count('"COMPLETED"') == 1
    terminal.leave()


@pytest.mark.parametrize("boundary", ["before batch", "after batch", "while polling"])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_session_that_is_moved_after_a_kill_has_one_batch(
    tmp_path: Path, model: Double, provider: str, boundary: str
) -> None:
    def terminal(folder: Path) -> Terminal:
        found = Terminal(folder)
        found.environment |= {f"{provider.upper()}_API_KEY": KEY, "TSUZUKI_LLM_POLL_SEC": "0.05"}
        found.environment |= {"TSUZUKI_LLM_SETTLE_SEC": "0.5", "TSUZUKI_LLM_TIMEOUT_SEC": "2"}
        return found

    first = terminal(tmp_path)
    written(tmp_path / "export/conversations.json", [claude(number) for number in range(5)])
    asked = ["--llm", provider, "--base-url", model.url + PATHS[provider], "--model", "m-1", "--strategy", "batch"]
    model.plan, at = Plan(polls=10**9), Boundary(model, boundary)
    process = first.start("notes", "import", "export", "--out", "vault", "-q", *asked)
    wait_for(lambda: at.reached or any(batch.looked for batch in model.batches.values()))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (tmp_path / "there").mkdir()
    session_of(first).rename(tmp_path / "there/session")
    shutil.rmtree(tmp_path / ".tsuzuki")
    if boundary != "before batch":  # there it comes to the provider although nobody waits for it any more, or never
        wait_for(lambda: bool(model.batches))
    model.plan = Plan(polls=0)
    for batch in model.batches.values():
        batch.plan = model.plan
    other = terminal(tmp_path / "there")
    told = other.tsuzuki("notes", "resume", "--session-dir", "session", "-q")
    assert told.stdout.strip() == "5 success, 0 failed"
    assert [len(batch.requests) for batch in model.batches.values()] == [5]
    assert not model.prompts, "nobody was asked directly"
    first.leave()
    other.leave()
