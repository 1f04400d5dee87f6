"""`tsuzuki notes …` as people use it, in a folder of their own."""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.apps.notes.conftest import knowledge
from tests.apps.notes.exports import chatgpt, claude, said, written, zipped
from tests.apps.notes.test_sessions import EMPTY, failing
from tests.cli.conftest import Terminal
from tests.llm.double import KEY, Double
from tsuzuki.cli import main


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    folder = tmp_path / "here"
    folder.mkdir()
    terminal = Terminal(folder)
    terminal.environment["OPENAI_API_KEY"] = KEY
    yield terminal
    terminal.leave()


class Prompt:
    """The program called in this process: quicker than a new one for each command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0, stdin: str = "") -> Result:
        told = CliRunner().invoke(main, ["notes", *arguments], input=stdin)
        assert told.exit_code == code, told.output
        return told

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)


@pytest.fixture
def prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    monkeypatch.chdir(tmp_path)
    return Prompt(tmp_path)


def at_model(model: Double) -> list[str]:
    return ["--llm", "openai", "--base-url", f"{model.url}/v1", "--model", "m-1"]


def test_an_export_becomes_notes_offline_out_of_the_box(prompt: Prompt) -> None:
    zipped(prompt.folder / "export.zip", {"conversations.json": json.dumps([chatgpt(n) for n in range(5)])})
    told = prompt("import", "export.zip", "--out", "vault", "--dry-run")
    assert "chatgpt: 5 notes" in told.stdout
    assert [path.name for path in prompt.folder.iterdir()] == ["export.zip"], "a dry run changes nothing"
    told = prompt("import", "export.zip", "--out", "vault", "--limit", "2", "--debug")
    assert told.stdout == "2 success, 0 failed\n"
    assert "--debug is deprecated" in told.stderr
    assert prompt("resume").stdout == "3 success, 0 failed, 2 skipped\n"
    assert prompt("resume").stdout == "0 success, 0 failed, 5 skipped\n"
    assert len(list((prompt.folder / "vault").glob("*.md"))) == 5
    shown = prompt.json("status")
    assert (shown["status"], shown["success_count"], shown["failed"]) == ("COMPLETED", 5, [])
    assert shown["session_id"] in prompt("status", "--all").stdout
    trace = prompt("trace", "gpt-0003").stdout
    assert all(
        word in trace for word in ("extract/parse_conversation", "transform/extract_knowledge", "load/write_file")
    )
    assert prompt.json("trace", "Otters 3")["item_id"] == "gpt-0003"
    assert "no session is that old" in prompt("clean", "--days", "1").stderr
    assert shown["session_id"] in prompt("clean", "--days", "0", "--dry-run").stdout
    assert "nothing was removed" in prompt("clean", "--days", "0", stdin="n\n", code=1).stderr
    assert "say --yes" in prompt("clean", "--days", "0", code=1).stderr
    assert len(prompt.json("status", "--all")) == 1
    prompt("clean", "--days", "0", "--yes")
    assert prompt.json("status", "--all") == []
    assert len(list((prompt.folder / "vault").glob("*.md"))) == 5, "notes stay"


def test_a_session_may_lie_anywhere_and_be_taken_in_from_anywhere(prompt: Prompt) -> None:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(3)])
    told = prompt.json("import", "export", "--out", "vault", "--session-dir", "mine", "--limit", "1")
    assert (prompt.folder / "mine/session.json").exists()
    assert prompt("resume", told["session_id"], "--limit", "1").stdout == "1 success, 0 failed, 1 skipped\n"
    assert "is not empty" in prompt("import", "export", "--out", "v", "--session-dir", "mine", code=1).stderr
    (prompt.folder / "mine").rename(prompt.folder / "moved")
    assert prompt("resume", told["session_id"], code=1).stderr.startswith("[Error] Session not found")
    assert prompt("resume", "--session-dir", "moved").stdout == "1 success, 0 failed, 2 skipped\n"
    assert prompt.json("status", told["session_id"])["success_count"] == 3
    prompt("clean", "--days", "0", "--yes")
    assert not (prompt.folder / "moved").exists()


def test_exit_codes_tell_how_it_went(prompt: Prompt, model: Double) -> None:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(3)])
    model.answer = lambda prompt: EMPTY
    prompt("import", "export", "--out", "vault", *at_model(model), code=5)
    model.answer = failing(1)
    assert prompt("resume", code=6).stdout == "2 success, 1 failed\n"
    told = prompt("status", code=6)
    assert "no summary or no content" in told.stdout
    model.answer = knowledge
    assert prompt("retry").stdout == "1 success, 0 failed, 2 skipped\n"
    assert "there is nothing to retry" in prompt("retry", code=1).stderr


def test_what_was_passed_over_or_cannot_be_read_is_told_with_what_helps(prompt: Prompt) -> None:
    turns = [said("user" if n % 2 == 0 else "assistant", f"part {n} " + "word " * 60) for n in range(8)]
    broken = {"id": "bad", "title": "Bad", "mapping": "none"}
    written(prompt.folder / "e/conversations.json", [chatgpt(1, *turns, title="Long"), chatgpt(2), broken])
    told = prompt("import", "e", "--out", "vault", "--chunk-size", "1000", code=6)
    assert "notes retry" not in told.stderr, "there is nothing that it could do"
    shown = prompt("status", code=6)
    assert "too_large" in shown.stdout
    assert "--chunk" in shown.stderr
    assert prompt.json("status", code=6)["skipped"] == [{"item_id": "gpt-0001", "title": "Long", "reason": "too_large"}]
    assert "cannot be read from the export" in prompt("retry", code=1).stderr
    told = prompt("resume", "--chunk", code=6)
    assert told.stdout.endswith("1 failed, 1 skipped\n"), "the short one was done before"
    assert prompt.json("status", code=6)["skipped"] == []
    trace = prompt.json("trace", "Long")
    assert (trace["item_id"], trace["status"]) == ("gpt-0001", "COMPLETED"), "its pieces have the same title"
    assert {record["item_id"] for record in trace["records"]} == {"gpt-0001", *trace["chunk_item_ids"]}
    assert (
        "is no export of claude, but of chatgpt"
        in prompt("import", "e", "--out", "v", "--provider", "claude", code=1).stderr
    )


def test_a_broken_session_hides_no_other_and_lost_outputs_are_made_anew(prompt: Prompt) -> None:
    written(prompt.folder / "e/conversations.json", [claude(number) for number in range(3)])
    prompt("import", "e", "--out", "vault", "--limit", "2")
    first = prompt.json("status")["session_id"]
    shutil.rmtree(prompt.folder / f".tsuzuki/notes/{first}/import/transform")
    assert prompt("resume").stdout == "1 success, 0 failed, 2 skipped\n"
    prompt("import", "e", "--out", "vault")
    second = prompt.json("status")["session_id"]
    (prompt.folder / f".tsuzuki/notes/{second}/session.json").write_text("{half")
    listed = prompt.json("status", "--all")
    assert [(each["session_id"], each["status"]) for each in listed] == [(second, "CRASHED"), (first, "COMPLETED")]
    assert "is broken" in listed[0]["error"]
    assert first in prompt("status", "--all").stdout
    assert first in prompt("clean", "--days", "0", "--yes").stdout


def test_a_vault_in_the_folder_that_is_read_makes_no_notes_of_notes(prompt: Prompt) -> None:
    (prompt.folder / "texts").mkdir()
    (prompt.folder / "texts/a.md").write_text("Otters swim. They eat fish and crabs.")
    assert prompt("import", "texts", "--out", "texts").stdout == "1 success, 0 failed\n"
    assert prompt("import", "texts", "--out", "texts").stdout == "1 success, 0 failed, 1 skipped\n"
    assert len(list((prompt.folder / "texts").iterdir())) == 2


def test_what_cannot_be_done_is_told_in_a_line_of_its_own(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.llm.wire.LONGEST_PAUSE", 0.01)
    assert prompt("resume", "20200101_000000", code=1).stderr.startswith("[Error] Session not found: 20200101_000000")
    assert prompt("import", "gone.zip", "--out", "v", code=1).stderr.startswith("[Error] No input files")
    (prompt.folder / "broken.zip").write_bytes(b"PK\x03\x04 no")
    assert "broken ZIP" in prompt("import", "broken.zip", "--out", "v", code=1).stderr
    written(prompt.folder / "a/conversations.json", [claude(1)])
    said = prompt("import", "a", "--out", "v", "--provider", "gemini", code=1).stderr
    assert "there is no provider 'gemini'" in said
    (prompt.folder / "cut").mkdir()
    (prompt.folder / "cut/conversations.json").write_text(json.dumps([claude(1), claude(2)])[:-30])
    assert "ends in the middle" in prompt("import", "cut", "--out", "v", code=1).stderr
    assert prompt.json("status")["status"] == "CRASHED"
    nowhere = ["--llm", "openai", "--base-url", "http://127.0.0.1:9/v1"]
    said = prompt("import", "a", "--out", "v", *nowhere, code=1).stderr
    assert "openai" in said
    assert "[ERR-TSUZUKI-0161]" in said


def test_ctrl_c_and_cancel_leave_a_session_that_goes_on(terminal: Terminal, model: Double) -> None:
    written(terminal.folder / "export/conversations.json", [claude(number) for number in range(20)])
    model.delay = 0.05
    process = terminal.start("notes", "import", "export", "--out", "vault", "--concurrency", "1", *at_model(model))
    terminal.until(lambda: sum(model.prompts.values()) > 3)
    process.send_signal(signal.SIGINT)
    told = terminal.end(process, code=130)
    assert "`tsuzuki notes resume" in told.stderr
    asked, model.delay = sum(model.prompts.values()), 20.0
    process = terminal.start("notes", "resume")
    terminal.until(lambda: sum(model.prompts.values()) > asked)
    assert "being worked on already" in terminal.tsuzuki("notes", "resume", code=1).stderr
    terminal.tsuzuki("cancel", "1")
    terminal.end(process, code=7)
    assert terminal.json("notes", "status")["status"] == "PARTIAL"
    model.delay = 0.0
    last = terminal.tsuzuki("notes", "resume").stdout
    figures = [int(part.split()[0]) for part in last.strip().split(", ")]
    assert (sum(figures), figures[1]) == (20, 0), last
    assert sum(model.prompts.values()) <= 22
