"""What people see on a narrow terminal: whole words, the reasons, and a bar that moves in its place."""

import json
from pathlib import Path

import pytest

from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_commands import Prompt, at_model, prompt
from tests.llm.double import KEY, Double
from tests.terminals import Terminal
from tsuzuki.cli.narrow import columns

__all__ = ["prompt"]

TITLE = "カワウソの食べ物についての長い会話のタイトル"


def seen(folder: Path, width: int, *arguments: str, code: int = 0) -> list[str]:
    terminal = Terminal(folder, "notes", *arguments, columns=width, NO_COLOR="1")
    try:
        assert terminal.ended() == code, terminal.said
        return terminal.screen
    finally:
        terminal.leave()


@pytest.mark.parametrize("width", [40, 60])
def test_no_line_is_wider_than_the_terminal_and_nothing_that_counts_is_cut(prompt: Prompt, width: int) -> None:
    long = claude(2, {"sender": "human", "text": "とても長い。" * 6000}, name="長い会話" * 8)
    broken = {**claude(3, name="壊れた会話" * 5), "chat_messages": ""}
    written(prompt.folder / "export/conversations.json", [claude(1, name=TITLE), long, broken])
    prompt("import", "export", "--out", "v", code=6)
    status = seen(prompt.folder, width, "status", code=6)
    everything = seen(prompt.folder, width, "status", "--all")
    trace = seen(prompt.folder, width, "trace", TITLE)
    for line in [*status, *everything, *trace]:
        if not line.startswith(("vault", "note  ")):  # a path stays whole: it is to be copied
            assert columns(line) <= width, line
    said = " ".join(" ".join(status).split())
    assert "1 success, 1 failed, 1 skipped, 0 pending of 3" in said
    assert "unexpected shape" in said or "no conversation" in said or "list" in said, "the reason is told"
    assert "too_large" in said
    assert "PARTIAL" in everything[0]
    assert "1 success, 1 failed, 1 skipped, 0 pending of 3" in " ".join(" ".join(everything).split())
    words = " ".join(trace).split()
    assert {"extract/parse_conversation", "transform/extract_knowledge", "load/write_file", "success"} <= set(words)


@pytest.mark.parametrize("width", [30, 40])
def test_the_bar_moves_in_its_place(tmp_path: Path, model: Double, width: int) -> None:
    written(tmp_path / "export/conversations.json", [claude(number) for number in range(6)])
    model.hangs = lambda prompt: "(5)" in prompt
    arguments = ["notes", "import", "export", "--out", "v", "--concurrency", "1", *at_model(model)]
    terminal = Terminal(tmp_path, *arguments, columns=width, OPENAI_API_KEY=KEY)
    try:
        terminal.until("5/6")
        moving = [line for line in terminal.screen if "/6" in line]
        assert all(columns(line) < width for line in moving), moving
        model.hangs = lambda _: False
        assert terminal.ended() == 0
        assert not [line for line in terminal.screen if "/6" in line], "it is taken away in the end"
        assert "6 success, 0 failed" in terminal.screen
    finally:
        terminal.leave()


def test_programs_get_lines_as_they_are(prompt: Prompt) -> None:
    written(prompt.folder / "export/conversations.json", [claude(1, name=TITLE * 3)])
    prompt("import", "export", "--out", "v")
    assert f"claude-0001  {TITLE * 3}" in prompt("trace", "claude-0001").stdout
    assert json.loads(prompt("trace", "claude-0001", "--json").stdout)["title"] == TITLE * 3
