"""Completion in a real shell, as the docs say how to switch it on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs/cli.md"
ASK = """
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_tsuzuki_completion tsuzuki
printf "%s\\n" "${{COMPREPLY[@]}}"
"""


def completed(words: str, *paths: Path) -> list[str]:
    """Lets bash complete the last of these words."""
    [line] = re.findall(r'^(eval "\$\(_TSUZUKI_COMPLETE=bash_source tsuzuki\)") ', DOCS.read_text(), re.MULTILINE)
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", line + ASK.format(words=words)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": programs, "PYTHONPATH": ":".join(map(str, paths))},
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("tsuzuki su", {"submit", "submit-batch", "submit-yaml"}),
        ("tsuzuki dlq re", {"replay"}),
        ("tsuzuki list --sta", {"--status"}),
        ("tsuzuki list --status can", {"cancelling", "cancelled"}),
        ("tsuzuki watch 1 -o j", {"json", "jsonl"}),
    ],
)
def test_commands_options_and_choices_are_completed(words: str, wanted: set[str]) -> None:
    assert set(completed(words)) == wanted


def test_applications_are_completed_too(site: Path) -> None:
    assert completed("tsuzuki greet", site) == ["greetings"]
    assert completed("tsuzuki greetings b", site) == ["book"]
