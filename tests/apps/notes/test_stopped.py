"""What a command says that was stopped on the way: what it has done, and how to go on."""

import json
import signal

import pytest

from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_commands import Prompt, at_model, prompt, terminal
from tests.cli.conftest import Terminal
from tests.llm.double import Double

__all__ = ["prompt", "terminal"]


@pytest.mark.parametrize("code", [130, 7])
@pytest.mark.parametrize("as_json", [False, True])
def test_who_is_stopped_says_what_was_done(terminal: Terminal, model: Double, code: int, *, as_json: bool) -> None:
    terminal.environment["TSUZUKI_GRACE_SECONDS"] = "0.5"
    written(terminal.folder / "export/conversations.json", [claude(number) for number in range(6)])
    terminal.tsuzuki("notes", "import", "export", "--out", "vault", "--limit", "1")
    model.hangs = lambda prompt: "(4)" in prompt
    options = ["--concurrency", "1", *at_model(model), *(["--json"] if as_json else [])]
    process = terminal.start("notes", "import", "export", "--out", "other", *options)
    terminal.until(lambda: model.at_once == 1 and len(list((terminal.folder / "other").glob("*.md"))) == 4)
    if code == 130:
        process.send_signal(signal.SIGINT)
    else:
        terminal.tsuzuki("cancel", "2")
    told = terminal.end(process, code=code)
    if as_json:
        stands = json.loads(told.stdout)
        assert (stands["line"], stands["success_count"], stands["pending_count"]) == ("4 success, 0 failed", 4, 2)
    else:
        assert told.stdout == "4 success, 0 failed\n"
    model.hangs = lambda _: False
    assert terminal.tsuzuki("notes", "resume").stdout == "2 success, 0 failed, 4 skipped\n"


def test_a_crash_says_what_was_done_since_the_command_began_and_then_why(prompt: Prompt, model: Double) -> None:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(9)])
    told = prompt("import", "export", "--out", "vault", "--limit", "2", "--concurrency", "1", *at_model(model))
    assert "7 are left: `tsuzuki notes resume 2" in " ".join(told.stderr.split())
    model.refusals = [(401, {})] * 100
    told = prompt("resume", code=1)
    failed = prompt.json("status", code=6)["error_count"]
    assert told.stdout == f"0 success, {failed} failed, 2 skipped\n"
    stopped = json.loads(prompt("resume", "--json", code=1).stdout)
    assert stopped["line"].endswith(" failed, 2 skipped")
    assert stopped["status"] == "CRASHED"
    model.refusals = []
    told = prompt("resume")
    assert told.stdout == "7 success, 0 failed, 2 skipped\n"
    assert "left" not in told.stderr


def test_what_a_provider_says_is_told_once(prompt: Prompt, model: Double) -> None:
    written(prompt.folder / "export/conversations.json", [claude(number) for number in range(6)])
    model.refusals = [(401, {})] * 100
    told = prompt("import", "export", "--out", "vault", "--concurrency", "1", *at_model(model), code=1).stderr
    assert ("キー、モデル名" in told, told.count("HTTP 401")) == (True, 1), told
    shown = prompt("status", code=6).stdout
    assert shown.count("HTTP 401") == 1 + sum(line.startswith("claude-") for line in shown.splitlines()), shown


@pytest.mark.parametrize("days", ["inf", "nan", "-1", "1e300"])
def test_days_are_a_number(prompt: Prompt, days: str) -> None:
    written(prompt.folder / "export/conversations.json", [claude(1)])
    prompt("import", "export", "--out", "vault")
    told = prompt("clean", "--days", days, "--yes", code=1)
    assert "--days" in told.output
    assert "unexpected" not in told.output
    assert (
        "--failure-threshold" in prompt("import", "export", "--out", "v", "--failure-threshold", "nan", code=1).output
    )
    assert prompt.json("status")["status"] == "COMPLETED"


def test_an_item_without_a_name_is_none_though_there_is_only_one(prompt: Prompt) -> None:
    written(prompt.folder / "export/conversations.json", [claude(1)])
    prompt("import", "export", "--out", "vault")
    for item in ("", " "):
        told = prompt("trace", item, code=1).output
        assert "会話の ID またはタイトルが空です" in told
        assert "is empty" in " ".join(told.split())


def test_a_dry_run_refuses_whom_the_import_would_refuse(prompt: Prompt) -> None:
    written(prompt.folder / "export/conversations.json", [claude(1)])
    told = prompt("import", "export", "--out", "vault", "--dry-run", "--llm", "nope", code=1).stderr
    assert "no provider" in told
    nowhere = ["--llm", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"]
    assert "1 note" in prompt("import", "export", "--out", "vault", "--dry-run", *nowhere).stdout, "nobody is asked"
