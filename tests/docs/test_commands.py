"""Every command that a page says is there, with each option that it says: also on pages that no test types."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.acceptance.processes import ROOT
from tsuzuki.cli import main

MADE_UP = {"greetings", "NAME"}
"""What pages call an application of one's own."""
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
]
SAID = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*tsuzuki ([^\s|].*)|`tsuzuki ([^`]+)`", re.MULTILINE)


def said(page: Path) -> Iterator[list[str]]:
    """Gives the words of each command, up to a comment or to what the shell does with its answer."""
    for typed, inline in SAID.findall(page.read_text()):
        words = re.split(r"\s#| [|>&]|;|  ", typed or inline)[0]
        try:
            yield shlex.split(words)
        except ValueError:  # a quotation that goes on in the next line
            yield words.split()


def found(words: list[str]) -> tuple[click.Command, list[str]]:
    """Gives the command that words name, and what comes behind its name."""
    command: click.Command = main
    for place, word in enumerate(words):
        if not isinstance(command, click.Group):
            return command, words[place:]
        if word in ("…", "COMMAND") or word in MADE_UP or word.startswith("-"):
            return click.Command(None), []
        inner = command.get_command(click.Context(command), word)
        assert inner is not None, f"there is no command {word!r}"
        command = inner
    return command, []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_commands_and_options_that_are_there(page: Path) -> None:
    for words in said(page):
        command, rest = found(words)
        known = {option for one in [*command.params, *main.params] for option in (*one.opts, *one.secondary_opts)}
        options = {word.partition("=")[0] for word in rest if word.startswith("--") and word != "--"}
        if command.name is not None:
            assert options <= known | {"--help"}, f"tsuzuki {' '.join(words)}"
