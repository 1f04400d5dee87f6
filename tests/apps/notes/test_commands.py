"""`tsuzuki notes …` as people use it, in a folder of their own."""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.apps.notes.conftest import Study, knowledge
from tests.apps.notes.exports import chatgpt, claude, said, written, zipped
from tests.apps.notes.test_sessions import EMPTY, export, failing
from tests.cli.conftest import Terminal
from tests.llm.double import KEY, Double
from tsuzuki.apps.notes import CompletedItemsCache, StageType, looking
from tsuzuki.apps.notes.flows import import_notes
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


@pytest.mark.parametrize(
    "arguments", [("import", "export", "--out", ""), ("import", "", "--out", "vault"), ("resume", "--out", " ")]
)
def test_an_empty_path_is_a_variable_that_is_not_set(prompt: Prompt, arguments: tuple[str, ...]) -> None:
    written(prompt.folder / "export/conversations.json", [claude(1)])
    told = prompt(*arguments, code=1)
    assert "パスが空です" in told.output
    assert "the path is empty" in " ".join(told.output.split())
    assert [path.name for path in prompt.folder.iterdir()] == ["export"]


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


def test_where_nothing_succeeded_all_has_failed_though_some_were_empty(prompt: Prompt, model: Double) -> None:
    empty = {**claude(0), "chat_messages": []}
    written(prompt.folder / "export/conversations.json", [empty, *(claude(number) for number in (1, 2))])
    model.answer = lambda prompt: EMPTY
    told = prompt("import", "export", "--out", "vault", *at_model(model), code=5)
    assert told.stdout == "0 success, 2 failed, 1 skipped\n"
    assert ": FAILED" in told.stderr
    assert prompt.json("status", code=5)["status"] == "FAILED"
    model.answer = failing(1)
    assert prompt("resume", code=6).stdout == "1 success, 1 failed, 1 skipped\n"
    assert prompt("resume", code=6).stdout == "0 success, 1 failed, 2 skipped\n", "the other had succeeded before"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("status",), 1),
        (("status", "--all"), 0),
        (("trace", "x"), 1),
        (("clean", "--dry-run"), 0),
        (("clean", "--yes"), 0),
        (("resume",), 1),
        (("retry", "20260101_000000"), 1),
        (("resume", "--session-dir", "nowhere"), 1),
    ],
)
def test_who_only_looks_makes_nothing(prompt: Prompt, arguments: tuple[str, ...], code: int) -> None:
    prompt(*arguments, code=code)
    assert list(prompt.folder.iterdir()) == []


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


def test_what_is_too_long_for_a_note_is_told_of_and_is_no_success(prompt: Prompt) -> None:
    long = claude(1, {"sender": "human", "text": "otter " * 500})
    written(prompt.folder / "e/conversations.json", [long, claude(2), claude(3)])
    told = prompt("import", "e", "--out", "vault", "--chunk-size", "1000", code=6)
    assert told.stdout == "2 success, 0 failed, 1 skipped\n"
    assert "skipped: 1 too_large" in told.stderr
    assert "1 conversation is too long for a note: `tsuzuki notes resume" in told.stderr
    again = prompt.json("import", "e", "--out", "vault", "--chunk-size", "1000", code=6)
    assert again["skipped_reasons"] == {"too_large": 1, "unchanged": 2}
    dry = prompt("import", "e", "--out", "vault", "--chunk-size", "1000", "--dry-run").stdout
    assert "2 passed over: unchanged" in dry
    assert prompt("resume", "--chunk").stdout.endswith("0 failed, 2 skipped\n")
    (prompt.folder / "vault/Otters 2.md").unlink()
    told = prompt("import", "e", "--out", "vault", "--chunk-size", "1000")
    assert "skipped: 1 deleted, 2 unchanged" in told.stderr
    assert "--item ITEM" in told.stderr
    assert prompt("retry", "--item", "Otters 2").stdout == "1 success, 0 failed, 2 skipped\n"
    assert (prompt.folder / "vault/Otters 2.md").exists()


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


def test_the_address_that_is_set_counts_for_the_provider_that_is_named(
    prompt: Prompt, model: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", f"{model.url}/v1")
    monkeypatch.setenv("TSUZUKI_LLM_MODEL", "m-1")
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(2)])
    assert prompt("import", "export", "--out", "vault", "--llm", "openai").stdout == "2 success, 0 failed\n"
    assert (len(model.seen), {body["model"] for body in model.seen}) == (2, {"m-1"})


def test_a_limit_is_at_least_one_and_a_dry_run_heeds_it(prompt: Prompt) -> None:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(5)])
    told = prompt("import", "export", "--out", "vault", "--dry-run", "--limit", "2").stdout
    assert "claude: 5 notes of" in told
    assert "2 of the 5 would be made now" in told
    assert "would be made" not in prompt("import", "export", "--out", "vault", "--dry-run").stdout
    counted = prompt.json("import", "export", "--out", "vault", "--dry-run", "--limit", "2")
    assert (counted["items"], counted["made"]) == (5, 2)
    assert prompt.json("import", "export", "--out", "vault", "--dry-run")["made"] == 5
    prompt("import", "export", "--out", "vault", "--limit", "1")
    for command in (("import", "export", "--out", "vault"), ("resume",), ("retry",)):
        assert "--limit" in prompt(*command, "--limit", "0", code=1).stderr
    assert len(list((prompt.folder / "vault").glob("*.md"))) == 1


def test_a_vault_in_the_folder_that_is_read_makes_no_notes_of_notes(prompt: Prompt) -> None:
    (prompt.folder / "texts").mkdir()
    (prompt.folder / "texts/a.md").write_text("Otters swim. They eat fish and crabs.")
    assert prompt("import", "texts", "--out", "texts").stdout == "1 success, 0 failed\n"
    assert prompt("import", "texts", "--out", "texts").stdout == "0 success, 0 failed, 2 skipped\n"
    assert len(list((prompt.folder / "texts").glob("*.md"))) == 2


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


def test_an_export_that_breaks_off_is_to_be_imported_anew_and_not_resumed(prompt: Prompt) -> None:
    (prompt.folder / "cut").mkdir()
    (prompt.folder / "cut/conversations.json").write_text(json.dumps([claude(1), claude(2)])[:-30])
    for told in (prompt("import", "cut", "--out", "v", code=1), prompt("resume", code=1)):
        assert "ends in the middle" in told.stderr
        assert "新しいエクスポート" in told.stderr
        assert "get a new export, or mend the file, and import it again" in told.stderr
        assert "notes resume" not in told.stderr
    stands = prompt("status").stdout
    assert "CRASHED" in stands
    assert "get a new export, or mend the file, and import it again" in stands
    assert prompt.json("status")["export_unreadable"] is True
    [session] = (prompt.folder / ".tsuzuki/notes").iterdir()
    mended = session / "import/extract/input/conversations.json"
    mended.unlink()
    written(mended, [claude(1), claude(2)])
    assert prompt("resume").stdout == "2 success, 0 failed\n", "unless its copy in the session is mended"
    assert prompt.json("status")["export_unreadable"] is False


def test_what_can_be_resumed_is_offered_to_be(prompt: Prompt, model: Double) -> None:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(6)])
    model.refusals = [(401, {})] * 100
    said = prompt("import", "export", "--out", "v", "--concurrency", "1", *at_model(model), code=1).stderr
    assert "`tsuzuki notes resume" in said
    assert "new export" not in said + prompt("status", code=6).stdout
    assert prompt.json("status", code=6)["export_unreadable"] is False


def test_a_bad_line_of_the_log_is_told_of_once_by_each_command(
    terminal: Terminal, caplog: pytest.LogCaptureFixture
) -> None:
    written(terminal.folder / "export/conversations.json", [claude(number) for number in range(3)])
    terminal.tsuzuki("notes", "import", "export", "--out", "vault", "--limit", "2")
    [session] = (terminal.folder / ".tsuzuki/notes").iterdir()
    log = session / "import/pipeline_stages.jsonl"
    log.write_text(log.read_text() + "otters\n" + '{"stage": "load"}\n')
    number = len(log.read_text().splitlines())
    for command in (("status",), ("resume",), ("status", "--all"), ("trace", "claude-0000"), ("resume",)):
        told = terminal.tsuzuki("notes", *command).stderr
        assert told.count("is passed over") == 2, (command, told)
        assert told.count(f"line {number - 1} is") == told.count(f"line {number} is") == 1
    for _ in range(2):
        caplog.clear()
        CompletedItemsCache.from_jsonl(log, StageType.LOAD)
        assert len(caplog.records) == 2, "who asks for it is told each time"


async def test_a_run_tells_of_a_bad_line_once_and_so_do_pages_that_ask_again_and_again(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session, _ = await study.imported(export(tmp_path, 3), limit=1)
    with session.stage_log.open("a") as log:
        log.write("otters\n")
    for _ in range(3):
        looking.items(session)
        looking.traced(session, "claude-0000")
    assert len(caplog.records) == 1
    caplog.clear()
    row = await study.runs.submit(import_notes, {"session_id": session.session_id})
    await study.ended(row.id)
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "named", [["--model", "qwen3:8b"], ["--base-url", "http://127.0.0.1:9/v1"], ["--llm", "offline", "--model", "m-1"]]
)
def test_a_model_that_nobody_would_ask_is_refused_and_no_other_notes_are_made(prompt: Prompt, named: list[str]) -> None:
    written(prompt.folder / "export/conversations.json", [claude(1)])
    for command in (["import", "export", "--out", "vault"], ["resume"], ["retry"]):
        told = prompt(*command, *named, code=1).stderr
        if command[0] == "retry":
            continue  # nothing has failed
        assert "プロバイダーも指定してください" in told
        assert "Name its provider too" in told
        assert not (prompt.folder / "vault").exists() or command[0] == "resume"
        if command[0] == "import":
            assert prompt.json("status", "--all") == []
            prompt("import", "export", "--out", "vault")
    assert prompt.json("status")["status"] == "COMPLETED"


def test_what_is_wrong_with_a_provider_is_told_in_both_languages(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    written(prompt.folder / "export/conversations.json", [claude(1)])
    for named, why in (
        (["openai"], "needs a key"),
        (["nobody"], "no provider"),
        (["vllm", "--base-url", "x"], "no address"),
    ):
        told = prompt("import", "export", "--out", "vault", "--llm", *named, code=1).stderr
        assert "プロバイダー、アドレス、キーを確認してください" in told
        assert why in told


def heard(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stderr is not None
    assert any(words in line for line in iter(process.stderr.readline, "")), words


def test_ctrl_c_lets_questions_under_way_be_answered_and_none_is_asked_twice(terminal: Terminal, model: Double) -> None:
    written(terminal.folder / "export/conversations.json", [claude(number) for number in range(12)])
    model.hangs = lambda _: True
    process = terminal.start("notes", "import", "export", "--out", "vault", "--concurrency", "3", *at_model(model))
    terminal.until(lambda: model.at_once == 3)
    process.send_signal(signal.SIGINT)
    heard(process, "Finishing what is under way; press Ctrl-C again to stop at once")
    model.hangs = lambda _: False
    assert "`tsuzuki notes resume" in terminal.end(process, code=130).stderr
    assert sum(model.prompts.values()) == 3, "no other was begun"
    assert terminal.json("notes", "status")["status"] == "PARTIAL"
    assert terminal.tsuzuki("notes", "resume").stdout == "12 success, 0 failed\n"
    assert set(model.prompts.values()) == {1}, "what was answered meanwhile is kept"


def test_a_second_ctrl_c_waits_for_no_answer(terminal: Terminal, model: Double) -> None:
    written(terminal.folder / "export/conversations.json", [claude(number) for number in range(3)])
    model.hangs = lambda _: True
    process = terminal.start("notes", "import", "export", "--out", "vault", "--concurrency", "2", *at_model(model))
    terminal.until(lambda: model.at_once == 2)
    process.send_signal(signal.SIGINT)
    heard(process, "Finishing what is under way")
    process.send_signal(signal.SIGINT)
    terminal.end(process, code=130)
    model.hangs = lambda _: False
    assert terminal.tsuzuki("notes", "resume").stdout == "3 success, 0 failed\n"


def test_an_answer_that_does_not_come_is_not_waited_for_beyond_the_grace_period(
    terminal: Terminal, model: Double
) -> None:
    terminal.environment["TSUZUKI_GRACE_SECONDS"] = "0.5"
    written(terminal.folder / "export/conversations.json", [claude(number) for number in range(3)])
    model.hangs = lambda prompt: "(0)" in prompt
    process = terminal.start("notes", "import", "export", "--out", "vault", "--concurrency", "1", *at_model(model))
    terminal.until(lambda: model.at_once == 1)
    process.send_signal(signal.SIGINT)
    terminal.end(process, code=130)
    model.hangs = lambda _: False
    assert terminal.tsuzuki("notes", "resume").stdout == "3 success, 0 failed\n"


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
